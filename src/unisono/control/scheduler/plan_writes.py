"""Decisions as writes: status patches of Workloads, bindings of pods, and events about both.

Plans that only admit count in the engine before they are stored; some of them are written together,
as they share a commit. Every write names the state that its decision knew (`Basis`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import NamedTuple

from unisono.control import names
from unisono.control.actions import Bind, Json, Note, Patch, Ref
from unisono.control.admission import record
from unisono.control.admission.elastic import shrink_request
from unisono.control.admission.evictions import deactivated
from unisono.control.admission.kueue_messages import (
    GATE_CLEARED,
    RELEASED,
    Preemptor,
    preempted,
    preempted_by,
    stopped,
    was_gated,
)
from unisono.control.admission.placement import device_annotation
from unisono.control.admission.record import written_queue
from unisono.control.nodes import host_names
from unisono.control.scheduler.translate import Translator
from unisono.control.scheduler.writes_in_flight import Basis
from unisono.control.view import View
from unisono.engine.model.explanation import Explanation
from unisono.engine.model.names import QueueName, WorkloadKey
from unisono.engine.model.plan import (
    Admit,
    DueEviction,
    Eviction,
    Plan,
    Preempt,
    Shrink,
    evictions,
    shrinks,
)
from unisono.engine.model.workload import PodSetAssignment, Workload
from unisono.engine.quota.flavors import flavors_of_empty_sets
from unisono.engine.state.cluster import ClusterState

# So many plans that only admit are written at once: they share a commit, and the first of them
# does not wait long for the last.
MOST_PLANS = 8
# With so many admissions no further plan joins them: an API server stores some hundred a second,
# and a workload of higher priority that arrives meanwhile waits for the last of them.
MOST_ADMISSIONS = 32


class Decided(NamedTuple):
    """A plan that counts already, and what the workloads that it admits asked for."""

    made: Plan
    asked: Mapping[WorkloadKey, Workload]
    changed: bool  # the next cycle may decide otherwise


def has_room(unwritten: Sequence[Decided]) -> bool:
    """Say whether another plan may be written together with these."""
    admitted = sum(len(one.asked) for one in unwritten)
    return len(unwritten) < MOST_PLANS and admitted < MOST_ADMISSIONS


def only_admits(made: Plan) -> bool:
    """Say whether a plan evicts, shrinks and stops nothing."""
    return not any(evictions(made)) and not any(shrinks(made)) and not made.evictions_due


Writes = list[Patch | Bind]


class PlanWriter:
    """Turns the decisions of a plan into writes, one workload at a time."""

    def __init__(
        self,
        translator: Translator,
        basis: Basis,
        explanations: MutableMapping[WorkloadKey, Explanation],
        epoch: int,
    ) -> None:
        """Take what knows the pods and writes in flight; admitted workloads lose explanations."""
        self._translator = translator
        self._basis = basis
        self._explanations = explanations
        self._epoch = epoch
        self._released: set[WorkloadKey] = set()  # of gates, by admissions being written

    def writes(
        self, decided: Decided, state: ClusterState, view: View, now: float
    ) -> Iterator[tuple[WorkloadKey, Callable[[], Writes]]]:
        """Yield each workload of a plan with what makes its writes, which may fail for it alone."""
        made, hosts = decided.made, host_names(view)
        for admit in made.admissions:
            asked = decided.asked[admit.workload]
            yield admit.workload, partial(self._admission, admit, asked, hosts, state, view, now)
        for eviction in evictions(made):
            yield eviction.workload, partial(self._eviction, eviction, made, state, view, now)
        for smaller in shrinks(made):
            yield smaller.workload, partial(self._shrink, smaller, state, view, now)

    def events(self, made: Plan, state: ClusterState, view: View) -> Iterator[Note]:
        """Yield the events about the workloads of a plan."""
        for admit in made.admissions:
            workload = _workload(view, admit.workload)
            if workload is not None:
                queue = written_queue(admit.admission.queue)
                message = f"Quota reserved in ClusterQueue {queue}"
                if admit.workload in self._released:
                    self._released.discard(admit.workload)
                    yield Note(Ref.to(workload), GATE_CLEARED, RELEASED)
                yield Note(Ref.to(workload), "QuotaReserved", message)
        for eviction in evictions(made):
            yield from self._eviction_events(eviction, made, state, view)
        for preemption in made.preemptions:
            yield from _preemptor_event(preemption, state, view)
        for smaller in shrinks(made):
            workload = _workload(view, smaller.workload)
            if workload is not None:
                kept = sum(one.count for one in smaller.keeps.pod_sets)
                by = _preemptor(smaller.by, state, view).described
                message = f"Continues with {kept} pods: {smaller.reason} for {by}"
                yield Note(Ref.to(workload), "Shrinking", message, "Warning")

    def _eviction_events(
        self, eviction: Eviction, made: Plan, state: ClusterState, view: View
    ) -> Iterator[Note]:
        """Yield Kueue's events of an eviction; `Preempted` names the preemptor for people."""
        workload = _workload(view, eviction.workload)
        if workload is None:
            return
        ref = Ref.to(workload)
        if eviction.by is None:
            stop = _due_of(eviction, made)
            reason = str(eviction.reason)
            if stop is not None and stop.deactivate:
                reason = deactivated(reason)
            message = stopped(workload, str(eviction.reason), stop)
            yield Note(ref, f"EvictedDueTo{reason}", message, "Warning")
            return
        by = _preemptor(eviction.by, state, view)
        queue = _queue_of(eviction.workload, state)
        message = preempted(eviction, by, _path(queue, state))
        yield Note(ref, "EvictedDueToPreempted", message)
        yield Note(ref, "Preempted", preempted_by(eviction.reason, by), "Warning")

    def _admission(
        self,
        admit: Admit,
        asked: Workload,
        hosts: Callable[[str], str],
        state: ClusterState,
        view: View,
        now: float,
    ) -> Writes:
        pod = self._translator.stray(admit.workload)
        if pod is not None:
            (one,) = admit.admission.pod_sets
            shared = device_annotation(one.devices[0]) if one.devices else {}
            self._translator.sent.note(pod, one.nodes[0][0])
            holds = self._basis.holding(one.nodes[0][:1])
            return [Bind(Ref.to(pod), one.nodes[0][0], shared, holds)]
        workload = _workload(view, admit.workload)
        if workload is None:
            return []
        self._explanations.pop(admit.workload, None)
        if was_gated(workload):  # of which only the condition that is overwritten here tells
            self._released.add(admit.workload)
        changes = record.admitted(
            workload,
            admit,
            asked,
            hosts,
            now=now,
            epoch=self._epoch,
            minds_readiness=state.policy.pods_ready is not None,
            empty=_flavors_of_empty_sets(asked, admit, state) if asked.empty_sets else (),
        )
        holds = self._basis.holding(
            node for one in admit.admission.pod_sets for node, _ in one.nodes
        )
        return [Patch(Ref.to(workload), changes, "status", holds=holds)]

    def _eviction(
        self, eviction: Eviction, made: Plan, state: ClusterState, view: View, now: float
    ) -> Writes:
        workload = self._settled(view, eviction.workload)
        if workload is None:
            return []
        stop = _due_of(eviction, made)
        by = _preemptor(eviction.by, state, view) if eviction.by is not None else None
        path = _path(_queue_of(eviction.workload, state), state) if by is not None else ""
        changes = record.evicted(workload, eviction, stop, by, path, now=now)
        holds = self._basis.holding()
        writes: Writes = [Patch(Ref.to(workload), changes, "status", holds=holds)]
        if stop is not None and stop.deactivate and workload["spec"].get("active", True):
            writes.append(Patch(Ref.to(workload), {"spec": {"active": False}}, exact=False))
        return writes

    def _shrink(self, smaller: Shrink, state: ClusterState, view: View, now: float) -> Writes:
        workload = self._settled(view, smaller.workload)
        if workload is None:
            return []
        by = _preemptor(smaller.by, state, view).described
        changes = shrink_request(workload, smaller, by, now=now)
        return [Patch(Ref.to(workload), changes, "status", holds=self._basis.holding())]

    def _settled(self, view: View, key: WorkloadKey) -> Json | None:
        """Return a workload without a write in doubt."""
        return _workload(view, key) if key not in self._translator.in_doubt else None


