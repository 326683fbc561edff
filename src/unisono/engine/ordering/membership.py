"""The association, QOS and partition of a workload, or why it may use none (spec priority §2)."""

from __future__ import annotations

from dataclasses import dataclass

from unisono.engine.model.explanation import Blocker, Held, NotEntitled
from unisono.engine.model.multifactor import NO_USER, Association, MultifactorRules, Partition, Qos
from unisono.engine.model.names import namespace_of
from unisono.engine.model.workload import Workload
from unisono.engine.ordering.accounts import Accounts

NONE = -1  # no association: no account was named, and no default says which


@dataclass(slots=True, frozen=True)
class Membership:
    """The association, QOS and partition of a workload."""

    association: int = NONE
    qos: Qos | None = None
    partition: Partition | None = None
    partition_qos: Qos | None = None
    user: str = NO_USER  # only without an association: limits of a QOS count its users all the same


class Directory:
    """Finds the membership of workloads."""

    def __init__(self, rules: MultifactorRules, accounts: Accounts) -> None:
        self._rules = rules
        self._accounts = accounts
        self.qos = {one.name: one for one in rules.qos}
        self.partitions = {one.name: one for one in rules.partitions}
        self._account_of = dict(rules.accounts_of)
        self._default_account = _default_accounts(rules)
        self._default = next((one for one in rules.partitions if one.is_default), None)

    def look_up(
        self, workload: Workload, *, has_started: bool = False
    ) -> tuple[Membership, Blocker | None]:
        """Return the membership of a workload, and what about it keeps it from ever starting.

        One that has started is charged to its account even if its user has no place there any more.
        """
        turn = workload.turn
        account = self._account(workload)
        if account is None and turn.account:
            problem = f"there is no account {turn.account}"
            return Membership(), NotEntitled(code="InvalidAccount", problem=problem)
        association = NONE
        if account is not None:
            is_known = has_started or self._accounts.is_configured(account, turn.user)
            if self._rules.known_users_only and not is_known:
                subject = (
                    f"user {turn.user}" if turn.user != NO_USER else "a workload without a user"
                )
                problem = f"{subject} has no place in account {account}"
                return Membership(), NotEntitled(code="InvalidAccount", problem=problem)
            association = self._accounts.find_or_add(account, turn.user)
        partition = self.partitions.get(turn.partition) or self._partition_of_queue(workload)
        qos = self._qos(turn.qos, association)
        behind = self.qos.get(partition.qos) if partition is not None else None
        user = turn.user if association == NONE else NO_USER
        member = Membership(association, qos, partition, behind, user)
        return member, self._refusal(workload, member)

    def _account(self, workload: Workload) -> str | None:
        """Return the account that a workload names, or its queue, namespace or user implies."""
        namespace = namespace_of(workload.queue)
        named = workload.turn.account or (
            self._account_of.get(workload.queue)
            or self._account_of.get(namespace)
            or (namespace if self._accounts.find(namespace) is not None else "")
            or self._default_account.get(workload.turn.user)
            or self._rules.default_account
        )
        return named if self._accounts.find(named) is not None else None

    def _partition_of_queue(self, workload: Workload) -> Partition | None:
        name = workload.queue.partition("/")[2]
        return self.partitions.get(name) or self._default

    def _qos(self, named: str, association: int) -> Qos | None:
        if named:
            return self.qos.get(named)
        for number in self._accounts.path(association):
            default = self._accounts.specs[number].default_qos
            if default:
                return self.qos.get(default)
        return self.qos.get(self._rules.default_qos)

    def _refusal(self, workload: Workload, member: Membership) -> Blocker | None:
        turn = workload.turn
        if turn.hold or turn.priority == 0:
            return Held(by=turn.hold or "user")
        is_operator = turn.user in self._rules.operators
        if turn.priority is not None and not is_operator and not self._rules.compat:
            problem = "only an operator may set a priority; remove it, or use nice"
            return NotEntitled(code="AccountingPolicy", problem=problem)
        if turn.nice < 0 and not is_operator:
            problem = f"nice is {turn.nice}; only an operator may go below 0"
            return NotEntitled(code="AccountingPolicy", problem=problem)
        if turn.partition and turn.partition not in self.partitions:
            problem = f"there is no partition {turn.partition}"
            return NotEntitled(code="PartitionConfig", problem=problem)
        if turn.qos and member.qos is None:
            return NotEntitled(code="InvalidQOS", problem=f"there is no QOS {turn.qos}")
        return self._not_allowed(member) or _closed(member.partition)

    def _not_allowed(self, member: Membership) -> NotEntitled | None:
        qos, partition = member.qos, member.partition
        allowed = next(
            (
                self._accounts.specs[number].qos
                for number in self._accounts.path(member.association)
                if self._accounts.specs[number].qos
            ),
            (),
        )
        if qos is not None and allowed and qos.name not in allowed:
            problem = f"its account may not use QOS {qos.name}, only {', '.join(allowed)}"
            return NotEntitled(code="InvalidQOS", problem=problem)
        if partition is None:
            return None
        name = qos.name if qos is not None else ""
        if (partition.allow_qos and name not in partition.allow_qos) or name in partition.deny_qos:
            problem = f"partition {partition.name} does not take QOS {name or '(none)'}"
            return NotEntitled(code="QOSNotAllowed", problem=problem)
        denied = any(self._is_below(member, one) for one in partition.deny_accounts)
        allow = partition.allow_accounts
        if denied or (allow and not any(self._is_below(member, one) for one in allow)):
            problem = f"partition {partition.name} does not take its account"
            return NotEntitled(code="AccountNotAllowed", problem=problem)
        return None

    def _is_below(self, member: Membership, account: str) -> bool:
        return self._accounts.is_below(member.association, account)

    def may_set_priority(self, workload: Workload) -> bool:
        """Say whether a priority that was set by hand counts."""
        turn = workload.turn
        return turn.priority is not None and turn.user in self._rules.operators


def _closed(partition: Partition | None) -> NotEntitled | None:
    """Return why a partition starts no workload; one that drains runs what is queued."""
    if partition is None or partition.state in ("UP", "DRAIN"):
        return None
    code = "PartitionDown" if partition.state == "DOWN" else "PartitionInactive"
    problem = f"partition {partition.name} is {partition.state.lower()}"
    return NotEntitled(code=code, problem=problem)


def _default_accounts(rules: MultifactorRules) -> dict[str, str]:
    """Return the account of every user: the only one, or of several the one marked as default."""
    places: dict[str, list[Association]] = {}
    for one in rules.associations:
        if one.user:
            places.setdefault(one.user, []).append(one)
    accounts: dict[str, str] = {}
    for user, found in places.items():
        marked = [one for one in found if one.is_default]
        if marked or len(found) == 1:
            accounts[user] = (marked or found)[0].account
    return accounts
