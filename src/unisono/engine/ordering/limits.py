"""Limits of associations, QOS and partitions: may a workload start now? (spec priority §7)

Limits on one workload are checked once, when it is submitted: waiting would not change them. Limits
on what runs together are checked when the workload is evaluated; one that has reached such a limit
is set aside and blocks no other.

    per job, node, user, account   the first that sets one: the partition's QOS, the QOS, the
                                   user, its accounts upwards, the partition
    group                          every QOS and every account upwards
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from unisono.engine.model.explanation import LimitReached
from unisono.engine.model.multifactor import NO_LIMITS, Limits, Partition, TresAmounts
from unisono.engine.model.names import Instant
from unisono.engine.ordering.accounts import NONE, Accounts, Membership
from unisono.engine.ordering.factors import JobRecord
from unisono.engine.ordering.limit_counters import LimitCounters, Per, Scope, billed
from unisono.engine.ordering.tres import Tres

# What an owner used of something so far ("billing", "wall" or a TRES, in seconds), and when that
# will have decayed below a limit.
UsedBy = Callable[[str, str], float]
DecaysBelow = Callable[[str, str, float], Instant | None]

PER_USER_AND_ACCOUNT: tuple[tuple[Literal["user", "account"], str], ...] = (
    ("user", "tres_per_user"),
    ("account", "tres_per_account"),
)


@dataclass(slots=True, frozen=True)
class Owner:
    """What sets limits: an association, a QOS or a partition."""

    name: str
    side: Side
    limits: Limits


class LimitChecker:
    """Checks every limit that applies to a workload."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._owners: dict[tuple[int, str, str], list[Owner]] = {}

    # --- one workload ----------------------------------------------------------------------------

    def on_its_own(self, record: JobRecord) -> LimitReached | None:
        """Return the first limit that the workload alone exceeds."""
        denied = any(
            qos is not None and qos.deny_on_limit
            for qos in (record.member.qos, record.member.partition_qos)
        )
        for exceeded in self._own(record, denied=denied):
            return exceeded
        return None

    def _own(self, record: JobRecord, *, denied: bool) -> Iterator[LimitReached]:
        yield from _partition_limits(record)
        owners, wanted = self.owners(record), billed(record)
        if not owners:
            return
        own: tuple[tuple[Form, str, Tres], ...] = (
            ("job", "tres_per_job", wanted),
            ("node", "tres_per_node", record.size.per_node),
        )
        for form, field, amounts in own:
            for owner, name, limit in _first_defined(owners, field):
                if amounts.get(name, 0) > limit:
                    yield _tres(owner, form, name, amounts.get(name, 0), limit, denied=denied)
        for owner, name, least in _first_defined(owners, "least_tres_per_job"):
            if wanted.get(name, 0) < least:
                yield _tres(owner, "least", name, wanted.get(name, 0), least, denied=denied)
        yield from _own_time(record, owners, wanted, denied=denied)
        # One workload may request more than a whole group may have.
        for owner in owners:
            for name, limit in owner.limits.group_tres:
                if wanted.get(name, 0) > limit:
                    yield _tres(owner, "group", name, wanted[name], limit, denied=denied)
        for per, field in PER_USER_AND_ACCOUNT:
            for owner, name, limit in _first_defined(owners, field):
                if wanted.get(name, 0) > limit:
                    member = self._member_of(record, per) if owner.side == "QOS" else ""
                    yield _tres(owner, per, name, wanted[name], limit, member=member, denied=denied)

    # --- beside others ---------------------------------------------------------------------------

    def beside_others(
        self,
        record: JobRecord,
        now: Instant,
        counters: tuple[LimitCounters, ...],
        used_by: UsedBy,
        decays_below: DecaysBelow,
    ) -> LimitReached | None:
        """Return the first limit that the workload would exceed by starting now."""
        owners = self.owners(record)
        if not owners:
            return None
        number = record.member.association
        itself = self._accounts.owner(number) if number != NONE else ""
        request = _Request(record, now, counters, self._member_of, itself)
        for exceeded in _count_limits(owners, request):
            return exceeded
        for owner in owners:
            for exceeded in _group_limits(owner, request):
                return exceeded
            for exceeded in _usage_limits(owner, used_by, decays_below):
                return exceeded
        return None

    def owners(self, record: JobRecord) -> list[Owner]:
        """Return all owners whose limits apply to a workload, in the order of precedence."""
        member = record.member
        key = (
            member.association,
            member.qos.name if member.qos is not None else "",
            member.partition.name if member.partition is not None else "",
        )
        known = self._owners.get(key)
        if known is None:  # owners without limits do not matter
            found = [one for one in self._find_owners(member) if one.limits != NO_LIMITS]
            known = self._owners[key] = found
        return known

    def _find_owners(self, member: Membership) -> list[Owner]:
        both = [member.partition_qos, member.qos]
        if member.qos is not None and member.qos.over_partition:
            both.reverse()
        named = dict.fromkeys(qos for qos in both if qos is not None)
        owners = [Owner(f"qos/{qos.name}", "QOS", qos.limits) for qos in named]
        for number in self._accounts.path(member.association):
            limits = self._accounts.specs[number].limits
            owners.append(Owner(self._accounts.owner(number), "Assoc", limits))
        if member.partition is not None:
            partition = member.partition
            owners.append(Owner(f"partition/{partition.name}", "QOS", partition.limits))
        return owners

    def _member_of(self, record: JobRecord, per: Per) -> str:
        """Return the user or the account that is counted within a QOS."""
        association = record.member.association
        if association == NONE:
            return record.member.user if per == "user" else ""
        spec = self._accounts.specs[association]
        return spec.account if per == "account" else spec.user or ""


