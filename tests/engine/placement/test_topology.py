"""Views put nodes in topology order, so that every domain is one slice of positions."""

from __future__ import annotations

import pytest

from tests.support.placement_builders import BLOCK, RACK, cluster_t, node, table_of
from unisono.engine.model.node import HOSTNAME
from unisono.engine.placement.topology import View, make_view
from unisono.engine.state.node_table import NodeTable, natural


def names(table: NodeTable, view: View) -> list[str]:
    return [str(name) for name in table.names(view.rows)]


def domains(table: NodeTable, view: View, level: int) -> dict[str, list[str]]:
    here = view.levels[level]
    order = names(table, view)
    return {
        view.name(level, number, table): order[start:end]
        for number, (start, end) in enumerate(zip(here.starts, here.ends, strict=True))
    }


def test_positions_follow_the_levels_whatever_the_order_of_arrival() -> None:
    table = table_of(*cluster_t())
    view = make_view(table, (BLOCK, RACK))
    assert names(table, view) == [f"b{b}r{r}n{n}" for b in (0, 1) for r in (0, 1) for n in (0, 1)]
    assert domains(table, view, 0) == {
        "b0": ["b0r0n0", "b0r0n1", "b0r1n0", "b0r1n1"],
        "b1": ["b1r0n0", "b1r0n1", "b1r1n0", "b1r1n1"],
    }
    # Both blocks have a rack r0; they are two domains.
    assert list(domains(table, view, 1)) == ["b0/r0", "b0/r1", "b1/r0", "b1/r1"]
    assert view.levels[1].domain_of.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_rows_and_positions_are_inverse() -> None:
    table = table_of(*cluster_t())
    table.drop(table.nodes[3].name)  # type: ignore[union-attr]  # no pod has left yet
    view = make_view(table, (RACK,))
    assert view.position_of[view.rows].tolist() == list(range(7))
    assert int(view.position_of[3]) == -1


def test_without_levels_names_decide_and_numbers_count() -> None:
    table = table_of(*(node(name) for name in ("n10", "n9", "n1", "m2", "n01")))
    assert names(table, make_view(table, ())) == ["m2", "n01", "n1", "n9", "n10"]


@pytest.mark.parametrize("arrival", [("r10", "r2", "r1"), ("r1", "r10", "r2")])
def test_numbers_in_label_values_count_too(arrival: tuple[str, ...]) -> None:
    table = table_of(*(node(f"of-{rack}", 8, {RACK: rack}) for rack in arrival))
    assert names(table, make_view(table, (RACK,))) == ["of-r1", "of-r2", "of-r10"]


def test_nodes_without_the_label_are_a_domain_that_cannot_be_requested() -> None:
    table = table_of(node("a", 8, {RACK: "r"}), node("bare"), node("z", 8, {RACK: "r"}))
    view = make_view(table, (RACK,))
    assert domains(table, view, 0) == {"-": ["bare"], "r": ["a", "z"]}
    assert view.levels[0].labelled.tolist() == [False, True]


def test_the_hostname_is_a_level_like_any_other_even_without_its_label() -> None:
    table = table_of(node("b"), node("a", 8, {HOSTNAME: "z"}))
    view = make_view(table, (HOSTNAME,))
    assert list(domains(table, view, 0)) == ["b", "z"]


def test_an_empty_table_has_an_empty_view() -> None:
    view = make_view(NodeTable(), (RACK,))
    assert view.rows.shape == (0,)
    assert view.levels[0].starts.tolist() == view.levels[0].ends[1:].tolist() == []


def test_natural_order_is_total() -> None:
    in_order = ["m10x2", "m10x10", "n001", "n01", "n1", "n2", "n10"]
    assert sorted(["n1", "n10", "m10x10", "n01", "n2", "m10x2", "n001"], key=natural) == in_order
    assert len({natural(name) for name in in_order}) == len(in_order)
