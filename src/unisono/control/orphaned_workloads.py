"""Workloads without a job: their job is gone, or there never was one.

    the Workload was made     what becomes of it
    for a job that is gone    it ends: Finished with reason OwnerNotFound, as in Kueue, and its
                              quota is free. Pods that were left behind on purpose
                              (`--cascade=orphan`) keep it until they are over; once it is
                              evicted, they are deleted.
    by hand, without a job    it stays until its author deletes it, and need not have any pods. Once
                              evicted, it gives its quota back as soon as none of them is left.
                              When a slice that replaces it gets quota, it ends: Finished with
                              reason WorkloadSliceReplaced, as in Kueue.
    for a job of a kind that  left to the controller of that kind, as in Kueue, but for slices
    we do not know

A job is the same job only by its uid: one of that name that came later has a Workload of its own.
The garbage collector of an orphaning deletion strips `ownerReferences`; then the label with the
job's uid, and the name that the Workload got from it, name its job. Nothing is ended before the API
itself has said that the job is gone, as the view of a kind may be behind the one of Workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from unisono.control import names
from unisono.control.actions import (
    Again,
    Delete,
    Json,
    Note,
    Patch,
    Read,
    Ref,
    Steps,
    Together,
)
from unisono.control.admission import kueue_messages
from unisono.control.admission.elastic import (
    SLICE_OF_JOB,
    first_of_slice,
    holds,
    is_absorbed,
    replaced_by,
    slices_of,
)
from unisono.control.conditions import find, is_true, with_condition
from unisono.control.controller import Reads, own_key
from unisono.control.gangs.slots import is_active, is_over
from unisono.control.jobs.controller import released, remove_finalizer
from unisono.control.jobs.workload import workload_name
from unisono.control.pod_gangs.membership import Gang
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

OWNER_NOT_FOUND = "OwnerNotFound"
REPLACED = "WorkloadSliceReplaced"
# The index of Workloads by the uid of the job in their label.
BY_JOB = "job"
# How long the garbage collector may take over a Workload that still names a job that is gone. It is
# there for that, and needs seconds; but it gives up on owners whose kind is no longer served.
COLLECTED_S = 60.0


def job_uids(workload: Json) -> Iterable[str]:
    """Index Workloads by the uid of their job."""
    uid = (workload["metadata"].get("labels") or {}).get(names.JOB_UID_LABEL)
    return (uid,) if uid else ()


class Owner(NamedTuple):
    """The job, or the group of pods, that a Workload was made for."""

    kind: Kind
    name: str
    uid: str


# "none": there is no job, and never was. "foreign": an owner of a kind that is not ours.
# "pods": a group that is nothing but its pods. "lost": there was a job, and it is not known which.
Ownership = Owner | Literal["none", "foreign", "pods", "lost"]


@lru_cache(maxsize=8)
def _groups_and_kinds(kinds: tuple[Kind, ...]) -> Mapping[tuple[str, str], Kind]:
    return {(_group(kind), kind.kind): kind for kind in kinds}


class Owners:
    """Finds the owner of a Workload, from what is written on it alone."""

    def __init__(
        self, kinds: Collection[Kind], declared: Callable[[], Collection[Kind]] = tuple
    ) -> None:
        """Take the kinds of jobs, and of groups of pods, whose Workloads are made by us.

        `declared` are those that come and go with WorkloadKinds.
        """
        self._built_in = tuple(kinds)
        self._declared = declared

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds as they are now."""
        return (*self._built_in, *sorted(self._declared()))

    @property
    def _by_group_and_kind(self) -> Mapping[tuple[str, str], Kind]:
        return _groups_and_kinds(self.kinds)

    def of(self, workload: Json) -> Ownership:
        """Return the owner of a Workload, or why there is none."""
        metadata = workload["metadata"]
        annotations = metadata.get("annotations") or {}
        uid = (metadata.get("labels") or {}).get(names.JOB_UID_LABEL, "")
        if text := annotations.get(names.GANG):
            gang = Gang.read(text)
            if gang.kind is None:
                return "pods"
            return Owner(gang.kind, gang.name, uid) if gang.kind in self.kinds else "foreign"
        references = metadata.get("ownerReferences") or ()
        for one in references:
            group_and_kind = (one["apiVersion"].rpartition("/")[0], one["kind"])
            if one.get("controller") and group_and_kind in self._by_group_and_kind:
                return Owner(self._by_group_and_kind[group_and_kind], one["name"], one["uid"])
        if references:
            return "foreign"
        if not uid:
            return "lost" if SLICE_OF_JOB in annotations else "none"
        # Any author may write such a label: a name that no kind of ours gives is of no job of ours.
        is_ours = any(metadata["name"].startswith(_prefix(kind)) for kind in self.kinds)
        return next(self._named(metadata["name"], uid), "lost" if is_ours else "none")

    def _named(self, workload: str, uid: str) -> Iterator[Owner]:
        """Yield the job whose Workload has this name: kind, job, and a hash of both and the uid."""
        for kind in self.kinds:
            prefix = _prefix(kind)
            name = workload.removeprefix(prefix).rpartition("-")[0]
            if workload.startswith(prefix) and workload_name(kind, name, uid) == workload:
                yield Owner(kind, name, uid)

    def is_made_elsewhere(self, workload: Json) -> bool:
        """Say whether no controller of ours makes the pods of a Workload; it may have none."""
        return self.of(workload) in ("none", "foreign")