@dataclass(slots=True)
class _Request:
    """A workload that would start beside what the counters count."""

    record: JobRecord
    now: Instant
    counters: tuple[LimitCounters, ...]
    member_of: Callable[[JobRecord, Per], str]
    itself: str  # the association of the workload, as an owner

    def jobs(self, scope: Scope) -> int:
        return sum(one.of(scope).jobs for one in self.counters)

    def tres(self, scope: Scope, name: str) -> int:
        return sum(one.of(scope).tres.get(name, 0) for one in self.counters)

    def run_minutes(self, scope: Scope, name: str) -> int:
        return sum(one.of(scope).run_minutes(name, self.now) for one in self.counters)

    def minutes(self, name: str) -> int:
        limit_ms = self.record.time_limit_ms or 0
        return billed(self.record).get(name, 0) * limit_ms // 60_000

    def scope(self, owner: Owner, per: Per) -> Scope:
        """Return what a limit per user or account counts; an account's is for each of its users."""
        if owner.side == "Assoc":
            return self.itself, "group", ""
        return owner.name, per, self.member_of(self.record, per)


def _partition_limits(record: JobRecord) -> Iterator[LimitReached]:
    """Yield the partition's own limits on time and nodes that the workload exceeds."""
    partition, qos = record.member.partition, record.member.qos
    if partition is None:
        return
    owner, limit_ms = f"partition/{partition.name}", record.time_limit_ms
    longest, nodes = partition.max_time_ms, record.size.tres.get("node", 0)
    exempt = qos is not None and qos.ignores_partition_time
    if limit_ms is not None and longest is not None and limit_ms > longest and not exempt:
        yield LimitReached(
            code="PartitionTimeLimit",
            owner=owner,
            per="job",
            unit="time",
            wanted=limit_ms,
            limit=longest,
        )
    if qos is not None and qos.ignores_partition_nodes:
        return
    yield from _partition_nodes(partition, owner, nodes)


def _partition_nodes(partition: Partition, owner: str, nodes: int) -> Iterator[LimitReached]:
    code = "PartitionNodeLimit"
    if partition.max_nodes is not None and nodes > partition.max_nodes * 1000:
        most = partition.max_nodes * 1000
        yield LimitReached(code=code, owner=owner, per="job", tres="node", wanted=nodes, limit=most)
    if nodes < partition.min_nodes * 1000:
        least = partition.min_nodes * 1000
        yield LimitReached(
            code=code, owner=owner, per="least", tres="node", wanted=nodes, limit=least
        )


