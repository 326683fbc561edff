"""Write the dashboards: `python -m tools.dashboards`."""

from __future__ import annotations

from pathlib import Path

from tools.dashboards.boards import BOARDS
from tools.dashboards.build import json_of

FOLDER = Path(__file__).resolve().parents[2] / "src/unisono/monitor/dashboards/data"


def main() -> None:
    """Write every dashboard to its file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for board in BOARDS:
        path = FOLDER / f"{board.uid.removeprefix('unisono-')}.json"
        path.write_text(json_of(board), encoding="utf-8")
        print(path.name)


if __name__ == "__main__":
    main()
