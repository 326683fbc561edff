"""Pods that come in blocks: every block inside one domain of the slice level."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.placement_builders import BLOCK, RACK, demand, node, place, placer_of, refuse
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.placement.demand import Demand, Mode


def racks(*sizes: tuple[int, ...], labelled: bool = True) -> list[Node]:
    """Make one rack a tuple, with nodes of so many GPUs."""
    return [
        node(f"r{r}n{n}", gpus, {BLOCK: "b", RACK: f"r{r}"} if labelled else {})
        for r, rack in enumerate(sizes)
        for n, gpus in enumerate(rack)
    ]


def sliced(pods: int, size: int, at: str, mode: Mode = "required", **options: Any) -> Demand:
    options.setdefault("level", BLOCK)
    return demand(pods, 1, mode, levels=(BLOCK, RACK), slice_size=size, slice_level=at, **options)


def pods_by_rack(found: dict[str, int]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for name, pods in found.items():
        totals[name[:2]] = totals.get(name[:2], 0) + pods
    return totals


def test_blocks_stay_in_one_rack() -> None:
    placer = placer_of(*racks((2, 1), (3, 2), (1, 1)))
    found = place(placer, sliced(6, 2, RACK))["main"]
    assert pods_by_rack(found) == {"r0": 2, "r1": 4}
    # Ten pods would fit, but a rack of three holds one block and a rack of five two.
    assert refuse(placer, sliced(10, 2, RACK)).pods_placeable == 8


def test_blocks_stay_on_one_node() -> None:
    placer = placer_of(*racks((3, 3), (3,)))
    found = place(placer, sliced(6, 2, HOSTNAME))["main"]
    assert found == {"r0n0": 2, "r0n1": 2, "r1n0": 2}
    refuse(placer, sliced(8, 2, HOSTNAME))


@pytest.mark.parametrize("mode", ["required", "preferred", "unconstrained"])
def test_blocks_are_whole_in_every_mode(mode: Mode) -> None:
    placer = placer_of(*racks((3,), (3,)))
    found = place(placer, sliced(4, 2, RACK, mode))["main"]
    assert found == {"r0n0": 2, "r1n0": 2}
    assert refuse(placer, sliced(6, 2, RACK, mode)).pods_placeable == 4


def test_a_number_that_is_no_multiple_is_refused() -> None:
    refuse(placer_of(*racks((8,))), sliced(3, 2, RACK))


def test_an_elastic_set_takes_whole_blocks_only() -> None:
    found = place(placer_of(*racks((8,))), sliced(5, 2, RACK, least=3))["main"]
    assert sum(found.values()) == 4


def test_nodes_without_the_label_hold_no_block() -> None:
    refuse(placer_of(*racks((8,), labelled=False)), sliced(2, 2, RACK, "preferred"))


def test_the_domain_with_enough_whole_blocks_is_found_behind_many_without() -> None:
    blocks = [
        node(f"{n}{i:02}", gpus, {BLOCK: f"b{i:02}", RACK: "r"})
        for i in range(20)
        for n, gpus in (("a", 3), ("b", 1))
    ]
    last = [node(f"z{n}", 4, {BLOCK: "z", RACK: "r"}) for n in (1, 2)]
    found = place(placer_of(*blocks, *last), sliced(4, 4, HOSTNAME))["main"]
    assert found == {"z1": 4}


@pytest.mark.parametrize("at", [RACK, HOSTNAME])
def test_without_a_node_blocks_are_refused(at: str) -> None:
    """A cluster whose nodes are all bought begins with none."""
    assert refuse(placer_of(), sliced(6, 2, at, "preferred")).pods_placeable == 0
