"""WebSocket (RFC 6455) as far as commands inside containers need it: frames in, messages out.

    client ──masked frames──▶ Messages.feed ──▶ whole messages, pings, the goodbye
           ◀────────frame(…)───────────────────

No compression and no extensions; clients that execute commands ask for neither.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterator
from typing import NamedTuple

BINARY, CLOSE, PING, PONG = 2, 8, 9, 10
_TEXT, _MORE = 1, 0
# What clients send at once is a few tens of kilobytes.
MOST_MESSAGE_BYTES = 4 * 1024 * 1024
_MOST_CONTROL_BYTES = 125
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Broken(Exception):
    """The other side does not speak WebSocket as it should; `code` says so in the goodbye."""

    def __init__(self, code: int, text: str) -> None:
        """Take what a goodbye says."""
        super().__init__(text)
        self.code = code


class Message(NamedTuple):
    """A message: an opcode and its content."""

    opcode: int
    content: bytes


def accepted(key: str) -> str:
    """Return the answer to a client's `Sec-WebSocket-Key`.

    >>> accepted("dGhlIHNhbXBsZSBub25jZQ==")
    's3pPLMBiTxaQ9kYGzzhZRbK+xOo='
    """
    digest = hashlib.sha1((key + _GUID).encode("latin-1"), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def frame(opcode: int, content: bytes) -> bytes:
    """Return a message as one frame of a server."""
    size = len(content)
    if size <= _MOST_CONTROL_BYTES:
        return struct.pack("!BB", 0x80 | opcode, size) + content
    if size < 1 << 16:
        return struct.pack("!BBH", 0x80 | opcode, 126, size) + content
    return struct.pack("!BBQ", 0x80 | opcode, 127, size) + content


def goodbye(code: int = 1000) -> bytes:
    """Return the last frame."""
    return frame(CLOSE, struct.pack("!H", code))


class Messages:
    """Puts messages together from whatever arrives."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._data = bytearray()
        self._parts: list[bytes] = []
        self._opcode = 0  # of the message whose parts these are; 0 between two

    def feed(self, data: bytes) -> Iterator[Message]:
        """Take bytes, and yield what is whole now; raises Broken."""
        self._data += data
        while (found := self._frame()) is not None:
            is_last, opcode, content = found
            if opcode >= CLOSE:
                yield Message(opcode, content)
                continue
            if (opcode == _MORE) != bool(self._opcode):
                raise Broken(1002, "a part of a message came where none belongs")
            self._opcode = opcode or self._opcode
            self._parts.append(content)
            if sum(map(len, self._parts)) > MOST_MESSAGE_BYTES:
                raise Broken(1009, "the message is too long")
            if is_last:
                yield Message(self._opcode, b"".join(self._parts))
                self._opcode, self._parts = 0, []

    def _frame(self) -> tuple[bool, int, bytes] | None:
        """Take one frame off what was read; None while it is not all here."""
        data = self._data
        if len(data) < 2:
            return None
        is_last, opcode, size = bool(data[0] & 0x80), data[0] & 0x0F, data[1] & 0x7F
        if data[0] & 0x70 or opcode not in (_MORE, _TEXT, BINARY, CLOSE, PING, PONG):
            raise Broken(1002, "the frame is of no known kind")
        if not data[1] & 0x80:
            raise Broken(1002, "a client masks its frames")
        if opcode >= CLOSE and (size > _MOST_CONTROL_BYTES or not is_last):
            raise Broken(1002, "a control frame is short and whole")
        start = 2 + {126: 2, 127: 8}.get(size, 0)
        if len(data) < start + 4:
            return None
        if size > _MOST_CONTROL_BYTES:
            size = int.from_bytes(data[2:start], "big")
        if size > MOST_MESSAGE_BYTES:
            raise Broken(1009, "the message is too long")
        end = start + 4 + size
        if len(data) < end:
            return None
        content = _unmasked(bytes(data[start + 4 : end]), bytes(data[start : start + 4]))
        del data[:end]
        return is_last, opcode, content


def _unmasked(content: bytes, mask: bytes) -> bytes:
    size = len(content)
    whole = (mask * (size // 4 + 1))[:size]
    number = int.from_bytes(content, "big") ^ int.from_bytes(whole, "big")
    return number.to_bytes(size, "big")
