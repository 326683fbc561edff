"""The desk: knows whose turn it is, as long as it is told who comes, starts and ends.

It keeps what a decision needs about every waiting workload (`Standing`), what runs, what was used
and what everybody may have. Time is its `now`; nothing here reads a clock. What depends on time or
usage is worked out when it is asked for, once an instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from unisono.engine.model.explanation import Held, LimitReached
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.turns import Factors, Turns, UsageRecord
from unisono.engine.model.workload import Admission, Holding, Workload
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.classic_share import classic_shares
from unisono.engine.ordering.factors import (
    NEVER,
    Scales,
    Standing,
    factors_of,
    parts_of,
    set_priority,
)
from unisono.engine.ordering.fair_tree import Floats, level_shares, ranks, slurm_ranks
from unisono.engine.ordering.limits import LimitDesk
from unisono.engine.ordering.membership import NONE, Directory
from unisono.engine.ordering.places import Places
from unisono.engine.ordering.spending import Spending
from unisono.engine.ordering.tallies import Counted, Scope, Tallies, counted
from unisono.engine.ordering.tres import Tres, billing_micro, size_of


@dataclass(slots=True)
class Served:
    """A workload that runs, as it was counted when it started."""

    standing: Standing
    counted: Counted
    since: Instant


class TurnDesk:
    """Everything about turns that changes."""

    def __init__(self, rules: Turns, now: Instant) -> None:
        self.rules = rules
        self.now = now
        self.accounts = Accounts(rules)
        self.directory = Directory(rules, self.accounts)
        self.scales = Scales.of(rules)
        self.spending = Spending(rules, self.accounts)
        self.running = Tallies()
        self.limits = LimitDesk(self.accounts)
        self.places = Places(self.accounts, self.limits)
        self.standings: dict[WorkloadKey, Standing] = {}
        self.served: dict[WorkloadKey, Served] = {}
        # What was used until then is written down already, whoever used it.
        self.settled_until = Instant(0)
        self.edition = 0  # grows when the fixed part of somebody's priority changed
        self._workloads: dict[WorkloadKey, Workload] = {}
        self._shares: tuple[tuple[Instant, int, int], Floats] | None = None

    # --- who waits -------------------------------------------------------------------------------

    def enter(self, workload: Workload, *, was_held: bool = False) -> Standing:
        """Let a workload wait; what keeps it from starting at all is in its standing."""
        standing = self.standings[workload.key] = self._standing(workload)
        self._workloads[workload.key] = workload
        if not isinstance(standing.blocker, Held):
            self.places.submit(workload, standing)
            if was_held:
                self.places.release(workload.key, self.now)
        self._age(workload, standing)
        return standing

    def leave(self, key: WorkloadKey) -> None:
        """Let a workload wait no longer."""
        standing = self.standings.pop(key, None)
        if standing is not None:
            del self._workloads[key]
            self.places.withdraw(key)

    def _standing(self, workload: Workload, admission: Admission | None = None) -> Standing:
        has_started = admission is not None
        member, refusal = self.directory.look_up(workload, has_started=has_started)
        counts = _counts(workload, admission)
        size = size_of(workload.pod_sets, counts, admission)
        weights = member.partition.billing_weights if member.partition is not None else ()
        standing = Standing(
            member,
            size,
            billing_micro(size, weights, self.rules.billing),
            _time_limit_ms(workload),
            set_to=set_priority(workload, self.directory, self.rules),
            tier=member.partition.tier if member.partition is not None else 1,
        )
        if not has_started:  # what runs is not asked whether it may, nor how urgent it is
            standing.blocker = refusal or self.limits.on_its_own(standing)
            self._weigh(workload, standing)
        return standing

    def _weigh(self, workload: Workload, standing: Standing) -> None:
        priority = next(
            (
                self.accounts.specs[number].priority
                for number in self.accounts.path(standing.member.association)
                if self.accounts.specs[number].priority
            ),
            0,
        )
        standing.parts = parts_of(workload, standing, self.rules, self.scales, priority)
        standing.fixed = standing.parts.total()

    def _age(self, workload: Workload, standing: Standing) -> None:
        """Let it grow older from when it could have started, if it is allowed to."""
        since = self.places.accrues_since(workload.key)
        if self.rules.age_from_submission:
            standing.age_from = workload.position_time
        elif isinstance(standing.blocker, Held) or since is None:
            standing.age_from = NEVER
        else:
            begins = workload.begin_at or workload.position_time
            standing.age_from = max(since, workload.position_time, begins)

    def resize(self, totals: Mapping[str, Tres]) -> None:
        """Take in that the cluster, or a partition of it, is larger or smaller now."""
        if totals == self.scales.totals:
            return
        self.scales.totals = totals
        for key, standing in self.standings.items():
            self._weigh(self._workloads[key], standing)
        self.edition += 1

    def settle_places(self) -> list[WorkloadKey]:
        """Find out who may be submitted and who may age; return whose verdict changed."""
        changed = self.places.settle(self.now)
        for key in changed:
            standing = self.standings.get(key)
            if standing is not None:
                self._age(self._workloads[key], standing)
        if changed:
            self.edition += 1
        return changed

    # --- who runs --------------------------------------------------------------------------------

    def start(self, holding: Holding) -> None:
        """Count a workload that holds quota, and let it cost something."""
        workload, since = holding.workload, holding.running_since
        standing = self._standing(workload, holding.admission)
        charged = max(since, self.settled_until)
        served = Served(standing, counted(standing, self.accounts, since), charged)
        self.served[workload.key] = served
        self.running.come(served.counted)
        self.spending.start(standing, charged, self.now)
        self.places.run(workload.key, standing)

    def change(self, holding: Holding) -> tuple[Scope, ...]:
        """Count a workload anew that uses less (or more) than before; return who has room."""
        served = self.served.get(holding.workload.key)
        if served is None:
            self.start(holding)
            return ()
        standing = self._standing(holding.workload, holding.admission)
        now = counted(standing, self.accounts, holding.running_since)
        if now == served.counted:
            return ()
        self.running.go(served.counted)
        self.running.come(now)
        self.spending.stop(served.standing, served.since, self.now)
        self.spending.start(standing, self.now, self.now)
        self.served[holding.workload.key] = Served(standing, now, self.now)
        return served.counted.scopes

    def stop(self, key: WorkloadKey) -> tuple[Scope, ...]:
        """Count it no longer; return who has room again."""
        served = self.served.pop(key, None)
        if served is None:
            return ()
        self.running.go(served.counted)
        self.spending.stop(served.standing, served.since, self.now)
        self.places.withdraw(key)
        return served.counted.scopes

    def over_limit_of(self, key: WorkloadKey, more: Tallies) -> LimitReached | None:
        """Return the limit that a waiting workload would break by starting now."""
        return self.over_limit(self.standings[key], more)

    def count(self, key: WorkloadKey, among: Tallies) -> None:
        """Count a waiting workload as if it ran from now on."""
        among.come(counted(self.standings[key], self.accounts, self.now))

    def over_limit(self, standing: Standing, more: Tallies | None = None) -> LimitReached | None:
        """Return the limit that a workload would break by starting now, beside `more` others."""
        now = self.now
        return self.limits.beside_others(
            standing,
            now,
            (self.running,) if more is None else (self.running, more),
            lambda owner, what: self.spending.spent(owner, what, now),
            lambda owner, what, limit: self.spending.fades_below(owner, what, limit, now),
        )

    # --- priorities ------------------------------------------------------------------------------

    def fair_shares(self) -> Floats:
        """Return every association's fair share, and after the last a 0 for those without one."""
        stamp = (self.now, self.accounts.version, self.spending.version)
        if self._shares is None or self._shares[0] != stamp:
            self._shares = (stamp, np.append(self._fair_shares(), 0.0))
        return self._shares[1]

    def _fair_shares(self) -> Floats:
        usage = self.spending.billing(self.now)
        if self.rules.fair_share != "tree":
            return classic_shares(self.accounts, usage, self.rules)
        level = level_shares(self.accounts, usage)
        rank = partial(slurm_ranks if self.rules.compat else ranks, self.accounts)
        return rank(level)

    def stamp(self) -> tuple[Instant, int, int, int]:
        """Return what a ranking of everybody depends on besides who is there."""
        return self.now, self.accounts.version, self.spending.version, self.edition

    def whose(self, key: WorkloadKey) -> tuple[str, str] | None:
        """Return the account and the QOS of somebody who waits or runs; empty where it has none."""
        standing = self.standings.get(key)
        if standing is None and key in self.served:
            standing = self.served[key].standing
        if standing is None:
            return None
        member = standing.member
        named = member.association != NONE
        account = self.accounts.specs[member.association].account if named else ""
        return account, member.qos.name if member.qos is not None else ""

    def factors(self, key: WorkloadKey) -> Factors | None:
        """Take the priority of a waiting workload apart."""
        standing = self.standings.get(key)
        if standing is None:
            return None
        association = standing.member.association
        share = float(self.fair_shares()[association]) if association != NONE else 0.0
        return factors_of(standing, self.rules, share, self.now)

    def let_age(self, ageing: tuple[tuple[WorkloadKey, Instant], ...]) -> None:
        """Go on from what was written down about those who needed leave to age."""
        self.places.take_over(ageing)
        for key, _ in ageing:
            if key in self.standings:
                self._age(self._workloads[key], self.standings[key])
        self.edition += 1

    def take_over(self, record: UsageRecord) -> None:
        """Go on from what was written down; if nobody runs yet, all that was used until then."""
        if not self.served:
            self.settled_until = max(self.settled_until, record.at)
        self.spending.take_over(record)


def _counts(workload: Workload, admission: Admission | None) -> list[int]:
    """Return how many pods of each set count: those that still have to run, or that do."""
    done = dict(workload.reclaimable)
    granted = {one.name: one.count for one in admission.pod_sets} if admission else {}
    return [
        max(0, granted.get(one.name, one.count) - done.get(one.name, 0))
        for one in workload.pod_sets
    ]


def _time_limit_ms(workload: Workload) -> int | None:
    """Return how long it will run at most, as far as it says so."""
    if workload.time_limit_ms is not None:
        return workload.time_limit_ms
    return workload.max_execution_ms
