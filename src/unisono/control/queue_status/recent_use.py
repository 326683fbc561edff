"""What LocalQueues used lately, in their statuses: it decides who goes first, also after a restart.

Only with `admissionFairSharing` in the policy (quota §10). The engine samples; here it is written
down as often as it samples, exactly, so that the next start goes on where this one was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Again, Json, Patch, Ref, Steps, Wake
from unisono.control.conditions import timestamp
from unisono.control.controller import own_key
from unisono.control.scheduler.loop import CYCLE, Scheduler
from unisono.control.view import View
from unisono.engine.model.names import CPU, LocalQueueKey
from unisono.kube.form import Key
from unisono.kube.mapping import Kind


class RecentUse:
    """Writes `status.fairSharing.admissionFairSharingStatus` of LocalQueues."""

    name = "recent-use"
    watches: Sequence[Kind] = (names.LOCAL_QUEUE,)

    def __init__(self, scheduler: Scheduler) -> None:
        """Take the one that samples."""
        self._scheduler = scheduler

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue."""
        return (own_key(obj),)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write what one queue used, if that was sampled since."""
        state = self._scheduler.state
        rules = state.policy.admission_fair_sharing
        obj = view.get(names.LOCAL_QUEUE, key.name, key.namespace)
        if rules is None or obj is None:
            return
        known = state.config.local_queues.get(LocalQueueKey(f"{key.namespace}/{key.name}"))
        if known is not None:
            sampled = state.local_queue_usage.stored(known)
            used = {
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
        yield Wake(self._scheduler.name, *CYCLE)
        yield Again(now + max(1.0, rules.sampling_ms / 1000))