def _prefix(kind: Kind) -> str:
    return f"{kind.kind.lower()}-"


def _group(kind: Kind) -> str:
    return kind.api_version.rpartition("/")[0]


def _read_of_workload(workload: Json) -> object:
    metadata, status = workload["metadata"], workload.get("status") or {}
    conditions = status.get("conditions")
    return (
        metadata.get("deletionTimestamp"),
        metadata.get("ownerReferences"),
        metadata.get("labels"),
        bool(status.get("admission")),
        is_true(conditions, "Evicted"),
        is_true(conditions, "Finished"),
    )


def _read_of_job(job: Json) -> object:
    return job["metadata"]["uid"]


def _read_of_pod(pod: Json) -> object:
    return is_over(pod)


class OrphanedWorkloads:
    """Ends Workloads whose job is gone, and lets go of evicted ones that never had one."""

    name = "ownerless"
    ignores_own_writes = True

    def __init__(self, owners: Owners, view: View) -> None:
        """Take what finds the owner of a Workload."""
        self._owners = owners
        kinds = tuple(kind for kind in owners.kinds if view.has(kind))
        self.watches: Sequence[Kind] = (names.WORKLOAD, names.POD, *kinds)
        self.reads: Mapping[Kind, Reads] = {
            names.WORKLOAD: _read_of_workload,
            names.POD: _read_of_pod,
            **dict.fromkeys(kinds, _read_of_job),
        }
        # Since when a Workload has been without its job; and Workloads that wait for their last pod
        # to end. A restarted controller looks at every Workload, and finds both again.
        self._since: dict[Key, float] = {}
        self._outlived: set[str] = set()

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A Workload, one of the pods that are waited for, or those of a job that came or went."""
        metadata = obj["metadata"]
        if kind == names.WORKLOAD:
            yield own_key(obj)
            yield from map(own_key, slices_of(obj, view))
            for replaced in replaced_by(obj):
                yield Key(*replaced.split("/", 1))
        elif kind == names.POD:
            name = (metadata.get("annotations") or {}).get(names.WORKLOAD_ANNOTATION, "")
            if f"{metadata['namespace']}/{name}" in self._outlived:
                yield Key(metadata["namespace"], name)
        else:
            uid = metadata["uid"]
            for index in (view.owned(names.WORKLOAD, uid), view.by(names.WORKLOAD, BY_JOB, uid)):
                yield from map(own_key, index)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """End a Workload without a job, or release its quota."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        self._outlived.discard(f"{key.namespace}/{key.name}")
        since = self._since.pop(key, None)
        if workload is None or "deletionTimestamp" in workload["metadata"]:
            return  # `gangs` removes its finalizer
        conditions = (workload.get("status") or {}).get("conditions")
        if is_true(conditions, "Finished"):
            return
        owner_of = self._owners.of(workload)
        if owner_of in ("foreign", "none") and (other := _replacement(workload, view)) is not None:
            yield from _replace(workload, other, now)
            return
        match owner_of:
            case "foreign" | "pods":
                return
            case "none":
                yield from self._give_back(workload, view, now)
                return
            case "lost":
                if _is_beside_first(workload, view):
                    return
            case Owner() as owner:
                if _is_it(view.find(owner.kind, owner.name, key.namespace), owner):
                    return
                due = (now if since is None else since) + COLLECTED_S
                if workload["metadata"].get("ownerReferences") and now < due:
                    self._since[key] = due - COLLECTED_S
                    yield Again(due)
                    return
                there = yield Read(owner.kind, key.namespace, owner.name)
                if _is_it(there, owner):
                    return
        yield from self._end(workload, view, now)

    def _end(self, workload: Json, view: View, now: float) -> Steps:
        """End a Workload whose job is gone, once nothing of it runs."""
        status = workload.get("status") or {}
        conditions = status.get("conditions") or []
        left = self._left(workload, view)
        if left:
            going = [pod for pod in left if is_active(pod)]
            if going and is_true(conditions, "Evicted"):
                yield Together([Delete(Ref.to(pod)) for pod in going])
            return
        changes: Json = {}
        if is_true(conditions, "Evicted") and status.get("admission"):
            changes = released(workload, now)
            conditions = changes["conditions"]
        finished = with_condition(
            conditions,
            "Finished",
            "True",
            OWNER_NOT_FOUND,
            kueue_messages.OWNER_NOT_FOUND,
            now=now,
            generation=workload["metadata"].get("generation"),
        )
        ref = Ref.to(workload)
        workload = yield Patch(ref, {"status": {**changes, "conditions": finished}}, "status")
        yield Note(ref, OWNER_NOT_FOUND, kueue_messages.OWNER_NOT_FOUND)
        yield from remove_finalizer(workload)

    def _give_back(self, workload: Json, view: View, now: float) -> Steps:
        """Release the quota of an evicted Workload that has no pod left."""
        status = workload.get("status") or {}
        evicted = find(status.get("conditions"), "Evicted")
        if evicted is None or evicted["status"] != "True" or not status.get("admission"):
            return
        if not self._left(workload, view):
            yield Patch(Ref.to(workload), {"status": released(workload, now)}, "status")

    def _left(self, workload: Json, view: View) -> list[Json]:
        """Return the pods of a Workload that are not over, and look again when they are."""
        metadata = workload["metadata"]
        full = f"{metadata['namespace']}/{metadata['name']}"
        left = [pod for pod in view.by(names.POD, names.BY_WORKLOAD, full) if not is_over(pod)]
        if left:
            self._outlived.add(full)
        return left


