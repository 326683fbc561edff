"""Other nodes for the pods of a gang that lost some: everybody else stays (spec placement §10.4).

`repair(state, key, lost)` reads a holding and returns its admission with every lost node replaced
in its place, so that ranks keep their order; or why no other nodes will do. Pods that still run on
such a node stay: it is lost only to those who would have to start there. Quota is not asked: the
gang holds it already. The new nodes are as near as possible to those that are left:

    a domain is required      the same domain, or nothing
    preferred                 the narrowest domain that all the others share, then wider ones

Nothing is changed; the auditor checks the answer as it checks a slice that grows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from unisono.engine.audit.nodes import check_nodes
from unisono.engine.audit.purchases import with_bought
from unisono.engine.audit.world import World
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.market import Purchase
from unisono.engine.model.names import FlavorName, NodeName, ResourceName, WorkloadKey
from unisono.engine.model.plan import Admit, Plan
from unisono.engine.model.selection import Requirement
from unisono.engine.model.workload import Admission, PodSetAssignment, Workload, joined_pods
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.gang import Gang, Spot
from unisono.engine.placement.placement import ClusterPlacement, placement_of
from unisono.engine.rehearsal import BrokenPlan
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.node_table import NAME_FIELD
from unisono.engine.state.nodes import NodeState
from unisono.engine.state.views import snapshot_for

Places = tuple[tuple[NodeName, int], ...]
# Who stays on a lost node: by pod set and node, the device of each pod, -1 if it shares none.
Stays = Mapping[tuple[str, NodeName], Sequence[int]]


def repair(
    state: ClusterState,
    key: WorkloadKey,
    lost: Collection[NodeName],
    stays: Stays = MappingProxyType({}),
) -> Admission | GangDoesNotFit:
    """Find other nodes for the pods of a holding that were on lost ones."""
    state.refresh()
    holding = state.running[key].holding
    workload, admission = holding.workload, holding.admission
    gang = missing_of(state, key, lost, stays)
    answer = _place(placement_of(state), gang, admission, lost, stays)
    if isinstance(answer, GangDoesNotFit):
        return answer
    found = {spot.demand: spot for spot in answer}
    repaired = msgspec.structs.replace(
        admission,
        pod_sets=tuple(
            with_others(one, found.get(one.name, Spot(one.name, ())), lost, stays)
            for one in admission.pod_sets
        ),
    )
    refuse_if_broken(state, workload, repaired)
    return repaired


def missing_of(
    state: ClusterState, key: WorkloadKey, lost: Collection[NodeName], stays: Stays
) -> Gang:
    """Return the pods of a holding that have no node any more, as a gang of their own."""
    holding = state.running[key].holding
    workload, admission = holding.workload, holding.admission
    missing = {
        one.name: sum(
            max(0, pods - len(stays.get((one.name, node), ())))
            for node, pods in one.nodes
            if node in lost
        )
        for one in admission.pod_sets
    }
    counts = tuple(missing.get(one.name, 0) for one in workload.pod_sets)
    fence = state.reserved.fence(workload, state.now)
    flavors = flavors_given(workload, admission)
    return placement_of(state).gang_of(workload, counts, counts, flavors, fence)


def _place(
    placement: ClusterPlacement,
    gang: Gang,
    admission: Admission,
    lost: Collection[NodeName],
    stays: Stays,
) -> tuple[Spot, ...] | GangDoesNotFit:
    """Try domains from the narrowest on; sets that share one move into it together."""
    left = {
        one.name: [node for node, _ in one.nodes if node not in lost or stays.get((one.name, node))]
        for one in admission.pod_sets
    }
    gone = {one.name: [node for node, _ in one.nodes if node in lost] for one in admission.pod_sets}
    everybody = [node for nodes in left.values() for node in nodes]
    state = placement.nodes
    answer: tuple[Spot, ...] | GangDoesNotFit = ()
    for level in _levels(gang):
        demands = tuple(
            _beside(state, demand, level, left[demand.name] or everybody, gone[demand.name], lost)
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


def with_others(
    one: PodSetAssignment, found: Spot, lost: Collection[NodeName], stays: Stays
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
    """Say whether a place is one of those who stay, and note that it is taken."""
    if not staying or (device and device[0] not in staying):
        return False
    staying.remove(device[0] if device else staying[0])
    return True


def flavors_given(
    workload: Workload, admission: Admission
) -> Mapping[tuple[int, ResourceName], FlavorName]:
    """Return the flavors that a holding was given, by pod set and resource."""
    assigned = {one.name: one.flavors for one in admission.pod_sets}
    return {
        (index, resource): flavor
        for index, pod_set in enumerate(workload.pod_sets)
        for resource, flavor in assigned.get(pod_set.name, ())
    }


def refuse_if_broken(
    state: ClusterState,
    workload: Workload,
    repaired: Admission,
    purchase: Purchase | None = None,
) -> None:
    """Ask the auditor, to whom a repaired gang is one that grows out of the old one."""
    heir = msgspec.structs.replace(
        workload,
        key=WorkloadKey(f"{workload.key}+repair"),
        replaces=workload.key,
        reclaimable=(),
        pod_sets=tuple(msgspec.structs.replace(one, topology=None) for one in workload.pod_sets),
    )
    placed = msgspec.structs.replace(
        repaired,
        pod_sets=tuple(  # pods that are done have given their places back
            msgspec.structs.replace(one, count=sum(pods for _, pods in one.nodes))
            for one in repaired.pod_sets
        ),
    )
    plan = Plan(
        based_on=state.version,
        now=state.now,
        admissions=(
            Admit(
                workload=heir.key,
                admission=placed,
                replaces=workload.key,
                purchase=_for(heir, purchase),
            ),
        ),
    )
    before = snapshot_for(state, plan)
    nodes = tuple(  # what is reserved for the gang is reserved for it repaired
        msgspec.structs.replace(node, held_for=heir.key) if node.held_for == workload.key else node
        for node in before.nodes
    )
    snapshot = msgspec.structs.replace(before, waiting=(heir,), nodes=nodes)
    world = with_bought(World(snapshot), snapshot.market, plan)
    violations = tuple(check_nodes(world, plan))
    if violations:
        raise BrokenPlan("; ".join(str(one) for one in violations))


def _for(heir: Workload, purchase: Purchase | None) -> Purchase | None:
    if purchase is None:
        return None
    return msgspec.structs.replace(purchase, workload=heir.key)
