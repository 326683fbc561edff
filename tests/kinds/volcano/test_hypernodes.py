"""Switches as labels of the nodes below them."""

from __future__ import annotations

import pytest

from tests.support.manifests import problems, sound
from unisono.engine.model.node import Topology

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
