"""Write the pages: `python -m tools.reference`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tools.reference import commands, kinds, metrics

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands.page,
    "kinds.md": kinds.page,
    "metrics.md": metrics.page,
}


def main() -> int:
    """Write every page anew."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
        print(f"docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
