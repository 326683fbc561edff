"""Other prices and more devices than the catalogue says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.provision.stories import SEOUL
from tests.support.control_objects import job, queue
from tests.support.control_world import World
from tests.support.provisioning_world import bound, claims, condition, only_workload, pool, told
from unisono.control import names
from unisono.kube.form import Json
from unisono.provision.catalog.instance_types import machine_types
from unisono.provision.catalog.offers import offers, usable_overlays, with_devices, with_prices
from unisono.provision.keys import INSTANCE_TYPE, PRICE


def overlay(name: str, *values: str, key: str = INSTANCE_TYPE, **spec: Any) -> Json:
    """Return an overlay for some machine types."""
    chosen = [{"key": key, "operator": "In", "values": list(values)}]
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": {"requirements": chosen, **spec},
    }


def price(*written: Json, sold: str = "on-demand") -> float:
    """Return what a p5.48xlarge costs then; $55.04 by the catalogue."""
    types = machine_types()
    made = with_prices(
        offers([types["p5.48xlarge"]], ["us-east-1"]), types, usable_overlays(written)
    )
    (found,) = {one.price_micro for one in made if one.capacity_type == sold}
    return found / 1_000_000


@pytest.mark.parametrize(
    ("spec", "costs"),
    [
        ({"price": "38.5"}, 38.5),
        ({"priceAdjustment": "-50%"}, 27.52),
        ({"priceAdjustment": "+0.96"}, 56.0),
        ({"priceAdjustment": "-100%"}, 0.0),
        ({"priceAdjustment": "-99.9"}, 0.0),
        ({}, 55.04),
    ],
)
def test_prices(spec: Json, costs: float) -> None:
    assert price(overlay("a", "p5.48xlarge", **spec)) == pytest.approx(costs)
    assert price(overlay("a", "p4d.24xlarge", **spec)) == 55.04


def test_it_may_speak_of_one_way_to_buy() -> None:
    spot = overlay("a", "spot", key="karpenter.sh/capacity-type", price="1")
    assert price(spot, sold="spot") == 1.0
    assert price(spot) == 55.04


def test_the_heaviest_counts_and_of_equals_the_last_name() -> None:
    one = overlay("a", "p5.48xlarge", price="1", weight=5)
    two = overlay("b", "p5.48xlarge", price="2", weight=5)
    assert price(one, two) == 2.0
    assert price(two, overlay("a", "p5.48xlarge", price="3", weight=9)) == 3.0


def test_devices_are_added_to_types() -> None:
    more = overlay("a", "g5.xlarge", capacity={"example.com/half-gpu": "2"})
    types = with_devices(machine_types(), usable_overlays([more]))
    assert types["g5.xlarge"].allocatable["example.com/half-gpu"] == "2"
    assert "example.com/half-gpu" not in types["g5.2xlarge"].allocatable


def test_a_cheaper_zone_is_bought_in_and_the_price_is_everywhere() -> None:
    async def story(world: World) -> None:
        both = ("ap-northeast-2a", "ap-northeast-2b")
        await world.create(*queue(gpus=16), pool(zones=both))
        cheap = overlay("b", "ap-northeast-2b", key="topology.kubernetes.io/zone", price="9.5")
        await world.create(cheap)
        await world.create(job("train", pods=2, gpus=8))
        await world.settle()
        assert condition(world.get(names.NODE_OVERLAY, "b", ""), "Ready")["status"] == "True"
        told_ = condition(only_workload(world), names.CAPACITY_PLANNED)["message"]
        assert "2 × g6e.48xlarge on-demand in ap-northeast-2b for $19.00/h" in told_
        assert {one["metadata"]["annotations"][PRICE] for one in claims(world)} == {"9.5"}

    told(story)


def test_devices_of_an_overlay_are_on_the_node() -> None:
    async def story(world: World) -> None:
        shared = "example.com/shared-gpu"
        made = queue(gpus=16)
        (group,) = made[1]["spec"]["resourceGroups"]
        group["coveredResources"].append(shared)
        group["flavors"][0]["resources"].append({"name": shared, "nominalQuota": "64"})
        await world.create(*made, pool(types=("g5.xlarge",), zones=SEOUL))
        await world.create(overlay("a", "g5.xlarge", capacity={shared: "4"}))
        train = job("train", pods=2, gpus=0, seconds=600)
        for word in ("limits", "requests"):
            resources = train["spec"]["template"]["spec"]["containers"][0]["resources"]
            resources[word] = {shared: "4"}
        await world.create(train)
        await world.pass_time(120)
        assert len(bound(world)) == 2
        has = [one["status"]["allocatable"][shared] for one in world.every(names.NODE)]
        assert has == ["4", "4"], "four of them on each machine, so there are two"

    told(story)


def test_one_that_cannot_be_used_says_why_and_changes_nothing() -> None:
    async def story(world: World) -> None:
        by_pool = overlay("a", "gpu", key="karpenter.sh/nodepool", price="1")
        await world.create(*queue(gpus=16), pool(zones=SEOUL), by_pool)
        await world.create(job("train", pods=1, gpus=8))
        await world.settle()
        said = condition(world.get(names.NODE_OVERLAY, "a", ""), "Ready")
        assert (said["status"], said["reason"]) == ("False", "ValidationFailed")
        assert "prices do not differ by pool" in said["message"]
        assert claims(world)[0]["metadata"]["annotations"][PRICE] != "1"

    told(story)


@pytest.mark.parametrize(
    "spec",
    [
        {"price": "nan"},
        {"price": "inf"},
        {"price": "-1"},
        {"price": "1e400"},
        {"price": "much"},
        {"priceAdjustment": "5%%"},
        {"priceAdjustment": "%"},
        {"priceAdjustment": "-inf%"},
    ],
)
def test_what_is_no_price_changes_nothing(spec: Json) -> None:
    assert price(overlay("a", "p5.48xlarge", **spec)) == 55.04
