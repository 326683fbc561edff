"""How many workloads each queue has and what they hold, counted from stored Workloads.

Whatever changed is marked, and counted again before the next question: a change costs the same
whether a queue has ten workloads or ten thousand. Nothing here comes from the engine's memory, so a
restart finds the same numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal, NamedTuple

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.admission.counts import whole_counts
from unisono.control.admission.elastic import BY_REPLACED, first_of_slice, holds
from unisono.control.conditions import is_true
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.engine.model.queue import ClusterQueue, ResourceGroup
from unisono.kinds.quantity import Quantity, format_amount
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

State = Literal["pending", "reserving", "admitted"]
_PODS = "pods"
# Conditions that say what a workload counts as.
_COUNTED = frozenset({"QuotaReserved", "Admitted", "Finished"})


class Use(NamedTuple):
    """What usage is counted by."""

    flavor: str
    resource: str


@dataclass(frozen=True, slots=True)
class Part:
    """What one workload adds to the counts of its queues."""

    local: Key
    state: State
    queue: str = ""  # the ClusterQueue whose quota it holds
    holds: Mapping[Use, int] = field(default_factory=dict)


@dataclass(slots=True)
class Sums:
    """The counts of one queue. An admitted workload counts as reserving, too."""

    pending: int = 0
    reserving: int = 0
    admitted: int = 0
    reserved: dict[Use, int] = field(default_factory=dict)
    used: dict[Use, int] = field(default_factory=dict)

    def add(self, part: Part, sign: Literal[1, -1]) -> None:
        """Count a workload, or no longer count it."""
        if part.state == "pending":
            self.pending += sign
            return
        self.reserving += sign
        _add(self.reserved, part.holds, sign)
        if part.state == "admitted":
            self.admitted += sign
            _add(self.used, part.holds, sign)


class Tally:
    """The counts of all queues. Every Workload and LocalQueue has to reach it by `mark`."""

    def __init__(self, view: View) -> None:
        """Begin with nothing counted."""
        self._view = view
        self._marked: dict[tuple[Kind, Key], None] = {}
        self._parts: dict[Key, Part] = {}
        self._leads_to: dict[Key, str] = {}  # the ClusterQueue of a LocalQueue
        self._queues: dict[str, Sums] = {}
        self._locals: dict[Key, Sums] = {}

    def mark(self, kind: Kind, obj: Json) -> None:
        """Count an object again before the next question."""
        self._marked[kind, own_key(obj)] = None

    def of_queue(self, name: str) -> Sums:
        """Return the counts of a ClusterQueue."""
        self._refresh()
        return self._queues.get(name) or Sums()

    def of_local(self, key: Key) -> Sums:
        """Return the counts of a LocalQueue."""
        self._refresh()
        return self._locals.get(key) or Sums()

    def queues_of(self, workload: Json) -> Iterable[str]:
        """Yield the ClusterQueues that a workload concerns: where it waits, and where it holds."""
        part = part_of(workload)
        if part is None:
            local = Key(own_key(workload).namespace, workload["spec"].get("queueName", ""))
            part = Part(local, "pending")
        local_queue = self._view.get(names.LOCAL_QUEUE, part.local.name, part.local.namespace)
        if local_queue is not None:
            yield local_queue["spec"]["clusterQueue"]
        held_in = ((workload.get("status") or {}).get("admission") or {}).get("clusterQueue")
        if held_in:
            yield held_in

    def _refresh(self) -> None:
        marked, self._marked = self._marked, {}
        for kind, key in marked:
            # What cannot be read is counted as nothing here, and still counts for the engine.
            obj = self._view.peek(kind, key.name, key.namespace)
            if kind == names.WORKLOAD:
                self._count(key, self._part(obj) if obj is not None else None)
                full = f"{key.namespace}/{key.name}"
                for beside in self._view.by(names.WORKLOAD, BY_REPLACED, full):
                    self._count(own_key(beside), self._part(beside))
            else:
                self._lead(key, obj["spec"]["clusterQueue"] if obj is not None else "")

    def _part(self, obj: Json) -> Part | None:
        """Return what a workload adds; a slice of one that runs adds what is new."""
        part, first = part_of(obj), first_of_slice(obj, self._view)
        there = part_of(first) if first is not None and holds(first) else None
        if part is None or there is None:
            return part
        left = {use: amount - there.holds.get(use, 0) for use, amount in part.holds.items()}
        return dataclasses.replace(part, holds=left)

    def _count(self, key: Key, part: Part | None) -> None:
        old = self._parts.pop(key, None)
        if old is not None:
            self._add(old, -1)
        if part is not None:
            self._parts[key] = part
            self._add(part, 1)

    def _add(self, part: Part, sign: Literal[1, -1]) -> None:
        self._locals.setdefault(part.local, Sums()).add(part, sign)
        queue = part.queue or self._leads_to.get(part.local, "")
        if queue:
            self._queues.setdefault(queue, Sums()).add(part, sign)

    def _lead(self, local: Key, queue: str) -> None:
        """Count the pending workloads of a LocalQueue for the ClusterQueue that it leads to."""
        old = self._leads_to.pop(local, "")
        waiting = self._locals[local].pending if local in self._locals else 0
        if queue:
            self._leads_to[local] = queue
        for name, sign in ((old, -1), (queue, 1)):
            if name:
                self._queues.setdefault(name, Sums()).pending += sign * waiting


def counted_of(workload: Json) -> object:
    """Return what is read of a Workload to count it (`ReadsPartly`)."""
    status = workload.get("status") or {}
    conditions = status.get("conditions") or ()
    return (
        "deletionTimestamp" in workload["metadata"],
        workload["spec"].get("queueName"),
        workload["spec"].get("active"),
        status.get("admission"),
        status.get("reclaimablePods"),
        status.get("admission") and _counts_asked(workload),
        [(one["type"], one["status"]) for one in conditions if one["type"] in _COUNTED],
    )


def _counts_asked(workload: Json) -> list[object]:
    sets = workload["spec"].get("podSets") or ()
    return [(one.get("name"), one.get("count"), one.get("minCount")) for one in sets]


def part_of(workload: Json) -> Part | None:
    """Return what a Workload counts as; None if it is over, leaving or set aside."""
    metadata, spec = workload["metadata"], workload["spec"]
    status = workload.get("status") or {}
    conditions = status.get("conditions")
    if "deletionTimestamp" in metadata or is_true(conditions, "Finished"):
        return None
    local = Key(metadata["namespace"], spec.get("queueName", ""))
    admission = status.get("admission")
    if not admission or not is_true(conditions, "QuotaReserved"):
        return Part(local, "pending") if spec.get("active", True) else None
    return Part(
        local,
        "admitted" if is_true(conditions, "Admitted") else "reserving",
        admission["clusterQueue"],
        _holds(workload),
    )


def _holds(workload: Json) -> dict[Use, int]:
    """Return what an admission holds; pods that are done have given their part back."""
    status = workload["status"]
    done = {one["name"]: one["count"] for one in status.get("reclaimablePods") or ()}
    counts = whole_counts(workload)
    found: dict[Use, int] = {}
    for one in status["admission"].get("podSetAssignments") or ():
        usage, pods = one.get("resourceUsage") or {}, one.get("count") or 0
        left = max(0, counts[one["name"]] - done.get(one["name"], 0))
        for resource, flavor in (one.get("flavors") or {}).items():
            if resource in usage:
                whole = Quantity.from_raw(usage[resource]).amount(resource)
            else:
                whole = pods if resource == _PODS else 0
            amount = whole * left // pods if pods else 0
            use = Use(flavor, resource)
            found[use] = found.get(use, 0) + amount
    return found


def _add(sums: dict[Use, int], holds: Mapping[Use, int], sign: Literal[1, -1]) -> None:
    for use, amount in holds.items():
        total = sums.get(use, 0) + sign * amount
        if total:
            sums[use] = total
        else:
            sums.pop(use, None)


# ---- usage ---------------------------------------------------------------------------------------
#
# The usage of a queue, flavor by flavor, as its status has it. Every flavor and resource of the
# queue's quota is listed, used or not. What is still held of a flavor that the queue no longer
# lists comes last, all of it borrowed. The flavors of a pool share one quota: what exceeds it is
# counted to the later flavors.

_MOST_FLAVORS = 64  # what the schema of the status allows


def flavors_usage(
    queue: ClusterQueue, amounts: Mapping[Use, int], *, tells_borrowed: bool
) -> list[Json]:
    """Return the list of flavors with what is used of each resource."""
    found: dict[str, list[Json]] = {}
    listed: set[Use] = set()
    for group in queue.groups:
        for use, borrowed in _listed(group, amounts):
            listed.add(use)
            total = amounts.get(use, 0)
            found.setdefault(use.flavor, []).append(_entry(use, total, borrowed, tells_borrowed))
    known = {quota.flavor for group in queue.groups for quota in group.flavors}
    for use in sorted(amounts.keys() - listed):
        total = amounts[use]
        # A resource that a flavor of the queue does not limit is never borrowed.
        borrowed = 0 if use.flavor in known else total
        found.setdefault(use.flavor, []).append(_entry(use, total, borrowed, tells_borrowed))
    return [
        {"name": name, "resources": resources}
        for name, resources in list(found.items())[:_MOST_FLAVORS]
    ]


def _listed(group: ResourceGroup, amounts: Mapping[Use, int]) -> Iterator[tuple[Use, int]]:
    """Yield what a group lists, in its order, and how much of it is borrowed."""
    if group.pool is None:
        for flavor in group.flavors:
            for quota in flavor.resources:
                use = Use(flavor.flavor, quota.resource)
                yield use, max(0, amounts.get(use, 0) - quota.nominal)
        return
    left = {quota.resource: quota.nominal for quota in group.pool}
    for flavor in group.flavors:
        for quota in group.pool:
            use = Use(flavor.flavor, quota.resource)
            total = amounts.get(use, 0)
            yield use, max(0, total - left[quota.resource])
            left[quota.resource] = max(0, left[quota.resource] - total)


def _entry(use: Use, total: int, borrowed: int, tells_borrowed: bool) -> Json:
    entry: Json = {"name": use.resource, "total": format_amount(total, use.resource)}
    if tells_borrowed:
        entry["borrowed"] = format_amount(borrowed, use.resource)
    return entry


# ---- when a status is written --------------------------------------------------------------------
#
# Only if it changed, and not too often: a thousand jobs that are submitted at once change the
# counts of their queue thousands of times, and only the last of them is of interest.

# A status is written at once, and then so many seconds not again.
REST_SECONDS = 1.0
# Where many queues are busy each of them rests longer: statuses of queues must not cost more than
# some hundredths of what an API server can store, which is some hundred writes a second.
MOST_PER_SECOND = 3
# That a queue is empty is what people, and scripts, wait for: it is written sooner.
MOST_EMPTY_PER_SECOND = 30
# A queue that was not written for so long does not count as busy.
_BUSY_SECONDS = 10.0


class Pace:
    """Remembers when each key was last written; forgetting it only means one write more."""

    def __init__(self) -> None:
        """Begin with nothing written."""
        self._written: dict[Key, float] = {}  # the busy ones, in order of their last write

    def rests_until(self, key: Key, sums: Sums, now: float) -> float | None:
        """Return when the status of a queue with these counts may be written; None if it may now.

        Until then its status need not be computed.
        """
        last = self._written.get(key)
        if last is None:
            return None
        is_empty = not sums.pending and not sums.reserving
        most = MOST_EMPTY_PER_SECOND if is_empty else MOST_PER_SECOND
        due = last + max(REST_SECONDS, len(self._written) / most)
        return due if now < due else None

    def write(self, key: Key, obj: Json, status: Json, now: float) -> Steps:
        """Write what is different about a status that does not rest."""
        old = obj.get("status") or {}
        changed = {name: value for name, value in status.items() if old.get(name) != value}
        if changed:
            self.forget(key)
            self._written[key] = now
            self._forget_quiet(now)
            yield Patch(Ref.to(obj), {"status": changed}, "status")

    def _forget_quiet(self, now: float) -> None:
        longest = max(_BUSY_SECONDS, len(self._written) / MOST_PER_SECOND)
        quiet = takewhile(lambda one: now - one[1] > longest, self._written.items())
        for key, _ in list(quiet):
            del self._written[key]

    def forget(self, key: Key) -> None:
        """Let go of a queue that is gone."""
        self._written.pop(key, None)
