"""Pictures of the web page for the README: `python -m tools.screenshots [DIR]`.

They are of `unisono demo look`: it is started with a history of a week, lives for some minutes at a
high speed, and is ended. So the pictures are of another moment every time, and of nothing that the
program does not show. Needs Chromium; takes six minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from tools.browser import PageTrouble, Tab, browsing
from tools.sample.site import Served

ROOT = Path(__file__).resolve().parents[1] / "docs" / "images"
NOW = datetime(2026, 3, 10, 14, 20, tzinfo=UTC).timestamp()  # of clusters on paper, in tests
MOST_BYTES = 150_000
_SETTLES_S = 0.4  # bars grow to their size
_SPEED = 40
_LIVES_S = 300.0  # three hours of the life of its jobs
_STARTS_S = 120.0
_ENDS_S = 30.0


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
    Picture("timeline", "/timeline?span=480"),
    Picture("nodes", "/nodes"),
    Picture("phone", "/", 390, 844),
)


async def show(tab: Tab, there: Served, page: str) -> None:
    """Open a page of a cluster on paper and wait until it is drawn."""
    await _show(tab, there.at(page))


async def _show(tab: Tab, address: str) -> None:
    await tab.go(address)
    await tab.until("document.body.dataset.drawn && !document.querySelector('.waiting')")


def a_gang(there: Served) -> str:
    """Return the page of a pending gang with a planned start."""
    there.dashboard.refresh()
    one = next(one for one in there.dashboard.waiting if one.waits.start and one.pods > 1)
    return f"/workloads/{one.namespace}/{one.name}"


@contextlib.asynccontextmanager
async def living(folder: Path) -> AsyncIterator[str]:
    """Run `demo look` while the block lasts; yield the address of its page, with the token."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "unisono", "demo", "look", "--speed", str(_SPEED)),
        env={**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1", "TZ": "UTC"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None, "it is a pipe"
        address = ""
        async with asyncio.timeout(_STARTS_S):
            async for line in process.stdout:
                found = re.match(r"web +(\S+)", line.decode())
                address = found[1] if found else address
                if line == b"ready\n":
                    break
        if not address:
            raise PageTrouble("`unisono demo look` does not start")
        yield address
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _ENDS_S)
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _a_living_gang(tab: Tab, address: str) -> str:
    """Return the page of a gang that waits, with several nodes and a root cause."""
    await _show(tab, f"{address}/workloads?state=waits")
    return str(
        await tab.until(
            "(() => { const rows = [...document.querySelectorAll('tbody tr')]"
            ".filter((row) => /starts once[^]*starts (about|by)/.test(row.innerText))"
            ".map((row) => row.querySelector('a').hash.slice(1));"
            " return rows.find((one) => one.includes('pretrain')) || rows[0]; })()"
        )
    )


async def take(
    folder: Path, pictures: tuple[Picture, ...] = PICTURES, *, lives_s: float = _LIVES_S
) -> list[Path]:
    """Take pictures of a cluster that has lived for a while; raises PageTrouble on an error."""
    folder.mkdir(parents=True, exist_ok=True)
    taken: list[Path] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        async with living(Path(own)) as address, browsing(Path(own)) as tab:
            await tab.call("Emulation.setTimezoneOverride", timezoneId="UTC")
            await asyncio.sleep(lives_s)
            for one in pictures:
                await tab.look(one.width, one.height, colours=one.colours)
                page = await _a_living_gang(tab, address) if one.page == "GANG" else one.page
                await _show(tab, f"{address}{page}")
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
