"""Garbage collection: dependents go with their owners, objects with their namespace or definition.

The collector looks at every committed change and stages what has to follow, a few objects in each
turn of the event loop, so that an emptied namespace of ten thousand pods delays no request. It
keeps no promises of its own: whatever a crash interrupts, `sweep` finds again at the next start.

As in Kubernetes, an owner is gone if it was seen to go, or if its kind is served and it is not
there. An owner of a kind that is not served may be somewhere else: what names it stays until the
kind is served. So does what is of no namespace and names an owner in one. An owner in another
namespace does not count.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from unisono.apiserver.catalogue import Resource
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json
from unisono.apiserver.rest.context import ServerContext
from unisono.apiserver.rest.delete import CRD_CLEANUP, FOREGROUND, ORPHAN, Deleter, Options
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.writer import Writer
from unisono.apiserver.storage.record import Change, Key, Kind, Record
from unisono.apiserver.times import seconds

_PER_TURN = 50
_CRDS = "apiextensions.k8s.io/customresourcedefinitions"
# So many owners that went are remembered, until their dependents are looked at.
_MOST_GONE = 4096


class GarbageCollector:
    """Keeps track of owners and dependents, and deletes what has no owner left."""

    def __init__(self, server: ServerContext, writer: Writer, deleter: Deleter) -> None:
        """Look at everything that is stored."""
        self._server = server
        self._writer = writer
        self._deleter = deleter
        self._uids: dict[str, Key] = {}
        self._dependents: dict[str, set[Key]] = {}  # by the uid of the owner
        self._gone: dict[str, None] = {}  # uids of owners that were seen to go, the latest last
        self._unresolved: set[Key] = set()  # objects of which an owner cannot be looked up
        self._kinds: tuple[int, dict[tuple[str, str], bool]] = (-1, {})
        self._ending_spaces: set[str] = set()
        self._work: deque[Callable[[], None]] = deque()
        self._is_due = False
        for kind, _ in list(server.store.kinds()):
            for record in server.store.listing(kind):
                self._enter(record)
        server.store.on_change.append(self._changed)

    def sweep(self) -> None:
        """Look for everything that is left to do."""
        for key in list(self._uids.values()):
            self._later(lambda key=key: self._look_at(key))  # type: ignore[misc]

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be tidied."""
        return not self._work

    # ---- what changed ------------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        record = change.record
        if change.previous is not None:
            self._leave(change.previous)
        if change.kind is Kind.DELETED:
            self._leave(record)
            self._unresolved.discard(record.key)
            if record.uid in self._dependents:
                self._gone[record.uid] = None
                if len(self._gone) > _MOST_GONE:
                    del self._gone[next(iter(self._gone))]
            for key in self._dependents.get(record.uid, ()):
                self._later(lambda key=key: self._look_at(key))  # type: ignore[misc]
            for owner in record.owners:
                if owner in self._uids:
                    self._later(lambda key=self._uids[owner]: self._look_at(key))  # type: ignore[misc]
            if record.namespace in self._ending_spaces:
                self._later(lambda: self._look_at(("/namespaces", "", record.namespace)))
            definition = self._definition_of(record.key[0])
            if definition is not None:
                self._later(lambda: self._look_at(definition))
            return
        self._enter(record)
        if record.key[0] == _CRDS and self._unresolved:  # their owners' kinds may be served now
            for key in sorted(self._unresolved):
                self._later(lambda key=key: self._look_at(key))  # type: ignore[misc]
        if record.owners or b'"deletionTimestamp"' in record.data:
            self._later(lambda: self._look_at(record.key))

    def _enter(self, record: Record) -> None:
        if record.uid:
            self._uids[record.uid] = record.key
        for owner in record.owners:
            self._dependents.setdefault(owner, set()).add(record.key)

    def _leave(self, record: Record) -> None:
        if self._uids.get(record.uid) == record.key:
            del self._uids[record.uid]
        for owner in record.owners:
            below = self._dependents.get(owner)
            if below is not None:
                below.discard(record.key)
                if not below:
                    del self._dependents[owner]

    def _definition_of(self, kind: str) -> Key | None:
        group, _, plural = kind.partition("/")
        key = (_CRDS, "", f"{plural}.{group}")
        return key if self._server.store.get(key) is not None else None

    # ---- one object --------------------------------------------------------------------------

    def _look_at(self, key: Key) -> None:
        """Do what follows from the state of one object."""
        record = self._server.store.newest(key)
        resource = self._server.catalogue.storage(key[0])
        if record is None or resource is None:
            return
        if record.owners and not all(self._is_there(owner, record) for owner in record.owners):
            if self._can_look_up_owners(record):
                if not any(self._is_there(owner, record) for owner in record.owners):
                    self._delete(record, resource, "Background")
                    return
                record = self._drop_owners(record)
            else:
                self._unresolved.add(key)
        if b'"deletionTimestamp"' not in record.data:
            return
        obj = record.load()
        if "deletionTimestamp" not in obj["metadata"]:
            return
        finalizers = obj["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            self._orphan(record, obj)
        elif FOREGROUND in finalizers:
            self._foreground(record, obj)
        elif CRD_CLEANUP in finalizers:
            self._empty_kind(record, obj)
        elif key[0] == "/namespaces":
            self._empty_namespace(record, obj)

    def _is_there(self, owner: str, record: Record) -> bool:
        """Say whether an owner exists, where this object may have one."""
        key = self._uids.get(owner)
        return key is not None and key[1] in ("", record.namespace)

    def _can_look_up_owners(self, record: Record) -> bool:
        """Say whether every owner that is not there is known to be gone."""
        self._unresolved.discard(record.key)
        version = self._server.catalogue.version
        if self._kinds[0] != version:
            served = self._server.catalogue.served()
            self._kinds = version, {(one.api_version, one.kind): one.namespaced for one in served}
        for owner in record.load()["metadata"].get("ownerReferences") or ():
            if self._is_there(owner["uid"], record) or owner["uid"] in self._gone:
                continue
            kind = owner.get("apiVersion", ""), owner.get("kind", "")
            in_namespaces = self._kinds[1].get(kind)
            if in_namespaces is None or (in_namespaces and not record.namespace):
                return False
        return True

    def _below(self, record: Record) -> list[Key]:
        """Return what an owner owns, where it may."""
        keys = self._dependents.get(record.uid, ())
        return sorted(key for key in keys if record.namespace in ("", key[1]))

    def _drop_owners(self, record: Record) -> Record:
        """Forget owners that are gone, for the sake of those that are left."""
        obj = record.load()
        obj["metadata"]["ownerReferences"] = [
            one for one in obj["metadata"]["ownerReferences"] if self._is_there(one["uid"], record)
        ]
        return self._writer.put(record, obj)

    def _orphan(self, record: Record, obj: Json) -> None:
        for key in self._below(record):
            child = self._server.store.newest(key)
            if child is None:
                continue
            below = child.load()
            owners = below["metadata"].get("ownerReferences", ())
            left = [one for one in owners if one["uid"] != record.uid]
            if left:
                below["metadata"]["ownerReferences"] = left
            else:
                below["metadata"].pop("ownerReferences", None)
            self._writer.put(child, below)
        self._drop_finalizer(record, obj, ORPHAN)

    def _foreground(self, record: Record, obj: Json) -> None:
        blocking = False
        for key in self._below(record):
            child = self._server.store.newest(key)
            resource = self._server.catalogue.storage(key[0])
            if child is None or resource is None:
                continue
            below = child.load()
            blocking = blocking or _blocks(below, record.uid)
            if "deletionTimestamp" not in below["metadata"]:
                has_own = bool(self._dependents.get(child.uid))
                self._delete(child, resource, "Foreground" if has_own else "Background")
                if self._server.store.newest(key) is None:
                    continue
        if not blocking:
            self._drop_finalizer(record, obj, FOREGROUND)

    def _empty_namespace(self, record: Record, obj: Json) -> None:
        name = record.name
        self._ending_spaces.add(name)
        left = False
        for resource in self._server.catalogue.namespaced():
            if resource.key == "/events":
                continue
            for child in list(self._server.store.newest_of(resource.key)):
                if child.namespace != name:
                    continue
                left = True
                if b'"deletionTimestamp"' not in child.data:
                    self._later_delete(child, resource)
        if left:
            return
        for event in list(self._server.store.newest_of("/events")):
            if event.namespace == name:
                self._writer.remove(event, event.load())
        obj["spec"] = {**obj.get("spec", {}), "finalizers": []}
        if not obj["metadata"].get("finalizers"):
            self._writer.remove(record, obj)
            self._ending_spaces.discard(name)

    def _empty_kind(self, record: Record, obj: Json) -> None:
        spec = obj["spec"]
        key = f"{spec['group']}/{spec['names']['plural']}"
        resource = self._server.catalogue.storage(key)
        children = list(self._server.store.newest_of(key))
        if self._server.catalogue.is_builtin(key):
            children = []  # served by us whether or not a definition was stored, too
        for child in children:
            if resource is not None and b'"deletionTimestamp"' not in child.data:
                self._later_delete(child, resource)
        if not children:
            self._drop_finalizer(record, obj, CRD_CLEANUP)

    # ---- doing it ----------------------------------------------------------------------------

    def _drop_finalizer(self, record: Record, obj: Json, name: str) -> None:
        metadata = obj["metadata"]
        metadata["finalizers"] = [one for one in metadata["finalizers"] if one != name]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        self._writer.put_or_remove(record, obj)

    def _later_delete(self, record: Record, resource: Resource) -> None:
        def act() -> None:
            newest = self._server.store.newest(record.key)
            if newest is not None:
                self._delete(newest, resource, "Background")

        self._later(act)

    def _delete(self, record: Record, resource: Resource, policy: str) -> None:
        route = Route(resource=resource, namespace=record.namespace, name=record.name)
        self._deleter.stage(route, record, Options(policy=policy))

    def _later(self, act: Callable[[], None]) -> None:
        self._work.append(act)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        for _ in range(min(_PER_TURN, len(self._work))):
            act = self._work.popleft()
            try:
                act()
            except ApiError:
                continue  # another write was quicker
        if self._work and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)


