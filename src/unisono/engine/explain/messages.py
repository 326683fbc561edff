"""Facts as text: stage, reason and sentence of an explanation, and what would change it.

This is the one place that turns blockers into text. Conditions, events, `unisono decide` and
`unisono why` all show what is written here.
"""

from __future__ import annotations

from collections.abc import Mapping

from unisono.engine.explain.formatting import format_amount, format_duration, format_instant
from unisono.engine.explain.gangs import gang_help, gang_remedy, gang_sentence
from unisono.engine.explain.limits import held_sentence, limit_help, limit_sentence
from unisono.engine.explain.purchases import cannot_buy_remedy, cannot_buy_sentence
from unisono.engine.model import explanation as facts
from unisono.engine.model.explanation import Blocker, Explanation, Reason, Stage
from unisono.engine.model.workload import Workload

_VOLCANO = "volcano/"  # prefix of the names of Volcano queues
_QUARANTINED: Mapping[facts.QuarantineStage, str] = {
    "read": "it cannot be read",
    "decide": "the scheduler failed to decide about it",
    "audit": "its planned admission broke a rule",
    "write": "its admission could not be written",
}
_DEPENDENCY_PENDING = {
    "afterok": "to succeed",
    "afterany": "to end",
    "afternotok": "to fail",
    "after": "to start, and for as long after that as it says",
    "singleton": "to end: one of them runs at a time",
}

_AFTER_DEPENDENCY = {
    "afterok": "it may start when {on} has succeeded; if that fails, it never starts",
    "afterany": "it may start when {on} has ended, however that goes",
    "afternotok": "it may start when {on} has failed; if that succeeds, it never starts",
    "after": "it may start when {on} has started and that time is over",
    "singleton": "it may start when {on} has ended",
}
_HOLDERS = {"user": "its user", "admin": "an administrator"}

# Facts by what they are about; each group has a function for its sentences.
_QuotaFact = (
    facts.QuotaExhausted | facts.ExceedsMaximum | facts.ResourceNotCovered | facts.FlavorMismatch
)
_PreemptionFact = (
    facts.WaitingForVictims
    | facts.WaitingForPods
    | facts.PreemptionBackoff
    | facts.ClaimedThisCycle
)
_QueueFact = (
    facts.BehindInQueue
    | facts.QueueMissing
    | facts.QueueInactive
    | facts.QueueStopped
    | facts.NamespaceNotSelected
)
_HoldFact = (
    facts.Misconfigured
    | facts.Quarantined
    | facts.CheckFailed
    | facts.Deactivated
    | facts.Gated
    | facts.OnHold
    | facts.PodsNotReady
)
_TimeFact = (
    facts.WouldDelay
    | facts.Planned
    | facts.Expected
    | facts.NotBefore
    | facts.DeadlineMissed
    | facts.Reserved
)


def stage_of(explanation: Explanation) -> Stage:
    """Return the stage of the decision that refused."""
    return _classify(explanation.blockers[0])[0]


def reason_of(explanation: Explanation, workload: Workload | None = None) -> Reason:
    """Return the reason for condition QuotaReserved=False (spec quota §11).

    Kueue's TopologyPlacementFailed means a request for a topology; a workload without one that fits
    on no nodes is Unschedulable.
    """
    reason = _classify(explanation.blockers[0])[1]
    if reason == "TopologyPlacementFailed" and workload is not None:
        if all(pod_set.topology is None for pod_set in workload.pod_sets):
            return "Unschedulable"
    return reason


def message_of(explanation: Explanation) -> str:
    """Return all facts, the main one first, and a remedy, as one line."""
    sentences = dict.fromkeys(sentence(blocker) for blocker in explanation.blockers)
    helps = remedy(explanation.blockers[0])
    return "; ".join(sentences) + (f". To change that: {helps}" if helps else "")


