"""Frames as clients send them, in any pieces, and as they should not."""

from __future__ import annotations

import struct

import pytest

from unisono.net.http.websocket import (
    BINARY,
    CLOSE,
    MOST_MESSAGE_BYTES,
    PING,
    Broken,
    Message,
    Messages,
    frame,
    goodbye,
)

MASK = b"\x11\x22\x33\x44"


def masked(opcode: int, content: bytes, *, is_last: bool = True) -> bytes:
    """Return a frame of a client."""
    size = len(content)
    head = bytes([opcode | (0x80 if is_last else 0)])
    if size <= 125:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += struct.pack("!BH", 0x80 | 126, size)
    else:
        head += struct.pack("!BQ", 0x80 | 127, size)
    return head + MASK + bytes(one ^ MASK[at % 4] for at, one in enumerate(content))


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_a_message_of_any_length(size: int) -> None:
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert list(Messages().feed(masked(BINARY, content))) == [Message(BINARY, content)]
    assert frame(BINARY, content).endswith(content)


def test_it_may_come_byte_by_byte_and_in_parts_with_a_ping_between() -> None:
    sent = masked(BINARY, b"one ", is_last=False) + masked(PING, b"?") + masked(0, b"two")
    messages = Messages()
    found = [one for at in range(len(sent)) for one in messages.feed(sent[at : at + 1])]
    assert found == [Message(PING, b"?"), Message(BINARY, b"one two")]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(BINARY, b"x"), 1002),  # not masked
        (masked(0, b"x"), 1002),  # a part of nothing
        (masked(BINARY, b"x", is_last=False) + masked(BINARY, b"y"), 1002),  # two at once
        (masked(3, b"x"), 1002),
        (b"\xf2" + masked(BINARY, b"x")[1:], 1002),  # an extension that was not agreed on
        (masked(CLOSE, b"x" * 126), 1002),
        (struct.pack("!BBQ", 0x82, 0xFF, MOST_MESSAGE_BYTES + 1) + MASK, 1009),
    ],
)
def test_what_is_no_websocket_is_refused(sent: bytes, code: int) -> None:
    with pytest.raises(Broken) as broken:
        list(Messages().feed(sent))
    assert broken.value.code == code


def test_a_message_of_many_parts_has_an_end_too() -> None:
    messages = Messages()
    part = b"x" * (MOST_MESSAGE_BYTES // 4)
    sent = masked(BINARY, part, is_last=False) + 4 * masked(0, part, is_last=False)
    with pytest.raises(Broken, match="too long"):
        list(messages.feed(sent))


def test_the_goodbye_has_a_code() -> None:
    assert goodbye(1009) == b"\x88\x02\x03\xf1"
