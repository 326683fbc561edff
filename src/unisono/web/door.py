"""Who comes in: a Door looks at a request and says who that is and what they may see.

On loopback one token opens everything. It comes in a header, from the memory of one page in one
tab: a cookie would be sent to every other port of the same host, whoever listens there. Behind a
name of its own, in a cluster, it is a cookie that scripts cannot read (`reviews`).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Protocol

from unisono.engine.model.errors import UnisonoError
from unisono.web.sight import Sight, everything

COOKIE = "unisono-token"


class DoorTrouble(UnisonoError):
    """Nobody can say now who somebody is; try again."""


class Door(Protocol):
    """Lets people in."""

    @property
    def uses_cookie(self) -> bool:
        """Whether who signs in is remembered by a cookie."""

    async def admit(self, headers: Mapping[str, str]) -> Sight | None:
        """Return what somebody may see; None if nobody knows them. Raises DoorTrouble."""

    async def may_see_pods(self, sight: Sight, namespace: str) -> Sight:
        """Return a sight that also says whether the pods of a namespace may be seen."""


class TokenDoor:
    """One token, one person, who owns everything."""

    uses_cookie = False

    def __init__(self, token: str) -> None:
        """Open to who has this token."""
        self._token = token.encode()

    async def admit(self, headers: Mapping[str, str]) -> Sight | None:
        """Compare the token."""
        if hmac.compare_digest(token_of(headers).encode(), self._token):
            return everything("the owner")
        return None

    async def may_see_pods(self, sight: Sight, namespace: str) -> Sight:
        """All of them."""
        return sight


def token_of(headers: Mapping[str, str]) -> str:
    """Return the token of a request: of its header, else of its cookie; empty if it has none."""
    said = headers.get("authorization", "")
    if said[:7].lower() == "bearer ":
        return said[7:].strip()
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""