def _classify(blocker: Blocker) -> tuple[Stage, Reason]:  # one line a fact
    match blocker:
        case facts.QuotaExhausted(tried_preemption=tried):
            return ("preemption" if tried else "quota"), "WaitingForQuota"
        case facts.ExceedsMaximum():
            return "quota", "ExceedsMaxQuota"
        case facts.ResourceNotCovered() | facts.FlavorMismatch():
            return "flavor", "NoMatchingFlavor"
        case facts.GangDoesNotFit() | facts.Reserved():
            return "placement", "TopologyPlacementFailed"
        case facts.CannotBuy():
            return "provision", "TopologyPlacementFailed"
        case facts.WaitingForVictims():
            return "preemption", "WaitingForPreemptedWorkloads"
        case facts.WaitingForPods():
            return "placement", "TopologyPlacementFailed"
        case facts.PreemptionBackoff():
            return "preemption", "WaitingForQuota"
        case facts.ClaimedThisCycle():
            return "order", "WaitingForQuota"
        case facts.BehindInQueue():
            return "order", "PendingEvaluation"
        case facts.QueueMissing() | facts.NamespaceNotSelected():
            return "config", "Misconfigured"
        case facts.QueueInactive():
            return "config", "Suspended"
        case facts.Misconfigured():
            return "config", "Misconfigured"
        case facts.Quarantined():
            return "config", "Quarantined"
        case facts.QueueStopped():
            return "hold", "Suspended"
        case facts.CheckFailed():
            return "hold", "OnHold"
        case facts.Deactivated():
            return "hold", "Deactivated"
        case facts.Gated():
            return "hold", "AdmissionGated"
        case facts.OnHold():
            return "hold", "OnHold"
        case facts.PodsNotReady():
            return "hold", "WaitingForPodsReady"
        case facts.WouldDelay() | facts.Planned() | facts.Expected():
            return "order", "WaitingForQuota"
        case facts.NotBefore():
            return "hold", "OnHold"
        case facts.DeadlineMissed():
            return "hold", "Deactivated"
        case facts.Held() | facts.ArrayLimit() | facts.DependencyPending():
            return "hold", "OnHold"
        case facts.DependencyNeverSatisfied():
            return "hold", "Deactivated"
        case facts.NotEntitled():
            return "config", "Misconfigured"
        case facts.LimitReached(per=per):
            return "quota", "ExceedsMaxQuota" if per in ("job", "node") else "WaitingForQuota"


def sentence(blocker: Blocker) -> str:
    """Return the sentence of a fact; the type checker refuses a fact without one."""
    if isinstance(blocker, _QuotaFact):
        return _quota_sentence(blocker)
    if isinstance(blocker, _PreemptionFact):
        return _preemption_sentence(blocker)
    if isinstance(blocker, _QueueFact):
        return _queue_sentence(blocker)
    if isinstance(blocker, _HoldFact):
        return _hold_sentence(blocker)
    if isinstance(blocker, _TimeFact):
        return _time_sentence(blocker)
    match blocker:
        case facts.GangDoesNotFit() as fact:
            return gang_sentence(fact)
        case facts.CannotBuy() as fact:
            return cannot_buy_sentence(fact)
        case facts.DependencyPending() | facts.DependencyNeverSatisfied() as fact:
            return _dependency_sentence(fact)
        case facts.Held() | facts.ArrayLimit() as fact:
            return held_sentence(fact)
        case facts.LimitReached() as fact:
            return limit_sentence(fact)
        case facts.NotEntitled(code=code, problem=problem):
            return f"{code}: {problem}"


def _quota_sentence(fact: _QuotaFact) -> str:
    """Say which quota or flavor is missing."""
    match fact:
        case facts.QuotaExhausted() as fact:
            return _quota_exhausted(fact)
        case facts.ExceedsMaximum() as fact:
            most = format_amount(fact.maximum, fact.resource)
            return f"{_needs(fact)}; queue {fact.queue} can never use more than {most}"
        case facts.ResourceNotCovered() as fact:
            return (
                f"pod set {fact.pod_set} asks for {fact.resource}, which queue {fact.queue} "
                "has no quota for"
            )
        case facts.FlavorMismatch() as fact:
            return _flavor_mismatch(fact)


def _preemption_sentence(fact: _PreemptionFact) -> str:
    """Say what has to end first, or why nothing may be preempted."""
    match fact:
        case facts.WaitingForVictims(victims=victims, shrinking=shrinking):
            parts = [
                f"{_workloads(len(keys))} to {what}: {', '.join(keys)}"
                for keys, what in ((victims, "end"), (shrinking, "release pods"))
                if keys
            ]
            return f"waits for {', and for '.join(parts)}"
        case facts.WaitingForPods(pods=pods, until=until):
            several = f"{len(pods)} terminating pods" if len(pods) > 1 else "1 terminating pod"
            where = f"on the nodes that it will get: {', '.join(pods)}"
            return (
                f"waits for {several} {where}; other nodes are tried from {format_instant(until)}"
            )
        case facts.PreemptionBackoff(until=until, preemptions=times):
            often = "once" if times == 1 else f"{times} times"
            return (
                f"was preempted {often} recently and may not preempt others before "
                f"{format_instant(until)}"
            )
        case facts.ClaimedThisCycle(overlapping_victims=overlapping):
            if overlapping:
                return "its victims are already leaving for another workload"
            return "it fitted, but workloads ahead of it took the capacity; it is retried"


