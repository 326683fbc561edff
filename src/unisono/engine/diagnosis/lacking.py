"""What even the empty cluster lacks: the least quota, the fewest nodes that let a workload start.

The cluster that is searched has no other workload, no pods of others and only healthy nodes. For
every flavor (`_proposals`) it is asked what a workload would need there: quota that is missing, a
taint to tolerate, nodes. What is enough is made small: needless causes are dropped, amounts are
halved until one less is not enough. The flavor that needs least is reported.

A manifest may ask for any number of pods, and a trial makes every node that it adds. What needs
more than `_MOST_NODES` of them is answered by arithmetic: a lower bound, and reported as one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from unisono.engine.diagnosis.in_steps import InSteps
from unisono.engine.diagnosis.minimal import without_needless
from unisono.engine.diagnosis.trial import Trials
from unisono.engine.explain.waiting import explanation
from unisono.engine.model import explanation as facts
from unisono.engine.model.diagnosis import (
    NEW_DOMAIN,
    Cause,
    Condition,
    MissingNodes,
    MissingQuota,
    MissingToleration,
)
from unisono.engine.model.names import PODS, FlavorName, QueueName, ResourceName
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.model.queue import Flavor
from unisono.engine.model.resources import (
    WHOLE_GPU,
    Amounts,
    amounts,
    is_gpu,
    is_share,
    shared_gpu,
)
from unisono.engine.model.selection import Labels, Toleration, label_map, meets, tolerates
from unisono.engine.model.workload import PodSet
from unisono.engine.quota.flavors import EligibleFlavors, Option, eligible_flavors_of
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.quota_tree import potential

replace = msgspec.structs.replace

# Combinations of flavors that are tried; more exist only for several pod sets with many flavors.
_MOST_WAYS = 12
# Existing topology domains that new nodes could join, and taints of existing nodes.
_MOST_DOMAINS = 8
# Conditions that show one after the other on the empty cluster.
_MOST_CONDITIONS = 8
# New nodes of one trial. A gang of that many machines is rare, and making them takes milliseconds.
_MOST_NODES = 1_000

# On the empty cluster these are not in the way of others: what they complain about has to change.
_CHANGEABLE = (
    facts.LimitReached,
    facts.NotEntitled,
    facts.Reserved,
    facts.DeadlineMissed,
    facts.Misconfigured,
    facts.DependencyNeverSatisfied,
    facts.CheckFailed,
    facts.ResourceNotCovered,
)


def lacking(
    empty: Trials, hopeless: Sequence[Cause], dates: Sequence[Cause]
) -> InSteps[list[Cause] | None]:
    """Return a minimal set of what the empty cluster lacks; None if none was found."""
    reserved = [Condition(blocker=fact) for fact in _reservations(empty)]
    alternatives: list[Sequence[Cause]] = [[], *([date] for date in dates), reserved]
    for more in alternatives:
        given = [*hopeless, *more]
        given += yield from _conditions(empty, given)
        if given and (yield from empty.starts(given)):
            return (yield from without_needless(given, empty.starts))
        found = yield from _cheapest(empty, given)
        if found is not None:
            return found
    return None


def _cheapest(empty: Trials, given: list[Cause]) -> InSteps[list[Cause] | None]:
    """Return the set that changes least, of those that begin with what is given."""
    best: list[Cause] | None = None
    by_count: list[Cause] | None = None
    for proposal in _proposals(empty, given):
        enough = [*given, *proposal]
        if _new_nodes(enough) > _MOST_NODES:
            counted = [_counted(one) for one in enough]
            if by_count is None or _cost(counted) < _cost(by_count):
                by_count = counted
            continue
        if not (yield from empty.starts(enough)):
            continue
        needed = yield from without_needless(enough, empty.starts)
        found = yield from _smallest(needed, empty)
        if best is None or _cost(found) < _cost(best):
            best = found
    return best or by_count


def _new_nodes(causes: Iterable[Cause]) -> int:
    return sum(cause.count for cause in causes if isinstance(cause, MissingNodes))


def _counted(cause: Cause) -> Cause:
    return replace(cause, tried=False) if isinstance(cause, MissingNodes) else cause


def _reservations(empty: Trials) -> list[facts.Reserved]:
    """Return the advance reservations that exclude the workload from nodes."""
    state = empty.without(())
    waiting = state.waiting.get(empty.key)
    if waiting is None:
        return []
    found = {
        reservation.name: facts.Reserved(
            name=reservation.name, start=start, end=end, nodes=len(reservation.nodes), limit_ms=0
        )
        for reservation, start, end in state.reserved.against(waiting.workload, state.now)
    }
    return [*found.values()]


def _conditions(empty: Trials, hopeless: Sequence[Cause]) -> InSteps[list[Cause]]:
    """Return what a workload itself, or a policy, has to change, one after the other."""
    found: list[Cause] = []
    for _ in range(_MOST_CONDITIONS):
        state = empty.without([*hopeless, *found])
        if (yield from empty.starts_in(state)):
            break
        why = explanation(state, empty.key)
        shown = why.blockers if why is not None else ()
        more = [
            Condition(blocker=fact)
            for fact in shown
            if isinstance(fact, _CHANGEABLE) and Condition(blocker=fact) not in found
        ]
        if not more:
            break
        found.extend(more)
    return found


def _cost(causes: Sequence[Cause]) -> tuple[int, int, int]:
    """Order sets: those that change least come first."""
    nodes = sum(cause.count for cause in causes if isinstance(cause, MissingNodes))
    quota = sum(cause.amount for cause in causes if isinstance(cause, MissingQuota))
    return len(causes), nodes, quota


# --- what to try ----------------------------------------------------------------------------------


def _proposals(empty: Trials, given: Sequence[Cause]) -> Iterator[list[Cause]]:
    """Yield what would be enough: more than is needed, flavor by flavor, least nodes first."""
    state = empty.without(given)
    state.refresh()
    waiting = state.waiting.get(empty.key)
    cq = state.local_queue(waiting.workload.queue).cq if waiting is not None else None
    if waiting is None or cq is None:
        return
    eligible = eligible_flavors_of(cq, waiting.request, state.config)
    for ways in itertools.islice(_ways(eligible), _MOST_WAYS):
        flavors = [option.flavor for option in ways]
        yield from _with_flavors(empty, given, flavors)


def _ways(eligible: EligibleFlavors) -> Iterator[tuple[Option, ...]]:
    """Yield one option for every choice, in the order in which flavors are tried."""
    yield from itertools.product(*(choice.options for choice in eligible.choices))


def _with_flavors(
    empty: Trials, given: Sequence[Cause], names: Sequence[FlavorName]
) -> Iterator[list[Cause]]:
    """Yield what would be enough with one flavor for every choice."""
    lifted: list[Cause] = []
    state, waiting, cq, eligible, ways = _looked_up(empty, [*given], names)
    while len(lifted) < _MOST_CONDITIONS:
        # Of each choice only the first mismatch shows.
        more = [Condition(blocker=way.mismatch) for way in ways if way.mismatch is not None]
        if not more or more[0] in lifted:
            break
        lifted += more
        state, waiting, cq, eligible, ways = _looked_up(empty, [*given, *lifted], names)
    pod_sets = waiting.workload.pod_sets
    nodes = [node for node in state.nodes.table.nodes if node is not None]
    changed = [*lifted, *_quota(ways, pod_sets, cq.spec.name)]
    yield changed
    if not nodes and not state.policy.placement.needs_nodes:
        return
    tolerated = _tolerations(nodes, pod_sets)
    if tolerated:
        yield [*changed, *tolerated]
    chosen = _flavors_of(state, eligible, ways, len(pod_sets))
    for labels in _domains(state, nodes, pod_sets):
        wanted = [
            _nodes_for(one, flavors, nodes, labels if _is_placed(one, flavors) else ())
            for one, flavors in zip(pod_sets, chosen, strict=True)
            if one.count
        ]
        if _new_nodes(wanted) <= _MOST_NODES:
            yield [*changed, *wanted]
        else:
            counts = {one.name: one for one in pod_sets}
            yield [*changed, *(_filled(one, counts[one.pod_set], nodes) for one in wanted)]


def _looked_up(
    empty: Trials, causes: Sequence[Cause], names: Sequence[FlavorName]
) -> tuple[ClusterState, PendingWorkload, ClusterQueueState, EligibleFlavors, list[Option]]:
    """Return the cluster without causes, and what the workload could take there of the flavors."""
    state = empty.without(causes)
    state.refresh()
    waiting = state.waiting[empty.key]
    cq = state.local_queue(waiting.workload.queue).cq
    assert cq is not None, "its flavors were found there"
    eligible = eligible_flavors_of(cq, waiting.request, state.config)
    ways = [
        next(option for option in choice.options if option.flavor == name)
        for choice, name in zip(eligible.choices, names, strict=True)
    ]
    return state, waiting, cq, eligible, ways


def _quota(ways: Iterable[Option], pod_sets: Sequence[PodSet], queue: QueueName) -> Iterator[Cause]:
    """Return the quota that the queue lacks for these flavors."""
    wanted: dict[tuple[str, ResourceName], int] = {}
    there: dict[tuple[str, ResourceName], int] = {}
    for option in ways:
        for index, cell, each in option.per_pod:
            place = (cell.flavor_resource.flavor, cell.flavor_resource.resource)
            wanted[place] = wanted.get(place, 0) + each * pod_sets[index].count
            there[place] = potential(cell)
    for (flavor, resource), amount in sorted(wanted.items()):
        if amount > there[flavor, resource]:
            yield MissingQuota(
                queue=queue,
                flavor=flavor,
                resource=resource,
                amount=amount - there[flavor, resource],
            )


def _is_placed(pod_set: PodSet, flavors: Sequence[Flavor]) -> bool:
    """Say whether it matters in which topology domain a node is."""
    rules = (pod_set.spread, pod_set.affinity_to, pod_set.anti_affinity)
    return pod_set.topology is not None or any(rules) or any(one.topology for one in flavors)


def _flavors_of(
    state: ClusterState, eligible: EligibleFlavors, ways: Sequence[Option], count: int
) -> list[list[Flavor]]:
    """Return the flavors whose nodes every pod set would need."""
    chosen: list[list[Flavor]] = [[] for _ in range(count)]
    for choice, option in zip(eligible.choices, ways, strict=True):
        flavor = state.config.flavors.get(option.flavor)
        for index in choice.pod_sets:
            if flavor is not None and flavor not in chosen[index]:
                chosen[index].append(flavor)
    return chosen


def _tolerations(nodes: Sequence[Node], pod_sets: Sequence[PodSet]) -> Sequence[Cause]:
    """Return the tolerations of all taints of existing nodes that no pod set has."""
    found: dict[Toleration, None] = {}
    for node in nodes:
        for taint in node.taints:
            if taint.effect != "PreferNoSchedule" and not all(
                any(tolerates(one, taint) for one in pod_set.tolerations) for pod_set in pod_sets
            ):
                found[Toleration(taint.key, "Equal", taint.value, taint.effect)] = None
    return [*(MissingToleration(tolerations=(one,)) for one in found)][:_MOST_DOMAINS]


def _domains(
    state: ClusterState, nodes: Sequence[Node], pod_sets: Sequence[PodSet]
) -> Iterator[Labels]:
    """Yield the topology labels that new nodes could have: of every existing domain, then new."""
    asked = {
        level
        for pod_set in pod_sets
        if pod_set.topology is not None
        for level in (pod_set.topology.level, pod_set.topology.slice_level)
        if level and level != HOSTNAME
    }
    levels = asked | {
        level
        for topology in state.config.topologies.values()
        for level in topology.levels
        if level != HOSTNAME
    }
    known: dict[Labels, None] = {}
    for node in nodes:
        here = tuple((key, value) for key, value in node.labels if key in levels)
        if here and len(here) == len(levels):
            known[here] = None
    yield from itertools.islice(known, _MOST_DOMAINS)
    yield tuple((level, NEW_DOMAIN) for level in sorted(levels))


def _nodes_for(
    pod_set: PodSet, flavors: Sequence[Flavor], nodes: Sequence[Node], domain: Labels
) -> MissingNodes:
    """Return one node for every pod: like the flavor's own, if these are large enough."""
    labels = {key: value for flavor in flavors for key, value in flavor.node_labels}
    labels |= dict(pod_set.node_selector) | _of_affinity(pod_set) | dict(domain)
    on_one = _pods_on_one_node(pod_set)
    asked = amounts({name: amount * on_one for name, amount in _of_a_node(pod_set)})
    alike = [node for node in nodes if _has_labels(node, labels, domain)]
    large = [node for node in alike if _covers(node.allocatable, asked)]
    short_of, largest = ("", 0) if large else _shortage(alike or nodes, asked)
    level = pod_set.topology.level if pod_set.topology is not None else ""
    joined = dict(domain).get(level, "")
    return MissingNodes(
        count=-(-pod_set.count // on_one),
        pod_set=pod_set.name,
        requests=_covering(large[0].allocatable, asked) if large else asked,
        labels=tuple(sorted(labels.items())),
        level=level,
        domain="" if joined == NEW_DOMAIN else joined,
        short_of=ResourceName(short_of),
        largest=largest,
        unlabelled=tuple(_unlabelled(labels, domain, level, nodes)),
    )


def _unlabelled(
    labels: dict[str, str], domain: Labels, level: str, nodes: Sequence[Node]
) -> Iterator[str]:
    """Yield the labels that no node has; of the topology level that pods share, its key."""
    places = dict(domain)
    there = [label_map(node.labels) for node in nodes]
    for key, value in sorted(labels.items()):
        if key not in places and not any(one.get(key) == value for one in there):
            yield f"{key}={value}"
    if level and level != HOSTNAME and not any(level in one for one in there):
        yield level


def _filled(missing: MissingNodes, pod_set: PodSet, nodes: Sequence[Node]) -> MissingNodes:
    """Return as many nodes as hold all pods by their amounts alone: fewer are not enough."""
    asked = _of_a_node(pod_set)
    there = sum(_holds(node.allocatable, asked) for node in nodes)
    each = max(1, _holds(missing.requests, asked))
    return replace(missing, count=max(1, -(-(pod_set.count - there) // each)))


def _holds(has: Amounts, asked: Amounts) -> int:
    """Return how many pods that ask for so much there is room for."""
    there = dict(has)
    return min(there.get(resource, 0) // amount for resource, amount in asked if amount)


def _pods_on_one_node(pod_set: PodSet) -> int:
    """Return how many pods one node has to hold: all, if they must share a node."""
    topology = pod_set.topology
    if topology is None:
        return 1
    if topology.mode == "required" and topology.level == HOSTNAME:
        return max(1, pod_set.count)
    return max(1, topology.slice_size) if topology.slice_level == HOSTNAME else 1


def _of_a_node(pod_set: PodSet) -> Amounts:
    """Return what one pod needs of a node: a whole GPU for a part of one."""
    wanted: dict[ResourceName, int] = {}
    requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
    for resource, amount in requests:
        if is_share(resource):
            gpu = shared_gpu(resource)
            wanted[gpu] = wanted.get(gpu, 0) + -(-amount // WHOLE_GPU)
        elif amount:
            wanted[resource] = wanted.get(resource, 0) + amount
    wanted.setdefault(PODS, 1)
    return amounts(wanted)


def _covers(has: Amounts, asked: Amounts) -> bool:
    there = dict(has)
    return all(there.get(resource, 0) >= amount for resource, amount in asked if resource != PODS)


def _covering(has: Amounts, asked: Amounts) -> Amounts:
    there = dict(has)
    return amounts(there | {PODS: max(there.get(PODS, 1), dict(asked)[PODS])})


def _shortage(nodes: Sequence[Node], asked: Amounts) -> tuple[str, int]:
    """Return what even the largest node has too little of, GPUs first, and how much it has."""
    for resource, amount in sorted(asked, key=lambda one: (not is_gpu(one[0]), one[0])):
        largest = max((dict(node.allocatable).get(resource, 0) for node in nodes), default=0)
        if resource != PODS and largest < amount:
            return resource, largest
    return "", 0


def _has_labels(node: Node, labels: dict[str, str], domain: Labels) -> bool:
    has, places = label_map(node.labels), dict(domain)
    return all(has.get(key) == value for key, value in labels.items() if key not in places)


def _of_affinity(pod_set: PodSet) -> dict[str, str]:
    """Return labels that let a node match required node affinity: its first term."""
    labels: dict[str, str] = {}
    for one in pod_set.affinity[0] if pod_set.affinity else ():
        if not meets(one, labels):
            if one.operator in ("In", "Gt", "Lt") and one.values:
                labels[one.key] = _satisfying(one.operator, one.values[0])
            elif one.operator == "Exists":
                labels[one.key] = "true"
    return labels


def _satisfying(operator: str, value: str) -> str:
    if operator == "In":
        return value
    try:
        bound = int(value)  # as `meets` reads it
    except ValueError:
        return value
    return str(bound + (1 if operator == "Gt" else -1))


# --- as little as possible ------------------------------------------------------------------------


def _smallest(causes: list[Cause], empty: Trials) -> InSteps[list[Cause]]:
    """Halve amounts until one less is not enough; all are needed to begin with."""
    found = list(causes)
    for index, cause in enumerate(found):
        others = [*found[:index], *found[index + 1 :]]
        match cause:
            case MissingNodes(count=most):
                low, high = 0, most
                while high - low > 1:
                    middle = (low + high) // 2
                    fewer = replace(cause, count=middle)
                    is_enough = yield from empty.starts([*others, fewer])
                    low, high = (low, middle) if is_enough else (middle, high)
                found[index] = replace(cause, count=high)
            case MissingQuota(amount=most):
                low, high = 0, most
                while high - low > 1:
                    middle = (low + high) // 2
                    less = replace(cause, amount=middle)
                    is_enough = yield from empty.starts([*others, less])
                    low, high = (low, middle) if is_enough else (middle, high)
                found[index] = replace(cause, amount=high)
            case _:
                pass
    return found