def _replacement(workload: Json, view: View) -> Json | None:
    """Return the slice with quota that replaces a Workload which holds quota, too."""
    if not holds(workload):
        return None
    every = (one for one in slices_of(workload, view) if holds(one) and not is_absorbed(one))
    return min(every, key=lambda one: str(one["metadata"]["name"]), default=None)


def _replace(workload: Json, by: Json, now: float) -> Steps:
    """End a Workload whose slice has taken over what it held."""
    message = kueue_messages.replaced(by)
    conditions = with_condition(
        workload["status"].get("conditions"),
        "Finished",
        "True",
        REPLACED,
        message,
        now=now,
        generation=workload["metadata"].get("generation"),
    )
    ref = Ref.to(workload)
    workload = yield Patch(ref, {"status": {"conditions": conditions}}, "status")
    yield Note(ref, REPLACED, message)
    yield from remove_finalizer(workload)


def _is_it(job: Json | None, owner: Owner) -> bool:
    return job is not None and job["metadata"]["uid"] == owner.uid


def _is_beside_first(workload: Json, view: View) -> bool:
    """Say whether a slice still has the Workload that it grows out of."""
    first = first_of_slice(workload, view)
    return first is not None and not is_true(
        (first.get("status") or {}).get("conditions"), "Finished"
    )
