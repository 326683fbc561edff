"""One page as HTML: headings with anchors, links that lead to the site's own pages."""

from __future__ import annotations

import html
import json
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.docs_site.pages import Page, slug

_HERE = Path(__file__).parent
_SHORT = 24  # code that is not broken at its hyphens
_SCHEME = re.compile(r"[a-z]+:")
_COPIED = (".svg", ".png", ".yaml", ".sh")  # what pages link to besides pages
_SEARCHED_CHARACTERS = 1500


def site(pages: Sequence[Page], root: Path) -> dict[str, bytes]:
    """Return every file of the site by its address."""
    known = {page.path: page for page in pages}
    files: dict[str, bytes] = {}
    for page in pages:
        body, copied = _body(page, known, root)
        files[page.address] = _whole(page, body, pages).encode()
        files |= {name: (root / name).read_bytes() for name in copied}
    files["style.css"] = (_HERE / "style.css").read_bytes()
    files["search.js"] = (_index(pages) + (_HERE / "search.js").read_text("utf-8")).encode()
    return files


def _body(page: Page, known: Mapping[str, Page], root: Path) -> tuple[str, list[str]]:
    """Return a page's text as HTML, and the other files that it shows or links to."""
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = reader.parse(re.sub(r"<!--.*?-->\n?", "", page.text, flags=re.DOTALL))
    copied: list[str] = []
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slug(_plain(tokens[number + 1])))
        if token.type == "fence":
            token.info = token.info.partition(" ")[0]
        for child in token.children or ():
            _lead(child, page, known, root, copied)
            if child.type == "code_inline" and len(child.content) <= _SHORT:
                child.attrSet("class", "short")
    return str(reader.renderer.render(tokens, reader.options, {})), copied


def _plain(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _lead(
    token: Token, page: Page, known: Mapping[str, Page], root: Path, copied: list[str]
) -> None:
    """Let a link or a picture lead to where its target is in the site."""
    name = {"link_open": "href", "image": "src"}.get(token.type, "")
    target = str(token.attrGet(name) or "") if name else ""
    if not target or _SCHEME.match(target) or target.startswith("#"):
        return
    path, _, anchor = target.partition("#")
    there = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), path))
    folder = f"{there}/README.md".removeprefix("./")
    found = known.get(there) or known.get(folder)
    if found is not None:
        token.attrSet(name, relative(found.address, page) + (f"#{anchor}" if anchor else ""))
    elif there.endswith(_COPIED) and (root / there).is_file():
        copied.append(there)
        token.attrSet(name, relative(there, page))
    else:  # something of the project that is no page: it is named, and leads nowhere
        token.attrSet("title", f"{there} in the project")
        token.attrs.pop(name, None)


def relative(address: str, page: Page) -> str:
    """Return the way from a page to an address of the site."""
    return os.path.relpath(address, posixpath.dirname(page.address) or ".")


def _whole(page: Page, body: str, pages: Sequence[Page]) -> str:
    up = "../" * page.depth
    title = html.escape(page.title)
    name = "Unisono" if page.title == "Unisono" else f"{title} · Unisono"
    return f"""<!doctype html>
<html lang="{page.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{name}</title>
<link rel="stylesheet" href="{up}style.css">
<script src="{up}search.js" defer></script>
</head>
<body data-up="{up}">
<a class="skip" href="#content">Skip to the text</a>
<header><a class="brand" href="{up}index.html">Unisono</a>
<input id="search" type="search" placeholder="Search" aria-label="Search the documentation">
<ul id="found" hidden></ul></header>
<div class="columns">
<nav aria-label="Contents">{_contents(page, pages)}</nav>
<main id="content">
{body}</main>
</div>
</body>
</html>
"""


def _contents(here: Page, pages: Sequence[Page]) -> str:
    parts = []
    for group in dict.fromkeys(page.group for page in pages):
        links = "".join(_entry(page, here) for page in pages if page.group == group)
        own = ("Start", "Guides") if here.language == "en" else ("Start",)
        opened = " open" if group in (*own, here.group) else ""
        parts.append(f"<details{opened}><summary>{group}</summary><ul>{links}</ul></details>")
    return "".join(parts)


def _entry(page: Page, here: Page) -> str:
    current = ' aria-current="page"' if page == here else ""
    language = f' lang="{page.language}"' if page.language != here.language else ""
    title = html.escape(page.title)
    return f'<li{language}><a href="{relative(page.address, here)}"{current}>{title}</a></li>'


def _index(pages: Sequence[Page]) -> str:
    """Return what can be searched, as a line of JavaScript: it works from a folder, too."""
    rows = [
        {
            "title": page.title,
            "address": page.address,
            "text": " ".join(re.sub(r"[`#|*>\[\]()-]+", " ", page.text).split())[
                :_SEARCHED_CHARACTERS
            ],
        }
        for page in pages
    ]
    return f"const PAGES = {json.dumps(rows, ensure_ascii=False)};\n"
