"""Multifactor priority as configured: accounts, QOS, partitions, weights and limits.

Kueue's order is the default; `MultifactorRules` of a policy replace it (spec priority §1). Amounts
of TRES are thousandths of the unit that is written (cores, MiB, nodes, devices, billing), so that
they are integers; times are milliseconds. Usage is no part of the policy: `UsageRecord` carries it
from one run to the next.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.names import Instant
from unisono.engine.model.selection import Labels

# (cpu | mem | node | billing | gres/NAME | another resource, thousandths of its unit)
TresAmounts = tuple[tuple[str, int], ...]
TresWeights = tuple[tuple[str, float], ...]

DAY_MS = 24 * 3600 * 1000
ROOT = "root"  # the account above all others
NO_USER = ""  # the user of workloads that name none


class SubmitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The account, QOS, partition and priority that a workload is submitted with."""

    account: str = ""
    user: str = NO_USER
    qos: str = ""
    partition: str = ""
    nice: int = 0
    site: int = 0  # a plain addend that the site's own software sets
    priority: int | None = None  # set by hand: no factor counts
    hold: Literal["", "user", "admin"] = ""
    number: int = 0  # job id, where there is one: it orders equals
    task: int = 0  # of an array


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What an association, a QOS or a partition allows; None and absent TRES: anything."""

    # Of all below together.
    group_tres: TresAmounts = ()
    group_tres_minutes: TresAmounts = ()  # used and decayed
    group_tres_run_minutes: TresAmounts = ()  # of running workloads, by their time limits
    group_jobs: int | None = None
    group_jobs_accruing: int | None = None
    group_submitted: int | None = None
    group_wall_ms: int | None = None
    # Of one workload.
    tres_per_job: TresAmounts = ()
    least_tres_per_job: TresAmounts = ()
    tres_per_node: TresAmounts = ()
    tres_minutes_per_job: TresAmounts = ()
    wall_per_job_ms: int | None = None
    # Of one user: of its association, or of all its workloads in a QOS.
    tres_per_user: TresAmounts = ()
    tres_run_minutes_per_user: TresAmounts = ()
    jobs_per_user: int | None = None
    jobs_accruing_per_user: int | None = None
    submitted_per_user: int | None = None
    # Of one account, within a QOS.
    tres_per_account: TresAmounts = ()
    tres_run_minutes_per_account: TresAmounts = ()
    jobs_per_account: int | None = None
    jobs_accruing_per_account: int | None = None
    submitted_per_account: int | None = None


NO_LIMITS = Limits()


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """An account, or a user in an account, and its shares."""

    account: str
    user: str | None = None  # None: the account itself
    parent: str = ROOT  # of an account; a user is below its account
    shares: int | None = 1  # None: as its parent, with no share of its own
    priority: int = 0
    qos: tuple[str, ...] = ()  # which it may use; empty: as its parent, at the top all
    default_qos: str = ""
    limits: Limits = NO_LIMITS
    is_default: bool = False  # of a user in several accounts: for workloads that name none


class Qos(msgspec.Struct, frozen=True, kw_only=True):
    """A quality of service: a priority and a set of limits."""

    name: str
    priority: int = 0
    usage_factor: float = 1.0
    deny_on_limit: bool = False
    no_decay: bool = False
    over_partition: bool = False  # its limits come before those of a partition's QOS
    # It may pass the partition's largest time, or its numbers of nodes.
    ignores_partition_time: bool = False
    ignores_partition_nodes: bool = False
    limits: Limits = NO_LIMITS


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the cluster with its own rules."""

    name: str
    is_default: bool = False
    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"] = "UP"
    tier: int = 1  # a higher tier goes first, whatever the priorities
    job_factor: int = 1
    qos: str = ""  # its limits apply to all workloads in the partition
    max_time_ms: int | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    limits: Limits = NO_LIMITS
    # What a core, a MiB, a GPU costs; empty: a core costs 1 and all else nothing.
    billing_weights: TresWeights = ()
    node_labels: Labels = ()  # of its nodes, for sizes relative to it; empty: all nodes


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """How much each factor counts."""

    age: int = 0
    association: int = 0
    fair_share: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: TresWeights = ()
    # The number of its PriorityClass is an addend as well, so many times.
    priority_class: int = 1


class MultifactorRules(msgspec.Struct, frozen=True, kw_only=True):
    """All that multifactor priority and its limits are computed from."""

    order: Literal["multifactor", "priority"] = "multifactor"
    weights: Weights = Weights()
    max_age_ms: int = 7 * DAY_MS
    age_from_submission: bool = False  # also while it was held
    half_life_ms: int = 7 * DAY_MS  # 0: usage never decays
    reset: Literal["never", "daily", "weekly", "monthly", "quarterly", "yearly"] = "never"
    fair_share: Literal["tree", "classic", "depth-oblivious"] = "tree"
    dampening: int = 1
    favor_small: bool = False
    small_relative_to_time: bool = False
    billing: Literal["sum", "max", "max-gres"] = "sum"
    # Factors that count as they are instead of as a part of the largest.
    raw: tuple[Literal["association", "partition", "qos", "tres"], ...] = ()
    # Slurm's numbers exactly: usage is calculated once a period, tied accounts do not mix.
    compat: bool = False
    calc_period_ms: int = 5 * 60 * 1000  # between two such calculations
    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    partitions: tuple[Partition, ...] = ()
    # A namespace, or a local queue as NAMESPACE/NAME, and the account of its workloads.
    accounts_of: tuple[tuple[str, str], ...] = ()
    default_account: str = ""
    default_qos: str = ""
    known_users_only: bool = False  # refuse users without an association
    operators: tuple[str, ...] = (ROOT,)  # may set priorities, and a negative nice
    # The size of the cluster; empty: of its nodes, else of its quotas.
    totals: TresAmounts = ()


class UsageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner had used at an instant, in billing (or TRES) seconds, or seconds of wall time.

    An owner is `account/NAME`, `user/ACCOUNT/NAME` or `qos/NAME`.
    """

    owner: str
    what: str = "billing"  # billing, wall, or a TRES
    amount: float = 0.0
    at: Instant = Instant(0)


class Factors(msgspec.Struct, frozen=True, kw_only=True):
    """How a workload's priority comes about: every part already weighted, before the rounding."""

    priority: int  # 0: held
    tier: int = 1
    is_set: bool = False  # by hand; nothing below counts
    age: float = 0.0
    association: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: tuple[tuple[str, float], ...] = ()
    site: float = 0.0
    nice: int = 0