def _queue_sentence(fact: _QueueFact) -> str:
    """Say what about its queue a workload waits for."""
    match fact:
        case facts.BehindInQueue(queue=queue, position=0):
            return f"is first in queue {queue}, and this cycle did not reach it"
        case facts.BehindInQueue(queue=queue, head=head, position=position):
            return f"is number {position + 1} in queue {queue}, behind {head}"
        case facts.QueueMissing(local_queue=local) if local.endswith("/"):
            return "names no queue, and only jobs in queues may run here"
        case facts.QueueMissing(local_queue=local, queue=None):
            return f"LocalQueue {local} does not exist"
        case facts.QueueMissing(queue=str(queue)) if queue.startswith(_VOLCANO):
            return f"Volcano Queue {queue.removeprefix(_VOLCANO)} does not exist"
        case facts.QueueMissing(local_queue=local, queue=queue):
            return f"LocalQueue {local} points to ClusterQueue {queue}, which does not exist"
        case facts.QueueInactive() as fact:
            return _inactive_sentence(fact)
        case facts.QueueStopped(queue=queue, local=local, drain=drain):
            kind, policy = ("LocalQueue" if local else "ClusterQueue"), "HoldAndDrain"
            return f"{kind} {queue} is stopped (stopPolicy {policy if drain else 'Hold'})"
        case facts.NamespaceNotSelected(queue=queue, namespace=namespace):
            return f"the namespaceSelector of queue {queue} does not match namespace {namespace}"


def _hold_sentence(fact: _HoldFact) -> str:
    """Say what holds a workload out of its queue, or keeps it from being admitted."""
    match fact:
        case facts.Misconfigured(problem=problem):
            return problem
        case facts.Quarantined(stage=stage, problem=problem):
            return f"is quarantined: {_QUARANTINED[stage]}: {problem}"
        case facts.CheckFailed(check=check, state=state):
            return f"admission check {check} says {state}"
        case facts.Deactivated():
            return "is deactivated (spec.active is false)"
        case facts.Gated(by=by):
            return f"admission is gated by {by}"
        case facts.OnHold(until=None):
            return "is on hold after an eviction until it is requeued"
        case facts.OnHold(until=until):
            assert until is not None, "the case above took None"
            return f"is on hold after an eviction until {format_instant(until)}"
        case facts.PodsNotReady(waiting_for=key):
            return f"admission waits until the pods of {key} are ready"


def _time_sentence(fact: _TimeFact) -> str:
    """Say when a workload starts, may start, or must not run."""
    match fact:
        case facts.WouldDelay(reserved_for=other, start=start, limit_ms=limit):
            return (
                f"it fits now, but with its time limit of {format_duration(limit)} it would delay "
                f"{other}, which has a reservation at {format_instant(start)}"
            )
        case facts.Planned(start=start):
            return f"starts by {format_instant(start)} (reserved)"
        case facts.Expected(start=start, position=0):
            return f"may start at about {format_instant(start)} if it fits then (estimate)"
        case facts.Expected(start=start):
            return f"expected to start at about {format_instant(start)} (estimate)"
        case facts.NotBefore(begin=begin):
            return f"must not start before {format_instant(begin)} (its begin time)"
        case facts.DeadlineMissed(deadline=deadline, limit_ms=limit):
            end = format_instant(deadline)
            return f"with its time limit of {format_duration(limit)} it misses its deadline {end}"
        case facts.Reserved() as fact:
            return _reserved(fact)


