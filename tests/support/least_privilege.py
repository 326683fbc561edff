"""Controllers held to their rights: every write is one that the table of rights names.

`Declared` is the driver of every test world, so each story of a controller also says whether its
row (`control.rights.WRITES`) is enough. `AsInstalled` goes further: requests of our controllers are
those of the account that `unisono install` makes, and the API looks at its roles.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import orjson

from unisono.apiserver.api import Api
from unisono.apiserver.bootstrap import SYSTEM
from unisono.apiserver.request import User
from unisono.control.actions import Action, Bind, Create, Delete, Json, Patch, Read, Together
from unisono.control.rbac import KEYS, PARTS, WRITES, kinds_read, resource_of, row_of
from unisono.control.reconciling.driver import Driver, Outcome
from unisono.control.reconciling.event_routing import Task
from unisono.kinds.overriding import override
from unisono.kube.mapping import Kind
from unisono.kube.transport import NOTHING, Answer, Stream
from unisono.runtime.embedded.in_process import InProcess

HOME = "unisono-system"
ACCOUNT = User(
    name=f"system:serviceaccount:{HOME}:unisono",
    groups=("system:serviceaccounts", f"system:serviceaccounts:{HOME}", "system:authenticated"),
)
_FORBIDDEN = 403

One = tuple[str, str, str]  # group, resource, verb


@cache
def declared(controller: str) -> frozenset[One]:
    """Return what the table lets a controller write, in all parts of an installation."""
    rows = [row_of(controller, part) for part in WRITES if controller in WRITES[part]]
    return frozenset(
        (right.group, right.resource, verb)
        for right in (one for row in (*rows, KEYS) for one in row)
        for verb in right.verbs
    )


@cache
def ours() -> frozenset[str]:
    """Return the controllers that work on real clusters, too; the others are the laptop's."""
    return frozenset(name for rows in WRITES.values() for name in rows)


def needed(action: Action) -> Iterator[One]:
    """Yield what an API server asks for before it carries an action out."""
    match action:
        case Together(actions):
            for one in actions:
                yield from needed(one)
        case Create(obj):
            yield _one(Kind(obj["apiVersion"], obj["kind"]), "create")
            yield from _held_back(obj)
        case Patch(ref, changes, subresource):
            yield _one(ref.kind, "patch", subresource)
            yield from _held_back(changes)
        case Delete(ref):
            yield _one(ref.kind, "delete")
        case Bind():
            yield "", "pods/binding", "create"
        case Read(kind):
            assert kind in kinds_read(PARTS), f"{kind} is not ours to read"
        case _:
            pass  # events have a right of their own, and nothing else is written


def _held_back(obj: Json) -> Iterator[One]:
    """Yield the right to hold back the owners that are written."""
    for owner in (obj.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("blockOwnerDeletion"):
            yield _one(Kind(owner["apiVersion"], owner["kind"]), "update", "finalizers")


def _one(kind: Kind, verb: str, below: str = "") -> One:
    group, plural = resource_of(kind)
    return group, f"{plural}/{below}" if below else plural, verb


class Declared(Driver):
    """Fails when a controller wants what its row does not say."""

    at_work = ""

    @override
    async def attend(self, task: Task, outcome: Outcome) -> None:
        self.at_work = task.controller
        await super().attend(task, outcome)

    @override
    async def _act(self, action: Action, task: Task) -> Any:
        if task.controller in ours():
            beyond = set(needed(action)) - declared(task.controller)
            assert not beyond, f"control.rights.WRITES does not let {task.controller} {beyond}"
        return await super()._act(action, task)


class AsInstalled:
    """A transport whose requests are those of our account while one of its controllers works."""

    def __init__(self, api: Api, at_work: Callable[[], str]) -> None:
        """Take the API, and who is at work; nothing is refused to those of the cluster itself."""
        self._as_ours = InProcess(api, ACCOUNT, is_checked=True)
        self._as_system = InProcess(api, SYSTEM, is_checked=True)
        self._at_work = at_work

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> Answer:
        """Ask as whoever is at work; what our account may not do fails the test."""
        carrier = self._carrier()
        answer = await carrier.request(
            method, path, query=query, headers=headers, body=body, timeout=timeout
        )
        if answer.code == _FORBIDDEN and carrier is self._as_ours:
            raise AssertionError(f"{self._at_work()}: {orjson.loads(answer.body)['message']}")
        return answer

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> AsyncIterator[Stream]:
        """Ask and hand out the answer as it comes."""
        carried = self._carrier().stream(
            method, path, query=query, headers=headers, body=body, timeout=timeout
        )
        async with carried as stream:
            yield stream

    def _carrier(self) -> InProcess:
        return self._as_ours if self._at_work() in ours() else self._as_system
