"""Multifactor priority: the priorities of pending workloads, limits, and usage (spec priority).

It follows workloads that become pending, start and end, and keeps what priorities and limits need
of each (`JobRecord`). Time is its `now`; nothing here reads a clock. What depends on time or usage
is computed on demand, once an instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from unisono.engine.model.explanation import Held, LimitReached
from unisono.engine.model.multifactor import Factors, MultifactorRules, UsageRecord
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.workload import Admission, AdmittedWorkload, Workload
from unisono.engine.ordering.accounts import NONE, Accounts, Directory
from unisono.engine.ordering.factors import (
    NEVER,
    JobRecord,
    Scales,
    factors_of,
    parts_of,
    set_priority,
)
from unisono.engine.ordering.fair_share import (
    Floats,
    classic_shares,
    level_shares,
    ranks,
    slurm_ranks,
)
from unisono.engine.ordering.limit_counters import Counted, LimitCounters, Scope, counted
from unisono.engine.ordering.limits import LimitChecker
from unisono.engine.ordering.submit_slots import SubmitSlots
from unisono.engine.ordering.tres import Tres, billing_micro, size_of
from unisono.engine.ordering.usage import AccountUsage
from unisono.engine.state.features import Accruing


@dataclass(slots=True)
class RunningJob:
    """A running workload as it was counted when it started, so that it is uncounted alike."""

    record: JobRecord
    counted: Counted
    since: Instant


class MultifactorPriority:
    """Priorities, limits and usage under one set of rules."""

    def __init__(self, rules: MultifactorRules, now: Instant) -> None:
        self.rules = rules
        self.now = now
        self.accounts = Accounts(rules)
        self.directory = Directory(rules, self.accounts)
        self.scales = Scales.of(rules)
        self.usage = AccountUsage(rules, self.accounts)
        self.in_use = LimitCounters()  # by what runs
        self.limits = LimitChecker(self.accounts)
        self.submit_slots = SubmitSlots(self.accounts, self.limits)
        self.pending: dict[WorkloadKey, JobRecord] = {}
        self.running: dict[WorkloadKey, RunningJob] = {}
        # Usage until then came from records, so that running workloads are charged only after it.
        self.settled_until = Instant(0)
        self.edition = 0  # grows when the fixed part of any priority changed
        self._workloads: dict[WorkloadKey, Workload] = {}
        self._shares: tuple[tuple[Instant, int, int], Floats] | None = None

    # --- pending workloads -----------------------------------------------------------------------

    def enter(self, workload: Workload, *, was_held: bool = False) -> JobRecord:
        """Take in a pending workload; what keeps it from ever starting is in its record."""
        record = self.pending[workload.key] = self._record(workload)
        self._workloads[workload.key] = workload
        if not isinstance(record.blocker, Held):
            self.submit_slots.add_pending(workload, record)
            if was_held:
                self.submit_slots.release(workload.key, self.now)
        self._set_age(workload, record)
        return record

    def leave(self, key: WorkloadKey) -> None:
        """Forget a workload that is no longer pending."""
        record = self.pending.pop(key, None)
        if record is not None:
            del self._workloads[key]
            self.submit_slots.remove(key)

    def _record(self, workload: Workload, admission: Admission | None = None) -> JobRecord:
        has_started = admission is not None
        member, refusal = self.directory.look_up(workload, has_started=has_started)
        counts = _counts(workload, admission)
        size = size_of(workload.pod_sets, counts, admission)
        weights = member.partition.billing_weights if member.partition is not None else ()
        record = JobRecord(
            member,
            size,
            billing_micro(size, weights, self.rules.billing),
            _time_limit_ms(workload),
            set_to=set_priority(workload, self.directory, self.rules),
            tier=member.partition.tier if member.partition is not None else 1,
        )
        if not has_started:  # a running workload needs neither permission nor priority
            record.blocker = refusal or self.limits.on_its_own(record)
            self._weigh(workload, record)
        return record

    def _weigh(self, workload: Workload, record: JobRecord) -> None:
        priority = next(
            (
                self.accounts.specs[number].priority
                for number in self.accounts.path(record.member.association)
                if self.accounts.specs[number].priority
            ),
            0,
        )
        record.parts = parts_of(workload, record, self.rules, self.scales, priority)
        record.fixed = record.parts.total()

    def _set_age(self, workload: Workload, record: JobRecord) -> None:
        """Set from when a workload gains age: since it could have started and has a slot for it."""
        since = self.submit_slots.accrues_since(workload.key)
        if self.rules.age_from_submission:
            record.age_from = workload.position_time
        elif isinstance(record.blocker, Held) or since is None:
            record.age_from = NEVER
        else:
            begins = workload.begin_at or workload.position_time
            record.age_from = max(since, workload.position_time, begins)

    def resize(self, totals: Mapping[str, Tres]) -> None:
        """Take in the sizes of the cluster and its partitions, which factors are relative to."""
        if totals == self.scales.totals:
            return
        self.scales.totals = totals
        for key, record in self.pending.items():
            self._weigh(self._workloads[key], record)
        self.edition += 1

    def settle_slots(self) -> list[WorkloadKey]:
        """Assign submit and accrue slots anew; return the workloads for which that changed."""
        changed = self.submit_slots.settle(self.now)
        for key in changed:
            record = self.pending.get(key)
            if record is not None:
                self._set_age(self._workloads[key], record)
        if changed:
            self.edition += 1
        return changed

    # --- running workloads -----------------------------------------------------------------------

    def start(self, admitted: AdmittedWorkload) -> None:
        """Count a workload for limits and start charging its usage."""
        workload, since = admitted.workload, admitted.running_since
        record = self._record(workload, admitted.admission)
        charged = max(since, self.settled_until)
        job = RunningJob(record, counted(record, self.accounts, since), charged)
        self.running[workload.key] = job
        self.in_use.add(job.counted)
        self.usage.start(record, charged, self.now)
        self.submit_slots.add_running(workload.key, record)

    def change(self, admitted: AdmittedWorkload) -> tuple[Scope, ...]:
        """Count a workload that changed its size anew; return the scopes that may have room now."""
        job = self.running.get(admitted.workload.key)
        if job is None:
            self.start(admitted)
            return ()
        record = self._record(admitted.workload, admitted.admission)
        now = counted(record, self.accounts, admitted.running_since)
        if now == job.counted:
            return ()
        self.in_use.remove(job.counted)
        self.in_use.add(now)
        self.usage.stop(job.record, job.since, self.now)
        self.usage.start(record, self.now, self.now)
        self.running[admitted.workload.key] = RunningJob(record, now, self.now)
        return job.counted.scopes

    def stop(self, key: WorkloadKey) -> tuple[Scope, ...]:
        """Count a workload no longer; return the scopes that have room again."""
        job = self.running.pop(key, None)
        if job is None:
            return ()
        self.in_use.remove(job.counted)
        self.usage.stop(job.record, job.since, self.now)
        self.submit_slots.remove(key)
        return job.counted.scopes

    def over_limit_of(self, key: WorkloadKey, more: LimitCounters) -> LimitReached | None:
        """Return the limit that a pending workload would exceed by starting now."""
        return self.over_limit(self.pending[key], more)

    def count(self, key: WorkloadKey, among: LimitCounters) -> None:
        """Count a pending workload as if it ran from now on."""
        among.add(counted(self.pending[key], self.accounts, self.now))

    def over_limit(
        self, record: JobRecord, more: LimitCounters | None = None
    ) -> LimitReached | None:
        """Return the limit that a workload would exceed by starting now, beside `more` others."""
        now = self.now
        return self.limits.beside_others(
            record,
            now,
            (self.in_use,) if more is None else (self.in_use, more),
            lambda owner, what: self.usage.used(owner, what, now),
            lambda owner, what, limit: self.usage.decays_below(owner, what, limit, now),
        )

    # --- priorities ------------------------------------------------------------------------------

    def fair_shares(self) -> Floats:
        """Return the fair share of every association, and a 0 at the end for the lack of one."""
        stamp = (self.now, self.accounts.version, self.usage.version)
        if self._shares is None or self._shares[0] != stamp:
            self._shares = (stamp, np.append(self._fair_shares(), 0.0))
        return self._shares[1]

    def _fair_shares(self) -> Floats:
        usage = self.usage.billing(self.now)
        if self.rules.fair_share != "tree":
            return classic_shares(self.accounts, usage, self.rules)
        level = level_shares(self.accounts, usage)
        rank = partial(slurm_ranks if self.rules.compat else ranks, self.accounts)
        return rank(level)

    def stamp(self) -> tuple[Instant, int, int, int]:
        """Return what all priorities depend on: while it is equal, so are they."""
        return self.now, self.accounts.version, self.usage.version, self.edition

    def account_and_qos(self, key: WorkloadKey) -> tuple[str, str] | None:
        """Return the account and QOS of a pending or running workload; empty where it has none."""
        record = self.pending.get(key)
        if record is None and key in self.running:
            record = self.running[key].record
        if record is None:
            return None
        member = record.member
        named = member.association != NONE
        account = self.accounts.specs[member.association].account if named else ""
        return account, member.qos.name if member.qos is not None else ""

    def factors(self, key: WorkloadKey) -> Factors | None:
        """Return the factors of a pending workload's priority."""
        record = self.pending.get(key)
        if record is None:
            return None
        association = record.member.association
        share = float(self.fair_shares()[association]) if association != NONE else 0.0
        return factors_of(record, self.rules, share, self.now)

    def load_accruing(self, accruing: Accruing) -> None:
        """Go on from recorded starts of age."""
        self.submit_slots.load(accruing)
        for key, _ in accruing:
            if key in self.pending:
                self._set_age(self._workloads[key], self.pending[key])
        self.edition += 1

    def load_usage(self, record: UsageRecord) -> None:
        """Go on from recorded usage; if nothing runs yet, it is all usage until then."""
        if not self.running:
            self.settled_until = max(self.settled_until, record.at)
        self.usage.load(record)


def _counts(workload: Workload, admission: Admission | None) -> list[int]:
    """Return how many pods of each set count: of those not finished, the granted ones if any."""
    done = dict(workload.reclaimable)
    granted = {one.name: one.count for one in admission.pod_sets} if admission else {}
    return [
        max(0, granted.get(one.name, one.count) - done.get(one.name, 0))
        for one in workload.pod_sets
    ]


def _time_limit_ms(workload: Workload) -> int | None:
    """Return the longest a workload may run, as far as it says so."""
    if workload.time_limit_ms is not None:
        return workload.time_limit_ms
    return workload.max_execution_ms
