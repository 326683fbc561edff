"""What several sets ask for together, node by node and domain by domain."""

from __future__ import annotations

import numpy as np

from tests.support.placement_builders import RACK, demand, node, table_of
from unisono.engine.model.resources import amounts
from unisono.engine.placement.domains import Together
from unisono.engine.placement.feasibility import Feasibility

# In racks of two: 12 GPUs and 6 CPUs, 10 and 12, and 8 with 12.
NODES = [
    node(f"n{i}", gpus, {RACK: f"r{i // 2}"}, more={"cpu": cpus})
    for i, (gpus, cpus) in enumerate([(8, 3), (4, 3), (6, 6), (4, 6), (8, 12), (0, 0)])
]


def together(*needs: tuple[int, int, int]) -> Together:
    """Sum up sets of so many pods, each with so many GPUs and CPUs."""
    feasibility = Feasibility(table_of(*NODES))
    group = tuple(
        demand(pods, gpus, name=f"set-{number}", more={"cpu": cpus})
        for number, (pods, gpus, cpus) in enumerate(needs)
    )
    return Together(group, feasibility, feasibility.view((RACK,)))


def test_domains_need_the_gpus_for_all() -> None:
    assert together((4, 2, 1), (2, 1, 1)).gpus_in(np.arange(3), 0).tolist() == [True, True, False]
    assert together((4, 2, 1), (3, 1, 1)).gpus_in(np.array([0, 1]), 0).tolist() == [True, False]


def test_and_everything_else() -> None:
    sets = together((4, 2, 1), (3, 1, 1))
    assert sets.others_in(np.arange(3), 0).tolist() == [False, True, True]
    assert [sets.others_within(low, low + 2) for low in (0, 2, 4)] == [False, True, True]


def test_a_node_needs_all_of_it_alone() -> None:
    sets = together((2, 2, 1), (2, 1, 1))
    assert sets.on_nodes(np.arange(6)).tolist() == [False, False, True, False, True, False]


def test_what_no_node_has_is_not_summed_up() -> None:
    feasibility = Feasibility(table_of(*NODES))
    group = (demand(1), demand(1, name="b", more={"never seen": 1}))
    sets = Together(group, feasibility, feasibility.view((RACK,)))
    assert sets.others_within(0, 2)


def test_more_than_is_there_counts_as_nothing_left() -> None:
    table = table_of(*NODES)
    table.take(np.array([0]), np.array([1]), amounts({"cpu": 100}))
    feasibility = Feasibility(table)
    group = (demand(1, more={"cpu": 1}), demand(2, name="b", more={"cpu": 1}))
    sets = Together(group, feasibility, feasibility.view((RACK,)))
    assert sets.others_within(0, 2)
    assert sets.others_in(np.arange(1), 0).tolist() == [True]
