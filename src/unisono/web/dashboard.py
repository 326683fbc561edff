"""What pages are made of: sorted workloads and sums over the cache, kept by changes.

The cache tell of every workload and pod that became another; nodes and queues are compared when
their version grew. So what an open page costs follows what happens, not how large the cluster is.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.monitor.cache import ClusterCache, Key, PodChange, WorkloadChange
from unisono.monitor.dcgm.assignments import Device, DeviceAssignments
from unisono.monitor.metrics.queues import state_of
from unisono.monitor.records import NodeRecord, PodRecord, WorkloadRecord

# Returns an object as the API has it; None if there is none, or if its kind is not followed.
Look = Callable[[Kind, str, str], Mapping[str, Any] | None]

_OURS = "unisono.dev/"
# What could be the key of a Workload within a sentence.
_KEY = re.compile(r"(?<![\w./-])[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9.-]*[a-z0-9](?![\w/-])")
_QUARANTINE = "unisono.dev/quarantine"
FREE = ("", "")


R = TypeVar("R")
# What records are sorted by; the last part is unique.
Rank = tuple[float, float, bool, int, int, str]


class SortedRecords(Generic[R]):
    """Records in order; adding, removing and finding a position is fast among thousands."""

    def __init__(self) -> None:
        """Begin empty."""
        self._ranks: list[Rank] = []
        self._members: dict[Rank, R] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._ranks)

    def __iter__(self) -> Iterator[R]:
        """All of them, in order."""
        return map(self._members.__getitem__, self._ranks)

    def put(self, rank: Rank, member: R) -> None:
        """Add a record, or replace the one of this rank by a newer version."""
        if rank not in self._members:
            insort(self._ranks, rank)
        self._members[rank] = member

    def drop(self, rank: Rank) -> None:
        """Remove a record if it is there."""
        if self._members.pop(rank, None) is not None:
            del self._ranks[bisect_left(self._ranks, rank)]

    def position(self, rank: Rank) -> int:
        """Return the position of a record, from 1 on; 0 if it is not there."""
        return bisect_left(self._ranks, rank) + 1 if rank in self._members else 0

    def first(self) -> R | None:
        """Return the first record."""
        return self._members[self._ranks[0]] if self._ranks else None

    def part(self, since: int, count: int) -> list[R]:
        """Return a few of them."""
        return list(map(self._members.__getitem__, self._ranks[since : since + count]))


class Sums:
    """What is used and wanted; every workload adds its part and takes it back."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.used: Counter[tuple[str, str]] = Counter()  # by queue and flavor
        self.wanted: Counter[str] = Counter()  # by queue
        self.states: Counter[tuple[str, str]] = Counter()  # by queue and state
        self.by_user: Counter[tuple[str, str]] = Counter()  # GPUs in use by namespace and user
        self.spaces: Counter[str] = Counter()  # workloads by namespace

    def count(self, one: WorkloadRecord, queue: str, sign: int) -> None:
        """Add or take back what a workload uses or wants."""
        self.spaces[one.namespace] += sign
        if one.finished:
            return
        self.states[queue, state_of(one)] += sign
        if one.is_waiting:
            self.wanted[queue] += sign * one.gpus
            return
        self.by_user[one.namespace, one.user] += sign * one.gpus
        for asked in one.asked:
            self.used[queue, asked.flavor] += sign * asked.gpus