def _own_time(
    record: JobRecord, owners: list[Owner], wanted: Tres, *, denied: bool
) -> Iterator[LimitReached]:
    """Yield limits on wall time, and on TRES minutes, that the workload exceeds."""
    limit_ms = record.time_limit_ms
    if limit_ms is None:
        return
    longest = next((one for one in owners if one.limits.wall_per_job_ms is not None), None)
    if longest is not None:
        most = longest.limits.wall_per_job_ms
        assert most is not None, "the owner was found by it"
        if limit_ms > most:
            yield LimitReached(
                code=f"{longest.side}MaxWallDurationPerJobLimit",
                owner=longest.name,
                per="job",
                unit="time",
                wanted=limit_ms,
                limit=most,
                denied=denied,
            )
    for owner, name, most in _first_defined(owners, "tres_minutes_per_job"):
        minutes = wanted.get(name, 0) * limit_ms // 60_000
        if minutes > most:
            yield LimitReached(
                code=limit_code(owner.side, "job-minutes", name),
                owner=owner.name,
                per="job",
                unit="tres-minutes",
                tres=name,
                wanted=minutes,
                limit=most,
                denied=denied,
            )


def _count_limits(owners: list[Owner], request: _Request) -> Iterator[LimitReached]:
    """Yield limits on what one user, or one account in a QOS, has running."""
    counts: tuple[tuple[Literal["user", "account"], str], ...] = (
        ("user", "jobs_per_user"),
        ("account", "jobs_per_account"),
    )
    for per, field in counts:
        owner = next((one for one in owners if getattr(one.limits, field) is not None), None)
        if owner is None or (per == "account" and owner.side == "Assoc"):
            continue
        scope, limit = request.scope(owner, per), getattr(owner.limits, field)
        if request.jobs(scope) + 1 > limit:
            code = "MaxJobsPerAccount" if per == "account" else "QOSMaxJobsPerUserLimit"
            yield LimitReached(
                code="AssocMaxJobsLimit" if owner.side == "Assoc" else code,
                owner=owner.name,
                per=scope[1],
                member=scope[2],
                unit="jobs",
                used=request.jobs(scope),
                wanted=1,
                limit=limit,
            )
    wanted = billed(request.record)
    for form, field in PER_USER_AND_ACCOUNT:
        for owner, name, limit in _first_defined(owners, field):
            scope = request.scope(owner, form)
            used = request.tres(scope, name)
            if wanted.get(name) and used + wanted[name] > limit:
                yield _tres(owner, form, name, wanted[name], limit, used=used, member=scope[2])
    for form, _ in PER_USER_AND_ACCOUNT:
        for owner, name, limit in _first_defined(owners, f"tres_run_minutes_per_{form}"):
            scope = request.scope(owner, form)
            yield from _run_minutes(owner, scope, name, limit, request, "QOSResourceLimit")


def _group_limits(owner: Owner, request: _Request) -> Iterator[LimitReached]:
    """Yield limits on what all of an owner's workloads have running."""
    limits = owner.limits
    scope: Scope = (owner.name, "group", "")
    if limits.group_jobs is not None and request.jobs(scope) + 1 > limits.group_jobs:
        yield LimitReached(
            code=f"{owner.side}GrpJobsLimit",
            owner=owner.name,
            per="group",
            unit="jobs",
            used=request.jobs(scope),
            wanted=1,
            limit=limits.group_jobs,
        )
    wanted = billed(request.record)
    for name, limit in limits.group_tres:
        used = request.tres(scope, name)
        if wanted.get(name) and used + wanted[name] > limit:
            yield _tres(owner, "group", name, wanted[name], limit, used=used)
    for name, limit in limits.group_tres_run_minutes:
        code = limit_code(owner.side, "group-run-minutes", name)
        yield from _run_minutes(owner, scope, name, limit, request, code)


def _run_minutes(
    owner: Owner, scope: Scope, name: str, limit: int, request: _Request, code: str
) -> Iterator[LimitReached]:
    used, wanted = request.run_minutes(scope, name), request.minutes(name)
    if wanted and used + wanted > limit:
        yield LimitReached(
            code=code,
            owner=owner.name,
            per=scope[1],
            member=scope[2],
            unit="tres-minutes",
            tres=name,
            used=used,
            wanted=wanted,
            limit=limit,
        )


