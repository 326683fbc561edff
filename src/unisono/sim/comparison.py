"""Policies side by side: every figure, its difference to the first policy, and a verdict.

Policies are compared seed by seed: each seed is one trace that all of them replayed, so what makes
a trace hard is the same for all and falls out of the difference. A difference is clear when its
mean over the seeds is larger than its spread, the distance between its smallest and its largest
value. With one seed there is no spread and nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

import msgspec
import numpy as np

from unisono.sim.formatting import NOTHING, dollars, duration, number, percent
from unisono.sim.measures import NAN, Measures, measure
from unisono.sim.outcome import Outcome
from unisono.sim.trace import BadTrace

LOWER, HIGHER, NEITHER = -1, 1, 0


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of an outcome."""

    key: str  # where it is in Measures
    label: str
    form: Callable[[float], str]
    better: int  # LOWER, HIGHER or NEITHER

    def of(self, measures: Measures) -> float:
        """Return its value; NaN where there is nothing to measure."""
        return float(attrgetter(self.key)(measures))


FIGURES = (
    Figure("jobs", "jobs", number, NEITHER),
    Figure("completed", "completed", number, HIGHER),
    Figure("wait.mean", "wait, mean", duration, LOWER),
    Figure("wait.median", "wait, median", duration, LOWER),
    Figure("wait.p95", "wait, 95th percentile", duration, LOWER),
    Figure("wait.largest", "wait, largest", duration, LOWER),
    # No verdict: where most jobs wait less, more of the others wait ten times the median.
    Figure("starving", "starving jobs", number, NEITHER),
    Figure("total_wait.mean", "total wait, mean", duration, LOWER),
    Figure("response.mean", "response, mean", duration, LOWER),
    Figure("slowdown.mean", "bounded slowdown, mean", number, LOWER),
    Figure("slowdown.median", "bounded slowdown, median", number, LOWER),
    Figure("slowdown.p95", "bounded slowdown, 95th percentile", number, LOWER),
    Figure("slowdown_per_processor.mean", "per-processor slowdown, mean", number, LOWER),
    Figure("makespan", "makespan", duration, LOWER),
    Figure("utilisation", "utilisation", percent, HIGHER),
    Figure("utilisation_window", "utilisation while jobs arrive", percent, HIGHER),
    Figure("gpu_allocation", "GPUs allocated, mean", percent, HIGHER),
    Figure("gpu_allocation_peak", "GPUs allocated, peak", percent, HIGHER),
    Figure("goodput", "goodput", percent, HIGHER),
    Figure("gang_waste", "gang waste, GPU-seconds", number, LOWER),
    Figure("fragmentation", "fragmented, of all GPUs", percent, LOWER),
    Figure("fragmentation_of_idle", "fragmented, of idle GPUs", percent, LOWER),
    Figure("fairness.jain", "Jain index", number, HIGHER),
    Figure("fairness.jain_hourly", "Jain index, hourly mean", number, HIGHER),
    Figure("fairness.jain_worst_hour", "Jain index, worst hour", number, HIGHER),
    Figure("fairness.shortfall", "largest share shortfall", percent, LOWER),
    Figure("fairness.finish_time_ratio", "finish-time ratio, mean", number, LOWER),
    Figure(
        "fairness.finish_time_ratio_worst_queue", "finish-time ratio, worst queue", number, LOWER
    ),
    Figure("preemptions", "preemptions", number, LOWER),
    Figure("reclaims", "reclaims", number, NEITHER),
    Figure("interruptions", "interrupted by nodes that failed", number, LOWER),
    Figure("lost", "work lost, seconds", number, LOWER),
    Figure("queue_mean", "queue length, mean", number, LOWER),
    Figure("queue_largest", "queue length, largest", number, LOWER),
    Figure("cost", "cost", dollars, LOWER),
    Figure("cost_of_work", "cost of an hour of work", dollars, LOWER),
    Figure("machine_hours", "machine hours paid", number, LOWER),
    Figure("machines_peak", "machines, peak", number, NEITHER),
    Figure("paid_used", "paid for and used", percent, HIGHER),
    Figure("decisions", "decisions", number, NEITHER),
    Figure("policy_cpu", "CPU of the simulation", duration, LOWER),
    Figure("speed", "simulated s per s", number, HIGHER),
)

# Left out of tables while all values are zero.
_ONLY_IF_ANY = frozenset(
    {
        "preemptions",
        "reclaims",
        "interruptions",
        "lost",
        "gang_waste",
        "decisions",
        "policy_cpu",
        "starving",
    }
)


def is_worth_showing(figure: Figure, values: list[float]) -> bool:
    """Say whether a row of these values is shown."""
    if all(math.isnan(value) for value in values):
        return False
    return figure.key not in _ONLY_IF_ANY or any(value != 0 for value in values)


Verdict = Literal["", "better", "worse", "different", "within spread"]


