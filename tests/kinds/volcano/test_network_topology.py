"""Switches as labels of the nodes below them."""

from __future__ import annotations

import pytest

from tests.support.manifests import FakeContext, problems, read, sound
from unisono.engine.model.node import Topology
from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.volcano.network_topology import NetworkTopology, in_blocks, topology_of

TIER = "unisono.dev/hypernode-tier-"


def hypernode(name: str, tier: int, *members: str) -> str:
    listed = ", ".join(f"{{{member}}}" for member in members)
    return (
        f"apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\n"
        f"spec: {{tier: {tier}, members: [{listed}]}}\n"
    )


def exact(name: str, type_: str = "Node") -> str:
    return f"type: {type_}, selector: {{exactMatch: {{name: {name}}}}}"


def regex(pattern: str, type_: str = "Node") -> str:
    return f"type: {type_}, selector: {{regexMatch: {{pattern: '{pattern}'}}}}"


def node(name: str, rack: str = "") -> str:
    labels = f", labels: {{rack: {rack}}}" if rack else ""
    return f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}{labels}}}\n"


def labels(*texts: str) -> dict[str, dict[str, str]]:
    nodes = sound(*texts).snapshot.nodes
    return {
        one.name: {key.removeprefix(TIER): value for key, value in one.labels if TIER in key}
        for one in nodes
    }


NODES = (node("n0", "a"), node("n1", "a"), node("n2", "b"), node("other"))


def test_every_tier_is_a_label() -> None:
    made = labels(
        *NODES,
        hypernode("s0", 1, exact("n0"), exact("n1")),
        hypernode("s1", 1, exact("n2"), exact("gone")),
        hypernode("top", 2, exact("s0", "HyperNode"), regex("^s[1-9]", "HyperNode")),
    )
    assert made == {
        "n0": {"1": "s0", "2": "top"},
        "n1": {"1": "s0", "2": "top"},
        "n2": {"1": "s1", "2": "top"},
        "other": {},
    }


def test_members_are_found_by_pattern_or_label() -> None:
    by_pattern = labels(*NODES, hypernode("s", 1, regex("^n[01]$")))
    by_label = labels(
        *NODES, hypernode("s", 1, "type: Node, selector: {labelMatch: {matchLabels: {rack: a}}}")
    )
    assert by_pattern == by_label == {"n0": {"1": "s"}, "n1": {"1": "s"}, "n2": {}, "other": {}}


def test_of_several_hypernodes_of_a_tier_the_first_by_name_counts() -> None:
    texts = (hypernode("b", 1, exact("n0")), hypernode("a", 1, exact("n0")))
    assert labels(node("n0"), *texts) == labels(node("n0"), *texts[::-1]) == {"n0": {"1": "a"}}


def test_hypernodes_in_a_circle_end_somewhere() -> None:
    made = labels(
        node("n0"),
        hypernode("a", 1, exact("n0"), exact("b", "HyperNode"), exact("a", "HyperNode")),
        hypernode("b", 2, exact("a", "HyperNode")),
    )
    assert made == {"n0": {"1": "a", "2": "b"}}


def test_they_make_a_topology_with_the_widest_tier_first() -> None:
    racks = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata: {name: racks}\n"
        "spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}\n"
    )
    made = sound(racks, hypernode("a", 1), hypernode("b", 10), hypernode("c", 2)).snapshot
    assert made.topologies == (
        Topology("racks", ("rack", "kubernetes.io/hostname")),
        Topology("hypernodes", (f"{TIER}10", f"{TIER}2", f"{TIER}1")),
    )
    assert sound(racks).snapshot.topologies[1:] == ()
    taken = racks.replace("name: racks", "name: hypernodes")
    names = [one.name for one in sound(taken, hypernode("a", 1)).snapshot.topologies]
    assert names == ["hypernodes", "unisono.dev/hypernodes"]


@pytest.mark.parametrize(
    ("member", "path", "message"),
    [
        (
            "type: Node",
            "selector",
            "needs exactly one of exactMatch, regexMatch and labelMatch",
        ),
        (
            "type: Node, selector: {exactMatch: {name: a}, regexMatch: {pattern: a}}",
            "selector",
            "needs exactly one of exactMatch, regexMatch and labelMatch",
        ),
        (regex("(a"), "selector.regexMatch.pattern", '"(a" is not a regular expression'),
        (
            "type: HyperNode, selector: {labelMatch: {}}",
            "selector.labelMatch",
            "only nodes can be matched by their labels",
        ),
        (
            "type: Node, selector: {labelMatch: {matchExpressions: [{key: a, operator: In}]}}",
            "selector.labelMatch.matchExpressions[0].values",
            "In needs at least one value",
        ),
        ("type: Rack", "type", 'must be one of "HyperNode", "Node", not the string "Rack"'),
    ],
)
def test_faults(member: str, path: str, message: str) -> None:
    assert problems(hypernode("h", 1, member)) == [(f"spec.members[0].{path}", message)]


