"""From what happens in the cluster to rows of the ledger.

It listens to the cache; `pending` are the rows that changed since they were last taken. What was
open when we stopped and is gone when we come back ended when we last looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from unisono.monitor.cache import ClusterCache, PodChange, WorkloadChange
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, Row, WorkloadRow
from unisono.monitor.ledger.start_estimates import NONE, Score, scores, told
from unisono.monitor.records import NodeRecord, PodRecord, WorkloadRecord

_MICRO = 1_000_000
_AVOIDED = ("unisono.dev/quarantine", "unisono.dev/suspect")


class GpuUse(NamedTuple):
    """What the devices of a pod did for a while: GPU-seconds."""

    busy: float
    tensor: float
    covered: float
    idle_devices: int
    peak_mib: int


class LedgerRecorder:
    """Keeps the rows that are open."""

    def __init__(self, cache: ClusterCache) -> None:
        """Listen to cache."""
        self._cache = cache
        self._pods: dict[str, PodRow] = {}
        self._workloads: dict[str, WorkloadRow] = {}
        self._nodes: dict[str, NodeRow] = {}
        self._queues: dict[tuple[str, str], QueueRow] = {}
        self._nodes_version = -1
        self._was_off = False  # until now: nothing was there since the last look
        self._has_looked = True  # since it resumed; until then what is gone went unnoticed
        self._seen = 0  # what ended before that is written down already
        self._changed: dict[tuple[str, str], Row] = {}
        self._now = 0
        self._has_caught_up = False
        # Is told how true the starts were that a workload was told, when it has started.
        self.on_started: Callable[[Sequence[Score]], None] = lambda found: None
        cache.on_pod.append(self._follow_pod)
        cache.on_workload.append(self._follow_workload)

    # ---- beginning -------------------------------------------------------------------------------

    def resume(
        self,
        pods: Iterable[PodRow],
        workloads: Iterable[WorkloadRow],
        nodes: Iterable[NodeRow],
        queues: Iterable[QueueRow],
        *,
        seen: int,
        off_since: int = 0,
    ) -> None:
        """Take the rows that were open at the last look, at `seen`.

        Where nodes are off while there is no look, `off_since` says since when: their rows and
        those of queues end there, so that the time until now is nothing that was free.
        """
        self._seen, self._has_looked = seen, False
        self._was_off = bool(off_since)
        self._queues = {(one.queue, one.flavor): one for one in queues}
        self._pods = {one.uid: one for one in pods}
        self._workloads = {one.uid: one for one in workloads}
        self._nodes = {one.name: one for one in nodes}
        if off_since:
            for queue in list(self._queues.values()):
                self._put_queue(replace(queue, until=max(off_since, queue.since)))
            for node in list(self._nodes.values()):
                self._put_node(replace(node, until=max(off_since, node.since)))

    def close_missing(self) -> None:
        """End what is gone: it ended unnoticed, no later than the last look."""
        seen = self._seen
        there = {one.uid for one in self._cache.pods.values()}
        for uid, pod in list(self._pods.items()):
            if uid not in there:
                ended = max(seen, pod.bound, pod.started)
                self._put_pod(replace(pod, ended=ended, outcome="Gone", saved=self._saved(pod)))
        living = {one.uid for one in self._cache.workloads.values()}
        for uid, workload in list(self._workloads.items()):
            if uid not in living:
                last = max(seen, workload.since, workload.reserved, workload.ready)
                self._put_workload(replace(workload, ended=last, outcome="Deleted"))

    # ---- following -------------------------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Read what happened until now."""
        self._now = int(now)
        self._catch_up()
        self._cache.refresh()
        self._follow_nodes()
        self._follow_queues()
        self._has_looked = True

    def _catch_up(self) -> None:
        """Read what the cache knew before we listened."""
        if self._has_caught_up:
            return
        self._has_caught_up = True
        for workload in list(self._cache.workloads.values()):
            self._follow_workload(WorkloadChange(None, workload))
        for pod in list(self._cache.pods.values()):
            self._follow_pod(PodChange(None, pod, is_gone=False))

    @property
    def has_pods(self) -> bool:
        """Whether any pod has GPUs now."""
        return bool(self._pods)

    def used(self, uses: Mapping[str, GpuUse]) -> dict[str, GpuUse]:
        """Add what devices did, by the uid of the pod that has them.

        Returns what is about pods that are over and taken already: their rows are in the store.
        """
        left: dict[str, GpuUse] = {}
        for uid, use in uses.items():
            row = self._pods.get(uid) or self._changed.get(("pod", uid))
            if isinstance(row, PodRow):
                self._put_pod(with_use(row, use))
            else:
                left[uid] = use
        return left

    def pending(self) -> list[Row]:
        """Take the rows that changed."""
        changed, self._changed = list(self._changed.values()), {}
        return changed

    def _follow_pod(self, step: PodChange) -> None:
        pod = step.after
        gpus = sum(count for _, count in pod.gpus)
        row = self._pods.get(pod.uid)
        if not gpus or not pod.node or (row is None and self._is_known_to_be_over(step)):
            return
        made = _pod_row(pod, gpus, self._workload_uid(pod), row, self._now)
        if pod.is_over or step.is_gone:
            ended = max(int(pod.ended) or self._now, made.started, made.bound)
            outcome = pod.phase if pod.is_over else "Gone"
            made = replace(made, ended=ended, outcome=outcome, saved=self._saved(made))
        if made != row:
            self._put_pod(made)

    def _is_known_to_be_over(self, step: PodChange) -> bool:
        """Say whether a pod without an open row has its row already, or needs none."""
        pod = step.after
        if not pod.is_over:
            return False
        was_over = step.before is not None and step.before.is_over
        return was_over or not pod.started or int(pod.ended) <= self._seen

    def _saved(self, row: PodRow) -> int:
        workload = self._workloads.get(row.workload)
        return workload.saved if workload is not None else 0

    def _workload_uid(self, pod: PodRecord) -> str:
        workload = self._cache.workload_of(pod)
        return workload.uid if workload is not None else ""

    def _follow_workload(self, step: WorkloadChange) -> None:
        before, after = step
        gone = after if after is not None else before
        if gone is None:
            return
        row = self._workloads.get(gone.uid)
        if after is None:
            if row is not None:
                self._put_workload(replace(row, ended=self._now, outcome="Deleted"))
            return
        if row is None and after.finished and int(after.finished) <= self._seen:
            return  # it ended before the last look: its row is closed already
        tries = 1 + sum(count for _, count in after.evictions)
        if row is not None and tries > row.attempt:
            reason = _eviction(before, after)
            left = int(after.evicted) or self._now
            self._put_workload(replace(row, ended=max(left, row.since), outcome=reason))
            row = None
        made = _workload_row(after, self._cache.queue_of(after), tries, row)
        if after.is_waiting:
            first, half, last = told(made, after.waits, self._now)
            made = replace(made, told_first=first, told_half=half, told_last=last)
        if after.finished:
            made = replace(made, ended=max(int(after.finished), made.since), outcome="Finished")
        if made != row:
            self._put_workload(made)
        if made.admitted and (row is None or not row.admitted):
            self.on_started(scores(made))

    def _follow_nodes(self) -> None:
        if self._nodes_version == self._cache.nodes_version:
            return
        self._nodes_version = self._cache.nodes_version
        for name, node in self._cache.nodes.items():
            if not node.gpus:
                continue
            row = self._nodes.get(name)
            made = _node_row(node, self._now if row is not None else self._since(node.created))
            if row is not None and replace(made, since=row.since) == row:
                continue
            if row is not None:
                self._put_node(replace(row, until=max(self._now, row.since)))
            self._put_node(made)
        for name in [one for one in self._nodes if one not in self._cache.nodes]:
            self._put_node(replace(self._nodes[name], until=self._gone_at(self._nodes[name].since)))

    def _follow_queues(self) -> None:
        there: set[tuple[str, str]] = set()
        for queue in self._cache.queues.values():
            for quota in queue.quotas:
                key = queue.name, quota.flavor
                there.add(key)
                row = self._queues.get(key)
                made = QueueRow(
                    queue=queue.name,
                    flavor=quota.flavor,
                    cohort=queue.cohort,
                    gpus=quota.nominal,
                    since=self._now if row is not None else self._since(queue.created),
                )
                if row is None or replace(made, since=row.since) != row:
                    if row is not None:
                        self._put_queue(replace(row, until=max(self._now, row.since)))
                    self._put_queue(made)
        for key in [one for one in self._queues if one not in there]:
            self._put_queue(
                replace(self._queues[key], until=self._gone_at(self._queues[key].since))
            )

    def _gone_at(self, since: int) -> int:
        return self._now if self._has_looked else max(self._seen, since)

    def _since(self, created: float) -> int:
        """Return since when something new is told of: not before the last look."""
        if self._was_off and not self._has_looked:
            return self._now
        return min(self._now, max(int(created), self._seen)) if created else self._now

    # ---- keeping ---------------------------------------------------------------------------------

    def _put_pod(self, row: PodRow) -> None:
        self._changed["pod", row.uid] = row
        if row.ended:
            self._pods.pop(row.uid, None)
        else:
            self._pods[row.uid] = row

    def _put_workload(self, row: WorkloadRow) -> None:
        self._changed["workload", f"{row.uid}/{row.attempt}"] = row
        if row.ended:
            self._workloads.pop(row.uid, None)
        else:
            self._workloads[row.uid] = row

    def _put_node(self, row: NodeRow) -> None:
        self._changed["node", f"{row.uid}/{row.since}"] = row
        if row.until:
            self._nodes.pop(row.name, None)
        else:
            self._nodes[row.name] = row

    def _put_queue(self, row: QueueRow) -> None:
        self._changed["queue", f"{row.queue}/{row.flavor}/{row.since}"] = row
        if row.until:
            self._queues.pop((row.queue, row.flavor), None)
        else:
            self._queues[row.queue, row.flavor] = row


