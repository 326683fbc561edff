"""The GPU-seconds of a period: each in exactly one state, each with its price.

    a node's GPU   down · free · held for a gang that starts · allocated
    allocated      starting (bound, not running yet) · lost · busy · idle · unmeasured

`lost` is running time since the last checkpoint (or the start) of pods that did not end well;
`unmeasured` is running time without a measurement of the device. Everything is counted in whole
GPU-seconds and millionths of a dollar, so that parts add up to the whole exactly.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from unisono.monitor.ledger.rows import NodeRow, PodRow

STATES = ("allocated", "held", "free", "down")
_HOUR = 3600
SIZES = (1, 2, 4, 8)


class Period(NamedTuple):
    """From a second on, up to another."""

    since: int
    until: int

    def clip(self, since: int, until: int) -> Period:
        """Return the part of an interval that lies within; it may be empty."""
        return Period(max(self.since, since), min(self.until, until or self.until))

    @property
    def seconds(self) -> int:
        """How long it is."""
        return max(0, self.until - self.since)


class Parts(NamedTuple):
    """An amount by class."""

    busy: int
    idle: int
    unmeasured: int
    starting: int
    lost: int


CLASSES = Parts._fields


class Spent(NamedTuple):
    """GPU-seconds and millionths of a dollar by class."""

    seconds: Parts
    micro_usd: Parts

    @property
    def allocated(self) -> int:
        """All GPU-seconds."""
        return sum(self.seconds)

    @property
    def cost(self) -> int:
        """All of the money."""
        return sum(self.micro_usd)

    @property
    def wasted(self) -> int:
        """The money for what was idle or lost."""
        return self.micro_usd.idle + self.micro_usd.lost

    @property
    def measured(self) -> int:
        """The GPU-seconds that were measured."""
        return self.seconds.busy + self.seconds.idle


class Used(NamedTuple):
    """What one gang used, on one sort of machine."""

    workload: str  # its uid; empty for pods without a workload
    pod: PodRow  # one of its pods
    model: str
    capacity_type: str
    spent: Spent
    idle_devices: int
    devices: int
    peak_mib: int
    tensor: float
    covered: float


@dataclass(slots=True)
class Sort:
    """The GPUs of one model and capacity type: their seconds by state, and what they cost."""

    seconds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATES, 0))
    micro_usd: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATES, 0))
    nodes: int = 0
    # Of those, the ones that are gone and never had a pod: how many, how long, what they cost.
    unused_nodes: int = 0
    unused_seconds: int = 0
    unused_micro_usd: int = 0


SortKey = tuple[str, str]  # model, capacity type


@dataclass(slots=True)
class Account:
    """A period, settled."""

    period: Period
    used: dict[tuple[str, str, str, str], Used] = field(default_factory=dict)
    sorts: dict[SortKey, Sort] = field(default_factory=dict)
    by_day: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    # The part of the free GPUs that pods of a size could not use, weighted by time.
    fragmentation: dict[int, float] = field(default_factory=dict)
    # GPU-seconds that pods of a size used; larger ones are counted with the largest.
    demand: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    # How many amounts of money were rounded: sums may differ by as many millionths.
    roundings: int = 0

    @property
    def broken_up(self) -> float:
        """The part of the free GPUs of no use to pods like those that were there."""
        asked = sum(self.demand.values())
        parts = (self.fragmentation[size] * used for size, used in self.demand.items())
        return sum(parts) / asked if asked else 0.0


def priced(gpu_seconds: int, node: NodeRow) -> int:
    """Return what GPU-seconds of a node cost, in millionths of a dollar."""
    per = node.gpus * _HOUR
    return (2 * gpu_seconds * node.micro_usd_hour + per) // (2 * per) if per else 0
