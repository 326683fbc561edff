"""Write the site into a folder: `python -m tools.docs_site build/site`."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.docs_site.pages import read_pages
from tools.docs_site.render import site

ROOT = Path(__file__).resolve().parents[2]


def main(folder: Path) -> int:
    """Write every file, and say where the first page is."""
    files = site(read_pages(ROOT), ROOT)
    for address, content in files.items():
        path = folder / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    print(f"{len(files)} files; open {folder / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/site")))
