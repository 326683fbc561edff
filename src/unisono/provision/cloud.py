"""What the simulated cloud is like: where it is, what it has, how long things take there.

    kube-system/unisono-cloud, key cloud.yaml:

    region: ap-northeast-2
    stock: {g6e.48xlarge:ap-northeast-2a:on-demand: 1}   without end where nobody says
    latency: {api: 3s, boot: 60s, plugin: 30s, startup: 0s, spread: 0}
    failures: {launch: 0, register: 0, initialize: 0}    the share of machines that never get there
    interruptionsPerHour: 0                              of one spot machine
    atomic: true                                         all machines of a purchase, or none
    seed: 0
    instanceTypes: [...]                                 types of one's own, as in the catalogue

Every draw depends on the seed, the machine and the step alone, so that a run can be repeated.
Spec provisioning §5.11.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import msgspec

from unisono.control.actions import Json
from unisono.kinds.nearest import nearest
from unisono.kinds.scalar import duration_ms
from unisono.kinds.yaml_values import Unreadable, yaml_documents
from unisono.provision.machines import MachineType, home_region

_BOOT_SIGMA = 0.557  # of a lognormal law: one boot in twenty takes two and a half times the median


class Latency(msgspec.Struct, frozen=True):
    """How long steps take, and how much that varies (0: not at all, 1: as in clouds)."""

    api: str = "3s"
    boot: str = "60s"
    plugin: str = "30s"
    startup: str = "0s"
    spread: float = 0.0


class Failures(msgspec.Struct, frozen=True):
    """Which share of machines never gets through a step."""

    launch: float = 0.0
    register: float = 0.0
    initialize: float = 0.0


class Cloud(msgspec.Struct, frozen=True, rename="camel"):
    """The whole cloud."""

    region: str = ""
    stock: Mapping[str, int] = {}
    latency: Latency = Latency()
    failures: Failures = Failures()
    interruptions_per_hour: float = 0.0
    atomic: bool = True
    seed: int = 0
    instance_types: tuple[MachineType, ...] = ()

    @property
    def home(self) -> str:
        """Where machines are bought if no pool says."""
        return self.region or home_region()

    def left(self, machine: str, zone: str, sold: str) -> int | None:
        """Return how many of an offer there are in all; None: without end."""
        for key in (f"{machine}:{zone}:{sold}", f"{machine}:{zone}", machine):
            if key in self.stock:
                return self.stock[key]
        return None

    def seconds(self, step: str, claim: str) -> float:
        """Return how long a step of a machine takes."""
        median = duration_ms(getattr(self.latency, step)) / 1000
        if not self.latency.spread:
            return median
        normal = NormalDist(0.0, _BOOT_SIGMA * self.latency.spread)
        return float(median * 2.718281828459045 ** normal.inv_cdf(self.draw(step, claim)))

    def fails(self, step: str, claim: str) -> bool:
        """Say whether a machine never gets through a step."""
        share: float = getattr(self.failures, step)
        return share > 0 and self.draw(f"fail-{step}", claim) < share

    def draw(self, what: str, claim: str) -> float:
        """Return a number between 0 and 1 that depends on nothing else."""
        digest = hashlib.sha256(f"{self.seed}|{what}|{claim}".encode()).digest()
        return (int.from_bytes(digest[:7], "big") + 0.5) / 2**56


def cloud_of(config_map: Json | None) -> Cloud:
    """Read the cloud of an embedded cluster; what cannot be read counts as not said."""
    return read_cloud(config_map)[0]


def read_cloud(config_map: Json | None) -> tuple[Cloud, str]:
    """Read the cloud of an embedded cluster, and say what of it cannot be read."""
    text = ((config_map or {}).get("data") or {}).get("cloud.yaml")
    if not text:
        return Cloud(), ""
    try:
        raw: Any = next(yaml_documents(text), None) or {}
        cloud = msgspec.convert(raw, Cloud, strict=False)
        for step in ("api", "boot", "plugin", "startup"):
            duration_ms(getattr(cloud.latency, step))
    except (ValueError, Unreadable, msgspec.ValidationError) as error:
        return Cloud(), f"cloud.yaml cannot be read, and counts as empty: {error}"
    known = {field.encode_name for field in msgspec.structs.fields(Cloud)}
    others = sorted(set(raw) - known)
    if others:
        near = nearest(others[0], sorted(known))
        hint = f'; did you mean "{near}"?' if near else ""
        return cloud, f'cloud.yaml: nobody reads "{others[0]}"{hint}'
    return cloud, ""