def test_a_tier_is_required() -> None:
    text = hypernode("h", 1).replace("tier: 1, ", "")
    assert problems(text) == [("spec.tier", "is required")]
    assert problems(hypernode("h", -1)) == [("spec.tier", "is -1; it must be at least 0")]


def hypernodes(*tiers: int) -> tuple[object, ...]:
    return tuple(
        read(
            "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\n"
            f"metadata: {{name: h{tier}}}\nspec: {{tier: {tier}, tierName: name-{tier}}}\n"
        )
        for tier in tiers
    )


def asked(
    topology: NetworkTopology, *tiers: int, has_nodes: bool = False
) -> tuple[TopologyRequest | None, list[tuple[str, str, str]]]:
    node = (read("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"),) if has_nodes else ()
    context = FakeContext(others=(*hypernodes(*tiers), *node))
    made = topology_of(topology, "spec.networkTopology", context)
    return made, [(one.code, one.path, one.message) for one in context.notes.warnings]


def test_nothing_asked() -> None:
    assert topology_of(None, "x", FakeContext()) is None


@pytest.mark.parametrize("mode", ["hard", ""])
@pytest.mark.parametrize(
    ("allowed", "level"),
    [(1, "1"), (2, "1"), (3, "3"), (9, "3")],
)
def test_hard_means_below_one_hypernode_of_the_tier(mode: str, allowed: int, level: str) -> None:
    # There is no tier 2: a gang that may cross it gets the next lower one that exists.
    topology = NetworkTopology(mode="hard" if mode else "", highest_tier_allowed=allowed)
    assert asked(topology, 1, 3) == (TopologyRequest("required", TIER + level), [])


def test_a_tier_can_be_named() -> None:
    topology = NetworkTopology(highest_tier_name="name-3")
    assert asked(topology, 1, 3) == (TopologyRequest("required", TIER + "3"), [])


def test_soft_prefers_the_narrowest_tier() -> None:
    for topology in (
        NetworkTopology(mode="soft"),
        NetworkTopology(mode="soft", highest_tier_allowed=3),
    ):
        assert asked(topology, 3, 1) == (TopologyRequest("preferred", TIER + "1"), [])
    # Without HyperNodes the levels are those that nodes are labelled with.
    assert asked(NetworkTopology(mode="soft")) == (TopologyRequest("preferred", ""), [])


def test_scenario_27_hard_without_a_tier_is_a_wish_with_a_warning() -> None:
    made, warnings = asked(NetworkTopology(mode="hard"), 1, 2)
    assert made == TopologyRequest("preferred", TIER + "1")
    assert warnings == [
        (
            "NetworkTopologyWithoutTier",
            "spec.networkTopology",
            "names no tier; the pods only prefer to be close to each other",
        )
    ]


def test_a_tier_that_does_not_exist_stays_a_demand() -> None:
    low = NetworkTopology(highest_tier_allowed=0)
    assert asked(low, 1) == (TopologyRequest("required", TIER + "0"), [])
    made, warnings = asked(low, 1, has_nodes=True)
    assert made == TopologyRequest("required", TIER + "0")
    assert [(code, message) for code, _, message in warnings] == [
        ("TierNotFound", "there is no HyperNode of tier 0 or lower, so no node will do")
    ]
    made, warnings = asked(NetworkTopology(highest_tier_name="rack"), 1, has_nodes=True)
    assert made == TopologyRequest("required", TIER + "rack")
    assert [message for _, _, message in warnings] == [
        'there is no HyperNode of tier "rack", so no node will do'
    ]


def test_blocks_are_held_together_only_by_force() -> None:
    hard, soft = TopologyRequest("required", "leaf"), TopologyRequest("preferred", "leaf")
    whole = TopologyRequest("required", "spine")
    assert in_blocks(None, None, 4) is None
    assert in_blocks(whole, None, 4) == whole
    assert in_blocks(None, hard, 4) == TopologyRequest("preferred", "leaf", "leaf", 4)
    assert in_blocks(whole, hard, 4) == TopologyRequest("required", "spine", "leaf", 4)
    assert in_blocks(None, soft, 4) == soft
    assert in_blocks(whole, soft, 4) == whole
