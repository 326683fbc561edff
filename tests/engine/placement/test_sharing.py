"""Gangs whose pods share GPUs: which nodes, which devices, and why not."""

from __future__ import annotations

from typing import Any

from tests.support.placement_builders import GPU, RACK, demand, gang, node, placer_of, refuse
from unisono.engine.explain.messages import sentence, what_would_help
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.resources import amounts, share_of
from unisono.engine.placement.demand import Demand, Mode
from unisono.engine.placement.gang import Placer, PodSetPlacement
from unisono.engine.state.occupancy import Occupancy, PlacedPods

MILLI = share_of(GPU)


def parts(pods: int, milli: int, mode: Mode = "preferred", **options: Any) -> Demand:
    return demand(pods, 0, mode, more={MILLI: milli}, **options)


def placements(placer: Placer, *demands: Demand) -> tuple[PodSetPlacement, ...]:
    answer = placer.place(gang(*demands))
    assert not isinstance(answer, GangDoesNotFit), answer
    return answer


def place(placer: Placer, milli: int, name: str, *devices: int) -> None:
    occupancy = Occupancy(placer.feasibility.table, placer.pod_index)
    nodes = ((node(name).name, len(devices)),)
    occupancy.occupy(PlacedPods(nodes, amounts({MILLI: milli}), devices=devices))


def test_a_gang_of_parts_fills_devices_one_after_the_other() -> None:
    (placed,) = placements(placer_of(node("a", 4)), parts(5, 400))
    assert (placed.nodes, placed.devices) == ((("a", 5),), (0, 0, 1, 1, 2))


def test_whole_gpus_and_parts_never_meet_on_a_device() -> None:
    placer = placer_of(node("a", 4))
    whole, part = demand(1, 3, "preferred", name="whole"), parts(2, 500, name="part")
    found = {placed.demand: placed for placed in placements(placer, whole, part)}
    assert found["part"].devices == (0, 0)
    assert isinstance(placer.place(gang(whole, parts(3, 500, name="part"))), GangDoesNotFit)


def test_nothing_stays_booked() -> None:
    placer = placer_of(node("a", 2), node("b", 1))
    placer.feasibility.table.open_devices(MILLI)
    before = placer.feasibility.table.free.copy()
    placements(placer, parts(2, 300, name="x"), parts(2, 700, name="y"), demand(1, 1, name="z"))
    assert (placer.feasibility.table.free == before).all()


def test_a_required_domain_counts_parts() -> None:
    racks = {"a": "r0", "b": "r0", "c": "r1"}
    placer = placer_of(*(node(name, 1, {RACK: rack}) for name, rack in racks.items()))
    demand = parts(4, 500, "required", levels=(RACK,), level=RACK)
    (placed,) = placements(placer, demand)
    assert (placed.nodes, placed.devices) == ((("a", 2), ("b", 2)), (0, 0, 0, 0))
    no = refuse(placer, parts(5, 500, "required", levels=(RACK,), level=RACK))
    assert (no.best_domain, no.pods_placeable) == ("r0", 4)


def test_the_best_gpu_is_named_when_no_gpu_holds_the_part() -> None:
    placer = placer_of(node("a", 2))
    place(placer, 600, "a", 0)
    place(placer, 700, "a", 1)
    no = refuse(placer, parts(1, 500))
    assert (no.resource, no.wanted_of_node, no.best_node_has) == (MILLI, 500, 400)
    assert no.refusals == ((MILLI, 1),)
    assert sentence(no).endswith("; the best GPU has 400 of 500 nvidia.com/gpu-milli")
    assert "or ask for no more than 400 nvidia.com/gpu-milli in one pod" in what_would_help(no)


def test_a_gang_takes_as_many_parts_as_there_are() -> None:
    (placed,) = placements(placer_of(node("a", 2)), parts(4, 600, least=1))
    assert (placed.nodes, placed.devices) == ((("a", 2),), (0, 1))
