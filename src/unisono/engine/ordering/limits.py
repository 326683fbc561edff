"""Limits: may a workload start beside those that run already? (spec turns §7)

Limits on one workload are asked once, when it arrives: waiting would not change them. Limits on
what runs together are asked when it is its turn; a workload over one steps aside, it blocks nobody.

    per job, node, user, account   the first that says anything: the partition's QOS, the QOS, the
                                   user, its accounts upwards, the partition
    group                          every QOS and every account upwards
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from unisono.engine.model.explanation import LimitReached
from unisono.engine.model.names import Instant
from unisono.engine.model.turns import NO_LIMITS, Limits, Partition, TresAmounts
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.factors import Standing
from unisono.engine.ordering.limit_codes import Form, Side, limit_code
from unisono.engine.ordering.membership import NONE, Member
from unisono.engine.ordering.tallies import Per, Scope, Tallies, billed
from unisono.engine.ordering.tres import Tres

# What an owner used of something so far ("billing", "wall" or a TRES, in seconds), and when that
# will be below a limit by itself.
Spent = Callable[[str, str], float]
FadesBelow = Callable[[str, str, float], Instant | None]

PER_USER_AND_ACCOUNT: tuple[tuple[Literal["user", "account"], str], ...] = (
    ("user", "tres_per_user"),
    ("account", "tres_per_account"),
)


@dataclass(slots=True, frozen=True)
class Owner:
    """Somebody with limits: an association, a QOS or a partition."""

    name: str
    side: Side
    limits: Limits


class LimitDesk:
    """Asks every limit that concerns a workload."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._owners: dict[tuple[int, str, str], list[Owner]] = {}

    # --- one workload ----------------------------------------------------------------------------

    def on_its_own(self, standing: Standing) -> LimitReached | None:
        """Return the first limit that the workload breaks all by itself."""
        denied = any(
            qos is not None and qos.deny_on_limit
            for qos in (standing.member.qos, standing.member.partition_qos)
        )
        for broken in self._own(standing, denied=denied):
            return broken
        return None

    def _own(self, standing: Standing, *, denied: bool) -> Iterator[LimitReached]:
        yield from _partition_terms(standing)
        owners, wanted = self.owners(standing), billed(standing)
        if not owners:
            return
        own: tuple[tuple[Form, str, Tres], ...] = (
            ("job", "tres_per_job", wanted),
            ("node", "tres_per_node", standing.size.per_node),
        )
        for form, field, amounts in own:
            for owner, name, limit in _first_defined(owners, field):
                if amounts.get(name, 0) > limit:
                    yield _tres(owner, form, name, amounts.get(name, 0), limit, denied=denied)
        for owner, name, least in _first_defined(owners, "least_tres_per_job"):
            if wanted.get(name, 0) < least:
                yield _tres(owner, "least", name, wanted.get(name, 0), least, denied=denied)
        yield from _own_time(standing, owners, wanted, denied=denied)
        # What one workload wants may alone be more than all together may have.
        for owner in owners:
            for name, limit in owner.limits.group_tres:
                if wanted.get(name, 0) > limit:
                    yield _tres(owner, "group", name, wanted[name], limit, denied=denied)
        for per, field in PER_USER_AND_ACCOUNT:
            for owner, name, limit in _first_defined(owners, field):
                if wanted.get(name, 0) > limit:
                    whose = self._whose(standing, per) if owner.side == "QOS" else ""
                    yield _tres(owner, per, name, wanted[name], limit, whose=whose, denied=denied)

    # --- beside others ---------------------------------------------------------------------------

    def beside_others(
        self,
        standing: Standing,
        now: Instant,
        tallies: tuple[Tallies, ...],
        spent: Spent,
        fades_below: FadesBelow,
    ) -> LimitReached | None:
        """Return the first limit that the workload would break if it started now."""
        owners = self.owners(standing)
        if not owners:
            return None
        number = standing.member.association
        itself = self._accounts.owner(number) if number != NONE else ""
        asked = _Asked(standing, now, tallies, self._whose, itself)
        for broken in _count_limits(owners, asked):
            return broken
        for owner in owners:
            for broken in _group_limits(owner, asked):
                return broken
            for broken in _spent_limits(owner, spent, fades_below):
                return broken
        return None

    def owners(self, standing: Standing) -> list[Owner]:
        """Return everybody whose limits a workload has to keep, in the order of precedence."""
        member = standing.member
        key = (
            member.association,
            member.qos.name if member.qos is not None else "",
            member.partition.name if member.partition is not None else "",
        )
        known = self._owners.get(key)
        if known is None:  # who sets no limits has no say
            found = [one for one in self._find_owners(member) if one.limits != NO_LIMITS]
            known = self._owners[key] = found
        return known

    def _find_owners(self, member: Member) -> list[Owner]:
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

    def _whose(self, standing: Standing, per: Per) -> str:
        """Return the user or the account that is counted within a QOS."""
        association = standing.member.association
        if association == NONE:
            return standing.member.user if per == "user" else ""
        spec = self._accounts.specs[association]
        return spec.account if per == "account" else spec.user or ""