def _usage_limits(
    owner: Owner, used_by: UsedBy, decays_below: DecaysBelow
) -> Iterator[LimitReached]:
    """Yield limits on past usage, as far as it has not decayed."""
    for name, limit in owner.limits.group_tres_minutes:
        used = int(used_by(owner.name, name) * 1000 / 60)
        if used >= limit:
            yield LimitReached(
                code=limit_code(owner.side, "group-minutes", name),
                owner=owner.name,
                per="group",
                unit="tres-minutes",
                tres=name,
                used=used,
                wanted=0,
                limit=limit,
                until=decays_below(owner.name, name, limit * 60 / 1000),
            )
    most_ms = owner.limits.group_wall_ms
    if most_ms is not None:
        used = int(used_by(owner.name, "wall") * 1000)
        if used >= most_ms:
            yield LimitReached(
                code=f"{owner.side}GrpWallLimit",
                owner=owner.name,
                per="group",
                unit="time",
                used=used,
                wanted=0,
                limit=most_ms,
                until=decays_below(owner.name, "wall", most_ms / 1000),
            )


def _first_defined(owners: list[Owner], field: str) -> Iterator[tuple[Owner, str, int]]:
    """Yield each TRES that is limited in this way, by the first owner that does."""
    seen: set[str] = set()
    for owner in owners:
        amounts: TresAmounts = getattr(owner.limits, field)
        for name, limit in amounts:
            if name not in seen:
                seen.add(name)
                yield owner, name, limit


def _tres(
    owner: Owner,
    form: Form,
    name: str,
    wanted: int,
    limit: int,
    *,
    used: int = 0,
    member: str = "",
    denied: bool = False,
) -> LimitReached:
    per = {"job": "job", "node": "node", "user": "user", "account": "account", "least": "least"}
    return LimitReached(
        code=limit_code(owner.side, form, name),
        owner=owner.name,
        per=per.get(form, "group"),  # type: ignore[arg-type]  # one of the words above
        member=member,
        tres=name,
        used=used,
        wanted=wanted,
        limit=limit,
        denied=denied,
    )


# --- Slurm's reason codes -----------------------------------------------------------------------

Form = Literal[
    "group",
    "group-minutes",
    "group-run-minutes",
    "job",
    "job-minutes",
    "node",
    "user",
    "account",
    "least",
]
Side = Literal["Assoc", "QOS"]

_ENDS = {
    "group": "",
    "group-minutes": "Minutes",
    "group-run-minutes": "RunMinutes",
    "job": "PerJob",
    "job-minutes": "MinutesPerJob",
    "node": "PerNode",
    "user": "PerUser",
    "account": "PerAccount",
    "least": "",
}
# Codes that end in Limit: those that are older than the other kinds of TRES.
_LIMIT = {
    ("cpu", "group"),
    ("cpu", "group-minutes"),
    ("cpu", "group-run-minutes"),
    ("cpu", "job"),
    ("cpu", "job-minutes"),
    ("cpu", "user"),
    ("mem", "group"),
    ("node", "group"),
    ("node", "job"),
    ("node", "user"),
}


def limit_code(side: Side, form: Form, tres: str) -> str:
    """Return Slurm's reason code for a limit on a TRES; scripts know them, and they are irregular.

    >>> limit_code("QOS", "user", "gres/gpu"), limit_code("Assoc", "group", "gres/gpu")
    ('QOSMaxGRESPerUser', 'AssocGrpGRES')
    >>> limit_code("Assoc", "group-minutes", "cpu"), limit_code("QOS", "job", "mem")
    ('AssocGrpCPUMinutesLimit', 'QOSMaxMemoryPerJob')
    >>> limit_code("QOS", "least", "cpu"), limit_code("QOS", "account", "cpu")
    ('QOSMinCpuNotSatisfied', 'MaxCpuPerAccount')
    """
    kind = _kind(side, form, tres)
    if form == "least":
        return "QOSMinCpuNotSatisfied" if tres == "cpu" else f"QOSMin{kind}"
    start = "Grp" if form.startswith("group") else "Max"
    word = f"{start}{kind}{_ENDS[form]}"
    if (tres, form) in _LIMIT:
        word += "Limit"
    return word if form == "account" else f"{side}{word}"


def _kind(side: Side, form: Form, tres: str) -> str:
    if tres == "cpu":
        return "CPU" if form in ("group-minutes", "group-run-minutes") else "Cpu"
    if tres == "mem":
        return "Mem" if side == "Assoc" or form == "group" else "Memory"
    kind = tres.partition("/")[0]
    known = {"node": "Node", "gres": "GRES", "billing": "Billing", "license": "License", "bb": "BB"}
    return known.get(kind, "Unknown")
