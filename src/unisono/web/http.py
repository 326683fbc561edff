"""The little of HTTP that the page needs: one request and one answer on a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

_MOST_FIELDS = 16
_POLICY = (
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src {styles};"
    " connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
_HEADERS = (
    "X-Content-Type-Options: nosniff",
    "X-Frame-Options: DENY",
    "Referrer-Policy: no-referrer",
    "Cross-Origin-Opener-Policy: same-origin",
    "Cross-Origin-Resource-Policy: same-origin",
    "Permissions-Policy: camera=(), geolocation=(), microphone=(), payment=()",
    "Connection: close",
)
NEVER_KEPT = "Cache-Control: no-store"
_PHRASES = {
    200: "OK",
    204: "No Content",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    503: "Service Unavailable",
}
PLAIN = "text/plain; charset=utf-8"


class Asked(NamedTuple):
    """A request, without a body: nothing that is asked here has one."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]

    @property
    def takes_gzip(self) -> bool:
        """Whether the answer may be packed."""
        return "gzip" in self.headers.get("accept-encoding", "")

    @property
    def is_from_here(self) -> bool:
        """Whether no other site caused it: browsers say where a request comes from."""
        if self.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        origin = self.headers.get("origin", "")
        return not origin or origin.partition("://")[2] == self.headers.get("host", "")


def read(head: bytes) -> Asked:
    """Read the head of a request; raises ValueError for a query that is too long."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    path, _, query = rest.partition(" ")[0].partition("?")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
        if name
    }
    return Asked(method, path, dict(parse_qsl(query, max_num_fields=_MOST_FIELDS)), headers)


def head(code: int, content_type: str, *more: str, styles: str = "'self'") -> bytes:
    """Write the head of an answer; `styles` says which styles a page may have."""
    about = (f"Content-Type: {content_type}",) if content_type else ()
    policy = _POLICY.format(styles=styles)
    lines = (f"HTTP/1.1 {code} {_PHRASES[code]}", *about, *more, policy, *_HEADERS, "", "")
    return "\r\n".join(lines).encode()


def answer(code: int, body: bytes = b"", content_type: str = PLAIN, *more: str) -> bytes:
    """Write a whole answer that is not cached."""
    return head(code, content_type, f"Content-Length: {len(body)}", NEVER_KEPT, *more) + body


def refusal(code: int, text: str) -> bytes:
    """Write an answer that says no."""
    return answer(code, f"{text}\n".encode())