class Dashboard:
    """Holds the lines; `refresh` before looking."""

    def __init__(
        self, cache: ClusterCache, look: Look = lambda kind, name, namespace: None
    ) -> None:
        """Follow cache from now on."""
        self.cache = cache
        self.look = look
        self.version = 0  # grows with everything that became different
        self.sums = Sums()
        self.waiting: SortedRecords[WorkloadRecord] = SortedRecords()
        self.lines: dict[str, SortedRecords[WorkloadRecord]] = {}  # waiting workloads, by queue
        self.running: SortedRecords[WorkloadRecord] = SortedRecords()
        self.over: SortedRecords[WorkloadRecord] = SortedRecords()
        self._known: dict[Key, tuple[WorkloadRecord, str, Rank]] = {}  # with its queue and rank
        self._texts: dict[str, str] = {}  # what is searched in, by uid; made at the first search
        self.pods_of: dict[Key, dict[str, PodRecord]] = {}  # by gang, by name
        self._pods: dict[Key, PodRecord] = {}
        self._pods_on: dict[str, dict[str, PodRecord]] = {}  # by node, by uid
        self._nodes: dict[str, NodeRecord] = {}
        self._rows: dict[str, Json] = {}  # of nodes
        self._stale: set[str] = set()  # nodes whose row is to be made anew
        self._holders = DeviceAssignments()
        self._machines: tuple[object, ...] = ()
        cache.refresh()
        self._seen = cache.queues_version, -1
        cache.on_workload.append(self._follow_workload)
        cache.on_pod.append(self._follow_pod)
        for pod in cache.pods.values():
            self._put_pod(pod)
        self._refill()

    # ---- following -------------------------------------------------------------------------------

    def refresh(self) -> int:
        """Take in what happened; return the version."""
        cache = self.cache
        cache.refresh()
        if self._seen != (cache.queues_version, cache.nodes_version):
            if self._seen[0] != cache.queues_version:
                self._refill()
            self._compare_nodes()
            self._seen = cache.queues_version, cache.nodes_version
            self.version += 1
        machines = (*cache.pools.values(), *cache.claims.values())
        if machines != self._machines:
            self._machines = machines
            self.version += 1
        return self.version

    def _refill(self) -> None:
        """Sort all workloads anew: a queue was added, removed or changed."""
        self.sums = Sums()
        self.waiting, self.running, self.over, self.lines = (
            SortedRecords(),
            SortedRecords(),
            SortedRecords(),
            {},
        )
        self._known, self._texts = {}, {}
        for one in self.cache.workloads.values():
            self._enter(one)

    def _follow_workload(self, step: WorkloadChange) -> None:
        some = step.after if step.after is not None else step.before
        if some is None:
            return
        self.version += 1
        self._leave(some.key)
        if step.after is not None:
            self._enter(step.after)

    def _enter(self, one: WorkloadRecord) -> None:
        queue = self.cache.queue_of(one)
        rank = self._rank_of(one)
        self._known[one.key] = one, queue, rank
        self.sums.count(one, queue, 1)
        if one.finished:
            self.over.put(rank, one)
        elif one.is_waiting:
            self.waiting.put(rank, one)
            self.lines.setdefault(queue, SortedRecords()).put(rank, one)
        else:
            self.running.put(rank, one)

    def _leave(self, key: Key) -> None:
        found = self._known.pop(key, None)
        if found is None:
            return
        one, queue, rank = found
        self._texts.pop(one.uid, None)
        self.sums.count(one, queue, -1)
        for line in (self.waiting, self.running, self.over, self.lines.get(queue)):
            if line is not None:
                line.drop(rank)

    def _follow_pod(self, step: PodChange) -> None:
        pod = step.after
        known = self._pods.get(pod.key)
        if known is not None and (known.uid == pod.uid or not step.is_gone):
            self._drop_pod(known)
        if not step.is_gone and (pod.gpus or pod.workload):
            self._put_pod(pod)
        self.version += 1

    def _put_pod(self, pod: PodRecord) -> None:
        self._pods[pod.key] = pod
        if pod.workload:
            self.pods_of.setdefault((pod.namespace, pod.workload), {})[pod.name] = pod
        if pod.node and not pod.is_over:
            self._pods_on.setdefault(pod.node, {})[pod.uid] = pod
            self._stale.add(pod.node)

    def _drop_pod(self, pod: PodRecord) -> None:
        del self._pods[pod.key]
        gang = self.pods_of.get((pod.namespace, pod.workload), {})
        gang.pop(pod.name, None)
        if not gang:
            self.pods_of.pop((pod.namespace, pod.workload), None)
        here = self._pods_on.get(pod.node, {})
        if here.pop(pod.uid, None) is not None:
            self._stale.add(pod.node)
        if not here:
            self._pods_on.pop(pod.node, None)

    def _compare_nodes(self) -> None:
        there = self.cache.nodes
        self._stale.update(
            name for name, node in there.items() if self._nodes.get(name) is not node
        )
        for name in [one for one in self._nodes if one not in there]:
            self._rows.pop(name, None)
        self._nodes = {name: there[name] for name in sorted(there)}

    # ---- looking ---------------------------------------------------------------------------------

    def queue_of(self, one: WorkloadRecord) -> str:
        """Return the queue that a workload is in."""
        found = self._known.get(one.key)
        return found[1] if found is not None else ""

    def namespaces(self) -> list[str]:
        """Return the namespaces that have workloads, the busiest first."""
        self.refresh()
        found = [(count, name) for name, count in self.sums.spaces.items() if count > 0]
        return [name for _, name in sorted(found, key=lambda one: (-one[0], one[1]))]

    def workload(self, namespace: str, name: str) -> WorkloadRecord | None:
        """Return one workload."""
        found = self._known.get((namespace, name))
        return found[0] if found is not None else None

    def pod(self, namespace: str, name: str) -> PodRecord | None:
        """Return one pod that holds GPUs or is of a gang."""
        return self._pods.get((namespace, name))

    def job_of(self, key: str) -> str:
        """Return the name of the job that a workload is of, as `namespace/name`."""
        self.refresh()
        namespace, _, name = key.partition("/")
        one = self.workload(namespace, name)
        return f"{namespace}/{one.owner_name}" if one is not None else key

    def by_jobs(self, text: str) -> str:
        """Return a text with jobs in the place of their Workloads, which users did not name."""
        return _KEY.sub(lambda found: self._job_named(found[0]), text)

    def _job_named(self, key: str) -> str:
        namespace, _, name = key.partition("/")
        one = self.workload(namespace, name)
        return f"{namespace}/{one.owner_name}" if one is not None and one.owner_name else key

    def text_of(self, one: WorkloadRecord) -> str:
        """Return what a workload can be found by, in small letters."""
        found = self._texts.get(one.uid)
        if found is None:
            words = (
                f"{one.namespace}/{one.name}",
                f"{one.owner_kind}/{one.owner_name}",
                *(one.user, self.queue_of(one), one.waits.stage),
            )
            found = self._texts[one.uid] = " ".join(words).lower()
        return found

    def position(self, one: WorkloadRecord) -> int:
        """Return the position in the pending queue of a workload; 0 if it is in none."""
        known = self._known.get(one.key)
        if known is None or known[0].order is None:
            return 0
        line = self.lines.get(known[1])
        return line.position(known[2]) if line is not None else 0

    def _rank_of(self, one: WorkloadRecord) -> Rank:
        """Return its rank: pending workloads as their queue orders them, others newest first."""
        if one.finished:
            return -one.finished, 0.0, False, 0, 0, one.uid
        if one.is_waiting:
            return self.cache.pending_rank(one)
        return -(one.admitted or one.reserved), 0.0, False, 0, 0, one.uid

    def pods_on(self, node: str) -> Iterable[PodRecord]:
        """Return the pods that hold a node."""
        return self._pods_on.get(node, {}).values()

    def devices_of(self, pod: PodRecord) -> tuple[Device, ...]:
        """Return the devices that a pod holds, as far as the dashboard assigns them."""
        row = self.node_row(pod.node) if pod.gpus else None
        if row is None:
            return ()
        return tuple((pod.node, at) for at, one in enumerate(row["pods"]) if one == pod.key)

    def node_row(self, name: str) -> Json | None:
        """Return one node as pages show it."""
        return self.nodes().get(name) if name in self._stale else self._rows.get(name)

    def nodes(self) -> dict[str, Json]:
        """Return every node as pages show it, by name; a row is another object when it changed."""
        for name in self._stale:
            if name in self._nodes:
                self._rows[name] = self._row(self._nodes[name])
        self._stale.clear()
        return {name: self._rows[name] for name in self._nodes}

    def _row(self, node: NodeRecord) -> Json:
        there = self._pods_on.get(node.name, {}).values()
        held = self._holders.on_node(node.name, there, node)
        by = [FREE] * node.gpus
        pods = [FREE] * node.gpus
        for (_, index), holder in held.items():
            if index < node.gpus:
                pod = holder.pod
                by[index] = pod.namespace, pod.workload or pod.name
                pods[index] = pod.key
        return {
            "name": node.name,
            "type": node.instance_type,
            "zone": node.zone,
            "model": node.model,
            "pool": node.pool,
            "sold": node.capacity_type,
            "price": node.price,
            "ready": node.is_ready,
            "closed": is_closed(node),
            "broken": max(0, node.gpus - node.allocatable),
            "why": [one.removeprefix(_OURS) for one in node.taints if one.startswith(_OURS)],
            "since": node.created,
            "gpus": node.gpus,
            "held": sum(one is not FREE for one in by),
            "by": by,
            "pods": pods,
        }


def is_closed(node: NodeRecord) -> bool:
    """Say whether a node takes no new pods."""
    return not node.is_open or any(one.startswith(_QUARANTINE) for one in node.taints)
