"""Answers as bytes of HTTP/1.1."""

from __future__ import annotations

from http import HTTPStatus

from unisono.net.http.messages import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

_STATUS = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
# An answer in which a header ends early would be two answers.
_LINE_ENDS = str.maketrans("\r\n\0", "   ")


_USUAL = _STATUS[200] + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n"


def head_of(response: Response, *, length: int | None, keeps_open: bool) -> bytes:
    """Return everything before the body; without a length the body comes in chunks."""
    if length is not None and keeps_open and response.code == 200 and not response.headers:
        if response.content_type == "application/json":
            return _USUAL % length
    lines = [
        _STATUS.get(response.code) or f"HTTP/1.1 {response.code} \r\n".encode(),
    ]
    if response.content_type:
        lines.append(b"content-type: %b\r\n" % response.content_type.encode("latin-1", "replace"))
    for name, value in response.headers.items():
        lines.append(f"{name}: {value.translate(_LINE_ENDS)}\r\n".encode("latin-1", "replace"))
    if length is not None:
        lines.append(b"content-length: %d\r\n" % length)
    elif keeps_open:
        lines.append(b"transfer-encoding: chunked\r\n")
    if not keeps_open:
        lines.append(b"connection: close\r\n")
    lines.append(b"\r\n")
    return b"".join(lines)


def switching(response: Response) -> bytes:
    """Return the head after which another protocol begins."""
    lines = [f"{name}: {value.translate(_LINE_ENDS)}" for name, value in response.headers.items()]
    return _STATUS[101] + "\r\n".join((*lines, "", "")).encode("latin-1", "replace")


def chunk_of(piece: bytes) -> bytes:
    """Return a piece of a body as a chunk."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)
