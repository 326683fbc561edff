"""Which pages there are, what each is called, and where it goes."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

_PATTERNS = ("*.md", "docs/**/*.md", "examples/**/*.md", "deploy/*.md")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_GROUPS = (
    ("README", "Start"),
    ("docs/guides/", "Guides"),
    ("docs/ko/", "한국어"),
    ("examples/", "Examples"),
    ("docs/semantics/", "Semantics"),
    ("docs/reference/", "Reference"),
    ("docs/adr/", "Decisions"),
    ("docs/", "Concepts"),
    ("", "Project"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the project."""

    path: str  # in the project
    title: str
    text: str

    @property
    def address(self) -> str:
        """Return where it is in the site; a folder's README is its index."""
        if self.path == "README.md":
            return "index.html"
        return re.sub(r"README\.html$", "index.html", re.sub(r"\.md$", ".html", self.path))

    @property
    def group(self) -> str:
        """Return the part of the contents that it stands in."""
        if self.path in ("README.ko.md",):
            return "한국어"
        return next(name for start, name in _GROUPS if self.path.startswith(start))

    @property
    def language(self) -> str:
        """Return the language that it is written in."""
        return "ko" if self.group == "한국어" else "en"

    @property
    def depth(self) -> int:
        """Return how many folders it is below the site's root."""
        return self.address.count("/")


def read_pages(root: Path) -> list[Page]:
    """Return every page, in the order of the contents."""
    found = {path for pattern in _PATTERNS for path in root.glob(pattern)}
    pages = []
    for path in sorted(found):
        text = path.read_text(encoding="utf-8")
        name = str(path.relative_to(root))
        title = _TITLE.search(_FENCE.sub("", text))
        pages.append(Page(name, title[1].replace("`", "") if title else name, text))
    order = [name for _, name in _GROUPS]
    place = _places((root / "docs" / "README.md").read_text(encoding="utf-8"))
    last = len(place)
    return sorted(
        pages,
        key=lambda page: (order.index(page.group), place.get(page.path, last), page.path),
    )


def _places(index: str) -> dict[str, int]:
    """Return where each page is first linked to in the index of the documents."""
    links = re.findall(r"\]\(([^)#:\s]+)", index)
    paths = (posixpath.normpath(posixpath.join("docs", link)) for link in links)
    return {path: number for number, path in enumerate(dict.fromkeys(paths))}


def slug(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading.

    >>> slug("`unisono why`, and more")
    'unisono-why-and-more'
    """
    return re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
