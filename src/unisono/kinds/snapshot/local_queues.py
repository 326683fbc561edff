"""Which local queue a job goes through, implicit ones included (spec quota §16).

    1. the label kueue.x-k8s.io/queue-name
    2. the LocalQueue that its kind names itself (a Volcano queue's name)
    3. the Volcano Queue of that name, as the cluster queue `volcano/NAME`; without nodes it needs
       a capability, since nothing else could keep a workload waiting
    4. the one that the policy gives jobs of its namespace (`defaultQueues`)
    5. the LocalQueue `default` of its namespace
    6. with `manageJobsWithoutQueueName`, none: it is held back
    7. if there are nodes and the job is ours to place: `unisono.dev/unlimited`, a queue without
       quota, in which everything may start that fits on nodes

A job that finds none is not managed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unisono.engine.model.names import LocalQueueKey, QueueName
from unisono.engine.model.queue import ClusterQueue, LocalQueue
from unisono.engine.model.selection import LabelSelector, label_map, selects
from unisono.engine.model.snapshot import Namespace
from unisono.kinds.objects import Objects
from unisono.kinds.policy.settings import Settings
from unisono.kinds.snapshot.candidates import DEFAULT_QUEUE, QUEUE_LABEL_PATH, Candidate
from unisono.kinds.volcano.queue_quota import QueueQuota, quota_of, totals_of

UNLIMITED = ClusterQueue(
    name=QueueName("unisono.dev/unlimited"), unlimited=True, namespace_selector=LabelSelector()
)
UNLIMITED_LOCAL_QUEUE = "unisono.dev-unlimited"


@dataclass(slots=True)
class QueueChoice:
    """Chooses the local queue of every job, and keeps the implicit ones that were chosen."""

    objects: Objects
    settings: Settings
    namespaces: Mapping[str, Namespace]
    volcano: dict[str, ClusterQueue] = field(init=False)  # by the Queue's own name
    volcano_quota: QueueQuota = field(init=False)
    implicit: dict[LocalQueueKey, LocalQueue] = field(default_factory=dict)
    has_nodes: bool = field(init=False)

    def __post_init__(self) -> None:
        """Read the Volcano queues."""
        self.has_nodes = bool(self.objects.entries("Node"))
        nodes = [entry.manifest for entry in self.objects.entries("Node")]
        self.volcano_quota = quota_of(
            [entry.manifest for entry in self.objects.entries("Queue.scheduling.volcano.sh")],
            totals_of(nodes),
        )
        self.volcano = {one.name.partition("/")[2]: one for one in self.volcano_quota.queues}

    def local_queue_for(self, candidate: Candidate) -> LocalQueueKey | None:
        """Return the local queue of a job, or None if it is not managed; warn where that is odd."""
        namespace, notes = candidate.entry.namespace, candidate.entry.notes
        local = candidate.queue_label or self._local_queue(candidate.named_queue, namespace)
        if not self._is_managed(namespace):
            if local:
                message = f"namespace {namespace} is not managed; the job runs without a queue"
                notes.warn("NotManaged", QUEUE_LABEL_PATH, message)
            return None
        if local:
            return _key(namespace, local)
        volcano = self.volcano.get(candidate.named_queue)
        if volcano is not None and (self.has_nodes or volcano.groups):
            return self._implicit(_key(namespace, volcano.name), volcano)
        given = self.settings.default_queue(label_map(self.namespaces[namespace].labels))
        if given:
            return _key(namespace, given)
        if self._local_queue(DEFAULT_QUEUE, namespace):
            return _key(namespace, DEFAULT_QUEUE)
        if self.settings.manages_unqueued:
            return _key(namespace, "")
        if self.has_nodes and candidate.is_ours_to_place:
            if candidate.named_queue not in ("", DEFAULT_QUEUE):
                message = f'there is no Queue "{candidate.named_queue}"; taken as without limits'
                notes.warn("VolcanoQueueNotFound", "spec.queue", message)
            return self._implicit(_key(namespace, UNLIMITED_LOCAL_QUEUE), UNLIMITED)
        if not candidate.is_plain_pod:
            message = "names no queue, so it is not managed and no part of the decision"
            notes.warn("NotManaged", QUEUE_LABEL_PATH, message)
        return None

    def implicit_queues(self) -> list[ClusterQueue]:
        """Return the implicit cluster queues."""
        behind = {one.queue for one in self.implicit.values()}
        return [*self.volcano.values(), *([UNLIMITED] if UNLIMITED.name in behind else [])]

    def _is_managed(self, namespace: str) -> bool:
        labels = label_map(self.namespaces[namespace].labels)
        return selects(self.settings.managed_namespaces, labels)

    def _local_queue(self, name: str, namespace: str) -> str:
        exists = name and self.objects.exists("LocalQueue", name, namespace=namespace)
        return name if exists else ""

    def _implicit(self, key: LocalQueueKey, queue: ClusterQueue) -> LocalQueueKey:
        self.implicit.setdefault(key, LocalQueue(key=key, queue=queue.name))
        return key


def _key(namespace: str, name: str) -> LocalQueueKey:
    return LocalQueueKey(f"{namespace}/{name}")
