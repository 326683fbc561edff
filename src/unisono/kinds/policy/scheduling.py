"""SchedulingPolicy: accounts, QOS, partitions, weights and limits, as an operator writes them.

    apiVersion: unisono.dev/v1alpha1
    kind: SchedulingPolicy
    spec:
      weights: {age: 1000, fairShare: 10000}
      accounts:
        - name: research
          shares: 60
          users: [{name: ann, shares: 2}]
      qos: [{name: normal, priority: 50, limits: {tresPerUser: {gres/gpu: 4}}}]

Its meaning is in spec priority §1; `multifactor` translates it for the engine. At most one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from unisono.engine.model.multifactor import ROOT
from unisono.engine.ordering.tres import tres_name
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta, wrong_with_label_key
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Kind
from unisono.kinds.scalar import Duration, Timestamp

Tres = Mapping[str, Quantity]
Count = Annotated[int, Meta(ge=0, le=2**32 - 1)]  # as Slurm counts
_OWNER = re.compile(r"account/[^/]+|user/[^/]+/[^/]*|qos/[^/]+")


class Limits(Schema, frozen=True, kw_only=True):
    """How much; what is absent has no limit."""

    group_tres: Annotated[Tres, Meta(description="What all together may have at a time.")] = {}
    group_tres_minutes: Annotated[Tres, Meta(description="What all used so far, faded.")] = {}
    group_tres_run_minutes: Annotated[
        Tres, Meta(description="What all that runs may still use until its time limits.")
    ] = {}
    group_jobs: Count | None = None
    group_jobs_accruing: Count | None = None
    group_submitted: Count | None = None
    group_wall: Duration | None = None
    tres_per_job: Annotated[Tres, Meta(description="What one workload may ask for.")] = {}
    least_tres_per_job: Annotated[Tres, Meta(description="What it has to ask for.")] = {}
    tres_per_node: Annotated[Tres, Meta(description="What one of its pods may ask for.")] = {}
    tres_minutes_per_job: Tres = {}
    wall_per_job: Duration | None = None
    tres_per_user: Tres = {}
    tres_run_minutes_per_user: Tres = {}
    jobs_per_user: Count | None = None
    jobs_accruing_per_user: Count | None = None
    submitted_per_user: Count | None = None
    tres_per_account: Tres = {}
    tres_run_minutes_per_account: Tres = {}
    jobs_per_account: Count | None = None
    jobs_accruing_per_account: Count | None = None
    submitted_per_account: Count | None = None


class User(Schema, frozen=True, kw_only=True):
    """A user within an account."""

    name: str
    is_default: Annotated[
        bool, Meta(description="Of several accounts of a user, the one of what names none.")
    ] = field(default=False, name="default")
    shares: Annotated[int | str, Meta(description="A number, or parent.")] = 1
    priority: Count = 0
    qos: tuple[str, ...] = ()
    default_qos: str = ""
    limits: Limits = Limits()


class Account(Schema, frozen=True, kw_only=True):
    """An account and its users."""

    name: str
    parent: str = ROOT
    shares: Annotated[int | str, Meta(description="A number, or parent.")] = 1
    priority: Count = 0
    qos: Annotated[tuple[str, ...], Meta(description="Which it may use; none: any.")] = ()
    default_qos: str = ""
    limits: Limits = Limits()
    users: tuple[User, ...] = ()


class Qos(Schema, frozen=True, kw_only=True):
    """A quality of service."""

    name: str
    priority: Count = 0
    usage_factor: Annotated[float, Meta(ge=0, description="What runs costs so much more.")] = 1.0
    deny_on_limit: bool = False
    no_decay: bool = False
    over_partition: bool = False
    ignores_partition_time: bool = False
    ignores_partition_nodes: bool = False
    limits: Limits = Limits()


class Partition(Schema, frozen=True, kw_only=True):
    """A part of the cluster with its own terms."""

    name: str
    is_default: bool = field(default=False, name="default")
    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"] = "UP"
    tier: Annotated[int, Meta(ge=0, le=65533)] = 1
    job_factor: Annotated[int, Meta(ge=0, le=65533)] = 1
    qos: str = ""
    max_time: Duration | None = None
    min_nodes: Count = 0
    max_nodes: Count | None = None
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    limits: Limits = Limits()
    prices: Annotated[
        Mapping[str, float], Meta(description="Of a core, a GiB (mem), a device, a second.")
    ] = {}
    node_labels: Mapping[str, str] = {}


class Weights(Schema, frozen=True, kw_only=True):
    """How much each factor counts."""

    age: Count = 0
    association: Count = 0
    fair_share: Count = 0
    job_size: Count = 0
    partition: Count = 0
    qos: Count = 0
    tres: Mapping[str, float] = {}
    priority_class: int = 1


class Used(Schema, frozen=True, kw_only=True):
    """What an account or user had used at an instant: a way to start with a history."""

    owner: Annotated[str, Meta(description="account/NAME, user/ACCOUNT/NAME or qos/NAME.")]
    what: str = "billing"
    amount: Annotated[float, Meta(ge=0, description="In seconds times billing, or times TRES.")]
    at: Timestamp | None = None


class Spec(Schema, frozen=True, kw_only=True):
    """Everything that decides the priority order."""

    order: Literal["multifactor", "priority"] = "multifactor"
    weights: Weights = Weights()
    max_age: Duration | None = None
    age_from_submission: bool = False
    half_life: Annotated[Duration | None, Meta(description="0: usage is never forgotten.")] = None
    reset: Literal["never", "daily", "weekly", "monthly", "quarterly", "yearly"] = "never"
    fair_share: Literal["tree", "classic", "depth-oblivious"] = "tree"
    dampening: Annotated[int, Meta(ge=1)] = 1
    favor_small: bool = False
    small_relative_to_time: bool = False
    billing: Literal["sum", "max", "max-gres"] = "sum"
    raw: tuple[Literal["association", "partition", "qos", "tres"], ...] = ()
    compat: Literal["", "slurm"] = ""
    calc_period: Duration | None = None
    accounts: tuple[Account, ...] = ()
    qos: tuple[Qos, ...] = ()
    partitions: tuple[Partition, ...] = ()
    accounts_of: Annotated[
        Mapping[str, str], Meta(description="A namespace, or NAMESPACE/LOCALQUEUE: its account.")
    ] = {}
    default_account: str = ""
    default_qos: str = ""
    known_users_only: bool = False
    operators: tuple[str, ...] = (ROOT,)
    totals: Annotated[Tres, Meta(description="The cluster's size, if not that of its nodes.")] = {}
    used: tuple[Used, ...] = ()


class SchedulingPolicy(Schema, frozen=True, kw_only=True):
    """The priority order (unisono.dev/v1alpha1)."""

    api_version: str
    kind: str
    metadata: ObjectMeta = ObjectMeta()
    spec: Spec = Spec()


# ---- rules -------------------------------------------------------------------------------------


def wrong_with_tres(name: str) -> str:
    """Say what is wrong with the name of a TRES; empty if nothing is.

    >>> wrong_with_tres("gres/gpu"), wrong_with_tres("nvidia.com/gpu"), wrong_with_tres("cpus")
    ('', '', 'is no TRES: there are cpu, mem, node, billing, gres/NAME and resource names')
    """
    if name.startswith("gres/") and ":" in name:
        return "names a type of device; quota of a flavor limits one type"
    known = tres_name(name)
    if known in ("cpu", "mem", "node", "billing") or known.startswith(("gres/", "license/")):
        return ""
    return "is no TRES: there are cpu, mem, node, billing, gres/NAME and resource names"


def _check(document: SchedulingPolicy, notes: Notes) -> None:
    spec = document.spec
    accounts = {ROOT, *(one.name for one in spec.accounts)}
    qos = {one.name for one in spec.qos}
    names = (
        ("accounts", [one.name for one in spec.accounts]),
        ("qos", [one.name for one in spec.qos]),
        ("partitions", [one.name for one in spec.partitions]),
    )
    for part, listed in names:
        _check_unique(f"spec.{part}", listed, notes)
    for index, account in enumerate(spec.accounts):
        _check_account(account, f"spec.accounts[{index}]", accounts, qos, notes)
    _check_cycles(spec, notes)
    for index, one in enumerate(spec.qos):
        _check_limits(one.limits, f"spec.qos[{index}].limits", notes)
    for index, partition in enumerate(spec.partitions):
        _check_partition(partition, f"spec.partitions[{index}]", accounts, qos, notes)
    for where, account_name in spec.accounts_of.items():
        _check_known(account_name, accounts, f"spec.accountsOf[{where}]", "account", notes)
    _check_known(spec.default_account, accounts, "spec.defaultAccount", "account", notes)
    _check_known(spec.default_qos, qos, "spec.defaultQos", "QOS", notes)
    _check_tres(spec.weights.tres, "spec.weights.tres", notes)
    _check_tres(spec.totals, "spec.totals", notes)
    for index, used in enumerate(spec.used):
        if _OWNER.fullmatch(used.owner) is None:
            message = f'"{used.owner}" must be account/NAME, user/ACCOUNT/NAME or qos/NAME'
            notes.problem(f"spec.used[{index}].owner", message)
    for name in ("max_age", "calc_period"):
        value: Duration | None = getattr(spec, name)
        if value is not None and value.ms <= 0:
            notes.problem(f"spec.{'maxAge' if name == 'max_age' else 'calcPeriod'}", "must be more")


def _check_account(
    account: Account, path: str, accounts: set[str], qos: set[str], notes: Notes
) -> None:
    if account.name == ROOT and account.parent != ROOT:
        notes.problem(f"{path}.parent", "root is above all others")
    _check_known(account.parent, accounts, f"{path}.parent", "account", notes)
    _check_unique(f"{path}.users", [one.name for one in account.users], notes)
    members: Iterator[tuple[str, Account | User]] = iter(
        [(path, account), *((f"{path}.users[{i}]", one) for i, one in enumerate(account.users))]
    )
    for where, one in members:
        if isinstance(one.shares, str) and one.shares != "parent":
            notes.problem(f"{where}.shares", f'"{one.shares}" must be a number or parent')
        elif isinstance(one.shares, int) and one.shares < 0:
            notes.problem(f"{where}.shares", f"is {one.shares}; it cannot be negative")
        for index, name in enumerate(one.qos):
            _check_known(name, qos, f"{where}.qos[{index}]", "QOS", notes)
        _check_known(one.default_qos, qos, f"{where}.defaultQos", "QOS", notes)
        _check_limits(one.limits, f"{where}.limits", notes)


def _check_cycles(spec: Spec, notes: Notes) -> None:
    parents = {one.name: one.parent for one in spec.accounts if one.name != ROOT}
    for index, account in enumerate(spec.accounts):
        seen: set[str] = set()
        name = account.name
        while name in parents and name not in seen:
            seen.add(name)
            name = parents[name]
        if name in seen:
            message = f"account {account.name} is below itself"
            notes.problem(f"spec.accounts[{index}].parent", message)
            return


def _check_partition(
    partition: Partition, path: str, accounts: set[str], qos: set[str], notes: Notes
) -> None:
    _check_known(partition.qos, qos, f"{path}.qos", "QOS", notes)
    for part in ("allow", "deny"):
        for index, name in enumerate(getattr(partition, f"{part}_accounts")):
            _check_known(name, accounts, f"{path}.{part}Accounts[{index}]", "account", notes)
        for index, name in enumerate(getattr(partition, f"{part}_qos")):
            _check_known(name, qos, f"{path}.{part}Qos[{index}]", "QOS", notes)
    _check_limits(partition.limits, f"{path}.limits", notes)
    _check_tres(partition.prices, f"{path}.prices", notes)
    for key in partition.node_labels:
        wrong = wrong_with_label_key(key)
        if wrong:
            notes.problem(f"{path}.nodeLabels[{key}]", wrong)


def _check_limits(limits: Limits, path: str, notes: Notes) -> None:
    for name, written in zip(
        limits.__struct_fields__, limits.__struct_encode_fields__, strict=True
    ):
        value = getattr(limits, name)
        if isinstance(value, Mapping):
            _check_tres(value, f"{path}.{written}", notes)
            for tres, amount in value.items():
                if amount.nano < 0:
                    notes.problem(f"{path}.{written}[{tres}]", "cannot be negative")


def _check_tres(amounts: Mapping[str, object], path: str, notes: Notes) -> None:
    for name in amounts:
        wrong = wrong_with_tres(name)
        if wrong:
            notes.problem(f"{path}[{name}]", wrong)


def _check_known(name: str, known: Iterable[str], path: str, what: str, notes: Notes) -> None:
    if name and name not in known:
        notes.problem(path, f'there is no {what} "{name}"')


def _check_unique(path: str, listed: list[str], notes: Notes) -> None:
    seen: set[str] = set()
    for index, name in enumerate(listed):
        if not name:
            notes.problem(f"{path}[{index}].name", "is required")
        elif name in seen:
            notes.problem(f"{path}[{index}].name", f'"{name}" stands twice')
        seen.add(name)


KINDS: tuple[Kind, ...] = (
    Kind(
        group="unisono.dev",
        version="v1alpha1",
        kind="SchedulingPolicy",
        struct=SchedulingPolicy,
        namespaced=False,
        is_named=False,
        check=_check,
    ),
)
