"""The status of a LocalQueue: pending and admitted workloads, and whether it is active."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from unisono.control import names
from unisono.control.actions import Again, Json, Patch, Ref, Steps, Wake
from unisono.control.conditions import find, timestamp, with_condition
from unisono.control.controller import Reads, own_key
from unisono.control.manifests import Manifests
from unisono.control.queue_status.tally import Pace, Tally, counted_of, flavors_usage
from unisono.control.view import View
from unisono.engine.model.names import CPU, LocalQueueKey
from unisono.engine.model.policy import Policy
from unisono.engine.model.queue import ClusterQueue
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.kueue.queue_rules import queue_of
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

BY_CLUSTER_QUEUE = "cluster-queue"


def leads_to(local_queue: Json) -> Iterable[str]:
    """Index LocalQueues by the ClusterQueue behind them."""
    return (local_queue["spec"]["clusterQueue"],)


class LocalQueueStatus:
    """Keeps the statuses of LocalQueues up to date."""

    name = "local-queues"
    wants_unreadable = True
    watches: Sequence[Kind] = (names.LOCAL_QUEUE, names.CLUSTER_QUEUE, names.WORKLOAD)
    reads: Mapping[Kind, Reads] = {names.WORKLOAD: counted_of}

    def __init__(self, tally: Tally, manifests: Manifests, policy: Policy) -> None:
        """Take the tally, the decoded manifests, and how queues are read."""
        self._tally = tally
        self._manifests = manifests
        self._policy = policy
        self._pace = Pace()
        # What was last seen of a ClusterQueue that matters here. Its counts change all the time,
        # and must not wake ten thousand LocalQueues.
        self._seen: dict[str, object] = {}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue, a workload in it, or the ClusterQueue behind it."""
        match kind:
            case names.LOCAL_QUEUE:
                self._tally.mark(kind, obj)
                yield own_key(obj)
            case names.WORKLOAD:
                self._tally.mark(kind, obj)
                yield Key(obj["metadata"]["namespace"], obj["spec"].get("queueName", ""))
            case _:
                name = obj["metadata"]["name"]
                now = view.get(names.CLUSTER_QUEUE, name)
                seen = (now.get("spec"), _is_active(now)) if now is not None else None
                if name not in self._seen or self._seen[name] != seen:
                    self._seen[name] = seen
                    for local in view.by(names.LOCAL_QUEUE, BY_CLUSTER_QUEUE, name):
                        yield own_key(local)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the status of one queue if it is another now."""
        obj = view.get(names.LOCAL_QUEUE, key.name, key.namespace)
        if obj is None:
            self._pace.forget(key)
            return
        sums = self._tally.of_local(key)
        rest = self._pace.rests_until(key, sums, now)
        if rest is not None:
            yield Again(rest)
            return
        behind = view.get(names.CLUSTER_QUEUE, obj["spec"]["clusterQueue"])
        written = self._manifests.find(names.CLUSTER_QUEUE, obj["spec"]["clusterQueue"])
        queue = (
            queue_of(written, strict=self._policy.strict)
            if written is not None
            else ClusterQueue(name=obj["spec"]["clusterQueue"])
        )
        status: Json = {
            "pendingWorkloads": sums.pending,
            "reservingWorkloads": sums.reserving,
            "admittedWorkloads": sums.admitted,
            "flavorsReservation": flavors_usage(queue, sums.reserved, tells_borrowed=False),
            "flavorsUsage": flavors_usage(queue, sums.used, tells_borrowed=False),
            "conditions": _conditions(obj, behind, now),
        }
        yield from self._pace.write(key, obj, status, now)


def _is_active(queue: Json) -> bool:
    """Say whether a ClusterQueue is active; one without a condition yet counts as active."""
    active = find((queue.get("status") or {}).get("conditions"), "Active")
    return active is None or active["status"] == "True"


def _conditions(obj: Json, behind: Json | None, now: float) -> list[Json]:
    name = obj["spec"]["clusterQueue"]
    state: Literal["True", "False"] = "False"
    if obj["spec"].get("stopPolicy", "None") != "None":
        reason, message = "Stopped", "LocalQueue is stopped"  # as Kueue writes it
    elif behind is None:
        reason = "ClusterQueueDoesNotExist"
        message = f"ClusterQueue {name} does not exist. To change that: create it"
    elif not _is_active(behind):
        reason = "ClusterQueueIsInactive"
        active = find(behind["status"]["conditions"], "Active") or {}
        message = active.get("message") or f"ClusterQueue {name} is inactive"
    else:
        state, reason, message = "True", "Ready", "Can submit new workloads to localQueue"
    return with_condition(
        (obj.get("status") or {}).get("conditions"),
        "Active",
        state,
        reason,
        message,
        now=now,
        generation=obj["metadata"].get("generation"),
    )


# ---- recent use ----------------------------------------------------------------------------------
#
# What LocalQueues used lately, in their statuses: it decides the order of their workloads, also
# after a restart. Only with `admissionFairSharing` in the policy (quota §10). The engine samples;
# here it is written as often as it samples, exactly, so that the next start continues from it.


class RecentUse:
    """Writes `status.fairSharing.admissionFairSharingStatus` of LocalQueues."""

    name = "recent-use"
    watches: Sequence[Kind] = (names.LOCAL_QUEUE,)

    def __init__(self, state: Callable[[], ClusterState]) -> None:
        """Take what returns the engine's state; the scheduler may have built it anew."""
        self._state = state

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue."""
        return (own_key(obj),)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write what one queue used, if that was sampled since."""
        state = self._state()
        rules = state.policy.admission_fair_sharing
        obj = view.get(names.LOCAL_QUEUE, key.name, key.namespace)
        if rules is None or obj is None:
            return
        known = state.config.local_queues.get(LocalQueueKey(f"{key.namespace}/{key.name}"))
        if known is not None:
            sampled = state.local_queue_usage.stored(known)
            # Of what the queue covers nothing is written, too, as Kueue does.
            queue = state.config.queues.get(known.queue)
            covered = [name for group in (queue.groups if queue else ()) for name in group.covered]
            used = dict.fromkeys(covered, "0") | {
                resource: f"{micro}{'n' if resource == CPU else 'u'}"
                for resource, micro in sampled.consumed_micro
                if micro
            }
            last = timestamp(sampled.consumed_at / 1000)
            sharing = (obj.get("status") or {}).get("fairSharing") or {}
            before = sharing.get("admissionFairSharingStatus") or {}
            if sampled.consumed_at and before.get("lastUpdate") != last:
                gone = dict.fromkeys(before.get("consumedResources") or {})
                written = {"consumedResources": {**gone, **used}, "lastUpdate": last}
                status = {"weightedShare": 0, "admissionFairSharingStatus": written}
                yield Patch(Ref.to(obj), {"status": {"fairSharing": status}}, "status")
        # Time alone gives the scheduler nothing to do, and it samples only when it looks.
        yield Wake("scheduler", "", "cycle")
        yield Again(now + max(1.0, rules.sampling_ms / 1000))
