"""A place for one pod where GPUs are shared: every choice against plain loops, and promises."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from tests.support.placement_builders import GPU, demand, node, table_of
from unisono.engine.model.node import Node
from unisono.engine.model.resources import Amounts, amounts, share_of
from unisono.engine.placement import shared_gpus
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.feasibility import Feasibility
from unisono.engine.placement.shared_gpus import (
    DeviceView,
    Scoring,
    SharedGpuRanking,
    score_thresholds,
)
from unisono.engine.state.occupancy import Occupancy, PlacedPods, PodIndex
from unisono.engine.state.pod_mix import PodSize, SharedPodMix, size_of

MILLI = share_of(GPU)


# --- the same in plain words ---------------------------------------------------------------------


@dataclass
class Plain:
    """A node as a human would write it down."""

    node: Node
    cpu: int
    whole: int = 0  # GPUs that are taken whole
    parts: dict[int, int] = field(default_factory=dict)  # what is taken of those that are shared

    @property
    def gpus(self) -> int:
        return dict(self.node.allocatable)[GPU]

    def devices(self) -> list[int]:
        """What is free on every device; whole GPUs are any of those that are not shared."""
        free, idle = [], self.gpus - self.whole - len(self.parts)
        for device in range(self.gpus):
            shared = device in self.parts
            free.append(1000 - self.parts[device] if shared else 1000 if idle > 0 else 0)
            idle -= not shared
        return free


Way = tuple[tuple[int, ...], list[int]]


def fits(cpu: int, devices: list[int], size: PodSize) -> bool:
    return cpu >= size.cpu and sum(free >= max(1, size.milli) for free in devices) >= size.gpus


def after(here: Plain, size: PodSize, *, shares: bool) -> Iterator[Way]:
    """Yield every way to place a pod that fits: the device it shares, and what is free then."""
    free = here.devices()
    large = [d for d, part in enumerate(free) if part >= max(1, size.milli)]
    for chosen in [(d,) for d in large] if shares else [tuple(large[: size.gpus])]:
        left = [part - size.milli * (d in chosen) for d, part in enumerate(free)]
        yield chosen, left


def fragmentation(cpu: int, devices: list[int], mix: SharedPodMix) -> int:
    total = 0
    for size, count in mix.typical:
        if not size.gpus or not fits(cpu, devices, size):
            total += count * sum(devices)
        else:
            total += count * sum(free for free in devices if free < size.milli)
    return total


def fgd_score(before: int, now: int, mix: SharedPodMix) -> int:
    pods = sum(count for _, count in mix.typical)
    return int(100 / (1 + math.exp(-(before - now) / pods / 1000)))


def leftover(here: Plain, size: PodSize, left: list[int], rest: int) -> tuple[int, int, int]:
    idle = sum(left)
    if not size.gpus:
        return 0, 0, idle
    most = sum(free // size.milli for free in here.devices()) // size.gpus
    most = min(most, here.cpu // size.cpu) if size.cpu else most
    stranded = sum(here.devices()) - most * size.gpus * size.milli
    return stranded, rest, idle


def lost(here: Plain, cpu: int, left: list[int], mix: SharedPodMix) -> int:
    worth = {size: count * size.gpus for size, count in mix.large}
    gone = sum(
        worth[size]
        for size in worth
        if fits(here.cpu, here.devices(), size) and not fits(cpu, left, size)
    )
    return gone * 10_000 // max(1, sum(worth.values()))


def choose(
    nodes: list[Plain], requests: Amounts, mix: SharedPodMix, scoring: Scoring
) -> tuple[int, tuple[int, ...]] | None:
    """Try every node and device; ties go to the first node, then to the first device."""
    size, shares = size_of(requests), any(name == MILLI for name, _ in requests)
    most_cpu = max(dict(here.node.allocatable)["cpu"] for here in nodes)  # type: ignore[index]
    best: tuple[tuple[int, ...], int, tuple[int, ...]] | None = None
    for row, here in enumerate(nodes):
        if not fits(here.cpu, here.devices(), size):
            continue
        cpu = here.cpu - size.cpu
        for chosen, left in after(here, size, shares=shares):
            rest = left[chosen[0]] if shares else 0
            if shares and scoring in ("leftover", "binpack"):
                if rest + size.milli != min(f for f in here.devices() if f >= size.milli):
                    continue
            now = fragmentation(here.cpu, here.devices(), mix)
            fgd = -fgd_score(now, fragmentation(cpu, left, mix), mix)
            packed = 100 - 50 * (Fraction(cpu, most_cpu) + Fraction(sum(left), 8000))
            ranks: dict[str, tuple[int, ...]] = {
                "leftover": leftover(here, size, left, rest),
                "fgd": (fgd,),
                "spare": (fgd, lost(here, cpu, left, mix), *leftover(here, size, left, rest)),
                "binpack": (-math.floor(packed),),
                "spread": (-sum(left), -rest),
            }
            without_gpus = (0 if size.gpus else int(here.gpus > 0),)
            key = ((*without_gpus, *ranks[scoring]), row, chosen if shares else ())
            if best is None or key < best:
                best = key
    return None if best is None else best[1:]


# --- random clusters -----------------------------------------------------------------------------


def some_requests(dice: random.Random) -> Amounts:
    gpus = dice.choice([0, 1, 1, 1, 1, 2, 4, 8])
    asked: dict[str, int] = {GPU: gpus} if gpus else {}
    if gpus == 1 and dice.random() < 0.7:
        asked = {MILLI: dice.choice([160, 320, 470, 810, 1000])}
    cpu = dice.choice([0, 1_000, 4_000, 11_300]) * max(1, gpus)
    return amounts({**asked, "cpu": cpu} if cpu else asked)


@dataclass
class Cluster:
    """Nodes in the engine's table and in plain words."""

    dice: random.Random
    plain: list[Plain]
    occupancy: Occupancy
    sizes: list[Amounts]
    mix: SharedPodMix
    placed_pods: list[tuple[PlacedPods, int, Amounts]] = field(default_factory=list)

    def take(self, row: int, devices: tuple[int, ...], requests: Amounts) -> None:
        here = self.plain[row]
        placed = PlacedPods(((here.node.name, 1),), requests, devices=devices)
        self.occupancy.occupy(placed)
        self.placed_pods.append((placed, row, requests))
        self._count(row, devices, requests, 1)

    def give_back(self) -> None:
        placed, row, requests = self.placed_pods.pop(self.dice.randrange(len(self.placed_pods)))
        self.occupancy.vacate(placed)
        self._count(row, placed.devices, requests, -1)

    def _count(self, row: int, devices: tuple[int, ...], requests: Amounts, sign: int) -> None:
        here, size = self.plain[row], size_of(requests)
        here.cpu -= sign * size.cpu
        if not devices:
            here.whole += sign * size.gpus
        for device in devices:
            here.parts[device] = here.parts.get(device, 0) + sign * size.milli
            if not here.parts[device]:
                del here.parts[device]


