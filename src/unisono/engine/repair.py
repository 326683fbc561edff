"""Nodes for admitted gangs that lack some: lost ones, and those that a check had to bring first.

    repair           other nodes for lost ones, among those that are there (spec placement §10.4)
    replacement      machines that are bought for what was lost (spec provisioning §5.8)
    place_reserved   nodes for a gang whose quota was reserved before they came (spec quota §12)

Quota is not asked: the gang holds it. All other pods stay, also those that still run on a lost
node: it is lost only to pods that would have to start there. Every lost node is replaced in its
place, so that ranks keep their order. New nodes are as near as possible to those that are left:

    a domain is required      the same domain, or nothing
    preferred                 the narrowest domain that all the others share, then wider ones

Nothing is changed, and the caller asks the auditor (`dry_run.refuse_broken_repair`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from unisono.engine.model.explanation import CannotBuy, GangDoesNotFit
from unisono.engine.model.names import FlavorName, NodeName, ResourceName, WorkloadKey
from unisono.engine.model.provisioning import INSTANCE_TYPE, ZONE, Purchase
from unisono.engine.model.selection import Labels, Requirement
from unisono.engine.model.workload import Admission, PodSetAssignment, Workload, joined_pods
from unisono.engine.placement.demand import Demand, narrowed
from unisono.engine.placement.gang import Gang, PodSetPlacement
from unisono.engine.placement.placement import ClusterPlacement, placement_of
from unisono.engine.provisioning.catalogue import Catalogue
from unisono.engine.provisioning.purchase import MODEL_LABEL, Provisioner
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.node_table import NAME_FIELD
from unisono.engine.state.nodes import NodeState

Places = tuple[tuple[NodeName, int], ...]
# The pods that stay on lost nodes: by pod set and node, the device of each, -1 if it shares none.
Stays = Mapping[tuple[str, NodeName], Sequence[int]]


def repair(
    state: ClusterState,
    key: WorkloadKey,
    lost: Collection[NodeName],
    stays: Stays = MappingProxyType({}),
) -> Admission | GangDoesNotFit:
    """Find other nodes for the pods of an admitted workload that were on lost ones."""
    state.refresh()
    admission = state.running[key].admitted.admission
    gang = _missing(state, key, lost, stays)
    answer = _place(placement_of(state), gang, admission, lost, stays)
    if isinstance(answer, GangDoesNotFit):
        return answer
    return _repaired(admission, answer, lost, stays)


def replacement(
    state: ClusterState, key: WorkloadKey, lost: Collection[NodeName], stays: Stays
) -> tuple[Admission, Purchase] | None:
    """Buy machines for what a gang lost, where no other node will do; None if that is impossible.

    Only what was lost is bought: of the type that the gang has left, or else of its GPUs, in its
    zone.
    """
    offerings = state.config.offerings
    if offerings is None:
        return None
    state.refresh()
    admitted = state.running[key].admitted
    workload, admission = admitted.workload, admitted.admission
    gang = _missing(state, key, lost, stays)
    provisioner = Provisioner(state, Catalogue(offerings), state.now)
    for pins in _pins(state, admission, lost):
        labels = tuple(sorted(pins.items()))
        demands = tuple(narrowed(demand, labels) for demand in gang.demands if demand.most)
        answer = provisioner.buy(workload, Gang(key=gang.key, demands=demands))
        if isinstance(answer, CannotBuy) or not answer.purchase.node_claims:
            continue
        return _repaired(admission, answer.placements, lost, stays), answer.purchase
    return None


def place_reserved(
    state: ClusterState, key: WorkloadKey, selectors: Mapping[str, Labels] | None = None
) -> Admission | GangDoesNotFit:
    """Find nodes for all pods of a workload; `selectors` are labels that each pod set needs."""
    state.refresh()
    admitted = state.running[key].admitted
    workload, admission = admitted.workload, admitted.admission
    given = {one.name: one.count for one in admission.pod_sets}
    counts = tuple(given.get(one.name, 0) for one in workload.pod_sets)
    excluded = state.reserved.excluded_nodes(workload, state.now)
    flavors = _flavors_given(workload, admission)
    placement = placement_of(state)
    gang = placement.gang_of(workload, counts, counts, flavors, excluded)
    demands = tuple(narrowed(one, (selectors or {}).get(one.name, ())) for one in gang.demands)
    answer = placement.place(Gang(key=gang.key, demands=demands))
    if isinstance(answer, GangDoesNotFit):
        return answer
    found = {placed.demand: placed for placed in answer}
    return msgspec.structs.replace(
        admission,
        pod_sets=tuple(
            msgspec.structs.replace(one, nodes=placed.nodes, devices=placed.devices)
            for one in admission.pod_sets
            for placed in (found.get(one.name, PodSetPlacement(one.name, ())),)
        ),
    )


def _missing(
    state: ClusterState, key: WorkloadKey, lost: Collection[NodeName], stays: Stays
) -> Gang:
    """Return the pods of an admitted workload that have no node any more, as a gang."""
    admitted = state.running[key].admitted
    workload, admission = admitted.workload, admitted.admission
    missing = {
        one.name: sum(
            max(0, pods - len(stays.get((one.name, node), ())))
            for node, pods in one.nodes
            if node in lost
        )
        for one in admission.pod_sets
    }
    counts = tuple(missing.get(one.name, 0) for one in workload.pod_sets)
    excluded = state.reserved.excluded_nodes(workload, state.now)
    flavors = _flavors_given(workload, admission)
    return placement_of(state).gang_of(workload, counts, counts, flavors, excluded)


def _place(
    placement: ClusterPlacement,
    gang: Gang,
    admission: Admission,
    lost: Collection[NodeName],
    stays: Stays,
) -> tuple[PodSetPlacement, ...] | GangDoesNotFit:
    """Try domains from the narrowest on; sets that share one move into it together."""
    left = {
        one.name: [node for node, _ in one.nodes if node not in lost or stays.get((one.name, node))]
        for one in admission.pod_sets
    }
    gone = {one.name: [node for node, _ in one.nodes if node in lost] for one in admission.pod_sets}
    remaining = [node for nodes in left.values() for node in nodes]
    state = placement.nodes
    answer: tuple[PodSetPlacement, ...] | GangDoesNotFit = ()
    for level in _levels(gang):
        demands = tuple(
            _beside(state, demand, level, left[demand.name] or remaining, gone[demand.name], lost)
            for demand in gang.demands
        )
        answer = placement.place(Gang(key=gang.key, demands=demands))
        if not isinstance(answer, GangDoesNotFit):
            break
    return answer


def _levels(gang: Gang) -> Iterator[str]:
    """Yield the levels whose domain to try, narrowest first; empty: the whole cluster."""
    longest = max((demand.levels for demand in gang.demands), key=len, default=())
    yield from reversed(longest)
    yield ""


def _beside(
    nodes: NodeState,
    demand: Demand,
    level: str,
    left: list[NodeName],
    gone: list[NodeName],
    lost: Collection[NodeName],
) -> Demand:
    """Return a demand for what is missing of a set, bound to where the rest of it is."""
    pins: dict[str, str] = {}
    if demand.mode == "required" and demand.level and left:
        pins |= nodes.domain(left[0], demand.levels, demand.level)
    if demand.slice_size > 1:  # a block is whole again only in the domain that it was in
        pins |= _shared(nodes, demand, gone, demand.slice_level) or {demand.slice_level: ""}
    if level in demand.levels:
        up_to = demand.levels.index(level) + 1
        shared = (_shared(nodes, demand, left, one) for one in reversed(demand.levels[:up_to]))
        pins |= next(filter(None, shared), {})
    elsewhere = Requirement(NAME_FIELD, "NotIn", tuple(sorted(lost)))
    constraint = demand.constraint
    terms = constraint.affinity or ((),)
    return msgspec.structs.replace(
        demand,
        slice_size=0,
        constraint=msgspec.structs.replace(
            constraint,
            selector=tuple(sorted({**dict(constraint.selector), **pins}.items())),
            affinity=tuple((*term, elsewhere) for term in terms),
        ),
    )


def _shared(nodes: NodeState, demand: Demand, names: list[NodeName], level: str) -> dict[str, str]:
    """Return the labels of the domain that nodes are all in; none if there is no such."""
    first, *others = [nodes.domain(name, demand.levels, level) for name in names] or [{}]
    return first if all(other == first for other in others) else {}


def _pins(
    state: ClusterState, admission: Admission, lost: Collection[NodeName]
) -> Iterator[dict[str, str]]:
    """Yield what new machines have to share with those that are left, the closest first."""
    table = state.nodes.table
    rows = [
        table.row_of[name]
        for one in admission.pod_sets
        for name, _ in one.nodes
        if name not in lost and name in table.row_of
    ]
    left = [dict(node.labels) for row in rows if (node := table.nodes[row]) is not None]
    shared: dict[str, str] = {}
    for label in (ZONE, MODEL_LABEL, INSTANCE_TYPE):
        values = {labels.get(label, "") for labels in left}
        if len(values) == 1 and (value := values.pop()):
            shared[label] = value
    yield shared
    if INSTANCE_TYPE in shared:
        yield {label: value for label, value in shared.items() if label != INSTANCE_TYPE}


def _repaired(
    admission: Admission, found: Iterable[PodSetPlacement], lost: Collection[NodeName], stays: Stays
) -> Admission:
    """Return an admission with new nodes instead of lost ones."""
    placed_of = {placed.demand: placed for placed in found}
    return msgspec.structs.replace(
        admission,
        pod_sets=tuple(
            with_others(one, placed_of.get(one.name, PodSetPlacement(one.name, ())), lost, stays)
            for one in admission.pod_sets
        ),
    )


def with_others(
    one: PodSetAssignment, found: PodSetPlacement, lost: Collection[NodeName], stays: Stays
) -> PodSetAssignment:
    """Put new nodes where the lost ones were; a node that is named already takes more pods."""
    new = [node for node, pods in found.nodes for _ in range(pods)]
    parts: list[tuple[Places, tuple[int, ...]]] = []
    before = came = 0
    for node, pods in one.nodes:
        if node not in lost:
            parts.append((((node, pods),), one.devices[before : before + pods]))
        else:
            staying = list(stays.get((one.name, node), ()))
            for at in range(before, before + pods):
                device = one.devices[at : at + 1]
                if _takes(staying, device):
                    parts.append((((node, 1),), device))
                elif came < len(new):
                    parts.append((((new[came], 1),), found.devices[came : came + 1]))
                    came += 1
        before += pods
    nodes, devices = joined_pods(*parts)
    return msgspec.structs.replace(one, nodes=nodes, devices=devices)


def _takes(staying: list[int], device: tuple[int, ...]) -> bool:
    """Say whether a place is that of a pod that stays, and note that it is taken."""
    if not staying or (device and device[0] not in staying):
        return False
    staying.remove(device[0] if device else staying[0])
    return True


def _flavors_given(
    workload: Workload, admission: Admission
) -> Mapping[tuple[int, ResourceName], FlavorName]:
    """Return the flavors that a workload was given, by pod set and resource."""
    assigned = {one.name: one.flavors for one in admission.pod_sets}
    return {
        (index, resource): flavor
        for index, pod_set in enumerate(workload.pod_sets)
        for resource, flavor in assigned.get(pod_set.name, ())
    }
