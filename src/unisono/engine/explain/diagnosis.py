"""A diagnosis as sentences: the root cause first, what is in the way, and every way that was tried.

    never, unless there is a node with 16 nvidia.com/gpu (the largest has 8)
    starts once ml/big has ended (4 nvidia.com/gpu of a100 on a100-2; by 2026-01-01T12:00:00Z)
    never as things are: pod set main asks for gpu=h100, unlike flavor a100

Like `messages.py` this is the one place for its words.
"""

from __future__ import annotations

from collections.abc import Iterable

from unisono.engine.explain.formatting import format_amount, format_instant
from unisono.engine.explain.messages import message_of, remedy, sentence
from unisono.engine.model import explanation as facts
from unisono.engine.model.diagnosis import (
    NEW_DOMAIN,
    Ahead,
    Cause,
    Condition,
    Diagnosis,
    HeldAmount,
    Holder,
    InstantOf,
    MissingNodes,
    MissingQuota,
    MissingToleration,
    NodeOut,
    OtherPod,
    Shortage,
    Until,
    Way,
)
from unisono.engine.model.explanation import Explanation
from unisono.engine.model.names import PODS, ResourceName
from unisono.engine.model.node import QUARANTINE
from unisono.engine.model.resources import UNLIMITED, Amounts, is_gpu
from unisono.engine.model.selection import Toleration

# Of one kind of cause, in the first sentence; `causes` has all of them.
_MOST_NAMED = 3
_MOST_NODES = 3
# The queue of pods that name none: no word for people.
_NO_QUEUE = "unisono.dev/unlimited"

_INSTANTS: dict[InstantOf, str] = {
    "begin": "its begin time has come, at {at}",
    "requeue": "it is requeued at {at}",
    "preemption back-off": "it may preempt others again, at {at}",
    "advance reservation": "advance reservation {name} is over, at {at}",
    "usage decay": "usage of {name} has decayed below its limit, at {at}",
    "stock": "the purchase is tried again with machines in stock, at {at}",
    "terminating pods": "terminating pods are gone, by {at}",
    "protection from preemption": "{name} may be preempted, from {at}",
    "dependency delay": "{name} has run for as long as required, at {at}",
    "time limit": "{name} has reached its time limit, at {at}",
}


def headline(found: Diagnosis) -> str:
    """Return the root cause as one sentence; empty if it is not known."""
    match found.verdict:
        case "starts-now":
            return "starts in the next scheduling cycle"
        case "never" if all(isinstance(one, Condition) for one in found.in_the_way):
            return f"never as things are: {'; '.join(_closed(found.in_the_way))}"
        case "never":
            return f"never, unless {_together(found.in_the_way)}"
        case "later":
            by = ""
            several = len(found.in_the_way) > 1
            if several and found.starts_at is not None and found.basis == "limits":
                by = f", by {format_instant(found.starts_at)} at the latest if no other goes first"
            return f"starts once {_together(found.in_the_way)}{by}"
        case _:
            return ""


def adds_to_facts(found: Diagnosis) -> bool:
    """Say whether a diagnosis tells more than the facts of the cycles do.

    No fact says "never". What the workload itself or its queue has to change is a fact already.
    """
    if found.verdict != "later":
        return found.verdict == "never"
    known = ("begin", "requeue", "dependency delay", "stock", "terminating pods")
    return not all(
        isinstance(one, Condition) or (isinstance(one, Until) and one.what in known)
        for one in found.in_the_way
    )


def message_with(explanation: Explanation, found: Diagnosis | None) -> str:
    """Return the one line of a pending workload: its root cause, the ways, when it is expected.

    Without a root cause these are the facts of the cycles, with what is known to help against the
    first one. Beside a root cause that is not reported: it was not tried, and may not be enough.
    """
    if found is None or not adds_to_facts(found) or _is_reported(explanation, found):
        return message_of(explanation)
    says = [headline(found), *details(explanation, found)]
    if found.verdict == "later":
        says += [sentence(one) for one in explanation.blockers if isinstance(one, _TIMES)]
    return ". ".join(says)


def _is_reported(explanation: Explanation, found: Diagnosis) -> bool:
    """Say whether the line of the facts names what is in the way, in words that programs know."""
    if isinstance(explanation.blockers[0], facts.BehindInQueue):
        return all(isinstance(one, Ahead) for one in found.in_the_way)
    return all(
        isinstance(one, Condition) and not isinstance(one.blocker, facts.FlavorMismatch)
        for one in found.in_the_way
    )