def some_cluster(seed: int) -> Cluster:
    dice = random.Random(seed)
    nodes = [
        node(f"n{i}", dice.choice([0, 1, 2, 4, 8]), more={"cpu": dice.choice([8_000, 64_000])})
        for i in range(dice.randint(1, 12))
    ]
    sizes = [some_requests(dice) for _ in range(12)]
    mix = SharedPodMix()
    for _ in range(64):
        mix.note(dice.choice(sizes))
    table = table_of(*nodes)
    table.open_devices(MILLI)
    plain = [Plain(each, dict(each.allocatable)["cpu"]) for each in nodes]  # type: ignore[index]
    return Cluster(dice, plain, Occupancy(table, PodIndex()), sizes, mix)


def demand_for(requests: Amounts) -> Demand:
    return demand(1, 0, "preferred", more=dict(requests))


@pytest.mark.parametrize("scoring", get_args(Scoring))
@pytest.mark.parametrize("seed", range(8))
def test_every_choice_is_that_of_plain_loops(seed: int, scoring: Scoring) -> None:
    cluster = some_cluster(seed)
    ranking = SharedGpuRanking(Feasibility(cluster.occupancy.table), cluster.mix, scoring)
    for _ in range(60):
        requests = cluster.dice.choice(cluster.sizes)
        expected = choose(cluster.plain, requests, cluster.mix, scoring)
        found = ranking.best(demand_for(requests))
        assert found == expected
        if found is not None:
            cluster.take(*found, requests)
        if cluster.placed_pods and cluster.dice.random() < 0.25:
            cluster.give_back()


