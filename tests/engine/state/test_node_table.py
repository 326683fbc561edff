"""Nodes as columns: what is free, which rows changed, and codes for labels and taints."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support.placement_builders import GPU, RACK, node, table_of
from unisono.engine.model.names import PODS, NodeName, ResourceName
from unisono.engine.model.node import HOSTNAME
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.model.selection import Taint
from unisono.engine.state.change_journal import JOURNAL_KEPT, Journal, Move
from unisono.engine.state.node_table import (
    ABSENT,
    BOOKED_TOGETHER,
    JOINED_SHARE,
    Integers,
    NodeTable,
    Rows,
    natural,
)

ONE = amounts({GPU: 1})


def free(table: NodeTable, name: str, resource: str = GPU) -> int:
    column = table.resources[ResourceName(resource)]
    return int(table.free[column, table.row_of[NodeName(name)]])


def test_what_a_node_has_is_free_until_it_is_taken() -> None:
    table = table_of(node("a", 8, more={"cpu": 4}), node("b", 2))
    assert (free(table, "a"), free(table, "a", "cpu"), free(table, "b", "cpu")) == (8, 4, 0)
    assert free(table, "a", PODS) == 110
    rows = np.array([table.row_of[NodeName(name)] for name in ("a", "b")])
    table.take(rows, np.array([3, 1]), amounts({GPU: 2}))
    assert (free(table, "a"), free(table, "b"), free(table, "a", PODS)) == (2, 0, 107)
    table.give_back(rows, np.array([3, 1]), amounts({GPU: 2}))
    assert (free(table, "a"), free(table, "b"), free(table, "a", PODS)) == (8, 2, 110)


def test_taking_and_giving_back_restores_every_byte() -> None:
    table = table_of(*(node(f"n{i}", i) for i in range(5)))
    before = table.free.tobytes()
    rows, counts = np.array([4, 0, 2]), np.array([7, 1, 3])
    table.take(rows, counts, ONE)
    assert table.free.tobytes() != before
    table.give_back(rows, counts, ONE)
    assert table.free.tobytes() == before


def test_a_node_that_changes_keeps_what_is_taken() -> None:
    table = table_of(node("a", 8))
    table.take(np.array([0]), np.array([5]), ONE)
    table.put(node("a", 6))
    assert free(table, "a") == 1
    table.put(node("a", 4))
    assert free(table, "a") == -1
    table.put(node("a", 4, more={"cpu": 3}))
    assert (free(table, "a"), free(table, "a", "cpu")) == (-1, 3)


def test_a_resource_that_no_node_has_may_be_taken_all_the_same() -> None:
    table = table_of(node("a"))
    table.take(np.array([0]), np.array([2]), amounts({"fpga": 3}))
    assert free(table, "a", "fpga") == -6
    table.put(node("a", more={"fpga": 8}))
    assert free(table, "a", "fpga") == 2


def test_nothing_taken_changes_nothing() -> None:
    table = table_of(node("a"))
    before, version = table.free.tobytes(), table.usage.version
    table.take(np.zeros(0, np.intp), np.zeros(0, np.int64), amounts({"fpga": 3}))
    assert (table.free.tobytes(), table.usage.version) == (before, version)


def test_rows_are_kept_for_life_and_then_used_again() -> None:
    table = table_of(*(node(f"n{i}") for i in range(3)))
    table.take(np.array([1]), np.array([8]), ONE)
    table.drop(NodeName("n1"))
    assert table.names(table.in_name_order()) == ["n0", "n2"]
    assert not table.usable[1]
    table.put(node("new", 4))
    assert table.row_of[NodeName("new")] == 1
    assert free(table, "new") == 4
    assert len(table) == 3
    table.drop(NodeName("never there"))
    assert len(table.row_of) == 3


def test_nodes_stay_in_natural_order_as_they_come_and_go() -> None:
    dice = random.Random(1)
    table = NodeTable()
    for turn in range(300):
        coming = dice.randrange(JOINED_SHARE) if turn % 50 == 0 else 1
        for _ in range(coming):
            table.put(node(f"n{dice.randrange(200)}{dice.choice(('', '-a', '-10', '-9'))}"))
        if turn % 3 == 0:
            table.drop(dice.choice([*table.row_of]))
        if turn % 2:
            assert table.names(table.in_name_order()) == sorted(table.row_of, key=natural)
    table.put(node("n0"))
    table.drop(NodeName("n0"))  # before it was asked for
    assert table.names(table.in_name_order()) == sorted(table.row_of, key=natural)


def test_the_same_node_again_is_no_change() -> None:
    table = table_of(node("a"))
    before = table.layout, table.usage.version, table.traits.version
    table.put(node("a"))
    assert (table.layout, table.usage.version, table.traits.version) == before


def test_only_labels_taints_and_cordons_change_the_layout() -> None:
    table = table_of(node("a"))
    layout = table.layout
    table.put(node("a", 4))
    table.put(node("a", 4, ready=False))
    assert table.layout == layout
    for changed in (
        node("a", 4, {RACK: "r"}),
        node("a", 4, {RACK: "r"}, taints=(Taint("spot"),)),
        node("a", 4, {RACK: "r"}, taints=(Taint("spot"),), unschedulable=True),
    ):
        layout = table.layout
        table.put(changed)
        assert table.layout > layout


def test_labels_become_small_integers() -> None:
    table = table_of(node("a", 8, {RACK: "r1"}), node("b"), node("c", 8, {RACK: "r1"}))
    codes, meaning = table.label_codes(RACK)
    assert codes.tolist() == [meaning["r1"], ABSENT, meaning["r1"]]
    table.put(node("b", 8, {RACK: "r2"}))
    table.put(node("d", 8, {RACK: "r1"}))
    codes, meaning = table.label_codes(RACK)
    assert codes.tolist() == [meaning[value] for value in ("r1", "r2", "r1", "r1")]
    table.put(node("a"))
    assert int(table.label_codes(RACK)[0][0]) == ABSENT


@pytest.mark.parametrize("key", [HOSTNAME, "metadata.name"])
def test_every_node_is_known_by_its_name(key: str) -> None:
    table = table_of(node("a"), node("b"))
    codes, meaning = table.label_codes(key)
    assert codes.tolist() == [meaning["a"], meaning["b"]]


def test_a_cordoned_node_repels_like_a_taint() -> None:
    table = table_of(node("a"), node("b", unschedulable=True))
    codes, meaning = table.taint_codes()
    (taint,) = next(taints for taints, code in meaning.items() if code == int(codes[1]))
    assert (taint.key, taint.effect) == ("node.kubernetes.io/unschedulable", "NoSchedule")
    assert int(codes[0]) == meaning[()]


def test_nodes_may_be_held() -> None:
    table = table_of(node("a", held_for="ns/x"), node("b", held_for="ns/y"), node("c"))
    assert table.held_rows("ns/x") == [1]
    assert table.held_rows("ns/z") == [0, 1]
    table.put(node("a"))
    assert table.has_held_rows
    table.drop(NodeName("b"))
    assert table.held_rows("ns/z") == []
    assert not table.has_held_rows


def test_many_nodes_and_resources_fit() -> None:
    table = NodeTable()
    for number in range(200):
        table.put(node(f"n{number}", number, more={f"r{number % 7}": number}))
    assert [free(table, f"n{number}") for number in range(200)] == list(range(200))
    assert free(table, "n199", "r3") == 199
    assert sorted(table.gpu_columns()) == [table.resources[GPU]]


def test_a_journal_says_what_changed_since() -> None:
    journal = Journal()
    journal.note(np.array([3, 1]))
    seen = journal.version
    assert journal.since(seen) is not None
    assert _rows(journal, seen) == []
    journal.note(np.array([1]))
    journal.note(np.array([5]))
    assert _rows(journal, seen) == [1, 5]
    assert _rows(journal, 0) == [1, 3, 5]
    assert _rows(journal, seen - 1) == [1, 5]  # half of a note


def test_a_journal_names_rows_once_even_if_they_came_back() -> None:
    journal = Journal()
    rows = np.array([3, 1])
    for noted in (rows, rows, np.array([1, 7]), rows):
        journal.note(noted)
    found = journal.since(0)
    assert found is not None
    assert sorted(found.tolist()) == [1, 3, 7]
    assert _rows(journal, journal.version - 2) == [1, 3]


def test_what_was_put_back_is_not_looked_at_again() -> None:
    journal = Journal()
    journal.note(np.array([9]))
    before = between = journal.version
    for _ in range(2):  # a trial, twice
        tried = journal.version
        journal.note(np.array([1, 2]))
        between = journal.version
        journal.note(np.array([1, 2]))
        journal.put_back(tried)
    assert _rows(journal, before) == []
    assert _rows(journal, between) == [1, 2]  # a reader in between saw another picture
    journal.note(np.array([4]))
    assert _rows(journal, before) == [4]
    assert _rows(journal, between) == [1, 2, 4]
    assert _rows(journal, before - 1) == [1, 2, 4, 9]


def test_a_pod_that_came_and_went_again_has_changed_nothing() -> None:
    table = table_of(*(node(f"n{number}", 8) for number in range(4)))
    rows, counts = np.array([1, 2]), np.array([1, 3])
    before = table.usage.version
    table.take(rows, counts, ONE)
    between = table.usage.version
    table.give_back(rows, counts, ONE)
    assert _rows(table.usage, before) == []
    assert _rows(table.usage, between) == [1, 2]
    table.take(rows, counts, ONE)
    assert _rows(table.usage, before) == [1, 2]
    assert _rows(table.usage, between) == []
    table.take(rows, np.array([9, 9]), ONE)  # more than there is: counts are made again
    table.give_back(rows, counts, ONE)
    assert _rows(table.usage, before) == [1, 2]
    assert table.usage.moves_since(before, table.columns_of(ONE)) is None


def test_bookings_that_are_written_down_together_are_those_that_were_made() -> None:
    dice, table = random.Random(7), table_of(*(node(f"n{i}", 8) for i in range(6)))
    kinds = [ONE, amounts({GPU: 2}), amounts({"cpu": 3, GPU: 1})]
    plain = {(i, kind): 0 for i in range(6) for kind in kinds}
    booked: list[tuple[Rows, Integers, Amounts, Move | None]] = []
    for _ in range(5 * BOOKED_TOGETHER):
        if booked and dice.random() < 0.5:
            rows, counts, kind, came = booked.pop(dice.randrange(len(booked)))
            table.give_back(rows, counts, kind, came=came if dice.random() < 0.7 else None)
            sign = -1
        else:
            rows = np.array(dice.sample(range(6), dice.randint(1, 3)))
            counts, kind = np.array([dice.randint(1, 2) for _ in rows]), dice.choice(kinds)
            came = table.take(rows, counts, kind, fits=True)
            booked.append((rows, counts, kind, came))
            sign = 1
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            plain[row, kind] += sign * count
        if dice.random() < 0.02:  # a look now and then
            for row in range(6):
                taken = sum(dict(kind).get(GPU, 0) * plain[row, kind] for kind in kinds)
                assert free(table, f"n{row}") == 8 - taken


def test_a_journal_forgets_what_is_long_ago() -> None:
    journal = Journal()
    for number in range(2 * JOURNAL_KEPT):
        journal.note(np.array([number]))
    last = 2 * JOURNAL_KEPT - 1
    assert journal.since(0) is None
    assert _rows(journal, journal.version - 3) == [last - 2, last - 1, last]
    assert len(_rows(journal, journal.version - JOURNAL_KEPT)) == JOURNAL_KEPT


def _rows(journal: Journal, version: int) -> list[int]:
    found = journal.since(version)
    assert found is not None
    return sorted(found.tolist())


def test_labels_that_no_node_has_are_not_remembered() -> None:
    """Each workload may select by other keys: the table must not grow with them."""
    table = table_of(*(node(f"n{i}", 1, labels={"zone": "a"}) for i in range(3)))
    for number in range(1000):
        codes, meaning = table.label_codes(f"example.org/{number}")
        assert (codes.tolist(), meaning) == ([ABSENT] * 3, {})
    assert len(table._labels) == 0
    table.put(node("late", 1, labels={"example.org/1": "x"}))
    codes, meaning = table.label_codes("example.org/1")
    assert meaning == {"x": 1}
    assert codes.tolist() == [ABSENT] * 3 + [1]