def details(explanation: Explanation, found: Diagnosis) -> list[str]:
    """Return what to say after a headline: every way, or the facts; nothing is repeated."""
    says = way_sentences(found)
    if len(found.ways) < 2 and (found.verdict != "never" or not says):
        says = [sentence(one) for one in explanation.blockers if not isinstance(one, _TIMES)]
    first = headline(found)
    return [one for one in dict.fromkeys(says) if not _is_in(first, one)]


def _is_in(first: str, way: str) -> bool:
    return way in first or (": never: " in way and way.partition(": never: ")[2] in first)


_TIMES = facts.Expected | facts.Planned


def causes(found: Diagnosis) -> list[str]:
    """Return what is in the way, one clause each."""
    return [clause(one) for one in found.in_the_way]


def helps_to_ask_for_less(found: Diagnosis) -> bool:
    """Say whether a workload that never starts lacks an amount, and not a kind of node."""
    return found.verdict == "never" and any(
        isinstance(one, MissingQuota) or (isinstance(one, MissingNodes) and bool(one.short_of))
        for one in found.in_the_way
    )


def _closed(marked: Iterable[Cause]) -> list[str]:
    """Return what is wrong, with a remedy; the same remedy is named once, at the end."""
    wrong: dict[str, list[str]] = {}
    for one in marked:
        if isinstance(one, Condition):
            wrong.setdefault(remedy(one.blocker) or "", []).append(sentence(one.blocker))
    return [
        "; ".join(dict.fromkeys(sentences)) + (f" ({helps})" if helps else "")
        for helps, sentences in wrong.items()
    ]


def _together(marked: Iterable[Cause]) -> str:
    """Join clauses; many of one kind are counted."""
    by_kind: dict[type, list[str]] = {}
    for one in marked:
        by_kind.setdefault(type(one), []).append(clause(one))
    parts = []
    for clauses in by_kind.values():
        parts += clauses[:_MOST_NAMED]
        if len(clauses) > _MOST_NAMED:
            parts.append(f"{len(clauses) - _MOST_NAMED} more of these")
    return ", and ".join(parts)


def clause(cause: Cause) -> str:  # one case a kind
    """Return when a cause is gone, to be read after "once"."""
    match cause:
        case Holder():
            return f"{cause.workload} has ended{_holding(cause)}"
        case Ahead(workload=other, queue=queue):
            where = f" in queue {queue}" if queue and queue != _NO_QUEUE else ""
            return f"{other} is no longer pending ahead of it{where}"
        case OtherPod(pod=pod, node=node, amounts=amounts, leaves_at=leaves):
            held = f", which has {_amounts(amounts)}" if amounts else ""
            by = f" (terminating, by {format_instant(leaves)})" if leaves is not None else ""
            return f"pod {pod} has left node {node}{held}{by}"
        case NodeOut(node=node, why="cordoned"):
            return f"node {node} is uncordoned (kubectl uncordon {node})"
        case NodeOut(node=node, why="quarantined"):
            lift = f"kubectl taint node {node} {QUARANTINE}-"
            return f"node {node} is out of quarantine (by itself once it is healthy, or: {lift})"
        case NodeOut(node=node, why="under pressure"):
            return f"node {node} is no longer under pressure"
        case NodeOut(node=node):
            return f"node {node} is ready again"
        case Until(instant=instant, what=what, name=name):
            return _INSTANTS[what].format(at=format_instant(instant), name=name)
        case MissingQuota(queue=queue, flavor=flavor, resource=resource, amount=amount):
            more = format_amount(amount, resource)
            return f"queue {queue} has {more} more of quota in flavor {flavor}"
        case MissingNodes() as missing:
            return _nodes(missing)
        case MissingToleration(tolerations=tolerations):
            return f"its pods tolerate {', '.join(map(_taint, tolerations))}"
        case Condition(blocker=fact):
            return _condition(fact)


def _holding(holder: Holder) -> str:
    """Say what a holder has, where, and until when."""
    parts = []
    if holder.amounts:
        held = " and ".join(map(_held, holder.amounts))
        parts.append(f"{held}{_on(holder.nodes)}")
    if holder.evicting:
        parts.append("it is being evicted")
    elif holder.ends is not None:
        parts.append(f"by {format_instant(holder.ends)}, its time limit")
    else:
        parts.append("no time limit")
    return f" ({'; '.join(parts)})"


def _held(one: HeldAmount) -> str:
    of = f" of {one.flavor}" if one.flavor else ""
    return f"{format_amount(one.amount, one.resource)}{of}"


def _on(nodes: tuple[str, ...]) -> str:
    if not nodes:
        return ""
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    return f" on {', '.join(nodes[:_MOST_NODES])}{more}"