@pytest.mark.parametrize("seed", [0, 1, 3])  # with enough nodes to come and go on
def test_states_that_are_numbered_anew_change_no_choice(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_gpus, "STATES_KEPT", 1)
    numbered = set()
    cluster = some_cluster(seed)
    ranking = SharedGpuRanking(Feasibility(cluster.occupancy.table), cluster.mix)
    for _ in range(80):
        requests = cluster.dice.choice(cluster.sizes)
        found = ranking.best(demand_for(requests))
        assert found == choose(cluster.plain, requests, cluster.mix, "spare")
        numbered |= {each.numbering for each in ranking._views.values()}
        if found is not None:
            cluster.take(*found, requests)
        if cluster.placed_pods and cluster.dice.random() < 0.4:
            cluster.give_back()
    assert len(numbered) > 1


@pytest.mark.parametrize("seed", range(4))
def test_fragmentation_is_that_of_plain_loops(seed: int) -> None:
    cluster = some_cluster(seed)
    table = cluster.occupancy.table
    view = DeviceView(table, table.devices[MILLI], cluster.mix)
    ranking = SharedGpuRanking(Feasibility(table), cluster.mix, "leftover")
    pods = sum(count for _, count in cluster.mix.typical)
    for _ in range(20):
        requests = cluster.dice.choice(cluster.sizes)
        found = ranking.best(demand_for(requests))
        if found is not None:
            cluster.take(*found, requests)
        each = [fragmentation(h.cpu, h.devices(), cluster.mix) for h in cluster.plain]
        assert view.fragmented_milli() == pytest.approx(sum(each) / pods)


# --- what the scorings promise -------------------------------------------------------------------


def places(
    nodes: list[Node], asked: Sequence[Mapping[str, int]], scoring: Scoring, mix: SharedPodMix
) -> list[object]:
    """Place pods one after the other; return node and devices of each."""
    table = table_of(*nodes)
    table.open_devices(MILLI)
    occupancy = Occupancy(table, PodIndex())
    ranking = SharedGpuRanking(Feasibility(table), mix, scoring)
    found: list[object] = []
    for one in asked:
        place = ranking.best(demand_for(amounts(one)))
        if place is None:
            found.append(None)
            continue
        name = table.names(np.array([place[0]]))[0]
        occupancy.occupy(PlacedPods(((name, 1),), amounts(one), devices=place[1]))
        found.append((name, *place[1]))
    return found


def test_a_part_goes_to_the_fullest_device_that_holds_it() -> None:
    asked = [{str(MILLI): milli} for milli in (500, 700, 200, 300, 400)]
    for scoring in ("leftover", "binpack"):
        found = places([node("a", 4)], asked, scoring, SharedPodMix())
        assert found == [("a", 0), ("a", 1), ("a", 1), ("a", 0), ("a", 2)]


def test_spare_leaves_the_only_nodes_of_large_pods_alone() -> None:
    """FGD does not see sizes as rare as this one and takes the first of equal nodes."""
    mix = SharedPodMix()
    small, large = amounts({GPU: 1, "cpu": 8000}), amounts({GPU: 8, "cpu": 120_000})
    mix.fix([*[small] * 99, large])
    nodes = [node("a", more={"cpu": 128_000}), node("b", more={"cpu": 96_000})]
    assert places(nodes, [dict(small)], "fgd", mix) == [("a",)]
    assert places(nodes, [dict(small)], "spare", mix) == [("b",)]


def test_a_pod_without_gpus_takes_nodes_without_them_first() -> None:
    nodes = [node("a", 8, more={"cpu": 8}), node("b", 0, more={"cpu": 8})]
    found = places(nodes, [{"cpu": 8}] * 3, "spare", SharedPodMix())
    assert found == [("b",), ("a",), None]


def test_without_nodes_there_is_no_place() -> None:
    assert places([], [{MILLI: 1}, {GPU: 1}, {}], "spare", SharedPodMix()) == [None] * 3


@pytest.mark.parametrize("pods", [1, 7, 8152])
def test_the_table_of_scores_is_the_sigmoid(pods: int) -> None:
    thresholds = score_thresholds(pods)
    dice = random.Random(1)
    for _ in range(2000):
        drop = dice.randrange(-9000 * pods, 9000 * pods)
        expected = int(100 / (1 + math.exp(-drop / pods / 1000)))
        assert int(np.searchsorted(thresholds, drop, side="right")) == expected
