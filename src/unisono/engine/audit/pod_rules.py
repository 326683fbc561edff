"""Are the rules of pods kept: ports, (anti-)affinity, spread, topology? (spec placement §5, §8.4)

Host ports and anti-affinity hold between every two pods, so they are checked on the final
occupancy. Affinity and spread depend on the pods that were there when a pod was placed; that order
is not in the plan, so a rule is called broken only if no order would have kept it.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.node_occupancy import NodeOccupancy, matches
from unisono.engine.audit.pods_on_nodes import PlacedPods
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import DEFAULT_LEVELS, HOSTNAME, HostPort, PodRule, SpreadRule
from unisono.engine.model.selection import Labels, meets
from unisono.engine.model.workload import Admission, PodSet, PodSetAssignment, Workload

ANY_ADDRESS = ("", "0.0.0.0")


def check_pod_rules(
    occupancy: NodeOccupancy,
    workload: Workload,
    placement: PlacedPods,
    wanted: Labels,
    *,
    is_certain: bool,
) -> Iterator[Violation]:
    """Check one pod set among all other pods. `wanted` are the labels that its nodes must have.

    If other pods may have been placed or removed in between, `is_certain` is false and only the
    rules that hold between every two pods are checked.
    """
    problems = [
        *_port_problems(occupancy, placement),
        *_anti_affinity_problems(occupancy, placement),
    ]
    if is_certain:
        pod_set = next(each for each in workload.pod_sets if each.name == placement.pod_set)
        for rule in pod_set.affinity_to:
            problems.extend(_affinity_problems(occupancy, placement, rule))
        for spread in pod_set.spread:
            problems.extend(_spread_problems(occupancy, placement, spread, pod_set, wanted))
    for problem in problems:
        yield Violation(
            rule="neighbours", workload=workload.key, message=f"{placement.pod_set} {problem}"
        )


def _port_problems(occupancy: NodeOccupancy, mine: PlacedPods) -> Iterator[str]:
    """A host port of a node is used by one pod."""
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


def _anti_affinity_problems(occupancy: NodeOccupancy, mine: PlacedPods) -> Iterator[str]:
    """Anti-affinity holds both ways: that of these pods, and that of others against them."""
    for rule in mine.anti_affinity:
        yield from _anti_affinity_problems_of(occupancy, mine, rule, mine)
    for other in occupancy.with_anti_affinity:
        for rule in other.anti_affinity:
            if other is not mine and matches(rule.selector, other.namespace, mine):
                yield from _anti_affinity_problems_of(occupancy, other, rule, mine)


def _anti_affinity_problems_of(
    occupancy: NodeOccupancy, owner: PlacedPods, rule: PodRule, mine: PlacedPods
) -> Iterator[str]:
    """Find domains of `mine` where the owner of a rule runs beside pods that the rule selects."""
    key = rule.topology_key
    owners = {occupancy.labels(name)[key] for name in _labelled(occupancy, owner, key)}
    counts = occupancy.count_by_domain(rule, owner.namespace)
    itself = 1 if matches(rule.selector, owner.namespace, owner) else 0
    for name in _labelled(occupancy, mine, key):
        value = occupancy.labels(name)[key]
        if value in owners and counts.get(value, 0) > itself:
            yield f"on {name}: pods of {owner.owner} keep others away from {key}={value}"


def _affinity_problems(occupancy: NodeOccupancy, mine: PlacedPods, rule: PodRule) -> Iterator[str]:
    """Each pod runs in a domain with pods that its affinity selects; the first may run alone.

    Pods whose affinity selects themselves may start one domain, if no such pod was there before
    this plan.
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
    matching = occupancy.count_by_domain(rule, mine.namespace, others)
    alone = sorted({occupancy.labels(name)[key] for name in there} - matching.keys())
    if len(alone) > (1 if may_start else 0):
        yield f"in {key}={alone[-1]}: no pod that its affinity selects is there"


def _spread_problems(
    occupancy: NodeOccupancy,
    mine: PlacedPods,
    rule: SpreadRule,
    pod_set: PodSet,
    wanted: Labels,
) -> Iterator[str]:
    """No domain that takes pods ends with more than `max_skew` above the emptiest one.

    If that holds at the end, an order exists that kept it all the time: always the emptiest domain
    first. If it does not, the last pod that was placed broke it.
    """
    key = rule.topology_key
    there = _labelled(occupancy, mine, key)
    if missing := [name for name in mine.nodes if name in occupancy.nodes and name not in there]:
        yield f"on {missing[0]}: it has no label {key}, and pods are spread over its values"
    keys = [each.topology_key for each in pod_set.spread]
    every = [occupancy.labels(name) for name in occupancy.nodes]
    # Domains are made of nodes that the pods select and that have all labels; taints do not matter.
    eligible = {
        labels[key]
        for labels in every
        if all(each in labels for each in keys) and _is_selected(labels, pod_set, wanted)
    }
    # The most and the least that was there at their placement: other new pods may have been later.
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