@dataclass(slots=True)
class _Asked:
    """A workload that asks to start beside what the tallies count."""

    standing: Standing
    now: Instant
    tallies: tuple[Tallies, ...]
    whose: Callable[[Standing, Per], str]
    itself: str  # the association of the workload, as an owner

    def jobs(self, scope: Scope) -> int:
        return sum(one.of(scope).jobs for one in self.tallies)

    def tres(self, scope: Scope, name: str) -> int:
        return sum(one.of(scope).tres.get(name, 0) for one in self.tallies)

    def run_minutes(self, scope: Scope, name: str) -> int:
        return sum(one.of(scope).run_minutes(name, self.now) for one in self.tallies)

    def minutes(self, name: str) -> int:
        limit_ms = self.standing.time_limit_ms or 0
        return billed(self.standing).get(name, 0) * limit_ms // 60_000

    def scope(self, owner: Owner, per: Per) -> Scope:
        """Return what a limit per user or account counts; an account's is for each of its users."""
        if owner.side == "Assoc":
            return self.itself, "group", ""
        return owner.name, per, self.whose(self.standing, per)


def _partition_terms(standing: Standing) -> Iterator[LimitReached]:
    """Yield what the partition itself says about times and nodes."""
    partition, qos = standing.member.partition, standing.member.qos
    if partition is None:
        return
    owner, limit_ms = f"partition/{partition.name}", standing.time_limit_ms
    longest, nodes = partition.max_time_ms, standing.size.tres.get("node", 0)
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
    standing: Standing, owners: list[Owner], wanted: Tres, *, denied: bool
) -> Iterator[LimitReached]:
    """Yield limits on how long, and on how long times how much."""
    limit_ms = standing.time_limit_ms
    if limit_ms is None:
        return
    longest = next((one for one in owners if one.limits.wall_per_job_ms is not None), None)
    if longest is not None:
        most = longest.limits.wall_per_job_ms
        assert most is not None, "it was just looked for"
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


