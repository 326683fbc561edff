"""Do pods keep the rules that they, and those around them, have? (spec placement §5.2, §5.5, §5.6)

Ports and anti-affinity hold between every two pods, so they are checked on the finished picture.
Affinity and spread look at what was there when a pod came; in which order a plan's pods came is
not in the plan, so a rule is called broken only if no order would have kept it.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.node_occupancy import NodeOccupancy, matches
from unisono.engine.audit.pods_on_nodes import PodSetPlacement
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HostPort, PodRule, SpreadRule
from unisono.engine.model.selection import Labels, meets
from unisono.engine.model.workload import PodSet, Workload

ANY_ADDRESS = ("", "0.0.0.0")


def check_neighbours(
    occupancy: NodeOccupancy,
    workload: Workload,
    placement: PodSetPlacement,
    wanted: Labels,
    *,
    is_certain: bool,
) -> Iterator[Violation]:
    """Check one set of pods among all others. `wanted` is what they select of nodes.

    Where others may have come or gone in between, `is_certain` is false and only those rules are
    checked that hold between every two pods.
    """
    problems = [*_port_problems(occupancy, placement), *_apart(occupancy, placement)]
    if is_certain:
        pod_set = next(each for each in workload.pod_sets if each.name == placement.pod_set)
        for rule in pod_set.affinity_to:
            problems.extend(_together_problems(occupancy, placement, rule))
        for spread in pod_set.spread:
            problems.extend(_spread_problems(occupancy, placement, spread, pod_set, wanted))
    for problem in problems:
        yield Violation(
            rule="neighbours", workload=workload.key, message=f"{placement.pod_set} {problem}"
        )


def _port_problems(occupancy: NodeOccupancy, mine: PodSetPlacement) -> Iterator[str]:
    """A port of a node belongs to one pod."""
    for port in mine.host_ports:
        for name in mine.nodes:
            takers = sum(
                placement.nodes[name]
                for placement in occupancy.with_ports(name)
                if any(_conflict(port, other) for other in placement.host_ports)
            )
            if takers > 1:
                yield f"on {name}: {takers} pods want port {port.port}"


def _conflict(one: HostPort, other: HostPort) -> bool:
    if (one.port, one.protocol) != (other.port, other.protocol):
        return False
    return one.address == other.address or bool({one.address, other.address} & {*ANY_ADDRESS})


def _apart(occupancy: NodeOccupancy, mine: PodSetPlacement) -> Iterator[str]:
    """Nobody is where it wants others not to be, or where others do not want it."""
    for rule in mine.anti_affinity:
        yield from _apart_problems(occupancy, mine, rule, mine)
    for other in occupancy.with_anti_affinity:
        for rule in other.anti_affinity:
            if other is not mine and matches(rule.selector, other.namespace, mine):
                yield from _apart_problems(occupancy, other, rule, mine)


def _apart_problems(
    occupancy: NodeOccupancy, owner: PodSetPlacement, rule: PodRule, mine: PodSetPlacement
) -> Iterator[str]:
    """Find domains of `mine` where the owner of a rule is not alone among those it speaks of."""
    key = rule.topology_key
    owners = {occupancy.labels(name)[key] for name in _labelled(occupancy, owner, key)}
    counts = occupancy.count_by_domain(rule, owner.namespace)
    itself = 1 if matches(rule.selector, owner.namespace, owner) else 0
    for name in _labelled(occupancy, mine, key):
        value = occupancy.labels(name)[key]
        if value in owners and counts.get(value, 0) > itself:
            yield f"on {name}: pods of {owner.owner} keep others away from {key}={value}"


def _together_problems(
    occupancy: NodeOccupancy, mine: PodSetPlacement, rule: PodRule
) -> Iterator[str]:
    """Each pod is where others are that it wants to be with; the first of all may start alone.

    Pods that want to be near their own kind may start one domain, if nobody of that kind was
    there before this plan.
    """
    key = rule.topology_key
    there = _labelled(occupancy, mine, key)
    if missing := [name for name in mine.nodes if name in occupancy.nodes and name not in there]:
        yield f"on {missing[0]}: it has no label {key}, and pods there have to be near others"
    others = [placement for placement in occupancy.placements if placement is not mine]
    settled = occupancy.count_by_domain(
        rule, mine.namespace, [placement for placement in others if not placement.is_new]
    )
    may_start = not settled and matches(rule.selector, mine.namespace, mine)
    company = occupancy.count_by_domain(rule, mine.namespace, others)
    alone = sorted({occupancy.labels(name)[key] for name in there} - company.keys())
    if len(alone) > (1 if may_start else 0):
        yield f"in {key}={alone[-1]}: nobody that it has to be near is there"


def _spread_problems(
    occupancy: NodeOccupancy,
    mine: PodSetPlacement,
    rule: SpreadRule,
    pod_set: PodSet,
    wanted: Labels,
) -> Iterator[str]:
    """No domain that takes pods ends with more than `max_skew` above the emptiest one.

    If that holds at the end, then pods that always went to the emptiest domain first kept it all
    the time; if it does not, then the last pod to enter broke it.
    """
    key = rule.topology_key
    there = _labelled(occupancy, mine, key)
    if missing := [name for name in mine.nodes if name in occupancy.nodes and name not in there]:
        yield f"on {missing[0]}: it has no label {key}, and pods are spread over its values"
    keys = [each.topology_key for each in pod_set.spread]
    every = [occupancy.labels(name) for name in occupancy.nodes]
    # Only nodes that the pods select and that have all of the labels make domains; taints do not.
    eligible = {
        labels[key]
        for labels in every
        if all(each in labels for each in keys) and _is_wanted(labels, pod_set, wanted)
    }
    # At most and at least what was there when they came: other newcomers may have been later.
    most = occupancy.count_by_domain(rule, mine.namespace)
    settled = [p for p in occupancy.placements if not p.is_new or p.owner == mine.owner]
    least = occupancy.count_by_domain(rule, mine.namespace, settled)
    lowest = min((most.get(value, 0) for value in eligible), default=0)
    if len(eligible) < rule.min_domains:
        lowest = 0
    for value in sorted({occupancy.labels(name)[key] for name in there}):
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


def _labelled(occupancy: NodeOccupancy, placement: PodSetPlacement, key: str) -> list[NodeName]:
    """List the nodes of a placement that have a label."""
    return [
        name
        for name in placement.nodes
        if name in occupancy.nodes and key in occupancy.labels(name)
    ]
