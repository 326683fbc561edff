"""Random nodes and gangs to place on them, and a state machine of cycles over them.

Small on purpose: a handful of nodes with few values of everything, so that ties, full nodes and
domains of the same name in different places are the rule. Names that differ only in leading zeros
are among them, and nodes that lack a label.

Everything is made by a `Pick`, which chooses one of several. Hypothesis can be one, and then
examples shrink (towards what is listed first); a seeded generator can, and then thousands of
clusters take seconds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from hypothesis import strategies as st

from tests.support import state_laws
from tests.support.placement_builders import bytes_of
from tests.support.placement_oracle import Cluster
from unisono.engine.audit.quota_tree import queue_node
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.cluster import restore
from unisono.engine.dry_run import give_up, leave
from unisono.engine.model.names import (
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.node import (
    HOSTNAME,
    HostPort,
    Node,
    NodePod,
    PodRule,
    PodSelector,
    SpreadRule,
    Topology,
)
from unisono.engine.model.policy import FairSharing, Placement, Policy
from unisono.engine.model.queue import (
    ClusterQueue,
    Flavor,
    FlavorQuota,
    LocalQueue,
    PreemptionRules,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.model.selection import LabelSelector, Operator, Requirement, Taint, Toleration
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import PodSet, TopologyRequest, WeightedTerm, Workload
from unisono.engine.placement.demand import Constraint, Demand, Mode
from unisono.engine.placement.gang import Gang
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

GPU, CPU, FPGA = (ResourceName(name) for name in ("nvidia.com/gpu", "cpu", "example.com/fpga"))
ZONE, BLOCK, RACK = "topology.kubernetes.io/zone", "block", "rack"
NAMES = tuple(NodeName(name) for name in ("n1", "n2", "n10", "n01", "a", "b-2", "b-10", "z"))
LEVELS = ((BLOCK, RACK), (RACK,), (ZONE, BLOCK, RACK), ())
TAINTS = (
    Taint("spot"),
    Taint("old", "yes", "PreferNoSchedule"),
    Taint("spot", "2", "NoExecute"),
    Taint("dedicated", "ml"),
)
APPS = ((("app", "x"),), (("app", "y"),))
SPEAKS_OF_X = PodSelector(LabelSelector((Requirement("app", "In", ("x",)),)))
NOT_X = PodSelector(LabelSelector((Requirement("app", "NotIn", ("x",)),)))
RULES = (
    *(PodRule(SPEAKS_OF_X, key) for key in (HOSTNAME, RACK, ZONE)),
    PodRule(PodSelector(LabelSelector(), every_namespace=True), RACK),  # every pod
    PodRule(NOT_X, HOSTNAME),  # pods without any label, too
)
ME = "ns/me"
T = TypeVar("T")


class Pick(Protocol):
    """Chooses one of several."""

    def __call__(self, options: Sequence[T], /) -> T: ...


def by_dice(seed: int) -> Pick:
    """Choose with a seeded generator."""
    return random.Random(seed).choice


def by_hypothesis(data: st.DataObject) -> Pick:
    """Let Hypothesis choose."""
    return lambda options: data.draw(st.sampled_from(options))


def rarely(pick: Pick, usual: T, *rare: T) -> T:
    """Choose the usual value nine times out of ten."""
    return pick((usual,) * (9 * len(rare)) + rare)


# --- nodes ----------------------------------------------------------------------------------------

_VALUES: dict[str, tuple[str | None, ...]] = {
    ZONE: ("z1", "z1", "z2", None),
    BLOCK: ("b0", "b1", "b0", "b1", None),
    RACK: ("r0", "r1", "r0", "r1", "r01", "r10", None),
    "disk": (None, "ssd", "hdd", "7", "x7"),
}


def some_node(pick: Pick, name: NodeName, *, is_open: bool = False) -> Node:
    """Make a node; an open one accepts every pod."""
    labels = {key: pick(values) for key, values in _VALUES.items()}
    has = {str(GPU): pick((8, 4, 3, 2, 4, 0)), str(CPU): pick((16, 8, 16, 3, 0))}
    if rarely(pick, False, True):
        has["pods"] = pick((0, 1, 2, 3))
    closed: dict[str, Any] = {}
    if not is_open:
        closed["taints"] = rarely(pick, (), *((taint,) for taint in TAINTS), TAINTS)
        closed["unschedulable"] = rarely(pick, False, True)
        closed["ready"] = rarely(pick, True, False)
        closed["held_for"] = rarely(pick, "", ME, "ns/you")
    return Node(
        name=name,
        labels=tuple(sorted((key, value) for key, value in labels.items() if value is not None)),
        allocatable=amounts(has),
        **closed,
    )


def some_pod(pick: Pick, key: str, *, with_rules: bool = False) -> NodePod:
    """Make a pod of another workload, perhaps on a node that does not exist."""
    wanted = {str(GPU): pick((1, 0, 2)), str(CPU): pick((1, 0, 2))}
    if rarely(pick, False, True):
        wanted[str(FPGA)] = 1  # which no node has
    rules: dict[str, Any] = {}
    if with_rules:
        rules["labels"] = pick(((), *APPS))
        rules["host_ports"] = rarely(pick, (), (HostPort(80),), (HostPort(80, address="1"),))
        rules["anti_affinity"] = rarely(pick, (), *((rule,) for rule in RULES))
    return NodePod(key=key, node=pick(NAMES), requests=amounts(wanted), **rules)


def some_cluster(
    pick: Pick, *, most: int = 7, is_open: bool = False, with_rules: bool = False
) -> Cluster:
    """Make nodes and the pods on them."""
    names = list(NAMES)
    size = pick((most, most, most - 1, 1, 2))
    chosen = [names.pop(names.index(pick(names))) for _ in range(size)]
    space = "ns" if with_rules else "kube-system"
    return Cluster(
        nodes=[some_node(pick, name, is_open=is_open) for name in chosen],
        pods=[
            some_pod(pick, f"{space}/p{number}", with_rules=with_rules)
            for number in range(pick(range(most)))
        ],
    )


# --- sets of pods ---------------------------------------------------------------------------------

_OPERATORS: tuple[Operator, ...] = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_TOLERATIONS = (
    (),
    (Toleration("spot", "Exists"),),
    (Toleration("spot", "Equal", "2"), Toleration("dedicated", "Equal", "ml", "NoSchedule")),
    (Toleration("", "Exists"),),
    (Toleration("", "Exists", "", "NoExecute"),),
    (Toleration("node.kubernetes.io/unschedulable", "Exists"), Toleration("old", "Exists")),
)


def some_requirement(pick: Pick) -> Requirement:
    """Make one clause of a node affinity term."""
    if rarely(pick, False, True):
        name_operators: tuple[Operator, ...] = ("NotIn", "In")
        return Requirement("metadata.name", pick(name_operators), (pick(NAMES),))
    operator = pick(_OPERATORS)
    values: tuple[str, ...]
    match operator:
        case "Exists" | "DoesNotExist":
            values = ()
        case "Gt" | "Lt":
            values = (pick(("6", "7", "many")),)
        case "In" | "NotIn":
            values = pick((("ssd",), ("hdd", "7"), ("z1",)))
    return Requirement(pick(("disk", ZONE, HOSTNAME)), operator, values)


def _some_term(pick: Pick) -> tuple[Requirement, ...]:
    return tuple(some_requirement(pick) for _ in range(pick((1, 1, 2, 0))))


def some_constraint(pick: Pick) -> Constraint:
    """Make what pods want of nodes."""
    return Constraint(
        selector=rarely(pick, (), (("disk", "ssd"),), ((ZONE, "z1"),)),
        affinity=tuple(_some_term(pick) for _ in range(pick((0, 0, 0, 1, 2)))),
        tolerations=pick(_TOLERATIONS),
        preferred=tuple(
            WeightedTerm(pick((1, 10, 100)), _some_term(pick)) for _ in range(pick((0, 0, 1, 2)))
        ),
    )


def some_requests(pick: Pick) -> Amounts:
    """Make the requests of a pod; a request of 0, and one that no node can meet, are among them."""
    wanted = {str(GPU): pick((1, 1, 2, 3, 0, 4))}
    if pick((False, False, True)):
        wanted[str(CPU)] = pick((1, 0, 2, 3))
    if rarely(pick, False, True):
        wanted[str(FPGA)] = pick((0, 1))
    return amounts(wanted)


_MODES: tuple[Mode, ...] = ("preferred", "unconstrained", "required")
_SCORINGS: tuple[Any, ...] = ("leftover", "binpack", "spread", "fgd", "none", "spare")


def some_placement(pick: Pick) -> Placement:
    """Choose a scoring."""
    return Placement(scoring=pick(_SCORINGS))


def some_demand(
    pick: Pick,
    *,
    name: str = "main",
    most: int = 10,
    takes_all: bool = False,
    levels: tuple[str, ...] | None = None,
) -> Demand:
    """Make a set that only capacities limit, or not even taints and labels of nodes."""
    path = pick(LEVELS) if levels is None else levels
    pods = pick(range(1, most + 1))
    return Demand(
        name=name,
        least=pick(range(pods + 1)) if rarely(pick, False, True) else pods,
        most=pods,
        requests=some_requests(pick),
        constraint=Constraint() if takes_all or pick((True, False)) else some_constraint(pick),
        mode=pick(_MODES),
        levels=path,
        level=pick((*path, *path, "", HOSTNAME)),
        namespace="ns",
    )


def with_rule(pick: Pick, demand: Demand) -> Demand:
    """Give a set one kind of rule between pods, or none."""
    key = pick((HOSTNAME, RACK, ZONE))
    options: dict[str, Any] = {"labels": pick((*APPS, APPS[0]))}
    match pick(("ports", "apart", "spread", "none")):
        case "ports":
            options["host_ports"] = (HostPort(80),)
        case "apart":
            options["anti_affinity"] = (PodRule(SPEAKS_OF_X, key),)
        case "spread":
            rule = SpreadRule(
                selector=SPEAKS_OF_X,
                topology_key=key,
                max_skew=pick((1, 2)),
                min_domains=rarely(pick, 1, 2, 3),
            )
            options["spread"] = (rule,)
        case _:
            pass
    return msgspec.structs.replace(demand, **options)


def with_slices(pick: Pick, demand: Demand) -> Demand:
    """Let pods come in slices of two, no wider than the domain that all of them share."""
    at = demand.levels.index(demand.level) if demand.level in demand.levels else 0
    inner = demand.levels[at:] if demand.level in demand.levels else ()
    level = pick((*inner, HOSTNAME))
    if demand.mode == "unconstrained":
        level = pick((*demand.levels, HOSTNAME))
    return msgspec.structs.replace(demand, slice_size=2, slice_level=level)


def some_pair(pick: Pick, *, most: int = 3, with_rules: bool = False) -> Gang:
    """Make a gang of two sets, now and then in one group that has to share a domain."""
    levels = pick(LEVELS)
    first, second = (
        some_demand(pick, name=name, most=most, levels=levels, takes_all=True) for name in "ab"
    )
    if pick((False, False, True)):
        first = msgspec.structs.replace(first, group="g", mode="required")
        second = msgspec.structs.replace(second, group="g", mode="required", level=first.level)
    if with_rules:
        first, second = with_rule(pick, first), with_rule(pick, second)
    total = pick(range(1, first.most + second.most + 1)) if rarely(pick, False, True) else None
    return Gang(key=ME, demands=(first, second), min_total=total)


replace = msgspec.structs.replace
SECOND = 1000
TOPOLOGY = Topology("racks", (BLOCK, RACK, HOSTNAME))


def some_world(pick: Pick) -> Snapshot:
    """Make queues that may preempt, or not, and flavors with or without a topology."""
    with_topology = pick((False, True))
    flavors = tuple(
        Flavor(
            name=FlavorName(name),
            node_labels=((ZONE, zone),),
            topology=TOPOLOGY.name if with_topology else "",
        )
        for name, zone in (("f", "z1"), ("g", "z2"))
    )
    return Snapshot(
        policy=Policy(
            fair_sharing=rarely(pick, None, FairSharing()),
            placement=replace(some_placement(pick), wait_for_leaving_ms=pick((0, 60 * SECOND))),
        ),
        topologies=(TOPOLOGY,),
        flavors=flavors,
        queues=tuple(_some_queue(pick, name) for name in "ab"),
        local_queues=tuple(
            LocalQueue(key=LocalQueueKey(f"ns/{name}"), queue=QueueName(name)) for name in "ab"
        ),
    )


def _some_queue(pick: Pick, name: str) -> ClusterQueue:
    rules: tuple[PreemptionRules, ...] = (
        PreemptionRules(),
        PreemptionRules(within_queue="LowerPriority", reclaim="Any"),
        PreemptionRules(within_queue="LowerOrNewerEqualPriority", reclaim="LowerPriority"),
    )
    return ClusterQueue(
        name=QueueName(name),
        cohort=CohortName("c"),
        groups=(
            ResourceGroup(
                covered=(GPU,),
                flavors=tuple(
                    FlavorQuota(
                        FlavorName(flavor),
                        (ResourceQuota(resource=GPU, nominal=pick((12, 6, 24, 2))),),
                    )
                    for flavor in pick(("fg", "gf", "f"))
                ),
            ),
        ),
        strategy=rarely(pick, "BestEffortFIFO", "StrictFIFO"),
        namespace_selector=LabelSelector(),
        preemption=pick(rules),
    )


def _some_wish(pick: Pick) -> TopologyRequest | None:
    wishes: tuple[TopologyRequest | None, ...] = (
        None,
        None,
        TopologyRequest("preferred", RACK),
        TopologyRequest("required", RACK),
        TopologyRequest("required", BLOCK),
        TopologyRequest("required", HOSTNAME),
        TopologyRequest("unconstrained"),
        TopologyRequest("required", BLOCK, slice_level=RACK, slice_size=2),
        TopologyRequest("unconstrained", "", slice_level=HOSTNAME, slice_size=2),
        TopologyRequest("preferred", "", slice_level=RACK, slice_size=2),
        TopologyRequest("preferred", "", slice_level="example.com/unknown", slice_size=2),
        TopologyRequest("required", RACK, slice_level="example.com/unknown", slice_size=2),
    )
    return pick(wishes)


def _some_rules(pick: Pick) -> dict[str, Any]:
    key = pick((HOSTNAME, RACK))
    spread = SpreadRule(selector=SPEAKS_OF_X, topology_key=key)
    choices: tuple[dict[str, Any], ...] = (
        {"host_ports": (HostPort(80),)},
        {"anti_affinity": (PodRule(SPEAKS_OF_X, key),)},
        {"affinity_to": (PodRule(SPEAKS_OF_X, key),)},
        {"spread": (spread,)},
    )
    return {"labels": pick((APPS[0], APPS[0], APPS[1])), **pick(choices)}


def some_elastic(pick: Pick, name: str) -> Workload:
    """Make a plain gang that can mostly do with fewer pods; priorities differ often."""
    made = some_workload(pick, name)
    sets = tuple(
        PodSet(
            name=each.name,
            count=each.count,
            min_count=pick((1, 1, 2, None)) if each.count > 1 else None,
            requests=each.requests,
            topology=each.topology,
        )
        for each in made.pod_sets
    )
    least = sum(each.min_count or each.count for each in sets)
    return replace(
        made,
        pod_sets=sets,
        priority=pick((0, 1, 2, 3)),
        min_total=rarely(pick, None, least + 1),
        can_shrink=pick((True, True, True, False)),
    )


def some_workload(pick: Pick, name: str) -> Workload:
    """Make a gang of one or two sets, now and then elastic, with rules or with a topology."""
    sets = []
    for set_name in ("main", "more")[: pick((1, 1, 1, 2))]:
        count = pick((1, 2, 3, 4, 6))
        sets.append(
            PodSet(
                name=set_name,
                count=count,
                min_count=rarely(pick, None, 1, count),
                requests=amounts({GPU: pick((1, 2, 4, 1, 8))}),
                topology=_some_wish(pick),
                node_selector=rarely(pick, (), (("disk", "ssd"),)),
                group=rarely(pick, "", "together"),
                **(_some_rules(pick) if pick((False, False, False, True)) else {}),
            )
        )
    return Workload(
        key=WorkloadKey(f"ns/{name}"),
        uid=name,
        queue=LocalQueueKey(f"ns/{pick('ab')}"),
        pod_sets=tuple(sets),
        priority=pick((0, 0, 1, 2)),
        created_at=Instant(pick((0, 1, 2, 3)) * SECOND),
        min_total=rarely(pick, None, sum(each.count for each in sets)),
        can_shrink=pick((False, True)),
    )


def _grown(pick: Pick, old: Workload, name: str) -> Workload:
    """Make the next slice of an elastic job, with more pods than the one it replaces."""
    first, *rest = old.pod_sets
    more = replace(first, count=first.count + pick((1, 2)), min_count=None)
    return replace(
        old,
        key=WorkloadKey(f"ns/{name}"),
        uid=name,
        pod_sets=(more, *(replace(each, min_count=None) for each in rest)),
        replaces=old.key,
        min_total=None,
    )


class Story:
    """One cluster, and what happens to it."""

    def __init__(self, pick: Pick, *, elastic: bool = False) -> None:
        """Begin with some nodes; with `elastic`, most gangs can be shrunk."""
        self.pick = pick
        self.some_workload = some_elastic if elastic else some_workload
        self.now = Instant(100 * SECOND)
        self.state: ClusterState = restore(replace(some_world(pick), now=self.now))
        self.number = 0
        for name in NAMES[: pick((5, 4, 6, 2))]:
            self.state.apply(changes.NodeSet(some_node(pick, name, is_open=True)))
        if elastic:
            for queue in [*self.state.config.queues.values()]:
                rules = PreemptionRules(
                    within_queue=pick(("LowerPriority", "LowerOrNewerEqualPriority")),
                    reclaim=pick(("Any", "LowerPriority")),
                )
                self.state.apply(changes.QueueSet(replace(queue, preemption=rules)))

    def happen(self) -> None:
        """Let one thing happen."""
        pick, state = self.pick, self.state
        self.number += 1
        match pick(("submit", "submit", "submit", "node", "pod", "end", "cycle", "leave", "grow")):
            case "submit":
                state.apply(changes.WorkloadWaits(self.some_workload(pick, f"w{self.number}")))
            case "node":
                name = pick(NAMES)
                if pick((True, True, False)):
                    state.apply(changes.NodeSet(some_node(pick, name)))
                else:
                    state.apply(changes.NodeGone(name))
            case "pod":
                key = f"ns/pod{pick(range(3))}"
                if pick((True, False)):
                    pod = some_pod(pick, key, with_rules=True)
                    leaves_at = pick((None, self.now + 30 * SECOND))
                    state.apply(changes.PodOnNode(replace(pod, leaves_at=leaves_at)))
                else:
                    state.apply(changes.PodGone(key))
            case "end":
                if state.running:
                    state.apply(changes.WorkloadGone(pick(sorted(state.running))))
            case "grow":
                if state.running:
                    old = state.running[pick(sorted(state.running))].admitted.workload
                    state.apply(changes.WorkloadWaits(_grown(pick, old, f"w{self.number}")))
            case "cycle":
                state_laws.carried_out(state, self.decide())
            case _:
                for key in sorted(k for k, each in state.running.items() if each.admitted.evicting):
                    leave(state, key, self.now)
                for key in sorted(k for k, each in state.running.items() if each.admitted.keeps):
                    give_up(state, key)

    def decide(self) -> Any:
        """Decide, and demand that the books of nodes are afterwards what they were."""
        before = bytes_of(self.state.nodes.occupancy)
        made = state_laws.decided(self.state, self.now)
        assert bytes_of(self.state.nodes.occupancy) == before, "deciding left pods on nodes"
        return made

    def check(self) -> None:
        """Demand that a restored state has the same books of nodes, and decides alike."""
        state_laws.check_snapshot(self.state, self.now)
        state_laws.check_explanations(self.state)

    def settle(self) -> None:
        """Run cycles until nothing changes, and demand that no workload sleeps that could start."""
        while state_laws.carried_out(self.state, self.decide()):
            self.number += 1
            assert self.number < state_laws.MOST_CYCLES, "the cycles do not end"
        self.check()
        tree = SnapshotIndex(snapshot(self.state)).tree
        roots = {tree.root(queue_node(name)) for name in self.state.queues}
        state_laws.check_nothing_was_missed(self.state, self.now, grown=roots)
