"""What a write happens in: the store, the kinds, the time, and who asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from unisono.apiserver.catalogue import Catalogue
from unisono.apiserver.errors import not_found
from unisono.apiserver.request import Request, User
from unisono.apiserver.rest.route import Route
from unisono.apiserver.storage.record import Record
from unisono.apiserver.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What every handler needs; made once."""

    store: Store
    catalogue: Catalogue
    clock: Callable[[], float]  # seconds since 1970
    new_uid: Callable[[], str]
    letters: Callable[[int], str]  # a random ending for generated names
    # Refuses a role that gives away more than its author has: user, kind, object, old state.
    check_object: Callable[[User, str, Mapping[str, Any], Mapping[str, Any] | None], None]

    def existing(self, route: Route) -> Record:
        """Return the object at an address as the next writer sees it."""
        record = self.store.newest(route.key)
        if record is None:
            served = route.resource.served
            raise not_found(served.plural, route.name, group=served.group)
        return record


@dataclass(slots=True)
class Here:
    """The surroundings of one request (`strategy.Surroundings`)."""

    tools: Tools
    request: Request

    @property
    def now(self) -> float:
        """The time in seconds since 1970."""
        return self.tools.clock()

    @property
    def user(self) -> User:
        """Who writes."""
        return self.request.user

    def find(self, key: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a stored object in its stored version, or None."""
        record = self.tools.store.newest((key, namespace, name))
        return record.load() if record is not None else None

    def every(
        self, key: str, namespace: str = "", *, saying: bytes = b""
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the stored objects of a kind, of one namespace or of all."""
        for record in self.tools.store.newest_of(key):
            if (not namespace or record.namespace == namespace) and saying in record.data:
                yield record.load()

    def warn(self, text: str) -> None:
        """Tell the client something that works, but perhaps not as its author thinks."""
        self.request.warnings.append(text)
