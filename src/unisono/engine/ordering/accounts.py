"""The tree of accounts and users with their shares, by number (spec priority §1).

Number 0 is the account `root`. A user that is not configured is added, with one share, when it or
usage of it is first seen; that does not make it a configured user (`Accounts.is_configured`).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from unisono.engine.model.multifactor import NO_USER, ROOT, Association, MultifactorRules


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
