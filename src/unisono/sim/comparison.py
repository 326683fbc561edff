"""Policies side by side: every figure, the difference to the first, and whether it means anything.

Policies are compared seed by seed: each seed is one trace that all of them replayed, so what makes
a trace hard is the same for all and falls out of the difference. A difference is clear when its
mean over the seeds is larger than its spread, the distance between its smallest and its largest
value. With one seed there is no spread and nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from unisono.sim.errors import BadTrace
from unisono.sim.figures import FIGURES, LOWER, NEITHER, Figure, is_worth_showing
from unisono.sim.measures import NAN, Measures, measure
from unisono.sim.outcome import Outcome

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
            raise BadTrace(outcome.policy, f"replayed other jobs than {first.policy}")
        by_seed = found.setdefault(outcome.policy, {})
        if outcome.seed in by_seed:
            raise BadTrace(outcome.policy, f"there are two outcomes with seed {outcome.seed}")
        by_seed[outcome.seed] = measure(outcome)
    return compare_measures(found)


def compare_measures(found: Mapping[str, Mapping[int, Measures]]) -> Comparison:
    """Return the table of measures by policy and seed."""
    policies = tuple(found)
    seeds = sorted(found[policies[0]]) if policies else []
    for policy in policies:
        if sorted(found[policy]) != seeds:
            raise BadTrace(policy, f"has other seeds than {policies[0]}; compare the same ones")
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
