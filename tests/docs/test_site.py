"""The static site has every page, links resolve, and nothing is loaded from elsewhere."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from tools.docs_site.pages import read_pages
from tools.docs_site.render import site

ROOT = Path(__file__).resolve().parents[2]


@cache
def files() -> dict[str, bytes]:
    return site(read_pages(ROOT), ROOT)


def _html() -> dict[str, str]:
    return {name: text.decode() for name, text in files().items() if name.endswith(".html")}


def test_every_page_is_there_in_its_language() -> None:
    pages = _html()
    assert len(pages) == len(read_pages(ROOT))
    assert '<html lang="en">' in pages["index.html"]
    assert '<html lang="ko">' in pages["README.ko.html"]
    assert '<html lang="ko">' in pages["docs/ko/guides/gang-quota.html"]
    assert "docs/images/decision.svg" in files()


def test_links_lead_to_pages_and_anchors_of_the_site() -> None:
    pages = _html()
    anchors = {name: set(re.findall(r' id="([^"]+)"', text)) for name, text in pages.items()}
    for name, text in pages.items():
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            there = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            there = there if target else name
            assert there in files(), f"{name} leads to {link}"
            if anchor:
                assert unquote(anchor) in anchors[there], f"{name} leads to {link}"


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name, text in _html().items():
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', text)
        assert not [one for one in loaded if re.match(r"(?:[a-z]+:)?//", one)], name
