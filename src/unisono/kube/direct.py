"""Writes to an API in the same process: objects in, objects out, several at once.

A transport to such an API offers `write` besides `request`. The objects of one call are checked one
after the other, without a pause between them, and become durable together. Whoever writes to a real
cluster gets the same from single requests side by side (`Client.write`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.kube.trouble import KubeTrouble


class Order(NamedTuple):
    """One write. The content of a patch is a JSON merge patch, of a binding a Binding."""

    verb: Literal["create", "patch", "bind"]
    kind: Kind
    namespace: str
    name: str
    content: Json
    subresource: str = ""
    # Says whether what was decided still holds; asked right before the write is sent.
    holds: Callable[[], bool] | None = None


class Stored(NamedTuple):
    """An object as it now is; it belongs to everybody, so nobody changes it.

    `raw` is the same as JSON if somebody has it at hand. A binding over HTTP has no object.
    """

    obj: Json | None
    raw: bytes = b""


Result = Stored | KubeTrouble


@runtime_checkable
class Direct(Protocol):
    """A transport whose API takes objects as they are."""

    async def write(self, orders: Sequence[Order]) -> list[Result]:
        """Carry writes out; each has a result of its own, trouble included."""
