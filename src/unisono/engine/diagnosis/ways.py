"""The ways to start a workload that there are, each on its own: one for every choice of flavors.

A scheduling cycle records the refusal of one flavor. Here each is nominated alone, as things are
now, so that every one has its stage and its numbers: quota that is free and quota that there is,
pods that fit, and how much of their GPUs is free on the flavor's nodes. A way that is closed even
on the empty cluster says why there: what is in use now does not matter for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import msgspec

from unisono.engine.diagnosis.in_steps import InSteps
from unisono.engine.explain.messages import stage_of
from unisono.engine.model import explanation as facts
from unisono.engine.model.diagnosis import Mode, Shortage, Way
from unisono.engine.model.explanation import Blocker, Explanation
from unisono.engine.model.names import FlavorName, ResourceName, WorkloadKey
from unisono.engine.model.node import Node, repaired
from unisono.engine.model.resources import UNLIMITED, is_gpu
from unisono.engine.model.selection import Toleration, label_map, tolerates
from unisono.engine.model.workload import PodSet, Workload
from unisono.engine.nominate import Nominee, facts_of, nominate
from unisono.engine.quota.assign import Allowed
from unisono.engine.quota.flavors import Choice, Option, eligible_flavors_of
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.quota_tree import available, potential
from unisono.engine.state.transaction import Transaction

replace = msgspec.structs.replace

# More combinations exist only for several pod sets with many flavors each.
_MOST_WAYS = 12


def ways(
    state: ClusterState,
    key: WorkloadKey,
    empty: ClusterState | None = None,
    *,
    charge: Callable[[], None] = lambda: None,
) -> InSteps[tuple[Way, ...]]:
    """Return every way to start a pending workload, in the order in which flavors are tried.

    `empty` is the same cluster with healthy nodes and without other workloads. Without it, nothing
    is called impossible for lack of nodes. `charge` is called before each way; it may raise.
    """
    state.refresh()
    waiting = state.waiting.get(key)
    cq = state.local_queue(waiting.workload.queue).cq if waiting is not None else None
    if waiting is None or cq is None:
        return ()
    eligible = eligible_flavors_of(cq, waiting.request, state.config)
    choices = eligible.choices
    if not choices:
        return ()
    found: list[Way] = []
    for options in itertools.islice(
        itertools.product(*(one.options for one in choices)), _MOST_WAYS
    ):
        allowed: Allowed = {
            place: option.flavor
            for choice, option in zip(choices, options, strict=True)
            for place in choice.resources
        }
        yield
        charge()
        nominee = _nominee(state, key, allowed)
        assert nominee is not None, "it is pending in its queue"
        pod_sets = waiting.workload.pod_sets
        way = _way(state, nominee, pod_sets, choices, options)
        if _may_shrink(waiting.workload):
            way = replace(way, possible=way.possible or not _is_of_the_flavor(way))
        elif empty is not None and way.stage is not None and way.possible:
            way = _checked_on_the_empty_cluster(way, empty, key, allowed, options)
        found.append(way)
    return tuple(found)


def _may_shrink(workload: Workload) -> bool:
    """Say whether fewer pods than are asked for may start: then a refusal of all is not final."""
    return workload.min_total is not None or any(
        one.min_count is not None and one.min_count < one.count for one in workload.pod_sets
    )


def _is_of_the_flavor(way: Way) -> bool:
    return any(
        isinstance(one, facts.FlavorMismatch | facts.ResourceNotCovered) for one in way.blockers
    )


def _nominee(state: ClusterState, key: WorkloadKey, allowed: Allowed) -> Nominee | None:
    """Return what a workload could get of some flavors."""
    state.refresh()
    waiting = state.waiting.get(key)
    cq = state.local_queue(waiting.workload.queue).cq if waiting is not None else None
    if waiting is None or cq is None:
        return None
    transaction = Transaction(state.nodes.occupancy)
    return nominate(state, cq, waiting, transaction, state.now, allowed=allowed)


def _checked_on_the_empty_cluster(
    way: Way, empty: ClusterState, key: WorkloadKey, allowed: Allowed, options: Sequence[Option]
) -> Way:
    """Return a way, or what closes it even there."""
    nominee = _nominee(empty, key, allowed)
    blockers = _blockers(nominee, options) if nominee is not None else ()
    if nominee is None or not blockers or nominee.targets or nominee.purchase is not None:
        return way
    why = Explanation(workload=key, queue=None, blockers=blockers)
    return replace(way, stage=stage_of(why), blockers=blockers, short=(), possible=False)


def _way(
    state: ClusterState,
    nominee: Nominee,
    pod_sets: Sequence[PodSet],
    choices: Sequence[Choice],
    options: Sequence[Option],
) -> Way:
    """Describe one way: what refuses, and what it is short of."""
    blockers = _blockers(nominee, options)
    works = not blockers or bool(nominee.targets) or nominee.purchase is not None
    mode: Mode = "as-it-is"
    if nominee.targets:
        mode = "preemption"
    elif nominee.purchase is not None:
        mode = "machines"
    why = Explanation(workload=nominee.key, queue=None, blockers=blockers)
    short = [*_of_quota(pod_sets, options)]
    if not short and not works and not any(option.mismatch for option in options):
        short = [*_of_nodes(state, pod_sets, choices, options)]
    return Way(
        flavors=tuple(
            (pod_sets[index].name, resource, option.flavor)
            for choice, option in zip(choices, options, strict=True)
            for index, resource in choice.resources
        ),
        mode=mode,
        stage=None if works else stage_of(why),
        blockers=() if works else blockers,
        short=tuple(short),
        possible=not any(
            isinstance(one, facts.ExceedsMaximum | facts.FlavorMismatch | facts.ResourceNotCovered)
            for one in blockers
        ),
    )


def _blockers(nominee: Nominee, options: Sequence[Option]) -> tuple[Blocker, ...]:
    """Return the facts of one way, without those about flavors that it does not take."""
    taken = {option.flavor for option in options}
    return tuple(
        one
        for one in facts_of(nominee)
        if not isinstance(one, facts.FlavorMismatch)
        or (one.why != "not-allowed" and one.flavor in taken)
    )


def _of_quota(pod_sets: Sequence[PodSet], options: Sequence[Option]) -> Iterator[Shortage]:
    """Yield what the queue is short of for these flavors."""
    wanted: dict[tuple[str, ResourceName], int] = {}
    cells = {}
    for option in options:
        if option.mismatch is not None:
            continue
        for index, cell, each in option.per_pod:
            place = (cell.flavor_resource.flavor, cell.flavor_resource.resource)
            wanted[place] = wanted.get(place, 0) + each * pod_sets[index].count
            cells[place] = cell
    for (flavor, resource), amount in sorted(wanted.items()):
        cell = cells[flavor, resource]
        free = max(0, available(cell))
        if amount > free:
            yield Shortage(
                of="quota",
                flavor=flavor,
                resource=resource,
                wanted=amount,
                free=free,
                total=min(UNLIMITED, potential(cell)),
            )


def _of_nodes(
    state: ClusterState,
    pod_sets: Sequence[PodSet],
    choices: Sequence[Choice],
    options: Sequence[Option],
) -> Iterator[Shortage]:
    """Yield how much of what is asked for is free on the nodes of these flavors."""
    wanted: dict[tuple[FlavorName, ResourceName], int] = {}
    tolerated: dict[tuple[FlavorName, ResourceName], tuple[Toleration, ...]] = {}
    for choice, option in zip(choices, options, strict=True):
        for index in choice.pod_sets:
            pod_set = pod_sets[index]
            requests = pod_set.node_requests or pod_set.requests
            resource = _scarcest(tuple(name for name, amount in requests if amount))
            if resource is not None:
                place = (option.flavor, resource)
                wanted[place] = (
                    wanted.get(place, 0) + dict(requests)[resource] * pod_sets[index].count
                )
                tolerated[place] = (*tolerated.get(place, ()), *pod_set.tolerations)
    table = state.nodes.table
    for (flavor, resource), amount in sorted(wanted.items()):
        column = table.column(resource)
        spec = state.config.flavors.get(flavor)
        if column is None or spec is None:
            continue
        labels = label_map(spec.node_labels).items()
        known = (*spec.tolerations, *tolerated[flavor, resource])
        free, total, out = 0, 0, 0
        for row, node in enumerate(table.nodes):
            if node is None or not labels <= label_map(node.labels).items():
                continue
            if not _takes(repaired(node), known):
                continue  # it is not for these pods, however healthy it is
            has = dict(node.allocatable).get(resource, 0)
            total += has
            if _takes(node, known):
                free += max(0, int(table.free_of(column)[row]))
            else:
                out += has
        yield Shortage(
            of="nodes",
            flavor=flavor,
            resource=resource,
            wanted=amount,
            free=free,
            total=total,
            out=out,
        )


def _takes(node: Node, tolerations: Sequence[Toleration]) -> bool:
    """Say whether a node takes pods with these tolerations."""
    return (
        node.ready
        and not node.unschedulable
        and all(
            taint.effect == "PreferNoSchedule" or any(tolerates(one, taint) for one in tolerations)
            for taint in node.taints
        )
    )


def _scarcest(resources: tuple[ResourceName, ...]) -> ResourceName | None:
    """Return the resource that nodes are short of first: GPUs, where pods ask for them."""
    return next((one for one in resources if is_gpu(one)), resources[0] if resources else None)
