"""Offerings and orders in few words, for tests of purchases."""

from __future__ import annotations

from typing import Any

from unisono.engine.model.names import Instant
from unisono.engine.model.policy import Provisioning
from unisono.engine.model.provisioning import INSTANCE_TYPE, InstanceType, Offer, Offerings, Pool
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Requirement
from unisono.engine.placement.demand import Demand
from unisono.engine.provisioning.order import Order

GPU = "nvidia.com/gpu"


def machine(name: str, gpus: int, cpu: int = 1000, model: str = "X") -> InstanceType:
    """A type of machine; its limits count cores."""
    has = amounts({GPU: gpus, "cpu": cpu * 1000, "pods": 100})
    labels = ((INSTANCE_TYPE, name),)
    return InstanceType(name=name, labels=labels, allocatable=has, capacity=has, model=model)


def offer(name: str, price: int, zone: str = "a", stock: int | None = None) -> Offer:
    """An offer for so many millionths."""
    return Offer(machine=name, zone=zone, price_micro=price, stock=stock)


def offerings(
    machines: list[InstanceType], offers: list[Offer], pools: list[Pool] | None = None, **more: Any
) -> Offerings:
    """All of it; one pool sells everything unless pools are given."""
    return Offerings(
        machines=tuple(machines),
        offers=tuple(offers),
        pools=tuple(pools or [Pool(name="p")]),
        **more,
    )


def demand(pods: int, gpus: int = 1, name: str = "main", cpu: int = 1) -> Demand:
    """Pods that ask for GPUs."""
    asked = amounts({GPU: gpus, "cpu": cpu * 1000})
    return Demand(name=name, least=pods, most=pods, requests=asked)


def order(*demands: Demand, **more: Any) -> Order:
    """An order by the default policy."""
    policy = more.pop("policy", Provisioning())
    return Order(demands=demands, now=more.pop("now", Instant(0)), policy=policy, **more)


def only(*names: str) -> Requirement:
    """A requirement for types of machines."""
    return Requirement(INSTANCE_TYPE, "In", names)