def remedy(blocker: Blocker) -> str | None:  # one line a fact
    """Return what a user or operator can do about a fact; None if nothing has to be done."""
    match blocker:
        case facts.ExceedsMaximum():
            return "ask for less, or raise nominalQuota or borrowingLimit"
        case facts.ResourceNotCovered(queue=queue, resource=resource):
            return f"add {resource} to coveredResources of ClusterQueue {queue}"
        case facts.FlavorMismatch(why="taint", detail=taint):
            return f"add a toleration for {taint} to the pods or to the flavor"
        case facts.FlavorMismatch(why="missing", flavor=flavor):
            return f"create ResourceFlavor {flavor}"
        case facts.FlavorMismatch(why="topology", flavor=flavor):
            asks = "let the pods ask for a topology (annotation kueue.x-k8s.io/"
            asks += 'podset-unconstrained-topology: "true")'
            return f"{asks}, or give the queue a flavor without topologyName, unlike {flavor}"
        case facts.FlavorMismatch():
            return "change the pods' nodeSelector or affinity, or the flavor's nodeLabels"
        case facts.QueueMissing(local_queue=local) if local.endswith("/"):
            return "label the job kueue.x-k8s.io/queue-name=NAME"
        case facts.QueueMissing(local_queue=local, queue=None):
            return f"create LocalQueue {local}, or correct the queue name"
        case facts.QueueMissing(queue=str(queue)) if queue.startswith(_VOLCANO):
            return f"create Queue {queue.removeprefix(_VOLCANO)}, or correct spec.queue of the job"
        case facts.QueueMissing(queue=queue):
            return f"create ClusterQueue {queue}"
        case facts.QueueStopped():
            return "set stopPolicy to None"
        case facts.NamespaceNotSelected(queue=queue):
            return f"label the namespace, or widen spec.namespaceSelector of ClusterQueue {queue}"
        case facts.Deactivated():
            return "set spec.active to true"
        case facts.QueueInactive(why="CohortCycle"):
            return "break the cycle of cohorts"
        case facts.QueueInactive(why="Terminating"):
            return "use another queue"
        case facts.QueueInactive():
            return "create what is missing, or take it out of the queue"
        case facts.GangDoesNotFit() as fact:
            return gang_remedy(fact)
        case facts.CannotBuy() as fact:
            return cannot_buy_remedy(fact)
        case facts.WouldDelay(start=start):
            return f"a shorter time limit, so that it ends before {format_instant(start)}"
        case facts.Reserved(start=start):
            return f"a time limit with which it ends before {format_instant(start)}"
        case facts.DependencyNeverSatisfied(on=job):
            return f"run {job} again, or change unisono.dev/depends-on"
        case facts.DeadlineMissed():
            return "a later deadline or a shorter time limit"
        case facts.Held(by=by):
            return f"{_HOLDERS[by]} releases it: remove the annotation unisono.dev/hold"
        case facts.LimitReached(per="job" | "node" | "least") as fact:
            return limit_help(fact)
        case _:
            return None


def what_would_help(blocker: Blocker) -> str:  # one line a fact
    """Return what would change a fact: a remedy, else what it waits for."""
    match blocker:
        case facts.QuotaExhausted() as fact:
            short = format_amount(fact.wanted - fact.available, fact.resource)
            return f"{short} freed in flavor {fact.flavor}, or that much more quota"
        case facts.GangDoesNotFit() as fact:
            return gang_help(fact)
        case facts.WaitingForVictims():
            return "nothing to do: it starts when their pods are gone"
        case facts.WaitingForPods():
            return "nothing to do: it starts when they are gone"
        case facts.PreemptionBackoff():
            return "time, or enough quota freed"
        case facts.ClaimedThisCycle():
            return "nothing to do: it is retried"
        case facts.BehindInQueue():
            return "workloads ahead of it start; a higher priority moves it forward"
        case facts.Misconfigured():
            return "correct the manifest"
        case facts.Quarantined(retry_at=retry_at):
            again = f"it is tried again when it changes, and at {format_instant(retry_at)}"
            return f"correct or delete the workload; {again}. Other workloads are not affected"
        case facts.CheckFailed(check=check):
            return f"the controller of admission check {check} changes its state"
        case facts.Gated(by=by):
            return f"{by} releases it"
        case facts.OnHold():
            return "time, or its condition Requeued becomes true"
        case facts.PodsNotReady(waiting_for=key):
            return f"the pods of {key} become ready, or it leaves"
        case facts.Planned() | facts.Expected():
            return _earlier(blocker)
        case facts.NotBefore():
            return "time, or an earlier begin"
        case facts.DependencyPending() as fact:
            return _dependency_help(fact)
        case facts.ArrayLimit():
            return "nothing to do: it is next when one of them ends"
        case facts.NotEntitled():
            return "name another account, QOS or partition, or ask an administrator for access"
        case facts.LimitReached() as fact:
            return limit_help(fact)
        case _:
            return remedy(blocker) or "free capacity in its flavor"


# Where the time limit of a workload comes from.
LIMIT_SOURCES: Mapping[str, str] = {
    "request": "as requested",
    "job": "its activeDeadlineSeconds",
    "execution": "its maximumExecutionTimeSeconds",
    "queue": "the default of its queue",
    "history": "learned from earlier runs, an estimate",
    "policy": "none given; the policy's default",
}


