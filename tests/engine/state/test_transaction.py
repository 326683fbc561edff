"""The transaction: many are counted as gone for one search, and then as there again."""

from __future__ import annotations

import random

import pytest

from tests.support.placement_builders import GPU, bytes_of, node, table_of
from unisono.engine.model.names import NodeName
from unisono.engine.model.resources import amounts
from unisono.engine.state.occupancy import Occupancy, PlacedPods, PodIndex
from unisono.engine.state.transaction import Starting, Transaction

NAMES = "abcdef"


def admitted(dice: random.Random, *, labelled: bool) -> Starting:
    """Return pods of one or two requests on some nodes, perhaps on one that is not there."""
    placed_pods = tuple(
        PlacedPods(
            nodes=tuple((NodeName(name), dice.randint(1, 2)) for name in dice.sample("abcdefz", 3)),
            requests=amounts({GPU: dice.randint(0, 2)}),
            labels={"app": "x"} if labelled and dice.random() < 0.3 else {},
        )
        for _ in range(dice.randint(0, 2))
    )
    return Starting((), placed_pods)


def crowded(dice: random.Random, *, labelled: bool) -> tuple[Occupancy, list[Starting]]:
    occupancy = Occupancy(table_of(*(node(name, 8) for name in NAMES)), PodIndex())
    workloads = [admitted(dice, labelled=labelled) for _ in range(10)]
    for one in workloads:
        for placed in one.placed_pods:
            occupancy.occupy(placed)
    return occupancy, workloads


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_lifting_pods_and_putting_them_back_changes_nothing(seed: int, labelled: bool) -> None:
    occupancy, workloads = crowded(random.Random(seed), labelled=labelled)
    plainly, those = crowded(random.Random(seed), labelled=labelled)
    transaction, other = Transaction(occupancy), Transaction(plainly)
    for each, its in ((transaction, workloads), (other, those)):
        for placed in its[0].placed_pods:  # something was booked before
            each.vacate(placed)
    before, moves, version = bytes_of(occupancy), occupancy.moves, occupancy.table.usage.version
    clearing = transaction.clear_nodes(workloads[1:7])
    for one in those[1:7]:
        other.let_go(one)
    assert occupancy.table.free.tobytes() == plainly.table.free.tobytes()
    assert len(occupancy.pod_index.groups) == len(plainly.pod_index.groups)
    assert occupancy.moves > moves
    seen = occupancy.moves
    transaction.fill_nodes(clearing)
    assert bytes_of(occupancy) == before
    assert occupancy.moves > seen
    changed = occupancy.table.usage.since(version)
    assert changed is not None
    assert not len(changed), "nothing has to be evaluated again"
    transaction.rollback()
    for one in workloads:
        for placed in one.placed_pods:
            occupancy.vacate(placed)
    assert occupancy.table.free.tobytes() == occupancy.table.allocatable.tobytes()
