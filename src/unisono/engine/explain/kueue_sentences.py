"""Why a workload waits, in Kueue's own sentences: what tools and runbooks match on.

Only formats are Kueue's. Facts that Kueue does not know (backfill, machines, limits of accounts)
have no sentence here; then our own stands in the condition QuotaReserved, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unisono.engine.explain.formatting import format_amount
from unisono.engine.model import explanation as facts
from unisono.engine.model.explanation import Blocker, Explanation
from unisono.engine.model.names import ResourceName

_VOLCANO = "volcano/"  # queues of Volcano, which Kueue does not know
_ASSIGNING = (
    facts.QuotaExhausted,
    facts.ExceedsMaximum,
    facts.ResourceNotCovered,
    facts.FlavorMismatch,
)


def kueue_message(explanation: Explanation) -> str:
    """Return Kueue's message of QuotaReserved=False; empty where it has none for the main fact."""
    main = explanation.blockers[0]
    if str(getattr(main, "queue", None) or "").startswith(_VOLCANO):
        return ""
    if isinstance(main, facts.WaitingForVictims) and not main.of_another:
        return _preempting(main)
    return _assigning(explanation.blockers) if isinstance(main, _ASSIGNING) else _message(main)


def _preempting(fact: facts.WaitingForVictims) -> str:
    if fact.shrinking:
        return ""
    pending = f"Pending the preemption of {len(fact.victims)} workload(s)"
    lacks = _assigning(fact.lacks)
    return f"{lacks}. {pending}" if lacks else pending


def _assigning(blockers: Iterable[Blocker]) -> str:
    of_sets: dict[str, dict[str, None]] = {}
    for fact in blockers:
        if isinstance(fact, _ASSIGNING):
            of_sets.setdefault(fact.pod_set, {}).update(dict.fromkeys(_reasons(fact)))
    return "; ".join(
        f"couldn't assign flavors to pod set {name}: {', '.join(sorted(reasons))}"
        for name, reasons in of_sets.items()
        if reasons
    )


def _reasons(fact: Blocker) -> Iterator[str]:
    """Yield why a flavor cannot be assigned; nothing where Kueue has no such reason."""
    match fact:
        case facts.QuotaExhausted():
            more = _amount(fact.wanted - fact.available, fact.resource)
            yield (
                f"insufficient unused quota for {fact.resource} in flavor {fact.flavor}, "
                f"{more} more needed"
            )
        case facts.ExceedsMaximum():
            wanted = _amount(fact.wanted, fact.resource)
            most = _amount(fact.maximum, fact.resource)
            yield (
                f"insufficient quota for {fact.resource} in flavor {fact.flavor}, previously "
                f"considered podsets requests (0) + current podset request ({wanted}) > maximum "
                f"capacity ({most})"
            )
        case facts.ResourceNotCovered():
            yield f"resource {fact.resource} unavailable in ClusterQueue"
        case facts.FlavorMismatch(why="missing"):
            yield f"flavor {fact.flavor} not found"
        case facts.FlavorMismatch(why="taint"):
            key, _, rest = fact.detail.partition("=")
            value, _, effect = rest.rpartition(":")
            yield f"untolerated taint {{{key} {value} {effect} <nil>}} in flavor {fact.flavor}"
        case facts.FlavorMismatch(why="labels"):
            yield f"flavor {fact.flavor} doesn't match node affinity"
        case facts.FlavorMismatch(why="topology"):
            yield f'Flavor "{fact.flavor}" does not contain the requested level'
        case _:
            return


def _amount(amount: int, resource: ResourceName) -> str:
    return format_amount(amount, resource).removesuffix(f" {resource}")


def _message(fact: Blocker) -> str:
    match fact:
        case facts.WaitingForVictims(of_another=True):
            return (
                "Workload has overlapping preemption targets with another workload, but will fit "
                "after these preemptions complete"
            )
        case facts.ClaimedThisCycle(overlapping_victims=True):
            return "Workload has overlapping preemption targets with another workload"
        case facts.ClaimedThisCycle():
            return "Workload no longer fits after processing another workload"
        case facts.QueueMissing(queue=None):
            return f"LocalQueue {fact.local_queue.partition('/')[2]} doesn't exist"
        case facts.QueueMissing():
            return f"ClusterQueue {fact.queue} doesn't exist"
        case facts.QueueInactive():
            return f"ClusterQueue {fact.queue} is inactive"
        case facts.QueueStopped(local=True):
            return f"LocalQueue {fact.queue.rpartition('/')[2]} is stopped"
        case facts.QueueStopped():
            return f"ClusterQueue {fact.queue} is stopped"
        case facts.NamespaceNotSelected():
            return "workload namespace doesn't match ClusterQueue selector"
        case facts.Misconfigured(problem=problem) if problem.startswith("resources "):
            return problem  # what the reader of the pods found, with Kueue's verdict before it
        case facts.Gated(by=by):
            return f"Admission is gated by: {by}"
        case facts.PodsNotReady():
            return "waiting for all admitted workloads to be in PodsReady condition"
        case _:
            return ""
