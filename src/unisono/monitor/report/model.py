"""A report as data: what every format shows.

GPU-hours are exact; formats for readers round them where they print them. Money is in whole cents
that add up: the cents of jobs are those of teams, users and queues, and of the headline.
"""

from __future__ import annotations

import msgspec

from unisono.monitor.ledger.queue_usage import Waits


class Amounts(msgspec.Struct, rename="camel", gc=False):
    """GPU-hours by class, money in cents."""

    allocated: float = 0.0
    busy: float = 0.0
    idle: float = 0.0
    unmeasured: float = 0.0
    starting: float = 0.0
    lost: float = 0.0
    cost_cents: int = 0
    wasted_cents: int = 0  # of that, for what was idle or lost

    @property
    def efficiency(self) -> float | None:
        """How busy GPUs were while measured; None if they never were."""
        measured = self.busy + self.idle
        return self.busy / measured if measured else None


class Job(msgspec.Struct, rename="camel", gc=False):
    """One workload."""

    namespace: str
    name: str
    kind: str
    queue: str
    team: str
    user: str
    gpus: int
    model: str
    capacity_type: str
    outcome: str
    wait_seconds: int | None
    amounts: Amounts
    advice: tuple[str, ...] = ()


class Share(msgspec.Struct, rename="camel"):
    """What a user or team used, all jobs together."""

    name: str
    jobs: int
    amounts: Amounts


class Queue(msgspec.Struct, rename="camel"):
    """One queue."""

    name: str
    is_deleted: bool
    nominal: float
    used: float
    borrowed: float
    starved: float
    waits: Waits
    still_waiting: int


class Capacity(msgspec.Struct, rename="camel"):
    """GPUs of one sort: GPU-hours by state."""

    model: str
    capacity_type: str
    allocated: float
    held: float
    free: float
    down: float
    overhead_cents: int  # cost of GPUs that were not allocated
    nodes: int
    # Came and went without a pod: bought for a gang that could not be served as a whole, say.
    unused_nodes: int
    unused_node_seconds: int
    unused_cents: int


class Down(msgspec.Struct, rename="camel"):
    """A node that was not up all the time."""

    node: str
    times: int
    seconds: int


class Fault(msgspec.Struct, rename="camel"):
    """What was wrong with a node, and the work that was lost to it."""

    node: str
    problem: str
    times: int
    seconds: int  # for which it was there
    jobs: int
    gpu_hours: float
    cost_cents: int
    owners: dict[str, float]  # GPU-hours of the users that lost most


class Waiting(msgspec.Struct, rename="camel"):
    """A workload that still waits."""

    namespace: str
    name: str
    kind: str
    queue: str
    team: str
    user: str
    gpus: int
    age_seconds: int


class Estimates(msgspec.Struct, rename="camel"):
    """How true the starts were that workloads were told; errors are parts of the wait told."""

    jobs: int  # that started in the period, and had been told a start
    within_jobs: int  # nine of ten of them ...
    within: float  # ... were off by no more than this
    half_way_jobs: int = 0  # likewise for what was told at half of that wait
    half_way_within: float | None = None
    reservations: int = 0  # of the first starts told, those that were reserved ...
    reservations_kept: int = 0  # ... and by which the workload had started


class Headline(msgspec.Struct, rename="camel"):
    """The first lines."""

    capacity: float
    amounts: Amounts
    overhead_cents: int
    coverage: float | None  # of the running time, how much was measured
    unknown_owner: float  # GPU-hours of jobs without a known user
    unpriced: float  # GPU-hours of jobs on machines of unknown price
    jobs: int
    waits: Waits
    estimates: Estimates | None = None  # nothing was told
    recorded_seconds: int = 0  # of the period, while any node was known

    @property
    def total_cents(self) -> int:
        """Everything that was paid."""
        return self.amounts.cost_cents + self.overhead_cents


class Reconciliation(msgspec.Struct, rename="camel"):
    """Whether all figures say the same; what does not, in words."""

    is_reconciled: bool
    differences: tuple[str, ...]
    gpu_hours: float  # by the pods' own times, added up apart from everything else
    off_node: float  # GPU-hours of pods while their node was not there; in no figure


class Report(msgspec.Struct, rename="camel"):
    """All of it."""

    since: int
    until: int
    headline: Headline
    before: Headline  # the same length of time before
    reconciliation: Reconciliation
    teams: tuple[Share, ...]
    users: tuple[Share, ...]
    by_queue: tuple[Share, ...]  # what jobs of a queue used, as of teams and users
    queues: tuple[Queue, ...]
    capacity: tuple[Capacity, ...]
    down: tuple[Down, ...]
    faults: tuple[Fault, ...]
    fragmentation: dict[int, float]
    broken_up: float  # the same as one number, for the sizes that were asked for
    by_day: dict[int, float]
    gaps: tuple[tuple[int, int], ...]  # times without any node: off, or not recorded
    outcomes: dict[str, int]  # how tries ended
    waste: tuple[Job, ...]
    jobs: tuple[Job, ...]
    waiting: tuple[Waiting, ...]
