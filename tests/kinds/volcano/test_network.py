"""How close pods must be, in Volcano's words."""

from __future__ import annotations

import pytest

from tests.support.manifests import FakeContext, read
from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.volcano.network import NetworkTopology, in_blocks, topology_of

TIER = "unisono.dev/hypernode-tier-"


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
    # There is no tier 2: whoever may cross it gets the next lower one that exists.
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