def _preemptor_event(preemption: Preempt, state: ClusterState, view: View) -> Iterator[Note]:
    """Yield one event about a preemptor, however many workloads leave for it.

    Kueue writes one for each, but events with the same reason about the same object are one event
    there, with the message of the first.
    """
    preemptor = _workload(view, preemption.workload)
    evicted = (
        one.workload for one in preemption.victims if one.keeps is None and not one.already_evicting
    )
    found = [(key, victim) for key in evicted if (victim := _workload(view, key)) is not None]
    if preemptor is None or not found:
        return
    key, first = found[0]
    message = (
        f"Preempted workload {key} (UID: {first['metadata'].get('uid', '')}) "
        f"in ClusterQueue {_queue_of(key, state)}"
    )
    if len(found) > 1:
        message += f", and {len(found) - 1} more"
    yield Note(Ref.to(preemptor), "PreemptedWorkload", message)


def _flavors_of_empty_sets(
    asked: Workload, admit: Admit, state: ClusterState
) -> tuple[PodSetAssignment, ...]:
    cq = state.queues.get(admit.admission.queue)
    return flavors_of_empty_sets(asked, cq, state.config) if cq is not None else ()


def _due_of(eviction: Eviction, made: Plan) -> DueEviction | None:
    return next((one for one in made.evictions_due if one.workload == eviction.workload), None)


def _workload(view: View, key: WorkloadKey) -> Json | None:
    namespace, _, name = key.partition("/")
    return view.get(names.WORKLOAD, name, namespace)


def _preemptor(key: WorkloadKey, state: ClusterState, view: View) -> Preemptor:
    """Describe a preemptor so that its owner can be found."""
    path = _path(_queue_of(key, state), state)
    workload = _workload(view, key)
    if workload is None:
        return Preemptor(key, "", "", path)
    metadata = workload["metadata"]
    job = (metadata.get("labels") or {}).get(names.JOB_UID_LABEL, "")
    return Preemptor(key, metadata.get("uid", ""), job, path)


def _queue_of(key: WorkloadKey, state: ClusterState) -> QueueName | None:
    """Return the ClusterQueue that a workload is charged to, or waits for."""
    running = state.running.get(key)
    if running is not None:
        return running.admitted.admission.queue
    waiting = state.waiting.get(key)
    lq = state.config.local_queues.get(waiting.workload.queue) if waiting is not None else None
    return lq.queue if lq is not None else None


def _path(queue: QueueName | None, state: ClusterState) -> str:
    """Return a queue below its cohorts, as Kueue writes it: `/root/team/queue`."""
    if queue is None:
        return ""
    parts: list[str] = [written_queue(queue)]
    found = state.config.queues.get(queue)
    cohort = found.cohort if found is not None else None
    while cohort is not None and cohort not in parts:
        parts.append(cohort)
        above = state.config.cohorts.get(cohort)
        cohort = above.parent if above is not None else None
    return "/" + "/".join(reversed(parts))