def _blocks(child: Json, uid: str) -> bool:
    owners: Iterable[Json] = child["metadata"].get("ownerReferences", ())
    return any(one["uid"] == uid and one.get("blockOwnerDeletion") for one in owners)


# ---- event expiry: after an hour, and earlier where a namespace has too many ---------------------


EVENT_SECONDS = 3600.0
MAX_EVENTS_PER_NAMESPACE = 10_000
# In one go, so that no request waits long.
_PER_ROUND = 1000


def expire_events(server: ServerContext, writer: Writer) -> int:
    """Remove events that are too old or too many; return how many."""
    now = server.clock()
    removed = 0
    by_namespace: dict[str, list[tuple[float, Record]]] = {}
    for record in server.store.listing("/events"):
        event = record.load()
        last = _last_seen(event)
        if last is not None and now - last > EVENT_SECONDS:
            removed += _remove(server, writer, record)
            if removed >= _PER_ROUND:
                return removed
        else:
            by_namespace.setdefault(record.namespace, []).append((last or now, record))
    for events in by_namespace.values():
        extra = len(events) - MAX_EVENTS_PER_NAMESPACE
        if extra > 0:
            oldest = sorted(events, key=lambda pair: (pair[0], pair[1].rv))[:extra]
            for _, record in oldest[: _PER_ROUND - removed]:
                removed += _remove(server, writer, record)
    return removed