def _earlier(fact: facts.Planned | facts.Expected) -> str:
    """Return what would bring a start forward: other workloads, its time limit, its priority."""
    if not fact.position:
        return ""  # its other facts say it
    ways = ["workloads that end before their time limits"]
    if isinstance(fact, facts.Expected):  # perhaps nothing is backfilled here
        if fact.position > 1:
            ways.append("a higher priority")
        return ", or ".join(ways)
    if fact.limit_from in ("policy", "history", "queue"):
        counts = f"now {format_duration(fact.limit_ms)}: {LIMIT_SOURCES[fact.limit_from]}"
        ways.append(f"a time limit of its own ({counts if fact.limit_ms else 'now none'})")
    else:
        ways.append(
            f"a time limit below {format_duration(fact.limit_ms)}, so that it can be backfilled"
        )
    if fact.position > 1:
        ways.append("a higher priority")
    return ", ".join(ways[:-1]) + f", or {ways[-1]}"


def _workloads(count: int) -> str:
    return f"{count} preempted workloads" if count > 1 else "1 preempted workload"


def _needs(fact: facts.QuotaExhausted | facts.ExceedsMaximum) -> str:
    wanted = format_amount(fact.wanted, fact.resource)
    return f"pod set {fact.pod_set} needs {wanted} in flavor {fact.flavor}"


def _quota_exhausted(fact: facts.QuotaExhausted) -> str:
    more = format_amount(fact.available, fact.resource)
    short = format_amount(fact.wanted - fact.available, fact.resource)
    text = f"{_needs(fact)}; queue {fact.queue} may use {more} more ({short} short)"
    return f"{text}, and no workload may be preempted for it" if fact.tried_preemption else text


def _reserved(fact: facts.Reserved) -> str:
    which = {0: "all nodes are", 1: "1 node is"}.get(fact.nodes, f"{fact.nodes} nodes are")
    start, end = format_instant(fact.start), format_instant(fact.end)
    return (
        f"Reservation: {which} reserved as {fact.name} from {start} to {end}, "
        f"and with its time limit of {format_duration(fact.limit_ms)} it would still run then"
    )


def _flavor_mismatch(fact: facts.FlavorMismatch) -> str:
    match fact.why:
        case "missing":
            return f"ResourceFlavor {fact.flavor} does not exist"
        case "taint":
            return f"pod set {fact.pod_set} does not tolerate {fact.detail} of flavor {fact.flavor}"
        case "labels":
            return f"pod set {fact.pod_set} asks for {fact.detail}, unlike flavor {fact.flavor}"
        case "topology":
            return f"pod set {fact.pod_set} asks for no topology, which flavor {fact.flavor} wants"
        case "not-allowed":
            return f"pod set {fact.pod_set} has to stay on its flavors, and not take {fact.flavor}"


def _inactive_sentence(fact: facts.QueueInactive) -> str:
    """Say why a queue is inactive."""
    what = {
        "Terminating": "it is being deleted",
        "FlavorNotFound": f"ResourceFlavor {fact.detail} does not exist",
        "AdmissionCheckNotFound": f"AdmissionCheck {fact.detail} does not exist",
        "AdmissionCheckInactive": f"AdmissionCheck {fact.detail} is not active",
        "TopologyNotFound": f"Topology {fact.detail} does not exist",
        "CohortCycle": f"cohort {fact.detail} is its own ancestor",
    }
    return f"ClusterQueue {fact.queue} is inactive: {what[fact.why]}"


def _dependency_sentence(fact: facts.DependencyPending | facts.DependencyNeverSatisfied) -> str:
    """Say what a workload waits for.

    >>> _dependency_sentence(facts.DependencyPending(kind="afterok", on="ml/prepare"))
    'Dependency: waits for ml/prepare to succeed (afterok)'
    """
    if isinstance(fact, facts.DependencyPending):
        return f"Dependency: waits for {fact.on} {_DEPENDENCY_PENDING[fact.kind]} ({fact.kind})"
    ended = "failed or was deleted" if fact.kind == "afterok" else "succeeded"
    return f"DependencyNeverSatisfied: {fact.on} {ended} ({fact.kind})"


def _dependency_help(fact: facts.DependencyPending) -> str:
    """Return how the job has to end, and what happens if it ends differently."""
    return f"nothing to do: {_AFTER_DEPENDENCY[fact.kind].format(on=fact.on)}"
