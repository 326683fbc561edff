"""What a job can have at most, recorded for the warnings of a real API server at submission.

An API server evaluates expressions about one object and one parameter, which is this ConfigMap in
the namespace of the installation (`runtime.admission.submission`). It is an upper bound: what is
beyond it can never start as things are, and what is within it may still never start.

    data:
      nodes: |                  the most that one node has; absent where machines may be bought
        nvidia.com/gpu 8
      queues: all               every LocalQueue is listed below
      queue.NAMESPACE.NAME: |   what its ClusterQueue can ever use; after `!`, why it admits nothing
        nvidia.com/gpu 16
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from unisono.control import names
from unisono.control.actions import Again, Create, Json, Patch, Ref, Steps
from unisono.control.view import View
from unisono.engine.explain.messages import sentence
from unisono.engine.model.names import LocalQueueKey, QueueName
from unisono.engine.model.resources import UNLIMITED, FlavorResource
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.quota_tree import potential
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

SUBMISSION_LIMITS = "unisono-submission-limits"
# Nodes report every few seconds, and queues change in rows.
_PAUSE_S = 10.0
# A ConfigMap may have a megabyte; beyond this, queues are not listed.
_MOST_QUEUES = 4_000
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class SubmissionLimits:
    """Keeps the ConfigMap in step with nodes and queues."""

    name = "submission-limits"
    watches: Sequence[Kind] = (
        names.NAMESPACE,
        names.NODE,
        names.FLAVOR,
        names.COHORT,
        names.CLUSTER_QUEUE,
        names.LOCAL_QUEUE,
        names.CONFIG_MAP,
    )

    def __init__(self, state: Callable[[], ClusterState], home: str) -> None:
        """Take what returns the engine's state, and the namespace of the installation."""
        self._state = state
        self._place = Key(home, SUBMISSION_LIMITS)
        self._looked_at = float("-inf")

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Anything but other namespaces and ConfigMaps."""
        place, metadata = self._place, obj["metadata"]
        if kind == names.NAMESPACE:
            return (place,) if metadata["name"] == place.namespace else ()
        if kind == names.CONFIG_MAP:
            is_ours = (metadata.get("namespace"), metadata["name"]) == (place.namespace, place.name)
            return (place,) if is_ours else ()
        return (place,)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write what has changed, some seconds after it did."""
        stored = view.get(names.CONFIG_MAP, key.name, key.namespace)
        if now < self._looked_at + _PAUSE_S and stored is not None:
            yield Again(self._looked_at + _PAUSE_S)
            return
        self._looked_at = now
        wanted = submission_limits(self._state())
        if stored is None:
            metadata = {"name": key.name, "namespace": key.namespace}
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            yield Create({**made, "data": wanted})
            return
        there = stored.get("data") or {}
        if there != wanted:
            gone = dict.fromkeys(there.keys() - wanted.keys())
            yield Patch(Ref.to(stored), {"data": {**wanted, **gone}})


def submission_limits(state: ClusterState) -> dict[str, str]:
    """Return the data of the ConfigMap."""
    state.refresh()
    found: dict[str, str] = {}
    nodes = "\n".join(_of_nodes(state))
    if nodes:
        found["nodes"] = nodes
    queues = state.config.local_queues
    keys = {key: f"queue.{key.replace('/', '.', 1)}" for key in sorted(queues)}
    keys = {key: name for key, name in keys.items() if _KEY.fullmatch(name)}
    if len(keys) > _MOST_QUEUES:
        return found
    found["queues"] = "all"
    for key, name in keys.items():
        found[name] = "\n".join(_of_queue(state, key, queues[key].queue))
    return found


def _of_nodes(state: ClusterState) -> Iterator[str]:
    """Yield the most that one node has of each device; nodes that are out may come back."""
    if state.config.offerings is not None:
        return
    table = state.nodes.table
    rows = [row for row, node in enumerate(table.nodes) if node is not None]
    if not rows:
        return
    most: dict[str, int] = {}
    for node in (table.nodes[row] for row in rows):
        for resource, amount in node.allocatable if node is not None else ():
            if "/" in resource and amount > most.get(resource, 0):
                most[resource] = amount
    yield from (f"{resource} {amount}" for resource, amount in sorted(most.items()))


def _of_queue(state: ClusterState, key: LocalQueueKey, queue: QueueName) -> Iterator[str]:
    """Yield what jobs of a LocalQueue can use at most, or why none is admitted."""
    cq = state.queues.get(queue)
    blocker = state.local_queue(key).blocker or (cq.blocker if cq is not None else None)
    if blocker is not None:
        yield f"! {sentence(blocker)}"
    elif cq is not None:
        yield from _of_quota(cq)


def _of_quota(cq: ClusterQueueState) -> Iterator[str]:
    """Yield the most of each device that a ClusterQueue can ever use, over all of its flavors."""
    for group in cq.spec.groups:
        if group.pool is not None:
            continue  # flavors share their quota: no bound is looked for
        for resource in group.covered:
            if "/" not in resource:
                continue
            total = 0
            for flavor in group.flavors:
                if all(one.resource != resource for one in flavor.resources):
                    total = UNLIMITED  # not metered there
                    break
                total += potential(cq.node.cell(FlavorResource(flavor.flavor, resource)))
            if total < UNLIMITED:
                yield f"{resource} {total}"
