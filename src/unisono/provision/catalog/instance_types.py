"""The catalogue of machine types: public facts, dated, in `instance-types.json`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache

import msgspec

# The default region of a machine: that of the manifests that users usually bring along.
_HOME_REGION = "ap-northeast-2"


class Accelerator(msgspec.Struct, frozen=True, rename="camel"):
    """The devices of a machine, all alike."""

    kind: str
    manufacturer: str
    model: str
    count: int
    resource: str
    memory_mi_b: int | None = msgspec.field(default=None, name="memoryMiB")
    product: str | None = None
    nvlink: bool = False
    tdp_watts: int | None = None


class Price(msgspec.Struct, frozen=True, rename="camel"):
    """What an hour costs in a region; None where it is not sold that way."""

    on_demand: float | None = None
    spot: float | None = None
    estimate_on_demand: float | None = None


class MachineType(msgspec.Struct, frozen=True, rename="camel"):
    """One type of machine."""

    name: str
    provider: str
    family: str
    category: str
    arch: str
    vcpu: int
    memory_mi_b: int = msgspec.field(name="memoryMiB")
    allocatable: dict[str, str]
    network_mbps: int = 0
    local_nvme_gb: int = msgspec.field(default=0, name="localNvmeGB")
    efa: int = 0
    accelerator: Accelerator | None = None
    price: dict[str, Price] = {}


class _Defaults(msgspec.Struct, frozen=True, rename="camel"):
    region_zones: dict[str, tuple[str, ...]]


class _File(msgspec.Struct, frozen=True, rename="camel"):
    instance_types: tuple[MachineType, ...]
    defaults: _Defaults


@cache
def _catalogue() -> _File:
    content = pkgutil.get_data("unisono.provision", "instance-types.json")
    assert content is not None, "the catalogue is part of the package"
    return msgspec.json.decode(content, type=_File)


@cache
def machine_types() -> Mapping[str, MachineType]:
    """Return every type by name."""
    return {one.name: one for one in _catalogue().instance_types}


def region_of(zone: str) -> str:
    """Return the region of a zone; of one that we do not know, what its name suggests.

    >>> region_of("us-east-1a"), region_of("us-central1-b"), region_of("rack1")
    ('us-east-1', 'us-central1', 'rack1')
    """
    for region, zones in _catalogue().defaults.region_zones.items():
        if zone in zones:
            return region
    return zone


def zones_of(region: str) -> tuple[str, ...]:
    """Return the zones of a region; of one that we do not know, itself."""
    return _catalogue().defaults.region_zones.get(region) or (region,)


def home_region() -> str:
    """Return the default region for purchases."""
    return _HOME_REGION


def default_zone(machine: MachineType) -> str:
    """Return the default zone of a machine: in the default region, else in one that sells it."""
    zones = _catalogue().defaults.region_zones
    at_home = [region for region in machine.price if region == _HOME_REGION]
    for region in (*at_home, *machine.price):
        if zones.get(region):
            return zones[region][0]
    return "local"
