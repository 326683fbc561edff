"""What the operator chose for the whole cluster, advance reservations included.

The defaults are what most clusters want.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.multifactor import MultifactorRules
from unisono.engine.model.names import Instant, LocalQueueKey, NodeName, ResourceName, namespace_of
from unisono.engine.model.provisioning import Packing
from unisono.engine.model.workload import Workload

_PERIOD_MS = {"daily": 24 * 3600 * 1000, "weekly": 7 * 24 * 3600 * 1000}


class AdvanceReservation(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes, from when until when, and which workloads may run there meanwhile."""

    name: str
    start: Instant
    end: Instant
    nodes: tuple[NodeName, ...] = ()  # none named: all of them
    # Workloads of any of these may run there; none at all if all are empty (maintenance).
    local_queues: tuple[LocalQueueKey, ...] = ()
    namespaces: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()  # as workloads name them
    users: tuple[str, ...] = ()
    repeat: Literal["", "daily", "weekly"] = ""

    def is_open_to(self, workload: Workload) -> bool:
        """Say whether a workload may run on these nodes at any time."""
        return (
            workload.queue in self.local_queues
            or namespace_of(workload.key) in self.namespaces
            or (
                workload.submit_options.account != ""
                and workload.submit_options.account in self.accounts
            )
            or (workload.submit_options.user != "" and workload.submit_options.user in self.users)
        )

    def times_from(self, instant: Instant) -> tuple[Instant, Instant] | None:
        """Return its present or next occurrence; None once it is over for good."""
        period = _PERIOD_MS.get(self.repeat)
        if period is None:
            return (self.start, self.end) if instant < self.end else None
        later = max(0, (instant - self.end) // period + 1) * period
        return Instant(self.start + later), Instant(self.end + later)


FairStrategy = Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]


class FairSharing(msgspec.Struct, frozen=True, kw_only=True):
    """Preempt in the queue or cohort with the largest dominant share first."""

    strategies: tuple[FairStrategy, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


class AdmissionFairSharing(msgspec.Struct, frozen=True, kw_only=True):
    """Order a queue's workloads by what their local queues used lately."""

    half_life_ms: int = 7 * 24 * 3600 * 1000
    sampling_ms: int = 5 * 60 * 1000
    # Empty: GPUs count 1 and all else 0 where the queue covers a GPU; everything 1 otherwise.
    weights_milli: tuple[tuple[ResourceName, int], ...] = ()


class PodsReady(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a gang whose pods do not become ready in time."""

    timeout_ms: int = 30 * 60 * 1000
    recovery_timeout_ms: int | None = None  # None: as `timeout_ms`; 0: never
    block_admission: bool = False
    requeue_by: Literal["Eviction", "Creation"] = "Eviction"
    backoff_limit: int | None = None
    backoff_base_ms: int = 60 * 1000
    backoff_max_ms: int = 3600 * 1000


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """How pods are put on nodes."""

    # Of equally good nodes: the one that leaves the fewest GPUs stranded, the fullest, the
    # emptiest, the one after which a typical pod fits best (FGD), or the same with the nodes spared
    # on which large pods fit. Auto: `spare` where pods share GPUs, `leftover` elsewhere.
    scoring: Literal["auto", "leftover", "binpack", "spread", "fgd", "spare", "none"] = "auto"
    levels: tuple[str, ...] = ()  # empty: the well-known labels that some node carries
    # Pods that ask for no topology: with GPUs they stay close together, others fill holes.
    gpu_mode: Literal["preferred", "unconstrained"] = "preferred"
    # Without nodes quota alone decides (a dry run of queues); with this, all workloads wait.
    needs_nodes: bool = False
    # A workload that does not fit waits for terminating pods that will be gone within this time
    # before it preempts; 0: it does not wait for them.
    wait_for_leaving_ms: int = 0


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """Pending workloads get reservations; others may start first if they delay none of them."""

    # How many pending workloads get a reservation at a time: 1 is EASY, None is conservative (all).
    dates: int | None = None
    # Reservations further ahead than this are only made for the first ten.
    window_ms: int = 24 * 3600 * 1000
    # Beyond the first few hundred instants, reservations are rounded up to this.
    resolution_ms: int = 60 * 1000
    most_tested: int = 0  # workloads evaluated in one cycle; 0: all
    most_per_queue: int = 0  # of them, from one local queue; 0: all
    # Backfill the shortest workloads first.
    shortest_first: bool = False
    # The time limit of a workload that has none (a year: its end is not worth waiting for).
    default_limit_ms: int = 365 * 24 * 3600 * 1000


class Provisioning(msgspec.Struct, frozen=True, kw_only=True):
    """How machines are bought (spec provisioning §5.19); a workload may differ."""

    # All machines of a gang in one zone, and of one model of GPU.
    same_zone: bool = True
    same_model: bool = True
    packing: Packing = "Balanced"
    single_packing: Packing = "MinCost"  # of workloads of one pod
    slack_milli: int = 250  # how much more than the cheapest Balanced may cost, in thousandths
    # Whether gangs may run on machines that can be interrupted.
    spot: Literal["opt-in", "allow", "never"] = "opt-in"
    interruptions_milli: int = 50  # of one spot machine in an hour, in thousandths
    restart_ms: int = 30 * 60 * 1000  # work that one interruption costs a gang
    # What all bought machines together may cost an hour, in millionths of a dollar; None: no bound.
    most_per_hour_micro: int | None = None
    most_at_once: int = 4  # pending purchases of one pool
    # Whether preemption comes before provisioning, after it, or not at all.
    preference: Literal["reclaim-then-provision", "provision-then-preempt", "provision-only"] = (
        "reclaim-then-provision"
    )


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Every switch that changes a decision."""

    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    pods_ready: PodsReady | None = None
    placement: Placement = Placement()
    # Accounts, weights and limits instead of Kueue's order (spec priority §1); None: Kueue's.
    multifactor: MultifactorRules | None = msgspec.field(default=None, name="turns")
    # None: as Kueue: what fits starts, and what does not fit gets no reservation.
    backfill: Backfill | None = None
    # Advance reservations of nodes: maintenance, or for some workloads only (spec backfill §8).
    reservations: tuple[AdvanceReservation, ...] = ()
    provisioning: Provisioning = Provisioning()
    # What to do with a requested resource that no group of the queue covers.
    undeclared: Literal["Block", "Ignore"] = "Block"
    # The two rules that end preemption loops (spec quota §18.2). Kueue has neither.
    anti_thrash: bool = True
    # Switches off the deliberate differences from Kueue, except the one that keeps limits: nothing
    # starts on quota or nodes that victims still hold.
    strict: bool = False


# The n-th preemption in a row keeps a workload from preempting for 60 s, 120 s, ... an hour.
FIRST_BACKOFF_MS = 60_000
LONGEST_BACKOFF_MS = 3_600_000


def preemption_backoff_ms(times: int) -> int:
    """Return how long a workload that was preempted so often in a row may not preempt others."""
    # More doublings than these are beyond the bound and would only make a bigger number.
    return min(FIRST_BACKOFF_MS << min(times - 1, 32), LONGEST_BACKOFF_MS)
