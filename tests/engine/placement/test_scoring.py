"""Which of equally good nodes: what users prefer first, then the operator's scoring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.placement_builders import GPU, RACK, demand, node, place, placer_of
from unisono.engine.model.names import ResourceName
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Requirement, Taint
from unisono.engine.model.workload import WeightedTerm
from unisono.engine.placement.demand import Constraint, Demand
from unisono.engine.placement.scoring import gpu_request

SSD = Requirement("disk", "In", ("ssd",))
LIKES_SSD = Constraint(preferred=(WeightedTerm(1, (SSD,)),))


def chosen(wanted: Demand, *nodes: Node, used: dict[str, int] | None = None, **options: Any) -> str:
    """Return the one node that a pod goes to, after some GPUs of others were taken."""
    placer = placer_of(*nodes, **options)
    table = placer.feasibility.table
    for name, gpus in (used or {}).items():
        row = np.array([[str(each.name) for each in nodes].index(name)])
        table.take(row, np.array([1]), amounts({GPU: gpus}))
    (where,) = place(placer, wanted)["main"]
    return where


def test_leftover_leaves_no_gpu_stranded() -> None:
    # Both take one pod of three GPUs; on `five` two would be left over, on `four` only one.
    nodes = (node("five", 5), node("four", 4))
    assert chosen(demand(1, 3), *nodes) == "four"
    assert chosen(demand(1, 3, "preferred", level=HOSTNAME), *nodes) == "four"
    assert chosen(demand(1, 3), *nodes, scoring="none") == "five"


def test_binpack_and_spread_score_by_what_is_used() -> None:
    # All of them take two more pods.
    nodes = (node("b-empty", 2), node("a-half", 4), node("c-busy", 8))
    used = {"a-half": 2, "c-busy": 6}
    assert chosen(demand(1), *nodes, used=used, scoring="binpack") == "c-busy"
    assert chosen(demand(1), *nodes, used=used, scoring="spread") == "b-empty"
    assert chosen(demand(1), *nodes, used=used, scoring="none") == "a-half"


def test_fgd_takes_the_node_where_typical_pods_lose_least() -> None:
    # A pod of three GPUs fits once on each. Two free GPUs of five are fewer in pieces (5 to 2: one
    # and three quarters less one) than one of four (one less three quarters).
    nodes = (node("a-four", 4), node("b-five", 5))
    assert chosen(demand(1, 3), *nodes, scoring="fgd") == "b-five"
    assert chosen(demand(1, 3), *nodes, scoring="leftover") == "a-four"


@pytest.mark.parametrize("scoring", ["leftover", "binpack", "spread", "fgd", "none"])
def test_what_users_prefer_outweighs_every_scoring(scoring: str) -> None:
    # Without preferences each scoring would have a reason to take `plain`, the first.
    nodes = (node("plain", 4), node("solid", 4, {"disk": "ssd"}))
    assert chosen(demand(1, 4), *nodes, scoring=scoring) == "plain"
    liked = demand(1, 4, constraint=LIKES_SSD)
    assert chosen(liked, *nodes, scoring=scoring) == "solid"


def test_scenario_13_soft_taints_are_chosen_last_among_equals() -> None:
    soft = node("a-soft", 8, {"disk": "ssd"}, taints=(Taint("old", "", "PreferNoSchedule"),))
    assert chosen(demand(1, 8), soft, node("b-fine")) == "b-fine"
    strong = Constraint(preferred=(WeightedTerm(100, (SSD,)),))
    assert chosen(demand(1, 8, constraint=strong), soft, node("b-fine")) == "b-fine"
    assert chosen(demand(1, 8), soft) == "a-soft"


def test_what_users_prefer_decides_about_domains_too() -> None:
    nodes = [
        node(f"{rack}{i}", 8, {RACK: rack, **({"disk": "ssd"} if rack == "q" else {})})
        for rack in "pq"
        for i in (0, 1)
    ]
    wanted = demand(2, 8, "required", levels=(RACK,), level=RACK, constraint=LIKES_SSD)
    assert place(placer_of(*nodes), wanted)["main"] == {"q0": 1, "q1": 1}


def test_the_gpu_request() -> None:
    assert gpu_request(demand(1, 2, more={"cpu": 3})) == (GPU, 2)
    assert gpu_request(demand(1, 0, more={"cpu": 3}))[1] == 0
    mig = ResourceName("nvidia.com/mig-1g.5gb")
    assert gpu_request(demand(1, 0, more={mig: 1})) == (mig, 1)
