"""Which domains are tried, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.placement_builders import RACK, demand, node, table_of
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.domains import MOST_DOMAINS, Together, candidate_domains
from unisono.engine.placement.feasibility import Feasibility
from unisono.engine.state.node_table import Integers


def racks(**gpus: int) -> list[Node]:
    return [node(f"of-{rack}", count, {RACK: rack}) for rack, count in gpus.items()]


def tried(
    nodes: list[Node], *group: Demand, level: int = 0, bonus: Integers | None = None
) -> list[str]:
    """Return the first node of each domain that would be tried, in that order."""
    table = table_of(*nodes)
    feasibility = Feasibility(table)
    capacities = [
        feasibility.capacity(each.constraint, each.requests, each.levels) for each in group
    ]
    view = capacities[0].view
    together = Together(group, feasibility, view) if len(group) > 1 else None
    found = candidate_domains(group, capacities, level, bonus, None, together)
    first: list[NodeName] = [
        table.names(capacities[0].view.rows[low : low + 1])[0] for low, _ in found
    ]
    return [str(name) for name in first]


def close(pods: int, gpus: int = 1, **options: Any) -> Demand:
    return demand(pods, gpus, "required", levels=(RACK,), level=RACK, **options)


def test_the_least_to_spare_comes_first_and_too_small_ones_never() -> None:
    nodes = racks(a=8, b=5, c=4, d=5, e=3)
    assert tried(nodes, close(4)) == ["of-c", "of-b", "of-d", "of-a"]


def test_an_elastic_set_goes_where_it_can_be_largest() -> None:
    nodes = racks(a=3, b=9, c=6, d=7)
    assert tried(nodes, close(6, least=2)) == ["of-c", "of-d", "of-b", "of-a"]


def test_liked_domains_come_before_tight_ones() -> None:
    nodes = racks(a=4, b=8, c=8)
    liked = np.array([0, 0, 7])
    assert tried(nodes, close(4), bonus=liked) == ["of-c", "of-a", "of-b"]


def test_every_set_of_a_group_has_to_fit_and_all_of_them_together() -> None:
    nodes = racks(a=4, b=6, c=8)
    first, second = close(4, name="first"), close(1, 4, name="second")
    assert tried(nodes, first, second) == ["of-c"]


def test_nodes_without_the_label_are_no_domain() -> None:
    assert tried([node("bare"), *racks(a=8)], close(1)) == ["of-a"]


def test_beyond_the_last_level_every_node_is_one() -> None:
    nodes = [node("bare", 4), *racks(a=8)]
    one_more = close(1, 4, name="second", least=0)
    assert tried(nodes, close(4), one_more, level=1) == ["bare", "of-a"]


def test_of_single_nodes_one_set_gets_the_tightest_only() -> None:
    """It fits into whatever holds it, so a second one is not evaluated."""
    assert tried([node("bare", 4), *racks(a=8)], close(4), level=1) == ["bare"]
    assert tried([node("bare", 4), *racks(a=8)], close(5), level=1) == ["of-a"]
    assert tried([node("bare", 4), *racks(a=8)], close(9), level=1) == []


def test_sets_that_share_a_node_need_it_to_have_the_sum() -> None:
    nodes = [node("a", 8, more={"cpu": 4}), node("b", 8, more={"cpu": 6}), node("c", 4)]
    pair = close(2, 1, name="x", more={"cpu": 1}), close(2, 2, name="y", more={"cpu": 2})
    assert tried(nodes, *pair, level=1) == ["b"]


def test_only_the_best_are_tried() -> None:
    nodes = racks(**{f"r{i}": 8 + i for i in range(MOST_DOMAINS + 5)})
    assert tried(nodes, close(8)) == [f"of-r{i}" for i in range(MOST_DOMAINS)]


def test_a_gang_that_lacks_something_else_than_gpus_spares_them_for_others() -> None:
    """The tightest have the GPUs, but not the CPUs for both: they do not count among the few."""
    poor = [node(f"p{i}", 8, {RACK: f"p{i}"}, more={"cpu": 3}) for i in range(MOST_DOMAINS)]
    rich = [node(f"r{i}", 9 + i, {RACK: f"r{i}"}, more={"cpu": 4}) for i in range(MOST_DOMAINS + 3)]
    pair = close(2, 2, name="x", more={"cpu": 1}), close(2, 2, name="y", more={"cpu": 1})
    assert tried(poor, *pair) == []
    assert tried([*poor[1:], *rich], *pair) == [f"r{i}" for i in range(MOST_DOMAINS)]
    assert tried([*poor[8:], *rich[:3]], *pair) == ["r0", "r1", "r2"]


def test_a_set_that_needs_nothing_closes_no_domain() -> None:
    table_has_no_fpga = close(1, name="a", least=0, more={"fpga": 1})
    assert tried(racks(a=8), close(4, name="b"), table_has_no_fpga) == ["of-a"]