class Cell(msgspec.Struct, frozen=True, rename="camel"):
    """A figure of a policy, over the seeds."""

    mean: float
    low: float
    high: float
    difference: float = NAN  # to the first policy, mean over the seeds
    spread: float = NAN  # of the differences
    verdict: Verdict = ""


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """A figure of every policy."""

    key: str
    label: str
    cells: tuple[Cell, ...]


class Comparison(msgspec.Struct, frozen=True, rename="camel"):
    """The whole table; columns are in the order of the policies."""

    policies: tuple[str, ...]
    seeds: int
    rows: tuple[Row, ...]


def compare(outcomes: Sequence[Outcome]) -> Comparison:
    """Return the table of outcomes: each policy with the same seeds, the baseline first."""
    found: dict[str, dict[int, Measures]] = {}
    replayed: dict[int, Outcome] = {}
    for outcome in outcomes:
        first = replayed.setdefault(outcome.seed, outcome)
        if not _is_same_work(first, outcome):
            raise BadTrace(
                outcome.policy,
                f"replayed other jobs than {first.policy}; compare outcomes of one trace",
            )
        by_seed = found.setdefault(outcome.policy, {})
        if outcome.seed in by_seed:
            raise BadTrace(
                outcome.policy, f"has two outcomes with seed {outcome.seed}; keep one of them"
            )
        by_seed[outcome.seed] = measure(outcome)
    return compare_measures(found)


def compare_measures(found: Mapping[str, Mapping[int, Measures]]) -> Comparison:
    """Return the table of measures by policy and seed."""
    policies = tuple(found)
    seeds = sorted(found[policies[0]]) if policies else []
    for policy in policies:
        if sorted(found[policy]) != seeds:
            raise BadTrace(policy, f"has other seeds than {policies[0]}; compare the same seeds")
    columns = [[found[policy][seed] for seed in seeds] for policy in policies]
    rows = [_row(figure, columns) for figure in FIGURES]
    return Comparison(policies, len(seeds), tuple(row for row in rows if row is not None))


def _is_same_work(one: Outcome, other: Outcome) -> bool:
    """Say whether two outcomes are of the same jobs; requests and clusters may differ."""
    return all(
        np.array_equal(getattr(one.trace, name), getattr(other.trace, name))
        for name in ("number", "submit", "run", "pods")
    )


def _row(figure: Figure, columns: Sequence[Sequence[Measures]]) -> Row | None:
    values = [[figure.of(one) for one in column] for column in columns]
    if not is_worth_showing(figure, [value for column in values for value in column]):
        return None
    cells = [_cell(figure, column, values[0], is_first=at == 0) for at, column in enumerate(values)]
    if all(math.isnan(cell.mean) for cell in cells):  # some seeds have nothing to measure
        return None
    return Row(figure.key, figure.label, tuple(cells))


def _cell(
    figure: Figure, values: Sequence[float], baseline: Sequence[float], *, is_first: bool
) -> Cell:
    mean, low, high = _mean(values), min(values), max(values)
    if is_first:
        return Cell(mean, low, high)
    differences = [value - other for value, other in zip(values, baseline, strict=True)]
    difference, spread = _mean(differences), max(differences) - min(differences)
    verdict: Verdict = ""
    if len(values) > 1 and not math.isnan(difference):
        verdict = _verdict(figure, difference, spread)
    return Cell(mean, low, high, difference, spread, verdict)


def _verdict(figure: Figure, difference: float, spread: float) -> Verdict:
    if abs(difference) <= spread:
        return "within spread"
    if figure.better == NEITHER:
        return "different"
    return "better" if (difference < 0) == (figure.better == LOWER) else "worse"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def cell_texts(row: Row, form: Callable[[float], str]) -> list[str]:
    """Return a row's values, each after the first with its difference beside it."""
    return list(_texts(row, form))


def _texts(row: Row, form: Callable[[float], str]) -> Iterator[str]:
    first, *others = row.cells
    yield form(first.mean)
    for cell in others:
        yield form(cell.mean)
        yield difference(cell, first, form)


def difference(cell: Cell, first: Cell, form: Callable[[float], str]) -> str:
    """Return a difference: relative where that means something, and what it is worth.

    >>> from unisono.sim.formatting import number
    >>> difference(Cell(5, 5, 5, -5, 1, "better"), Cell(10, 10, 10), number)
    '-50.0 % better'
    """
    if math.isnan(cell.difference):
        return NOTHING
    if cell.difference == 0:
        return "="
    if first.mean and math.isfinite(first.mean):
        change = 100 * cell.difference / abs(first.mean)
        text = f"{change:+.1f} %" if abs(change) < 1000 else f"x {cell.mean / first.mean:.3g}"
    else:
        text = "+" + form(cell.difference) if cell.difference > 0 else form(cell.difference)
    return f"{text} {cell.verdict}".rstrip()
