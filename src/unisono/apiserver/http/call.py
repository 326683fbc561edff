"""One request as it arrives: its head first, then its body, then it is whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unisono.apiserver.request import Response, User

MAX_BODY_BYTES = 3 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Call:
    """What a client sends, and what is known of it before it is whole."""

    method: str
    path: str
    target: bytes = b""  # as it stands in the first line
    query: Mapping[str, str]
    headers: Mapping[str, str]
    user: User | None  # None if it was refused
    refusal: Response | None = None  # decided already; the body is not looked at
    keeps_open: bool = True
    body: list[bytes] = field(default_factory=list)
    size: int = 0
    held: int = 0  # bytes of the body that count among those of all requests
    flight: str = ""  # the place it holds among those at work

    def take(self, data: bytes) -> bool:
        """Take a part of the body; say whether that is still within bounds."""
        self.size += len(data)
        if self.refusal is None and self.size <= MAX_BODY_BYTES:
            self.body.append(data)
            return True
        self.body.clear()
        return self.size <= MAX_BODY_BYTES
