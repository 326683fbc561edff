"""WorkloadKinds: each becomes a controller that queues objects of its kind, and has a status.

    it is sound              objects of its kind are followed, and queued from then on
    another says the same    the one that was there first counts; this one says so, as does one of
                             a kind that needs no declaration
    it is changed            the controller is replaced; workloads that run stay as they are
    it is deleted            its objects are no longer queued; those that run go on, and their quota
                             is free when they are gone
    it is wrong              it counts for nothing; where our API checks it, it is not even stored

The controllers are not stored: a new leader makes them again from the objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from unisono.control import names
from unisono.control.actions import Adopt, Dismiss, Json, Patch, Ref, Steps
from unisono.control.conditions import with_condition
from unisono.control.controller import own_key
from unisono.control.job_kinds.declared.adapter import DeclaredJobs
from unisono.control.jobs.controller import JobController
from unisono.control.jobs.queues import Queues
from unisono.control.view import View
from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.known import KNOWN, taken_in
from unisono.kinds.workload_kinds import Declaration, WorkloadKind
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

READY, CONFLICT, INVALID = "Ready", "Conflict", "Invalid"


class DeclaredKinds:
    """The kinds that are queued by declaration now, for whatever has to know all kinds of jobs."""

    def __init__(self) -> None:
        """Begin with none."""
        self._adapters: dict[str, DeclaredJobs] = {}  # by the name of the WorkloadKind
        self._known: frozenset[Kind] = frozenset()

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds."""
        return self._known

    def adapter(self, name: str) -> DeclaredJobs | None:
        """Return what a WorkloadKind has become."""
        return self._adapters.get(name)

    def put(self, name: str, adapter: DeclaredJobs | None) -> None:
        """Note what a WorkloadKind has become; None: nothing any more."""
        if adapter is None:
            self._adapters.pop(name, None)
        else:
            self._adapters[name] = adapter
        self._known = frozenset(one.kind for one in self._adapters.values())


class WorkloadKinds:
    """Makes controllers of declarations."""

    name = "workload-kinds"

    def __init__(self, declared: DeclaredKinds, queues: Queues) -> None:
        """Take the kinds that are declared, and what knows which queue an object is in."""
        self._declared = declared
        self._queues = queues
        self._generations: dict[str, tuple[str, int]] = {}
        self.watches: Sequence[Kind] = (names.WORKLOAD_KIND,)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Itself; and those of the same kind, of which only one counts."""
        yield own_key(obj)
        wanted = _kind_of(obj)
        for other in view.all(names.WORKLOAD_KIND):
            if _kind_of(other) == wanted:
                yield own_key(other)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Bring one declaration and its controller in step."""
        obj = view.get(names.WORKLOAD_KIND, key.name)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            yield from self._drop(key.name)
            return
        try:
            manifest = taken_in(KNOWN.kinds[names.WORKLOAD_KIND], obj)
            assert isinstance(manifest, WorkloadKind)
            declaration = Declaration(key.name, manifest.spec)
        except InvalidManifest as error:
            yield from self._drop(key.name)
            yield from _say(obj, "False", INVALID, str(error), now)
            return
        if (declaration.api_version, declaration.kind) in KNOWN.kinds:
            yield from self._drop(key.name)
            message = f"{declaration.kind} of {declaration.api_version} is queued without it"
            yield from _say(obj, "False", CONFLICT, message, now)
            return
        first = _first_of_kind(obj, view)
        if first != key.name:
            yield from self._drop(key.name)
            message = f"WorkloadKind {first} is of the same kind and was there first"
            yield from _say(obj, "False", CONFLICT, message, now)
            return
        metadata = obj["metadata"]
        version = (metadata["uid"], int(metadata.get("generation") or 0))
        if self._generations.get(key.name) != version:
            yield from self._drop(key.name)
            adapter = DeclaredJobs(declaration)
            self._declared.put(key.name, adapter)
            yield Adopt(adapter.kind, JobController(adapter, self._queues))
            self._generations[key.name] = version
        message = f"objects of {declaration.kind} ({declaration.api_version}) are queued"
        yield from _say(obj, "True", "Queued", message, now)

    def _drop(self, name: str) -> Steps:
        adapter = self._declared.adapter(name)
        self._generations.pop(name, None)
        if adapter is not None:
            self._declared.put(name, None)
            yield Dismiss(adapter.kind, JobController(adapter, self._queues).name)


def _kind_of(obj: Json) -> tuple[str, str]:
    spec: Mapping[str, object] = obj.get("spec") or {}
    group = str(spec.get("apiVersion")).rpartition("/")[0]
    return group, str(spec.get("kind"))


def _first_of_kind(obj: Json, view: View) -> str:
    """Return the name of the oldest declaration of the kind that an object is about."""
    rivals = [one for one in view.all(names.WORKLOAD_KIND) if _kind_of(one) == _kind_of(obj)]
    ages: list[tuple[str, str]] = [
        (one["metadata"].get("creationTimestamp", ""), one["metadata"]["name"]) for one in rivals
    ]
    return min(ages, default=("", obj["metadata"]["name"]))[1]


def _say(
    obj: Json, status: Literal["True", "False"], reason: str, message: str, now: float
) -> Steps:
    before = (obj.get("status") or {}).get("conditions") or []
    after = with_condition(before, READY, status, reason, message, now=now)
    if after != before:
        yield Patch(Ref.to(obj), {"status": {"conditions": after}}, "status")
