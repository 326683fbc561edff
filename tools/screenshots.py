"""Pictures of the web page for the README: `python -m tools.screenshots [DIR]`.

The page is the real one, served by the real listener, and shows a sample cluster (`sample`) at a
fixed time, so the pictures are of the same cluster every time. Needs Chromium.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from tools.browser import PageTrouble, Tab, browsing
from tools.sample.site import Served, served
from tools.sample.world import sample

ROOT = Path(__file__).resolve().parents[1] / "docs" / "images"
NOW = datetime(2026, 3, 10, 14, 20, tzinfo=UTC).timestamp()
MOST_BYTES = 150_000
_SETTLES_S = 0.4  # bars grow to their size


class Picture(NamedTuple):
    """One picture: its name, where, how large, in which colours."""

    name: str
    page: str
    width: int = 1280
    height: int = 860
    colours: Literal["light", "dark"] = "light"


PICTURES = (
    Picture("overview", "/"),
    Picture("overview-dark", "/", colours="dark"),
    Picture("queues", "/queues"),
    Picture("gang", "GANG"),
    Picture("map", "/map"),
    Picture("timeline", "/timeline?span=36000"),
    Picture("nodes", "/nodes"),
    Picture("phone", "/", 390, 844),
)


async def show(tab: Tab, there: Served, page: str) -> None:
    """Open a page and wait until it is drawn."""
    await tab.go(there.at(page))
    await tab.until("document.body.dataset.drawn && !document.querySelector('.waiting')")


def a_gang(there: Served) -> str:
    """Return the page of a pending gang with a planned start."""
    there.dashboard.refresh()
    one = next(one for one in there.dashboard.waiting if one.waits.start and one.pods > 1)
    return f"/workloads/{one.namespace}/{one.name}"


async def take(folder: Path, pictures: tuple[Picture, ...] = PICTURES) -> list[Path]:
    """Take pictures; raises PageTrouble if a page complained."""
    folder.mkdir(parents=True, exist_ok=True)
    taken: list[Path] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        async with served(sample(NOW)) as there, browsing(Path(own)) as tab:
            await tab.call("Emulation.setTimezoneOverride", timezoneId="UTC")
            for one in pictures:
                await tab.look(one.width, one.height, colours=one.colours)
                await show(tab, there, a_gang(there) if one.page == "GANG" else one.page)
                await asyncio.sleep(_SETTLES_S)
                path = folder / f"{one.name}.png"
                await tab.picture(path)
                taken.append(path)
            if tab.errors:
                raise PageTrouble(tab.errors[0])
    return taken


def main() -> int:
    """Take them all."""
    try:
        taken = asyncio.run(take(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
    except PageTrouble as error:
        print(f"screenshots: {error}", file=sys.stderr)
        return 1
    for path in taken:
        size = path.stat().st_size
        print(f"{path.name}: {size // 1000} KB{' (too large)' if size > MOST_BYTES else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
