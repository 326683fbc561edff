"""What requests of the page may name, and what every response says besides its content."""

from __future__ import annotations

from unisono.net.http.messages import Response
from unisono.net.http.pages import PLAIN, PageRequest

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src {styles};"
    " connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
NEVER_KEPT = {"Cache-Control": "no-store"}


def is_same_origin(request: PageRequest) -> bool:
    """Say whether no other site caused a request: browsers say where it comes from."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin", "")
    return not origin or origin.partition("://")[2] == request.headers.get("host", "")


def headers(styles: str = "'self'", **more: str) -> dict[str, str]:
    """Return the headers of a response; `styles` says which styles a page may have."""
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return {**named, "Content-Security-Policy": _POLICY.format(styles=styles), **_HEADERS}


def answer(code: int, body: bytes = b"", content_type: str = PLAIN, **more: str) -> Response:
    """Return a response that no browser keeps."""
    about = {**NEVER_KEPT, **headers(**more)}
    return Response(code=code, body=body, content_type=content_type, headers=about)


def refusal(code: int, text: str) -> Response:
    """Return a response that says no."""
    return answer(code, f"{text}\n".encode())


# ---- names of objects in requests ----------------------------------------------------------------


LONGEST = 253
_MORE = frozenset("-.:")


def is_name(text: str) -> bool:
    """Say whether a text can be the name of an object.

    >>> [is_name(one) for one in ("a-1.b", "system:node", "..", "a/b", "", "a%2fb")]
    [True, True, False, False, False, False]
    """
    if not 0 < len(text) <= LONGEST or not text.isascii() or text in (".", ".."):
        return False
    return all(one.isalnum() or one in _MORE for one in text)
