"""What the operator chose for the whole cluster. The defaults are what most clusters want."""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.multifactor import MultifactorRules
from unisono.engine.model.names import ResourceName
from unisono.engine.model.provisioning import Packing
from unisono.engine.model.reservation import Reservation

FairStrategy = Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]


class FairSharing(msgspec.Struct, frozen=True, kw_only=True):
    """Whose share is largest gives way first."""

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
    # Without a single node quota alone decides (a rehearsal of queues); with this, everybody waits.
    needs_nodes: bool = False
    # Who finds no place waits for pods that were told to end and will be gone within this time,
    # before others have to leave; 0: nobody waits for them.
    wait_for_leaving_ms: int = 0


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """Who has to wait gets a date; others may go first as long as no date moves."""

    # How many waiting workloads get a date at a time: 1 is EASY, None is conservative (all).
    dates: int | None = None
    # Dates further away than this are only given to the first ten.
    window_ms: int = 24 * 3600 * 1000
    # Beyond the first few hundred instants, dates are rounded up to this.
    resolution_ms: int = 60 * 1000
    most_tested: int = 0  # workloads looked at in one pass; 0: all
    most_per_queue: int = 0  # of them, from one local queue; 0: all
    # Of those that may go first: the shortest before the others.
    shortest_first: bool = False
    # How long a workload runs that does not say so (a year: nobody waits for its end).
    default_limit_ms: int = 365 * 24 * 3600 * 1000


class Provisioning(msgspec.Struct, frozen=True, kw_only=True):
    """How machines are bought (spec provisioning §5.19); a workload may differ."""

    # All machines of a gang in one zone, and of one model of GPU.
    same_zone: bool = True
    same_model: bool = True
    packing: Packing = "Balanced"
    single_packing: Packing = "MinCost"  # of workloads of one pod
    slack_milli: int = 250  # Balanced may cost so much more than the cheapest, in thousandths
    # Whether gangs may be put on machines that can be taken away.
    spot: Literal["opt-in", "allow", "never"] = "opt-in"
    interruptions_milli: int = 50  # of one spot machine in an hour, in thousandths
    restart_ms: int = 30 * 60 * 1000  # work that one interruption costs a gang
    # What all bought machines together may cost an hour, in millionths of a dollar; None: no bound.
    most_per_hour_micro: int | None = None
    most_at_once: int = 4  # purchases under way in one pool
    # Whether others have to leave before machines are bought, after, or not at all.
    preference: Literal["reclaim-then-provision", "provision-then-preempt", "provision-only"] = (
        "reclaim-then-provision"
    )


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Every switch that changes a decision."""

    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    pods_ready: PodsReady | None = None
    placement: Placement = Placement()
    # Accounts, weights and limits instead of Kueue's order (spec turns); None: Kueue's.
    turns: MultifactorRules | None = None
    # None: Kueue's way; whoever fits starts, and whoever does not fit gets no date.
    backfill: Backfill | None = None
    # Nodes that are kept for some, or for nobody, for a while (spec time §8).
    reservations: tuple[Reservation, ...] = ()
    provisioning: Provisioning = Provisioning()
    # What to do with a requested resource that no group of the queue covers.
    undeclared: Literal["Block", "Ignore"] = "Block"
    # The two rules that end preemption loops (spec quota §18.2). Kueue has neither.
    anti_thrash: bool = True
    # Switches off the deliberate differences from Kueue, except the one that keeps limits: nobody
    # starts on quota or nodes that victims still hold.
    strict: bool = False
