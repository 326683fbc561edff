"""The order of pending workloads, published with their ClusterQueue where only the engine knows it.

By default the order follows from the Workloads, and every view works it out with
`kinds.kueue.queue_order`. Recent usage of LocalQueues and multifactor priority are known to the
scheduler alone, and so is a policy by which a time-out does not move a workload back. Then the
first workloads of each queue are published here, in one condition per ClusterQueue; views put those
first. Nothing is written for a single workload: one admission would change all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from unisono.control import names
from unisono.control.actions import Again, Json, Patch, Ref, Steps
from unisono.control.conditions import find, with_condition
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.engine.model.names import QueueName
from unisono.engine.model.policy import Policy
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.kueue.queue_order import PENDING_ORDER
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# A message may have 32 KiB, and 316 characters per workload; later positions are estimates.
MOST = 100
# Usage decays and ages grow without an event; a published order is at most this old.
PERIOD_SECONDS = 60.0
_REST_SECONDS = 5.0


def needs_publishing(policy: Policy) -> bool:
    """Say whether Workloads alone do not tell the order of pending workloads."""
    rules = policy.pods_ready
    keeps_place = rules is not None and rules.requeue_by == "Creation"
    return policy.turns is not None or policy.admission_fair_sharing is not None or keeps_place


class PendingOrder:
    """Writes the condition `unisono.dev/PendingOrder` of ClusterQueues."""

    name = "pending-order"
    watches: Sequence[Kind] = (names.CLUSTER_QUEUE, names.WORKLOAD)

    def __init__(self, state: Callable[[], ClusterState]) -> None:
        """Take the scheduler's state, which knows the order and the policy."""
        self._state = state
        self._written: dict[Key, float] = {}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue, or that of a workload."""
        if kind == names.CLUSTER_QUEUE:
            yield own_key(obj)
        elif needs_publishing(self._state().policy):
            found = view.get(
                names.LOCAL_QUEUE, obj["spec"].get("queueName", ""), obj["metadata"]["namespace"]
            )
            if found is not None:
                yield Key("", found["spec"]["clusterQueue"])

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Publish the order of one queue if it is another now; take it back if it is not needed."""
        obj, state = view.get(names.CLUSTER_QUEUE, key.name), self._state()
        if obj is None:
            self._written.pop(key, None)
            return
        conditions = (obj.get("status") or {}).get("conditions")
        published = find(conditions, PENDING_ORDER)
        if not needs_publishing(state.policy):
            if published is not None:
                left = [one for one in conditions or () if one["type"] != PENDING_ORDER]
                yield Patch(Ref.to(obj), {"status": {"conditions": left}}, "status")
            return
        due = self._written.get(key, 0.0) + _REST_SECONDS
        if now < due:
            yield Again(due)
            return
        queue = state.queues.get(QueueName(key.name))
        pending = queue.pending.in_order() if queue is not None else []
        order = [str(one.workload.key) for one in islice(pending, MOST)]
        message = json.dumps(order, separators=(",", ":"))
        if published is None or published["message"] != message:
            self._written[key] = now
            made = with_condition(conditions, PENDING_ORDER, "True", "Published", message, now=now)
            yield Patch(Ref.to(obj), {"status": {"conditions": made}}, "status")
        if order:
            yield Again(now + PERIOD_SECONDS)
