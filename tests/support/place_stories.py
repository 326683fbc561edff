"""A cluster with nodes to which things happen: gangs come and go, nodes join and die, cycles run.

Two queues share a cohort; each of two flavors has nodes of its own. Every decision on the way
obeys the laws of `tests.support.laws`, the auditor among them, and leaves the books as they were.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tests.support import laws
from tests.support.place_books import bytes_of
from tests.support.place_worlds import (
    APPS,
    BLOCK,
    GPU,
    NAMES,
    RACK,
    SPEAKS_OF_X,
    ZONE,
    Pick,
    rarely,
    some_node,
    some_placement,
    some_pod,
)
from unisono.engine.audit.quota_tree import queue_node
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.cluster import restore
from unisono.engine.dry_run import give_up, leave
from unisono.engine.model.names import (
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    QueueName,
    WorkloadKey,
)
from unisono.engine.model.node import HOSTNAME, HostPort, PodRule, SpreadRule, Topology
from unisono.engine.model.policy import FairSharing, Policy
from unisono.engine.model.queue import (
    ClusterQueue,
    Flavor,
    FlavorQuota,
    LocalQueue,
    PreemptionRules,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import PodSet, TopologyRequest, Workload
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

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
        """Begin with some nodes; with `elastic`, those who come can mostly be made to shrink."""
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
                    old = state.running[pick(sorted(state.running))].holding.workload
                    state.apply(changes.WorkloadWaits(_grown(pick, old, f"w{self.number}")))
            case "cycle":
                laws.carried_out(state, self.decide())
            case _:
                for key in sorted(k for k, each in state.running.items() if each.holding.evicting):
                    leave(state, key, self.now)
                for key in sorted(k for k, each in state.running.items() if each.holding.keeps):
                    give_up(state, key)

    def decide(self) -> Any:
        """Decide, and demand that the books of nodes are afterwards what they were."""
        before = bytes_of(self.state.nodes.occupancy)
        made = laws.decided(self.state, self.now)
        assert bytes_of(self.state.nodes.occupancy) == before, "deciding left pods on nodes"
        return made

    def check(self) -> None:
        """Demand that a restored state has the same books of nodes, and decides alike."""
        laws.check_snapshot(self.state, self.now)
        laws.check_explanations(self.state)

    def settle(self) -> None:
        """Run cycles until nothing changes, and demand that nobody sleeps who could start."""
        while laws.carried_out(self.state, self.decide()):
            self.number += 1
            assert self.number < laws.MOST_CYCLES, "the cycles do not end"
        self.check()
        tree = SnapshotIndex(snapshot(self.state)).tree
        roots = {tree.root(queue_node(name)) for name in self.state.queues}
        laws.check_nothing_was_missed(self.state, self.now, grown=roots)