def with_use(row: PodRow, use: GpuUse) -> PodRow:
    """Return a row with what its devices did for another while."""
    # A device is idle if it was so at every measurement.
    idle = min(row.idle_devices, use.idle_devices) if row.covered else use.idle_devices
    return replace(
        row,
        busy=row.busy + use.busy,
        tensor=row.tensor + use.tensor,
        covered=row.covered + use.covered,
        idle_devices=idle,
        peak_mib=max(row.peak_mib, use.peak_mib),
    )


def _pod_row(pod: PodRecord, gpus: int, workload: str, row: PodRow | None, now: int) -> PodRow:
    bound = int(pod.bound) or int(pod.started) or now
    if row is not None:
        return replace(row, started=int(pod.started), workload=row.workload or workload)
    return PodRow(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        workload=workload,
        node=pod.node,
        gpus=gpus,
        bound=bound,
        started=int(pod.started),
    )


def _workload_row(
    workload: WorkloadRecord, queue: str, attempt: int, row: WorkloadRow | None
) -> WorkloadRow:
    flavors = [one.flavor for one in workload.asked if one.flavor]
    return WorkloadRow(
        uid=workload.uid,
        attempt=attempt,
        namespace=workload.namespace,
        name=workload.name,
        kind=workload.owner_kind,
        owner=workload.owner_name,
        queue=queue or (row.queue if row is not None else ""),
        local_queue=workload.local_queue,
        user=workload.user,
        team=workload.team,
        priority_class=workload.priority_class,
        flavor=flavors[0] if flavors else (row.flavor if row is not None else ""),
        gpus=workload.gpus,
        pods=workload.pods,
        since=row.since if row is not None else int(max(workload.created, workload.evicted)),
        reserved=int(workload.reserved),
        admitted=int(workload.admitted),
        ready=int(workload.ready) or (row.ready if row is not None else 0),
        saved=int(workload.saved) or (row.saved if row is not None else 0),
        limit=workload.limit,
        told_first=row.told_first if row is not None else NONE,
        told_half=row.told_half if row is not None else NONE,
        told_last=row.told_last if row is not None else NONE,
    )


def _eviction(before: WorkloadRecord | None, after: WorkloadRecord) -> str:
    """Return the reason of the latest eviction: the one that is counted more often than before."""
    known = dict(before.evictions) if before is not None else {}
    more = [reason for reason, count in after.evictions if count > known.get(reason, 0)]
    return more[-1] if more else "Evicted"


def _node_row(node: NodeRecord, now: int) -> NodeRow:
    return NodeRow(
        uid=node.uid,
        since=now,
        name=node.name,
        gpus=node.gpus,
        model=node.model,
        instance_type=node.instance_type,
        capacity_type=node.capacity_type or "on-demand",
        pool=node.pool,
        micro_usd_hour=round(node.price * _MICRO),
        is_up=node.is_ready,
        problem=_problem(node),
    )


def _problem(node: NodeRecord) -> str:
    """Return what is wrong with a node: a broken device, or why it is closed or avoided."""
    if node.broken:
        return node.broken[0][1]
    for taint in node.taints:
        key, _, reason = taint.partition("=")
        if key in _AVOIDED and reason:
            return reason
    return ""
