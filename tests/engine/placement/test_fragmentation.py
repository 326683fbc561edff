"""Fragmentation: free GPUs that typical pods could not use where they are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.placement_builders import GPU, node, table_of
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.placement.scoring import fragmentation, fragmented_gpus
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.pod_mix import PRIOR, TypicalPod


def of(table: NodeTable, *mix: TypicalPod, taken: Amounts = ()) -> list[int]:
    rows = np.arange(len(table))
    found = fragmentation(table, rows, table.resources[GPU], mix or PRIOR, taken)
    return [int(each) for each in found]


@pytest.mark.parametrize(
    ("gpus", "milli"),
    # Jobs of 1, 2, 4 and 8 are equally likely and leave n % 1, n % 2, n % 4 and n % 8 unused.
    [(0, 0), (1, 750), (2, 1000), (3, 250 * (1 + 3 + 3)), (4, 1000), (7, 2750), (8, 0)],
)
def test_the_prior(gpus: int, milli: int) -> None:
    assert of(table_of(node("n", gpus))) == [milli]


def test_gpus_without_cpu_are_stranded() -> None:
    table = table_of(node("n", 8, more={"cpu": 3}))
    hungry = TypicalPod(1, amounts({"cpu": 1}), 1000)
    assert of(table, hungry) == [5000]
    assert of(table, TypicalPod(1)) == [0]


def test_what_one_more_pod_would_do() -> None:
    table = table_of(node("n", 8))
    assert of(table, taken=amounts({GPU: 1})) == [2750]
    assert of(table) == [0], "asking changes nothing"


def test_an_overfull_node_has_no_free_gpus() -> None:
    table = table_of(node("n", 2))
    table.take(np.array([0]), np.array([1]), amounts({GPU: 3}))
    assert of(table) == [0]


def test_the_whole_cluster_in_gpus() -> None:
    table = table_of(node("a", 7), node("b", 8), node("down", 7, ready=False))
    assert fragmented_gpus(table, table.resources[GPU]) == 2.75