def _is_selected(labels: dict[str, str], pod_set: PodSet, wanted: Labels) -> bool:
    return all(labels.get(key) == value for key, value in wanted) and (
        not pod_set.affinity
        or any(
            term and all(meets(requirement, labels) for requirement in term)
            for term in pod_set.affinity
        )
    )


def _labelled(occupancy: NodeOccupancy, placement: PlacedPods, key: str) -> list[NodeName]:
    """List the nodes of a placement that have a label."""
    return [
        name
        for name in placement.nodes
        if name in occupancy.nodes and key in occupancy.labels(name)
    ]


# --- topology -------------------------------------------------------------------------------------

# A domain is the nodes with the same value of a level's label and of all wider levels of the same
# topology. The topology of a pod set is its flavor's, or the first by name that has the level, or
# the policy's list of levels.


Domain = tuple[str, ...]


def check_topology(
    index: SnapshotIndex, occupancy: NodeOccupancy, workload: Workload, admission: Admission
) -> Iterator[Violation]:
    """Check every pod set that requires one domain, for all of its pods or for each slice."""
    given = {each.name: each for each in admission.pod_sets}
    together: dict[str, list[PodSet]] = {}
    for pod_set in workload.pod_sets:
        if pod_set.name not in given:
            continue
        request = pod_set.topology
        if request is not None and request.mode == "required":
            # A pod set without a group is on its own; "/" keeps it apart from group names.
            together.setdefault(pod_set.group or f"/{pod_set.name}", []).append(pod_set)
        if request is not None and request.slice_size > 1:
            yield from _check_slices(index, occupancy, workload, pod_set, given[pod_set.name])
    for pod_sets in together.values():
        yield from _check_domain(index, occupancy, workload, pod_sets, given)


def _broken(workload: Workload, message: str) -> Violation:
    return Violation(rule="topology", workload=workload.key, message=message)


def _check_domain(
    index: SnapshotIndex,
    occupancy: NodeOccupancy,
    workload: Workload,
    pod_sets: list[PodSet],
    given: dict[str, PodSetAssignment],
) -> Iterator[Violation]:
    domains: dict[Domain | None, NodeName] = {}
    for pod_set in pod_sets:
        assert pod_set.topology is not None, "only sets with a topology request were collected"
        path = _path(index, given[pod_set.name], pod_set.topology.level)
        for name, _ in given[pod_set.name].nodes:
            if name in occupancy.nodes:
                domains.setdefault(_domain(occupancy, name, path), name)
    names = " and ".join(pod_set.name for pod_set in pod_sets)
    if None in domains:
        yield _broken(workload, f"{names}: {domains[None]} is in no domain of that level")
    if len(domains) > 1:
        nodes = ", ".join(sorted(domains.values()))
        yield _broken(workload, f"{names} must share one domain, but are in those of {nodes}")


def _check_slices(
    index: SnapshotIndex,
    occupancy: NodeOccupancy,
    workload: Workload,
    pod_set: PodSet,
    given: PodSetAssignment,
) -> Iterator[Violation]:
    """Every domain of the slice level holds whole slices."""
    assert pod_set.topology is not None, "checked by the caller"
    size = pod_set.topology.slice_size
    path = _path(index, given, pod_set.topology.slice_level)
    pods: dict[Domain | None, int] = {}
    for name, count in given.nodes:
        if name in occupancy.nodes:
            domain = _domain(occupancy, name, path)
            pods[domain] = pods.get(domain, 0) + count
    for domain, count in pods.items():
        if domain is None:
            message = f"{pod_set.name}: {count} pods are in no domain of {path[-1]}"
            yield _broken(workload, message)
        elif count % size:
            message = f"{pod_set.name}: {count} pods in {'/'.join(domain)}, not slices of {size}"
            yield _broken(workload, message)


def _domain(occupancy: NodeOccupancy, name: NodeName, path: tuple[str, ...]) -> Domain | None:
    """Return which domain a node is in; None if it lacks the label of the narrowest level."""
    labels = occupancy.labels(name)
    if path[-1] not in labels:
        return None
    return tuple(labels.get(key, "") for key in path)


def _path(index: SnapshotIndex, assigned: PodSetAssignment, level: str) -> tuple[str, ...]:
    """Return the levels from the widest down to the requested one."""
    if level in ("", HOSTNAME):
        return (HOSTNAME,)
    flavors = [index.flavors.get(flavor) for _, flavor in assigned.flavors]
    own = [index.topologies.get(flavor.topology, ()) for flavor in flavors if flavor is not None]
    others = [index.topologies[name] for name in sorted(index.topologies)]
    for levels in (*own, *others, index.policy.placement.levels or DEFAULT_LEVELS):
        if level in levels:
            return levels[: levels.index(level) + 1]
    return (level,)
