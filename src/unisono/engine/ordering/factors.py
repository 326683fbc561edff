"""The factors of a priority: which parts it has, and how they become one number (spec priority §5).

    P = trunc(site + age + association + fair share + job size + partition + qos + tres - nice)

bounded to 1 … 4294967295; 0 means held. Age and fair share change with time and usage; all other
parts are computed once, when a workload is submitted (`JobRecord.fixed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unisono.engine.model.explanation import Blocker, Held
from unisono.engine.model.multifactor import Factors, MultifactorRules
from unisono.engine.model.names import Instant
from unisono.engine.model.workload import Workload
from unisono.engine.ordering.accounts import Directory, Membership
from unisono.engine.ordering.tres import MILLI, Size, Tres

HIGHEST = 2**32 - 1
NEVER = Instant(2**62)  # the workload gains no age


class Parts(NamedTuple):
    """The weighted parts that neither time nor usage changes."""

    site: float = 0.0
    association: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: tuple[tuple[str, float], ...] = ()
    nice: int = 0

    def total(self) -> float:
        """Add them up, in the order of the formula."""
        total = self.site + self.association + self.job_size + self.partition + self.qos
        for _, part in self.tres:
            total += part
        return total - self.nice


NO_PARTS = Parts()


@dataclass(slots=True)
class JobRecord:
    """What priorities and limits need of a workload."""

    member: Membership
    size: Size
    billing_micro: int
    time_limit_ms: int | None
    parts: Parts = NO_PARTS
    fixed: float = 0.0
    set_to: int | None = None  # a priority that no factor changes
    tier: int = 1
    age_from: Instant = NEVER
    blocker: Blocker | None = None  # only an edit of the workload or the policy changes this


@dataclass(slots=True)
class Scales:
    """What makes a factor 1: the largest priorities configured, and the sizes of the cluster."""

    association: int = 0
    qos: int = 0
    partition: int = 0
    totals: Mapping[str, Tres] = field(default_factory=dict)  # by partition; "": all nodes

    @staticmethod
    def of(rules: MultifactorRules) -> Scales:
        """Read them from the policy."""
        return Scales(
            association=max((one.priority for one in rules.associations), default=0),
            qos=max((one.priority for one in rules.qos), default=0),
            partition=max((one.job_factor for one in rules.partitions), default=0),
        )


def parts_of(
    workload: Workload, record: JobRecord, rules: MultifactorRules, scales: Scales, priority: int
) -> Parts:
    """Return the weighted parts that neither time nor usage changes."""
    member, weights = record.member, rules.weights
    partition = member.partition
    name = partition.name if partition is not None and partition.node_labels else ""
    totals = scales.totals.get(name, {})
    factor = partition.job_factor if partition is not None else 0
    qos = member.qos.priority if member.qos is not None else 0
    return Parts(
        site=float(workload.submit_options.site + weights.priority_class * workload.priority),
        association=weights.association
        * _normal(priority, scales.association, raw="association" in rules.raw),
        job_size=weights.job_size * job_size(record, rules, scales.totals.get("", {})),
        partition=weights.partition
        * _normal(factor, scales.partition, raw="partition" in rules.raw),
        qos=weights.qos * _normal(qos, scales.qos, raw="qos" in rules.raw),
        tres=tuple(
            (one, weight * _tres_part(one, record.size.tres, totals, raw="tres" in rules.raw))
            for one, weight in weights.tres
        ),
        nice=workload.submit_options.nice,
    )


def _normal(value: int, largest: int, *, raw: bool) -> float:
    if raw:
        return float(value)
    return value / largest if largest else 0.0


def _tres_part(name: str, wanted: Tres, totals: Tres, *, raw: bool) -> float:
    amount = wanted.get(name, 0)
    if raw:
        return amount / MILLI
    return min(1.0, amount / totals[name]) if totals.get(name) else 0.0


def job_size(record: JobRecord, rules: MultifactorRules, totals: Tres) -> float:
    """Return the part of the cluster that a workload requests, from 0 to 1."""
    nodes, cores = record.size.tres.get("node", 0), record.size.tres.get("cpu", 0)
    all_nodes, all_cores = totals.get("node", 0), totals.get("cpu", 0)
    if rules.small_relative_to_time:
        return _size_over_time(record, rules, nodes, cores, all_nodes, all_cores)
    by_nodes = nodes / all_nodes if all_nodes else 0.0
    by_cores = cores / all_cores if all_cores else 0.0
    if rules.favor_small:
        by_nodes = max(0.0, 1.0 - by_nodes) if all_nodes else 0.0
        by_cores = max(0.0, 1.0 - by_cores) if all_cores else 0.0
    if not all_nodes or not all_cores or not cores:  # one of them says nothing
        return min(1.0, by_nodes if all_nodes else by_cores)
    return min(1.0, (by_nodes + by_cores) / 2)


def _size_over_time(
    record: JobRecord,
    rules: MultifactorRules,
    nodes: int,
    cores: int,
    all_nodes: int,
    all_cores: int,
) -> float:
    """A large job of a few minutes counts more than a small one of a week."""
    limit_ms = record.time_limit_ms
    partition = record.member.partition
    if limit_ms is None and partition is not None:
        limit_ms = partition.max_time_ms
    if not limit_ms or not all_cores:
        return 0.0
    wide = nodes * all_cores / all_nodes if all_nodes else 0.0
    part = max(wide, cores) / (limit_ms / 60_000) / all_cores
    return min(1.0, max(0.0, 1.0 - part if rules.favor_small else part))


def age_part(rules: MultifactorRules, age_from: Instant, now: Instant) -> float:
    """Return the weighted age of one workload."""
    if age_from >= now or rules.max_age_ms <= 0:
        return 0.0
    return rules.weights.age * min(1.0, (now - age_from) / rules.max_age_ms)


def priority_of(total: float) -> int:
    """Truncate a sum to a priority. The one place where a float becomes an integer."""
    return max(1, min(HIGHEST, int(total)))


def priorities(
    fixed: npt.NDArray[np.float64],
    age_from: npt.NDArray[np.int64],
    fair_share: npt.NDArray[np.float64],
    rules: MultifactorRules,
    now: Instant,
) -> npt.NDArray[np.int64]:
    """Return the priorities of many workloads, equal to `priority_of` of each."""
    age = np.zeros(len(fixed), dtype=np.float64)
    if rules.weights.age and rules.max_age_ms > 0:
        waited = np.maximum(0, now - age_from) / rules.max_age_ms
        age = rules.weights.age * np.minimum(1.0, waited)
    total = fixed + age + rules.weights.fair_share * fair_share
    return np.clip(total, 1, HIGHEST).astype(np.int64)


def factors_of(
    record: JobRecord, rules: MultifactorRules, fair_share: float, now: Instant
) -> Factors:
    """Return the factors of a priority, for explanations."""
    if isinstance(record.blocker, Held):
        return Factors(priority=0, tier=record.tier)
    if record.set_to is not None:
        return Factors(priority=record.set_to, tier=record.tier, is_set=True)
    parts = record.parts
    age = age_part(rules, record.age_from, now)
    share = rules.weights.fair_share * fair_share
    return Factors(
        priority=priority_of(record.fixed + age + share),
        tier=record.tier,
        age=age,
        association=parts.association,
        fair_share=share,
        job_size=parts.job_size,
        partition=parts.partition,
        qos=parts.qos,
        tres=parts.tres,
        site=parts.site,
        nice=parts.nice,
    )


def set_priority(workload: Workload, directory: Directory, rules: MultifactorRules) -> int | None:
    """Return a priority that no factor changes, if the workload has one."""
    if rules.order == "priority":
        return workload.priority
    return workload.submit_options.priority if directory.may_set_priority(workload) else None
