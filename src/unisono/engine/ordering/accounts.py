"""The tree of accounts and users, and the place of a workload in it (spec priority §1, §2).

Accounts have numbers; number 0 is the account `root`. A user that is not configured is added, with
one share, when it or usage of it is first seen; that does not make it a configured user
(`Accounts.is_configured`). `Directory` finds the association, QOS and partition of a workload, or
why it may use none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from unisono.engine.model.explanation import Blocker, Held, NotEntitled
from unisono.engine.model.multifactor import (
    NO_USER,
    ROOT,
    Association,
    MultifactorRules,
    Partition,
    Qos,
)
from unisono.engine.model.names import namespace_of
from unisono.engine.model.workload import Workload


class Accounts:
    """Associations by number; columns rather than objects, because all are ranked at once."""

    def __init__(self, rules: MultifactorRules) -> None:
        self.specs: list[Association] = []
        self.parents: list[int] = []
        # The parent for fair share: an account that takes its parent's shares is passed over.
        self.fair_parents: list[int] = []
        self.depths: list[int] = []  # along the fair parents
        self.version = 0
        self._number: dict[tuple[str, str | None], int] = {}
        self._append(_spec_of_root(rules), -1)
        for spec in _parents_first(rules):
            self._append(spec, self._number.get((spec.parent, None), 0))
        users = [one for one in rules.associations if one.user is not None]
        if not any(one.account == ROOT and one.user == ROOT for one in users):
            users.insert(0, Association(account=ROOT, user=ROOT))
        for spec in users:
            self._append(spec, self._number.get((spec.account, None), 0))
        self._configured = len(self.specs)

    def is_configured(self, account: str, user: str) -> bool:
        """Say whether the policy itself has a user in an account."""
        number = self._number.get((account, user))
        return number is not None and number < self._configured

    def find(self, account: str, user: str | None = None) -> int | None:
        """Return the number of an account, or of a user in one."""
        return self._number.get((account, user))

    def find_or_add(self, account: str, user: str) -> int:
        """Return the number of a user, which is added if it is not known yet."""
        known = self._number.get((account, user))
        if known is not None:
            return known
        parent = self._number[account, None]
        return self._append(Association(account=account, user=user), parent)

    def path(self, number: int) -> Iterator[int]:
        """Yield an association and all above it, the root last."""
        while number >= 0:
            yield number
            number = self.parents[number]

    def is_user(self, number: int) -> bool:
        """Say whether it is a leaf."""
        return self.specs[number].user is not None

    def is_below(self, number: int, account: str) -> bool:
        """Say whether an association is the account or belongs to it."""
        return any(self.specs[one].account == account for one in self.path(number))

    def owner(self, number: int) -> str:
        """Return the name that usage records and explanations have for it."""
        spec = self.specs[number]
        return (
            f"account/{spec.account}" if spec.user is None else (f"user/{spec.account}/{spec.user}")
        )

    def at(self, owner: str) -> int | None:
        """Return the association of such a name; a user is added, an account must exist."""
        kind, _, rest = owner.partition("/")
        if kind == "account":
            return self.find(rest)
        account, _, user = rest.partition("/")
        return self.find_or_add(account, user) if self.find(account) is not None else None

    def _append(self, spec: Association, parent: int) -> int:
        number = len(self.specs)
        fair = parent
        while fair > 0 and self.specs[fair].shares is None:
            fair = self.parents[fair]
        self.specs.append(spec)
        self.parents.append(parent)
        self.fair_parents.append(fair)
        self.depths.append(0 if parent < 0 else self.depths[fair] + 1)
        self._number[spec.account, spec.user] = number
        self.version += 1
        return number


def _spec_of_root(rules: MultifactorRules) -> Association:
    for one in rules.associations:
        if one.account == ROOT and one.user is None:
            return one
    return Association(account=ROOT)


def _parents_first(rules: MultifactorRules) -> Iterator[Association]:
    """Yield accounts after their parents; one that is below itself counts as below root."""
    left = {
        one.account: one for one in rules.associations if one.user is None and one.account != ROOT
    }
    placed = {ROOT}
    while left:
        ready = [one for one in left.values() if one.parent in placed or one.parent not in left]
        for one in ready or [msgspec.structs.replace(next(iter(left.values())), parent=ROOT)]:
            yield one
            placed.add(one.account)
            del left[one.account]


def describe(owner: str) -> str:
    """Return an owner's name in words.

    >>> describe("user/research/alice"), describe("qos/normal")
    ('user alice of account research', 'QOS normal')
    """
    kind, _, rest = owner.partition("/")
    if kind == "user":
        account, _, user = rest.partition("/")
        return f"user {user} of account {account}" if user != NO_USER else f"account {account}"
    return f"{'QOS' if kind == 'qos' else kind} {rest}"


# --- the association, QOS and partition of a workload ---------------------------------------------


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
        options = workload.submit_options
        account = self._account(workload)
        if account is None and options.account:
            problem = f"there is no account {options.account}"
            return Membership(), NotEntitled(code="InvalidAccount", problem=problem)
        association = NONE
        if account is not None:
            is_known = has_started or self._accounts.is_configured(account, options.user)
            if self._rules.known_users_only and not is_known:
                subject = (
                    f"user {options.user}"
                    if options.user != NO_USER
                    else "a workload without a user"
                )
                problem = f"{subject} has no place in account {account}"
                return Membership(), NotEntitled(code="InvalidAccount", problem=problem)
            association = self._accounts.find_or_add(account, options.user)
        partition = self.partitions.get(options.partition) or self._partition_of_queue(workload)
        qos = self._qos(options.qos, association)
        behind = self.qos.get(partition.qos) if partition is not None else None
        user = options.user if association == NONE else NO_USER
        member = Membership(association, qos, partition, behind, user)
        return member, self._refusal(workload, member)

    def _account(self, workload: Workload) -> str | None:
        """Return the account that a workload names, or its queue, namespace or user implies."""
        namespace = namespace_of(workload.queue)
        named = workload.submit_options.account or (
            self._account_of.get(workload.queue)
            or self._account_of.get(namespace)
            or (namespace if self._accounts.find(namespace) is not None else "")
            or self._default_account.get(workload.submit_options.user)
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
        options = workload.submit_options
        if options.hold or options.priority == 0:
            return Held(by=options.hold or "user")
        is_operator = options.user in self._rules.operators
        if options.priority is not None and not is_operator and not self._rules.compat:
            problem = "only an operator may set a priority; remove it, or use nice"
            return NotEntitled(code="AccountingPolicy", problem=problem)
        if options.nice < 0 and not is_operator:
            problem = f"nice is {options.nice}; only an operator may go below 0"
            return NotEntitled(code="AccountingPolicy", problem=problem)
        if options.partition and options.partition not in self.partitions:
            problem = f"there is no partition {options.partition}"
            return NotEntitled(code="PartitionConfig", problem=problem)
        if options.qos and member.qos is None:
            return NotEntitled(code="InvalidQOS", problem=f"there is no QOS {options.qos}")
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
        options = workload.submit_options
        return options.priority is not None and options.user in self._rules.operators


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
