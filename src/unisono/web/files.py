"""The files of the page, read once: they are part of the package."""

from __future__ import annotations

import hashlib
import zlib
from functools import cache
from importlib import resources
from typing import NamedTuple

from unisono.web import http

_GZIP = 31  # zlib's way to say it
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
# Asked for again at every visit, and answered with a word if it is still the same.
_ASK_AGAIN = "Cache-Control: no-cache"


class _File(NamedTuple):
    content_type: str
    body: bytes
    packed: bytes
    tag: str


@cache
def _files() -> dict[str, _File]:
    found: dict[str, _File] = {}
    folder = resources.files("unisono.web") / "assets"
    for one in folder.iterdir():
        body = one.read_bytes()
        kind = _TYPES[one.name.rpartition(".")[2]]
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        found[f"/{one.name}"] = _File(kind, body, zlib.compress(body, 9, _GZIP), tag)
    found["/"] = found.pop("/index.html")
    return found


def answer(asked: http.Asked) -> bytes | None:
    """Return the answer to who asks for a file; None if there is no such file."""
    file = _files().get(asked.path)
    if file is None:
        return None
    if asked.headers.get("if-none-match") == file.tag:
        return http.head(304, "", _ASK_AGAIN, f"ETag: {file.tag}")
    body = file.packed if asked.takes_gzip else file.body
    more = [_ASK_AGAIN, f"ETag: {file.tag}", "Vary: Accept-Encoding"]
    if asked.takes_gzip:
        more.append("Content-Encoding: gzip")
    return http.head(200, file.content_type, f"Content-Length: {len(body)}", *more) + (
        b"" if asked.method == "HEAD" else body
    )
