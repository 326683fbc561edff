"""The files of the page, read once: they are part of the package.

The styles are written into the page itself, so that one answer is enough to paint something. What
a page may look like is pinned by a hash of them; scripts stay files of their own.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from functools import cache
from importlib import resources
from typing import NamedTuple

import orjson

from unisono.language import LANGUAGES
from unisono.language.catalog import PAGE, sections
from unisono.net.http.messages import Response
from unisono.net.http.pages import PageRequest
from unisono.web import http

_STYLED = re.compile(r'<link rel="stylesheet" href="([^"]+)">\n')
_GZIP = 31  # zlib's way to say it
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
}
# Asked for again at every visit, and answered with a word if it is still the same.
_ASK_AGAIN = "no-cache"


class _File(NamedTuple):
    content_type: str
    body: bytes
    packed: bytes
    tag: str
    styles: str = "'self'"  # which ones it may have


@cache
def _files() -> dict[str, _File]:
    found: dict[str, _File] = {}
    folder = resources.files("unisono.web") / "assets"
    for one in folder.iterdir():
        body = one.read_bytes()
        found[f"/{one.name}"] = _file(one.name, body)
    for language in LANGUAGES:
        if messages := sections(language).get(PAGE):
            found[f"/{language}.json"] = _file("messages.json", orjson.dumps(messages))
    page = found.pop("/index.html").body.decode()
    styles = "".join(found.pop(name).body.decode() for name in _STYLED.findall(page))
    page = _STYLED.sub("", page).replace("</head>", f"<style>{styles}</style>\n</head>")
    pinned = base64.b64encode(hashlib.sha256(styles.encode()).digest()).decode()
    found["/"] = _file("index.html", page.encode())._replace(styles=f"'sha256-{pinned}'")
    return found


def _file(name: str, body: bytes) -> _File:
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return _File(_TYPES[name.rpartition(".")[2]], body, zlib.compress(body, 9, _GZIP), tag)


def answer(request: PageRequest) -> Response | None:
    """Return a file; None if there is none of that name."""
    file = _files().get(request.path)
    if file is None:
        return None
    about = http.headers(file.styles, Cache_Control=_ASK_AGAIN, ETag=file.tag)
    if request.headers.get("if-none-match") == file.tag:
        return Response(code=304, content_type="", headers=about)
    about["Vary"] = "Accept-Encoding"
    if not request.takes_gzip:
        return Response(body=file.body, content_type=file.content_type, headers=about)
    about["Content-Encoding"] = "gzip"
    return Response(body=file.packed, content_type=file.content_type, headers=about)
