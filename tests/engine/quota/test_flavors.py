"""Eligible flavors: what the pods of a gang could take, by labels, taints and affinity (§7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.quota_builders import group, pods, pool, queue
from unisono.engine.model.explanation import FlavorMismatch, ResourceNotCovered
from unisono.engine.model.names import FlavorName
from unisono.engine.model.queue import ClusterQueue, Flavor
from unisono.engine.model.selection import Requirement, Taint, Toleration
from unisono.engine.model.workload import PodSet
from unisono.engine.quota.flavors import EligibleFlavors, eligible_flavors
from unisono.engine.state.quota_tree import Node, set_groups

X86 = Flavor(name=FlavorName("x86"), node_labels=(("arch", "x86"),))
ARM = Flavor(name=FlavorName("arm"), node_labels=(("arch", "arm"),))
TAINTED = Flavor(name=FlavorName("tainted"), node_taints=(Taint("gpu", "only"),))
FLAVORS = {each.name: each for each in (X86, ARM, TAINTED)}
THREE = queue("q", groups=(group({name: {"gpu": "4"} for name in ("x86", "arm", "tainted")}),))


def eligible(*pod_sets: PodSet, of: ClusterQueue = THREE, **options: Any) -> EligibleFlavors:
    node = Node("q", is_queue=True)
    set_groups(node, of.groups)
    flavors = {
        each.flavor: FLAVORS.get(each.flavor, Flavor(name=each.flavor))
        for group in of.groups
        for each in group.flavors
    }
    options.setdefault("ignore_undeclared", False)
    return eligible_flavors(pod_sets, of, node, flavors, **options)


def usable(made: EligibleFlavors) -> list[list[str]]:
    """Return the flavors that each choice may take."""
    return [
        [each.flavor for each in choice.options if not each.mismatch] for choice in made.choices
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["x86", "arm"]),
        ({"node_selector": (("arch", "arm"),)}, ["arm"]),
        # A key that the flavor does not have says nothing about it.
        ({"node_selector": (("zone", "z1"),)}, ["x86", "arm"]),
        ({"tolerations": (Toleration("gpu", "Exists"),)}, ["x86", "arm", "tainted"]),
        ({"tolerations": (Toleration("gpu", "Equal", "other"),)}, ["x86", "arm"]),
        ({"affinity": ((Requirement("arch", "In", ("arm",)),),)}, ["arm"]),
        # Terms are ORed, and one that says nothing about the flavor's keys lets all of it match.
        (
            {
                "affinity": (
                    (Requirement("arch", "In", ("arm",)),),
                    (Requirement("zone", "Exists"),),
                )
            },
            ["x86", "arm"],
        ),
        ({"affinity": ((Requirement("arch", "NotIn", ("x86",)),),)}, ["arm"]),
    ],
)
def test_scenario_22(options: dict[str, Any], expected: list[str]) -> None:
    assert usable(eligible(pods(1, {"gpu": 1}, **options))) == [expected]


def test_a_flavor_may_bring_its_own_tolerations() -> None:
    tolerant = Flavor(
        name=FlavorName("t"),
        node_taints=TAINTED.node_taints,
        tolerations=(Toleration("gpu", "Exists"),),
    )
    node = Node("q", is_queue=True)
    of = queue("q", groups=(group({"t": {"gpu": "4"}}),))
    made = eligible_flavors(
        (pods(1, {"gpu": 1}),), of, node, {tolerant.name: tolerant}, ignore_undeclared=False
    )
    assert usable(made) == [["t"]]


def test_a_flavor_without_an_object_matches_nothing() -> None:
    made = eligible_flavors(
        (pods(1, {"gpu": 1}),), THREE, Node("q", is_queue=True), {}, ignore_undeclared=False
    )
    whys = [option.mismatch for option in made.choices[0].options]
    assert whys[0] == FlavorMismatch(pod_set="main", flavor=FlavorName("x86"), why="missing")


def test_an_uncovered_resource_is_refused_unless_ignored() -> None:
    """Scenario 23."""
    wants = pods(1, {"gpu": 1, "fpga": 1})
    assert [type(each) for each in eligible(wants).refusals] == [ResourceNotCovered]
    assert not eligible(wants, ignore_undeclared=True).refusals
    assert not eligible(pods(1, {"gpu": 1, "fpga": 0})).refusals


def test_each_group_is_a_choice_of_its_own() -> None:
    """Scenario 20: cpu and memory go together, GPUs by themselves."""
    of = queue(
        "q",
        groups=(
            group({"small": {"cpu": "8", "memory": "16"}, "big": {"cpu": "8", "memory": "64"}}),
            group({"h100": {"gpu": "4"}}),
        ),
    )
    made = eligible(pods(2, {"cpu": 2, "memory": 12, "gpu": 1}), of=of)
    assert usable(made) == [["small", "big"], ["h100"]]
    together = [[resource for _, resource in choice.resources] for choice in made.choices]
    assert together == [["cpu", "memory"], ["gpu"]]


def test_pod_sets_of_one_group_choose_together() -> None:
    pair = pods(1, {"gpu": 1}, "a", group="g"), pods(1, {"gpu": 1}, "b", group="g")
    only_arm = pods(1, {"gpu": 1}, "c", group="g", node_selector=(("arch", "arm"),))
    assert usable(eligible(*pair, only_arm)) == [["arm"]]
    assert usable(eligible(*pair, pods(1, {"gpu": 1}, "d"))) == [["x86", "arm"], ["x86", "arm"]]


def test_a_queue_that_counts_pods_charges_one_for_each() -> None:
    of = queue("q", groups=(group({"x86": {"cpu": "100", "pods": "3"}}),))
    made = eligible(pods(4, {"cpu": 1}), of=of)
    charged = {
        cell.flavor_resource.resource: amount
        for _, cell, amount in made.choices[0].options[0].per_pod
    }
    assert charged == {"cpu": 1, "pods": 1}


def test_what_a_flavor_does_not_list_is_not_charged() -> None:
    """Spec §2.4: t4 lists only GPUs, so its CPUs are unmetered."""
    of = queue("q", groups=(group({"x86": {"cpu": "8", "gpu": "4"}, "arm": {"gpu": "4"}}),))
    options = eligible(pods(1, {"cpu": 2, "gpu": 1}), of=of).choices[0].options
    charged = [
        [cell.flavor_resource.resource for _, cell, _ in option.per_pod] for option in options
    ]
    assert charged == [["cpu", "gpu"], ["gpu"]]


def test_all_flavors_of_a_pool_charge_one_account() -> None:
    of = queue("q", groups=(pool(["x86", "arm"], "8"),))
    options = eligible(pods(1, {"gpu": 1}), of=of).choices[0].options
    assert {cell.flavor_resource.flavor for option in options for _, cell, _ in option.per_pod} == {
        "pool:arm+x86"
    }
