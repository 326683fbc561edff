"""What a write happens in: the store, the kinds, the time, the user, and what its query asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unisono.apiserver.catalogue import Catalogue
from unisono.apiserver.errors import Cause, invalid, not_found
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request, User
from unisono.apiserver.rest.route import Route
from unisono.apiserver.storage.record import DecodedCache, Record
from unisono.apiserver.storage.store import Store

# ---- the seam to access control ------------------------------------------------------------------
#
# Without an authoriser (one user, who owns the instance) everything is allowed.


class AccessControl:
    """Allows everything; `access` has the one that looks at roles."""

    def check_path(self, request: Request) -> None:
        """Refuse an address that is not about objects."""

    def check(self, request: Request, where: Route, verb: str) -> None:
        """Refuse what the caller may not do."""

    def check_object(
        self, user: User, key: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> None:
        """Refuse an object that gives away what its author does not have."""

    def answer(self, request: Request, where: Route) -> Json | None:
        """Answer a review (SelfSubjectAccessReview and the like); None if the request is none."""
        return None


# ---- --------------------------------------------------------------------------------------------


# A kind with at most so many objects is decoded once and not for every write.
_FEW = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """What every handler needs; made once."""

    store: Store
    catalogue: Catalogue
    clock: Callable[[], float]  # seconds since 1970
    new_uid: Callable[[], str]
    letters: Callable[[int], str]  # a random ending for generated names
    # Refuses a role that gives away more than its author has: user, kind, object, old state.
    check_object: Callable[[User, str, Mapping[str, Any], Mapping[str, Any] | None], None]
    # Decoded objects of kinds that have few (classes, policies), by kind and what they say; of a
    # kind with more, None.
    few: dict[tuple[str, bytes], tuple[int, Sequence[Mapping[str, Any]] | None]] = field(
        default_factory=dict
    )
    known: DecodedCache = field(default_factory=DecodedCache)
    remembered: dict[str, Any] = field(default_factory=dict)

    def existing(self, route: Route) -> Record:
        """Return the object at an address as the next writer sees it."""
        record = self.store.newest(route.key)
        if record is None:
            served = route.resource.served
            raise not_found(served.plural, route.name, group=served.group)
        return record


@dataclass(slots=True)
class RequestContext:
    """The surroundings of one request (`strategy.Surroundings`)."""

    server: ServerContext
    request: Request
    shape_key: bytes = b""
    _now: float = 0.0

    @property
    def now(self) -> float:
        """The time in seconds since 1970: one time for all that one write notes."""
        if not self._now:
            self._now = self.server.clock()
        return self._now

    @property
    def user(self) -> User:
        """The user of the request."""
        return self.request.user

    def find(self, key: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a stored object in its stored version, or None."""
        record = self.server.store.newest((key, namespace, name))
        return self.server.known.of(record) if record is not None else None

    def every(
        self, key: str, namespace: str = "", *, saying: bytes = b""
    ) -> Iterable[Mapping[str, Any]]:
        """Return the stored objects of a kind, of one namespace or of all."""
        # What is looked for in a namespace is another text each time: not worth keeping.
        found = self._few(key, saying) if not (namespace and saying) else None
        if found is None:
            return self._many(key, namespace, saying)
        if not found or not namespace:
            return found
        return [one for one in found if one["metadata"].get("namespace") == namespace]

    def _few(self, key: str, saying: bytes) -> Sequence[Mapping[str, Any]] | None:
        """Return the objects of a kind that has few, kept for as long as they are so; or None."""
        store, kept = self.server.store, self.server.few
        now = store.stamp(key)
        stamp, found = kept.get((key, saying), (None, None))
        if stamp != now:
            few = store.count(key) <= _FEW
            found = [one.load() for one in self._records(key, saying)] if few else None
            kept[key, saying] = (now, found)
        return found

    def _many(self, key: str, namespace: str, saying: bytes) -> Iterator[Mapping[str, Any]]:
        for record in self._records(key, saying):
            if not namespace or record.namespace == namespace:
                yield record.load()

    def _records(self, key: str, saying: bytes) -> Iterator[Record]:
        return (one for one in self.server.store.newest_of(key) if saying in one.data)

    def stamp(self, key: str) -> int:
        """Return a number that is another one after every change of a kind's objects."""
        return self.server.store.stamp(key)

    @property
    def remembered(self) -> dict[str, Any]:
        """What checks keep from one write to the next on this server, each under its name."""
        return self.server.remembered

    def warn(self, text: str) -> None:
        """Tell the client something that works, but perhaps not as its author thinks."""
        self.request.warnings.append(text)


# ---- write options -------------------------------------------------------------------------------
#
# How a write is to be done, as the query and the headers say.

_LONGEST_MANAGER = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a write is to be done."""

    manager: str
    is_dry: bool = False
    is_applied: bool = False  # managedFields are settled already
    needs_version: bool = False  # a PUT of a custom resource

    @staticmethod
    def of(
        request: Request, *, is_applied: bool = False, needs_version: bool = False
    ) -> WriteOptions:
        """Read it from the query and the headers."""
        agent = request.headers.get("user-agent", "")
        manager = request.query.get("fieldManager", "")
        if len(manager) > _LONGEST_MANAGER or not manager.isprintable():
            message = f"must be printable and have at most {_LONGEST_MANAGER} characters"
            cause = Cause("FieldValueInvalid", message, "fieldManager")
            raise invalid("PatchOptions", "", [cause], group="meta.k8s.io")
        return WriteOptions(
            manager=manager or agent.partition("/")[0][:_LONGEST_MANAGER] or "unknown",
            is_dry=is_dry_run(request),
            is_applied=is_applied,
            needs_version=needs_version,
        )


def is_dry_run(request: Request) -> bool:
    """Say whether everything but storing is to be done."""
    chosen = request.query.get("dryRun", "")
    if chosen not in ("", "All"):
        message = f'Unsupported value: "{chosen}": supported values: "All"'
        cause = Cause("FieldValueNotSupported", message, "dryRun")
        raise invalid("CreateOptions", "", [cause], group="meta.k8s.io")
    return chosen == "All"
