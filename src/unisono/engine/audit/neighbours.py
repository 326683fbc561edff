"""Do pods keep the rules that they, and those around them, have? (spec placement §5.2, §5.5, §5.6)

Ports and anti-affinity hold between every two pods, so they are checked on the finished picture.
Affinity and spread look at what was there when a pod came; in which order a plan's pods came is
not in the plan, so a rule is called broken only if no order would have kept it.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.parties import Floor, speaks_of
from unisono.engine.audit.seats import Party
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HostPort, PodRule, SpreadRule
from unisono.engine.model.selection import Labels, meets
from unisono.engine.model.workload import PodSet, Workload

ANY_ADDRESS = ("", "0.0.0.0")


def check_neighbours(
    floor: Floor, workload: Workload, party: Party, wanted: Labels, *, is_certain: bool
) -> Iterator[Violation]:
    """Check one set of pods among all others. `wanted` is what they select of nodes.

    Where others may have come or gone in between, `is_certain` is false and only those rules are
    checked that hold between every two pods.
    """
    problems = [*_port_problems(floor, party), *_apart(floor, party)]
    if is_certain:
        pod_set = next(each for each in workload.pod_sets if each.name == party.pod_set)
        for rule in pod_set.affinity_to:
            problems.extend(_together_problems(floor, party, rule))
        for spread in pod_set.spread:
            problems.extend(_spread_problems(floor, party, spread, pod_set, wanted))
    for problem in problems:
        yield Violation(
            rule="neighbours", workload=workload.key, message=f"{party.pod_set} {problem}"
        )


def _port_problems(floor: Floor, mine: Party) -> Iterator[str]:
    """A port of a node belongs to one pod."""
    for port in mine.host_ports:
        for name in mine.on:
            takers = sum(
                party.on[name]
                for party in floor.with_ports(name)
                if any(_conflict(port, other) for other in party.host_ports)
            )
            if takers > 1:
                yield f"on {name}: {takers} pods want port {port.port}"


def _conflict(one: HostPort, other: HostPort) -> bool:
    if (one.port, one.protocol) != (other.port, other.protocol):
        return False
    return one.address == other.address or bool({one.address, other.address} & {*ANY_ADDRESS})


def _apart(floor: Floor, mine: Party) -> Iterator[str]:
    """Nobody is where it wants others not to be, or where others do not want it."""
    for rule in mine.anti_affinity:
        yield from _apart_problems(floor, mine, rule, mine)
    for other in floor.repelling:
        for rule in other.anti_affinity:
            if other is not mine and speaks_of(rule.selector, other.namespace, mine):
                yield from _apart_problems(floor, other, rule, mine)


def _apart_problems(floor: Floor, owner: Party, rule: PodRule, mine: Party) -> Iterator[str]:
    """Find domains of `mine` where the owner of a rule is not alone among those it speaks of."""
    key = rule.topology_key
    owners = {floor.labels(name)[key] for name in _labelled(floor, owner, key)}
    counts = floor.counted(rule, owner.namespace)
    itself = 1 if speaks_of(rule.selector, owner.namespace, owner) else 0
    for name in _labelled(floor, mine, key):
        value = floor.labels(name)[key]
        if value in owners and counts.get(value, 0) > itself:
            yield f"on {name}: pods of {owner.who} keep others away from {key}={value}"


def _together_problems(floor: Floor, mine: Party, rule: PodRule) -> Iterator[str]:
    """Each pod is where others are that it wants to be with; the first of all may start alone.

    Pods that want to be near their own kind may start one domain, if nobody of that kind was
    there before this plan.
    """
    key = rule.topology_key
    there = _labelled(floor, mine, key)
    if missing := [name for name in mine.on if name in floor.nodes and name not in there]:
        yield f"on {missing[0]}: it has no label {key}, and pods there have to be near others"
    others = [party for party in floor.parties if party is not mine]
    settled = floor.counted(rule, mine.namespace, [party for party in others if not party.comes])
    may_start = not settled and speaks_of(rule.selector, mine.namespace, mine)
    company = floor.counted(rule, mine.namespace, others)
    alone = sorted({floor.labels(name)[key] for name in there} - company.keys())
    if len(alone) > (1 if may_start else 0):
        yield f"in {key}={alone[-1]}: nobody that it has to be near is there"


def _spread_problems(
    floor: Floor, mine: Party, rule: SpreadRule, pod_set: PodSet, wanted: Labels
) -> Iterator[str]:
    """No domain that takes pods ends with more than `max_skew` above the emptiest one.

    If that holds at the end, then pods that always went to the emptiest domain first kept it all
    the time; if it does not, then the last pod to enter broke it.
    """
    key = rule.topology_key
    there = _labelled(floor, mine, key)
    if missing := [name for name in mine.on if name in floor.nodes and name not in there]:
        yield f"on {missing[0]}: it has no label {key}, and pods are spread over its values"
    keys = [each.topology_key for each in pod_set.spread]
    every = [floor.labels(name) for name in floor.nodes]
    # Only nodes that the pods select and that have all of the labels make domains; taints do not.
    eligible = {
        labels[key]
        for labels in every
        if all(each in labels for each in keys) and _is_wanted(labels, pod_set, wanted)
    }
    # At most and at least what was there when they came: other newcomers may have been later.
    most = floor.counted(rule, mine.namespace)
    settled = [p for p in floor.parties if not p.comes or p.who == mine.who]
    least = floor.counted(rule, mine.namespace, settled)
    lowest = min((most.get(value, 0) for value in eligible), default=0)
    if len(eligible) < rule.min_domains:
        lowest = 0
    for value in sorted({floor.labels(name)[key] for name in there}):
        if least.get(value, 0) - lowest > rule.max_skew:
            yield (
                f"in {key}={value}: {least[value]} pods, {lowest} elsewhere, "
                f"and no more than {rule.max_skew} may be between"
            )


def _is_wanted(labels: dict[str, str], pod_set: PodSet, wanted: Labels) -> bool:
    return all(labels.get(key) == value for key, value in wanted) and (
        not pod_set.affinity
        or any(
            term and all(meets(requirement, labels) for requirement in term)
            for term in pod_set.affinity
        )
    )


def _labelled(floor: Floor, party: Party, key: str) -> list[NodeName]:
    """List the nodes of a party that have a label."""
    return [name for name in party.on if name in floor.nodes and key in floor.labels(name)]