def _count_limits(owners: list[Owner], asked: _Asked) -> Iterator[LimitReached]:
    """Yield limits on what one user, or one account in a QOS, has running."""
    counts: tuple[tuple[Literal["user", "account"], str], ...] = (
        ("user", "jobs_per_user"),
        ("account", "jobs_per_account"),
    )
    for per, field in counts:
        owner = next((one for one in owners if getattr(one.limits, field) is not None), None)
        if owner is None or (per == "account" and owner.side == "Assoc"):
            continue
        scope, limit = asked.scope(owner, per), getattr(owner.limits, field)
        if asked.jobs(scope) + 1 > limit:
            code = "MaxJobsPerAccount" if per == "account" else "QOSMaxJobsPerUserLimit"
            yield LimitReached(
                code="AssocMaxJobsLimit" if owner.side == "Assoc" else code,
                owner=owner.name,
                per=scope[1],
                whose=scope[2],
                unit="jobs",
                used=asked.jobs(scope),
                wanted=1,
                limit=limit,
            )
    wanted = billed(asked.standing)
    for form, field in PER_USER_AND_ACCOUNT:
        for owner, name, limit in _first_defined(owners, field):
            scope = asked.scope(owner, form)
            used = asked.tres(scope, name)
            if wanted.get(name) and used + wanted[name] > limit:
                yield _tres(owner, form, name, wanted[name], limit, used=used, whose=scope[2])
    for form, _ in PER_USER_AND_ACCOUNT:
        for owner, name, limit in _first_defined(owners, f"tres_run_minutes_per_{form}"):
            scope = asked.scope(owner, form)
            yield from _run_minutes(owner, scope, name, limit, asked, "QOSResourceLimit")


def _group_limits(owner: Owner, asked: _Asked) -> Iterator[LimitReached]:
    """Yield limits on what all of an owner's workloads have running."""
    limits = owner.limits
    scope: Scope = (owner.name, "group", "")
    if limits.group_jobs is not None and asked.jobs(scope) + 1 > limits.group_jobs:
        yield LimitReached(
            code=f"{owner.side}GrpJobsLimit",
            owner=owner.name,
            per="group",
            unit="jobs",
            used=asked.jobs(scope),
            wanted=1,
            limit=limits.group_jobs,
        )
    wanted = billed(asked.standing)
    for name, limit in limits.group_tres:
        used = asked.tres(scope, name)
        if wanted.get(name) and used + wanted[name] > limit:
            yield _tres(owner, "group", name, wanted[name], limit, used=used)
    for name, limit in limits.group_tres_run_minutes:
        code = limit_code(owner.side, "group-run-minutes", name)
        yield from _run_minutes(owner, scope, name, limit, asked, code)


def _run_minutes(
    owner: Owner, scope: Scope, name: str, limit: int, asked: _Asked, code: str
) -> Iterator[LimitReached]:
    used, wanted = asked.run_minutes(scope, name), asked.minutes(name)
    if wanted and used + wanted > limit:
        yield LimitReached(
            code=code,
            owner=owner.name,
            per=scope[1],
            whose=scope[2],
            unit="tres-minutes",
            tres=name,
            used=used,
            wanted=wanted,
            limit=limit,
        )


def _spent_limits(owner: Owner, spent: Spent, fades_below: FadesBelow) -> Iterator[LimitReached]:
    """Yield limits on what was used in the past, as far as it has not faded."""
    for name, limit in owner.limits.group_tres_minutes:
        used = int(spent(owner.name, name) * 1000 / 60)
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
                until=fades_below(owner.name, name, limit * 60 / 1000),
            )
    most_ms = owner.limits.group_wall_ms
    if most_ms is not None:
        used = int(spent(owner.name, "wall") * 1000)
        if used >= most_ms:
            yield LimitReached(
                code=f"{owner.side}GrpWallLimit",
                owner=owner.name,
                per="group",
                unit="time",
                used=used,
                wanted=0,
                limit=most_ms,
                until=fades_below(owner.name, "wall", most_ms / 1000),
            )


def _first_defined(owners: list[Owner], field: str) -> Iterator[tuple[Owner, str, int]]:
    """Yield each TRES that somebody limits in this way, by the first who does."""
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
    whose: str = "",
    denied: bool = False,
) -> LimitReached:
    per = {"job": "job", "node": "node", "user": "user", "account": "account", "least": "least"}
    return LimitReached(
        code=limit_code(owner.side, form, name),
        owner=owner.name,
        per=per.get(form, "group"),  # type: ignore[arg-type]  # one of the words above
        whose=whose,
        tres=name,
        used=used,
        wanted=wanted,
        limit=limit,
        denied=denied,
    )