def _remove(server: ServerContext, writer: Writer, record: Record) -> int:
    newest = server.store.newest(record.key)
    if newest is None or newest.rv != record.rv:
        return 0
    writer.remove(newest, newest.load())
    return 1


def _last_seen(event: dict[str, object]) -> float | None:
    for field in ("lastTimestamp", "eventTime", "firstTimestamp"):
        text = event.get(field)
        if isinstance(text, str):
            found = seconds(text)
            if found is not None:
                return found
    metadata = event["metadata"]
    assert isinstance(metadata, dict)
    return seconds(metadata.get("creationTimestamp", ""))


# ---- pods that ended -----------------------------------------------------------------------------
#
# Pods that ended must not fill the store: beyond a number the oldest ones are removed.
#
# As kube-controller-manager does it (`--terminated-pod-gc-threshold`, 12,500 there and here): a Job
# with a million completions would otherwise leave a million pods, some 20 kB of memory each. A pod
# with a finalizer is still to be counted by its Job, and stays.

MOST_ENDED_PODS = 12_500
_ENDED = (b'"Succeeded"', b'"Failed"')
_ENDED_PHASES = ("Succeeded", "Failed")
# In one go, so that requests are not held up.
_PODS_PER_ROUND = 500


def remove_ended_pods(server: ServerContext, writer: Writer) -> int:
    """Remove the oldest pods that ended, beyond so many; return how many were removed."""
    # Decoding every pod would take a second where there are many: the bytes tell nearly all of it.
    ended = [
        record
        for record in server.store.listing("/pods")
        if any(phase in record.data for phase in _ENDED)
    ]
    excess = len(ended) - MOST_ENDED_PODS
    if excess <= 0:
        return 0
    removed = 0
    for record in sorted(ended, key=lambda one: one.rv)[:excess]:
        removed += _remove_ended(server, writer, record)
        if removed >= _PODS_PER_ROUND:
            break
    return removed


def _remove_ended(server: ServerContext, writer: Writer, record: Record) -> int:
    newest = server.store.newest(record.key)
    if newest is None or newest.rv != record.rv:
        return 0
    pod = newest.load()
    is_ended = (pod.get("status") or {}).get("phase") in _ENDED_PHASES
    if not is_ended or pod["metadata"].get("finalizers"):
        return 0
    writer.remove(newest, pod)
    return 1