def _amounts(requests: Amounts) -> str:
    """Write what a pod or a node has; GPUs come first, and pods are not counted."""
    shown = [(name, amount) for name, amount in requests if amount and name != PODS]
    shown.sort(key=lambda one: (not is_gpu(one[0]), one[0]))
    return ", ".join(format_amount(amount, name) for name, amount in shown) or "nothing"


def _nodes(missing: MissingNodes) -> str:
    labels = [
        f"any {key}" if value == NEW_DOMAIN else f"{key}={value}"
        for key, value in missing.labels
        if key != missing.level
    ]
    if missing.level and missing.domain:
        labels.append(f"{missing.level}={missing.domain}")
    elif missing.level and missing.count > 1:
        labels.append(f"one {missing.level} for all of them")
    elif missing.level in missing.unlabelled:
        labels.append(missing.level)
    where = f" ({', '.join(labels)})" if labels else ""
    size = _amounts(missing.requests)
    count = str(missing.count) if missing.tried else f"at least {missing.count}"
    there = (
        f"there is a node with {size}{where}"
        if missing.count == 1
        else f"there are {count} nodes with {size} each{where}"
    )
    if missing.short_of:
        wanted = dict(missing.requests).get(missing.short_of, 0)
        largest = format_amount(missing.largest, missing.short_of)
        if wanted > missing.largest > 0:
            return f"{there}; the largest node has {largest}"
        if not missing.largest:
            return f"{there}; no node has {missing.short_of}"
    if missing.unlabelled:
        return f"{there}; no node has the label {' and '.join(missing.unlabelled)}"
    more = "one more node" if missing.count == 1 else f"{count} more nodes"
    return f"there {'is' if missing.count == 1 else 'are'} {more} like these: {size}{where}"


def _taint(one: Toleration) -> str:
    value = f"={one.value}" if one.value else ""
    return f"{one.key}{value}:{one.effect}" if one.effect else f"{one.key}{value}"


def _condition(fact: facts.Blocker) -> str:
    """Say what has to be put right: the fact is no longer so."""
    helps = remedy(fact)
    match fact:
        case facts.QueueStopped(queue=queue, local=local):
            return f"{'LocalQueue' if local else 'ClusterQueue'} {queue} runs again ({helps})"
        case facts.Held():
            return helps or "it is released"
        case _:
            pass
    way = f" ({helps})" if helps else ""
    return f"this changes: {sentence(fact)}{way}"


def way_sentences(found: Diagnosis) -> list[str]:
    """Return a sentence for each way; several have their names, and one is the nearest."""
    if len(found.ways) == 1:
        return [_refusal(found.ways[0], goes_behind=_goes_behind(found))]
    return [
        way_sentence(
            way, goes_behind=_goes_behind(found), is_nearest=way.possible and index == found.nearest
        )
        for index, way in enumerate(found.ways)
    ]


def _goes_behind(found: Diagnosis) -> bool:
    """Say whether other pending workloads are in the way."""
    return any(isinstance(one, Ahead) for one in found.in_the_way)


def way_sentence(way: Way, *, goes_behind: bool = True, is_nearest: bool = False) -> str:
    """Say what refuses on one way, by the names of its flavors."""
    names = "+".join(dict.fromkeys(flavor for _, _, flavor in way.flavors))
    if is_nearest:
        names += " (nearest)"
    why = _refusal(way, goes_behind=goes_behind)
    return f"{names}: {why}" if way.possible else f"{names}: never: {why}"


def _refusal(way: Way, *, goes_behind: bool = True) -> str:
    if way.stage is None:
        how = {
            "as-it-is": "there is room now",
            "preemption": "there is room once victims have left",
            "machines": "machines can be bought",
        }[way.mode]
        return f"{how}; other workloads go first" if goes_behind else how
    why = [sentence(one) for one in way.blockers]
    # The numbers are in the sentence already where quota alone refuses.
    counts = [_short(one) for one in way.short if one.of == "nodes"]
    return "; ".join(dict.fromkeys([*counts, *why]))


def _short(one: Shortage) -> str:
    total = "unlimited" if one.total >= UNLIMITED else _number(one.total, one.resource)
    free, wanted = _number(one.free, one.resource), format_amount(one.wanted, one.resource)
    out = f" ({_number(one.out, one.resource)} on nodes that are out)" if one.out else ""
    return f"{free} of {total} {one.resource} are free on its nodes{out}, {wanted} asked for"


def _number(amount: int, resource: ResourceName) -> str:
    return format_amount(amount, resource).rpartition(" ")[0]
