"""GPUs that pods share: which pod has which part, in any order, and back again."""

from __future__ import annotations

import itertools
import random

import numpy as np

from tests.support.placement_builders import GPU, node, table_of
from unisono.engine.model.resources import amounts, share_of
from unisono.engine.state.devices import free_by_device, fullest_first, pods_that_fit
from unisono.engine.state.occupancy import Occupancy, PlacedPods, PodIndex

MILLI = share_of(GPU)


def placed(name: str, milli: int, *devices: int) -> PlacedPods:
    return PlacedPods(
        nodes=((name, len(devices) or 1),),  # type: ignore[arg-type]
        requests=amounts({MILLI: milli}),
        devices=devices,
    )


def test_a_device_is_whole_again_when_the_last_pod_on_it_leaves() -> None:
    for order in itertools.permutations(range(3)):
        table = table_of(node("a", 2))
        occupancy = Occupancy(table, PodIndex())
        placed_pods = [placed("a", 300, 0), placed("a", 500, 0), placed("a", 1000, 1)]
        for each in placed_pods:
            occupancy.occupy(each)
        columns = table.devices[MILLI]
        assert table.free[columns.whole, 0] == 0
        assert free_by_device(table.free, columns, np.array([0])).tolist() == [[200, 0]]
        for index in order:
            occupancy.vacate(placed_pods[index])
        assert table.free[columns.whole, 0] == 2
        assert not table.free[list(columns.devices), 0].any()


def test_unused_devices_are_shown_beside_shared_ones() -> None:
    table = table_of(node("a", 4), node("b", 1))
    occupancy = Occupancy(table, PodIndex())
    occupancy.occupy(placed("a", 400, 1))
    occupancy.occupy(PlacedPods(nodes=(("a", 1),), requests=amounts({GPU: 1})))  # type: ignore[arg-type]
    columns, both = table.devices[MILLI], np.array([0, 1])
    assert free_by_device(table.free, columns, both).tolist() == [
        [1000, 600, 1000, 0],
        [1000, 0, 0, 0],
    ]
    assert pods_that_fit(table.free, columns, 600, both).tolist() == [3, 1]
    assert pods_that_fit(table.free, columns, 1001, both).tolist() == [0, 0]


def test_a_node_with_more_gpus_than_any_before_has_columns_for_them() -> None:
    table = table_of(node("a", 1))
    occupancy = Occupancy(table, PodIndex())
    occupancy.occupy(placed("a", 400, 0))
    occupancy.put_node(node("b", 3))
    occupancy.occupy(placed("b", 700, 2))
    assert free_by_device(table.free, table.devices[MILLI], np.array([1])).tolist() == [
        [1000, 1000, 300]
    ]


def test_pods_stay_on_their_devices_while_their_node_is_away() -> None:
    table = table_of(node("a", 2))
    occupancy = Occupancy(table, PodIndex())
    occupancy.occupy(placed("a", 400, 1, 1))
    occupancy.drop_node(node("a").name)
    occupancy.put_node(node("a", 2))
    row = np.array([table.row_of[node("a").name]])
    assert free_by_device(table.free, table.devices[MILLI], row).tolist() == [[1000, 200]]


def test_a_pod_without_a_known_device_takes_the_fullest_one_that_holds_it() -> None:
    table = table_of(node("a", 2))
    occupancy = Occupancy(table, PodIndex())
    occupancy.occupy(placed("a", 400, 1))
    unknown = placed("a", 500)
    occupancy.occupy(unknown)
    row, columns = np.array([0]), table.devices[MILLI]
    assert free_by_device(table.free, columns, row).tolist() == [[1000, 100]]
    occupancy.vacate(unknown)
    assert free_by_device(table.free, columns, row).tolist() == [[1000, 600]]


def test_as_many_pods_fit_as_plain_filling_finds_places_for() -> None:
    dice = random.Random(7)
    for _ in range(200):
        table = table_of(node("a", dice.randint(0, 4)))
        occupancy = Occupancy(table, PodIndex())
        columns = table.open_devices(MILLI)
        for _ in range(dice.randint(0, 4)):
            device_free = free_by_device(table.free, columns, np.array([0]))[0].tolist()
            milli = dice.choice((100, 250, 400, 1000))
            found = fullest_first(device_free, milli, 1)
            if found:
                occupancy.occupy(placed("a", milli, *found))
        milli = dice.choice((1, 150, 333, 600, 1000))
        device_free = free_by_device(table.free, columns, np.array([0]))[0].tolist()
        fitting = pods_that_fit(table.free, columns, milli, np.array([0])).item()
        assert len(fullest_first(device_free, milli, 5000)) == fitting
