"""Shared GPUs: every choice against plain loops, and what the scorings promise."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from bench.device_mix import Fragments, PodMix, pod_mix
from bench.device_table import DeviceTable, Seat, SharedNode, SharedPod, ways_to_seat
from bench.devices import DevicePlacer, DeviceScoring, score_thresholds

GIB = 1 << 30


# --- the same in plain words ---------------------------------------------------------------------


@dataclass
class Plain:
    """A node as a human would write it down."""

    node: SharedNode
    cpu: int
    memory: int
    devices: list[int]


def plain(table: DeviceTable) -> list[Plain]:
    return [
        Plain(
            node,
            int(table.cpu_free[row]),
            int(table.memory_free[row]),
            table.device_free[row, : node.gpus].tolist(),
        )
        for row, node in enumerate(table.nodes)
    ]


def fits(here: Plain, pod: SharedPod, *, memory: bool = True) -> bool:
    if here.cpu < pod.cpu_milli or (memory and here.memory < pod.memory_bytes):
        return False
    if pod.models and here.node.model not in pod.models:
        return False
    return sum(free >= pod.gpu_milli for free in here.devices) >= pod.gpus


def seated(here: Plain, pod: SharedPod) -> Iterator[tuple[tuple[int, ...], Plain]]:
    """Yield every way to seat a pod that fits: its devices, and the node afterwards."""
    large = [d for d, free in enumerate(here.devices) if free >= pod.gpu_milli]
    for chosen in [(d,) for d in large] if pod.shares else [tuple(large[: pod.gpus])]:
        devices = [free - pod.gpu_milli * (d in chosen) for d, free in enumerate(here.devices)]
        after = Plain(here.node, here.cpu - pod.cpu_milli, here.memory - pod.memory_bytes, devices)
        yield chosen, after


def fragment(here: Plain, shape: SharedPod) -> int:
    if not shape.gpus or not fits(here, shape, memory=False):
        return sum(here.devices)
    return sum(free for free in here.devices if free < shape.gpu_milli)


def fragmentation(here: Plain, mix: PodMix) -> int:
    return sum(count * fragment(here, shape) for shape, count in mix.typical)


def fgd_score(before: Plain, after: Plain, mix: PodMix) -> int:
    pods = sum(count for _, count in mix.typical)
    drop = fragmentation(before, mix) - fragmentation(after, mix)
    return int(100 / (1 + math.exp(-drop / pods / 1000)))


def best_fit_score(after: Plain, most_cpu: int) -> int:
    left = Fraction(after.cpu, most_cpu) + Fraction(sum(after.devices), 8000)
    return math.floor(100 - 50 * left)


def capacity(here: Plain, pod: SharedPod) -> int:
    limits = [here.cpu // pod.cpu_milli] if pod.cpu_milli else []
    limits += [here.memory // pod.memory_bytes] if pod.memory_bytes else []
    limits += [sum(free // pod.gpu_milli for free in here.devices) // pod.gpus]
    return min(limits)


def leftover(
    before: Plain, after: Plain, pod: SharedPod, chosen: tuple[int, ...]
) -> tuple[int, int, int]:
    idle = sum(after.devices)
    if not pod.gpus:
        return 0, 0, idle
    stranded = sum(before.devices) - capacity(before, pod) * pod.gpus * pod.gpu_milli
    return stranded, after.devices[chosen[0]] if pod.shares else 0, idle


def places_lost(before: Plain, after: Plain, mix: PodMix) -> int:
    worth = {shape: count * shape.gpus for shape, count in mix.large}
    lost = sum(
        worth[shape]
        for shape in worth
        if fits(before, shape, memory=False) and not fits(after, shape, memory=False)
    )
    return lost * 10_000 // max(1, sum(worth.values()))


def choose(
    nodes: list[Plain], pod: SharedPod, mix: PodMix, scoring: DeviceScoring
) -> tuple[int, tuple[int, ...]] | None:
    """Try every node and device; ties go to the first node, then to the first device."""
    most_cpu = max(here.node.cpu_milli for here in nodes)
    best: tuple[tuple[int, ...], int, tuple[int, ...]] | None = None
    for row, before in enumerate(nodes):
        if not fits(before, pod):
            continue
        for chosen, after in seated(before, pod):
            fullest = min((f for f in before.devices if f >= pod.gpu_milli), default=0)
            if scoring in ("leftover", "best-fit") and pod.shares:
                if before.devices[chosen[0]] != fullest:
                    continue
            ranks: dict[str, tuple[int, ...]] = {
                "leftover": leftover(before, after, pod, chosen),
                "fgd": (-fgd_score(before, after, mix),),
                "best-fit": (-best_fit_score(after, most_cpu),),
            }
            ranks["spare"] = (*ranks["fgd"], places_lost(before, after, mix), *ranks["leftover"])
            key = (ranks[scoring], row, chosen)
            if best is None or key < best:
                best = key
    return None if best is None else best[1:]


# --- random clusters -----------------------------------------------------------------------------


def some_node(dice: random.Random, number: int) -> SharedNode:
    return SharedNode(
        name=f"node-{number:03}",
        cpu_milli=dice.choice([8_000, 16_000, 64_000, 96_000]),
        memory_bytes=dice.choice([64, 256]) * GIB,
        gpus=dice.choice([0, 1, 2, 4, 8]),
        model=dice.choice(["A", "B"]),
    )


def some_pod(dice: random.Random) -> SharedPod:
    gpus = dice.choice([0, 1, 1, 1, 1, 2, 4, 8])
    milli = dice.choice([160, 320, 470, 810, 1000, 1000]) if gpus == 1 else 1000
    return SharedPod(
        cpu_milli=dice.choice([0, 1_000, 4_000, 11_300]) * max(1, gpus),
        memory_bytes=dice.choice([0, 4, 32]) * GIB,
        gpus=gpus,
        gpu_milli=milli if gpus else 0,
        models=dice.choice([(), (), (), ("A",), ("A", "B")]) if gpus else (),
    )


def some_cluster(seed: int) -> tuple[random.Random, DeviceTable, list[SharedPod], PodMix]:
    dice = random.Random(seed)
    table = DeviceTable(some_node(dice, number) for number in range(dice.randint(1, 12)))
    shapes = [some_pod(dice) for _ in range(12)]
    mix = pod_mix(dice.choice(shapes) for _ in range(60))
    return dice, table, shapes, mix


@pytest.mark.parametrize("scoring", [s for s in get_args(DeviceScoring) if s != "random"])
@pytest.mark.parametrize("seed", range(12))
def test_every_choice_is_that_of_plain_loops(seed: int, scoring: DeviceScoring) -> None:
    dice, table, shapes, mix = some_cluster(seed)
    placer = DevicePlacer(table, mix, scoring)
    seats: list[Seat] = []
    for _ in range(60):
        pod = dice.choice(shapes)
        expected = choose(plain(table), pod, mix, scoring)
        seat = placer.place(pod)
        assert (None if seat is None else (seat.row, seat.devices)) == expected
        if seat is not None:
            table.take(seat)
            seats.append(seat)
        if seats and dice.random() < 0.25:
            table.give_back(seats.pop(dice.randrange(len(seats))))


@pytest.mark.parametrize("seed", range(6))
def test_fragmentation_is_that_of_plain_loops(seed: int) -> None:
    dice, table, shapes, mix = some_cluster(seed)
    fragments = Fragments(table, mix)
    placer = DevicePlacer(table, mix, "random", dice.randrange)
    for _ in range(20):
        seat = placer.place(dice.choice(shapes))
        if seat is not None:
            table.take(seat)
        expected = [fragmentation(here, mix) for here in plain(table)]
        assert fragments.now(np.arange(len(table.nodes))).tolist() == expected
        pods = sum(count for _, count in mix.typical)
        assert fragments.cluster_milli() == pytest.approx(sum(expected) / pods)


@pytest.mark.parametrize("scoring", get_args(DeviceScoring))
def test_nothing_is_ever_taken_twice(scoring: DeviceScoring) -> None:
    dice, table, shapes, mix = some_cluster(99)
    before = (table.cpu_free.copy(), table.memory_free.copy(), table.device_free.copy())
    placer = DevicePlacer(table, mix, scoring, dice.randrange)
    seats = []
    for _ in range(200):
        seat = placer.place(dice.choice(shapes))
        if seat is not None:
            assert len(set(seat.devices)) == seat.pod.gpus
            table.take(seat)
            seats.append(seat)
        assert table.cpu_free.min() >= 0
        assert table.memory_free.min() >= 0
        assert table.device_free.min() >= 0
    assert seats
    for seat in reversed(seats):
        table.give_back(seat)
    for old, new in zip(
        before, (table.cpu_free, table.memory_free, table.device_free), strict=True
    ):
        assert old.tobytes() == new.tobytes()


def test_random_needs_dice_and_uses_every_seat_that_fits() -> None:
    table = DeviceTable([node("a", 2), node("b", 1)])
    dice = random.Random(1)
    placer = DevicePlacer(table, pod_mix([]), "random", dice.randrange)
    seats = {placer.place(part(300)) for _ in range(100)}
    assert {(seat.row, seat.devices) for seat in seats if seat} == {(0, (0,)), (0, (1,)), (1, (0,))}


# --- what the scorings promise -------------------------------------------------------------------


def node(name: str, gpus: int, *, cores: int = 96, model: str = "") -> SharedNode:
    return SharedNode(
        name=name, cpu_milli=1000 * cores, memory_bytes=512 * GIB, gpus=gpus, model=model
    )


def part(milli: int, *, cores: int = 4) -> SharedPod:
    return SharedPod(cpu_milli=1000 * cores, gpus=1, gpu_milli=milli)


def whole(gpus: int, *, cores: int = 4, models: tuple[str, ...] = ()) -> SharedPod:
    return SharedPod(cpu_milli=1000 * cores, gpus=gpus, gpu_milli=1000, models=models)


def place_all(
    table: DeviceTable, pods: list[SharedPod], scoring: DeviceScoring, mix: PodMix | None = None
) -> list[tuple[str, tuple[int, ...]] | None]:
    """Place pods one after the other; return node and devices of each."""
    placer = DevicePlacer(table, pod_mix(pods) if mix is None else mix, scoring)
    found: list[tuple[str, tuple[int, ...]] | None] = []
    for pod in pods:
        seat = placer.place(pod)
        if seat is not None:
            table.take(seat)
        found.append(None if seat is None else (table.nodes[seat.row].name, seat.devices))
    return found


def test_a_part_goes_to_the_fullest_device_that_holds_it() -> None:
    pods = [part(500), part(700), part(200), part(300), part(400)]
    for scoring in ("leftover", "best-fit"):
        table = DeviceTable([node("a", 4)])
        devices = [seat and seat[1] for seat in place_all(table, pods, scoring)]
        assert devices == [(0,), (1,), (1,), (0,), (2,)]


def test_leftover_keeps_cpu_where_gpus_are_idle() -> None:
    """Eight GPUs and few cores: a pod with many cores would strand them."""
    nodes = [node("few-cores", 8, cores=32), node("many-cores", 8, cores=128)]
    for cores, expected in ((16, "many-cores"), (4, "few-cores")):
        found = place_all(DeviceTable(nodes), [whole(1, cores=cores)], "leftover")
        assert found == [(expected, (0,))]


def test_a_pod_without_gpus_goes_where_fewest_are_idle() -> None:
    table = DeviceTable([node("a", 8), node("b", 1)])
    cpu_only = SharedPod(cpu_milli=4000)
    assert place_all(table, [cpu_only], "leftover") == [("b", ())]


def test_spare_leaves_the_only_nodes_of_large_pods_alone() -> None:
    """FGD does not see shapes as rare as this one and takes the first of equal nodes."""
    pods = [whole(1, cores=8)] * 99 + [whole(8, cores=120)]
    nodes = [node("a", 8, cores=128), node("b", 8, cores=96)]
    small = pods[:1]
    assert place_all(DeviceTable(nodes), small, "fgd", pod_mix(pods)) == [("a", (0,))]
    assert place_all(DeviceTable(nodes), small, "spare", pod_mix(pods)) == [("b", (0,))]


def test_ties_go_to_the_smallest_name_whatever_the_order_of_nodes() -> None:
    for names in (("b", "a", "c"), ("c", "b", "a")):
        table = DeviceTable([node(name, 2) for name in names])
        for scoring in ("leftover", "spare", "fgd", "best-fit"):
            assert DevicePlacer(table, pod_mix([part(500)]), scoring).place(part(500)) == Seat(
                part(500), 0, (0,)
            )


def test_a_model_that_no_node_has_fits_nowhere() -> None:
    table = DeviceTable([node("a", 8, model="T4")])
    assert place_all(table, [whole(1, models=("A10", "T4"))], "leftover") == [("a", (0,))]
    assert place_all(table, [whole(1, models=("A10",))], "leftover") == [None]


def test_no_nodes_no_seat() -> None:
    assert place_all(DeviceTable([]), [whole(1), part(10), SharedPod()], "spare") == [None] * 3


def test_devices_that_are_alike_are_tried_once() -> None:
    table = DeviceTable([node("a", 8)])
    table.take(Seat(part(400), 0, (3,)))
    ways = ways_to_seat(table, part(500), np.arange(1))
    assert ways.device.tolist() == [0, 3]


def test_typical_pods_cover_95_percent_and_large_ones_are_all_there() -> None:
    pods = [part(500)] * 90 + [part(300)] * 5 + [part(200)] * 4 + [whole(8)]
    mix = pod_mix(pods)
    assert mix.typical == ((part(500), 90), (part(300), 5))
    assert mix.large == ((whole(8), 1),)


@pytest.mark.parametrize("pods", [1, 7, 8152])
def test_the_table_of_scores_is_the_sigmoid(pods: int) -> None:
    thresholds = score_thresholds(pods)
    dice = random.Random(1)
    for _ in range(2000):
        drop = dice.randrange(-9000 * pods, 9000 * pods)
        expected = int(100 / (1 + math.exp(-drop / pods / 1000)))
        assert int(np.searchsorted(thresholds, drop, side="right")) == expected
