"""Policies side by side: differences seed by seed, verdicts, words; and shaken traces."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.support.simulations import schedule
from unisono.sim.comparison import Cell, Comparison, Row, cell_texts, compare, difference
from unisono.sim.formatting import duration, number
from unisono.sim.generators import lublin
from unisono.sim.outcome import Capacity, Outcome, make_outcome
from unisono.sim.trace import REPLICAS, BadTrace, make_trace, perturbed, perturbed_replicas


def waited(policy: str, wait: float, *, seed: int = 1) -> Outcome:
    """One job of 100 s that waits so long."""
    trace = make_trace("t", submit=[0], run=[100], cpu=1000)
    start = np.array([wait])
    capacity = Capacity(nodes=1, cpu=1000)
    return make_outcome(policy, trace, capacity, start=start, end=start + 100, seed=seed)


def row(found: Comparison, key: str) -> Row:
    return next(one for one in found.rows if one.key == key)


def test_one_seed_gives_differences_and_no_verdict() -> None:
    cells = row(compare([waited("a", 40), waited("b", 10)]), "wait.mean").cells
    assert cells[0] == Cell(40, 40, 40, cells[0].difference, cells[0].spread)
    assert math.isnan(cells[0].difference)
    assert cells[1] == Cell(10, 10, 10, -30, 0, "")


def test_a_clear_difference_is_larger_than_its_spread() -> None:
    # The seeds differ by far more than the policies do, and that does not matter.
    base = [waited("a", wait, seed=seed) for seed, wait in enumerate((1000, 20, 400))]
    less = [waited("b", wait, seed=seed) for seed, wait in enumerate((990, 9, 391))]
    mixed = [waited("c", wait, seed=seed) for seed, wait in enumerate((900, 30, 400))]
    found = compare([*base, *less, *mixed])
    assert found.seeds == 3
    _, better, unclear = row(found, "wait.mean").cells
    assert (better.difference, better.spread, better.verdict) == (-10, 2, "better")
    assert (unclear.difference, unclear.spread, unclear.verdict) == (-30, 110, "within spread")
    assert row(found, "makespan").cells[1].verdict == "better"
    assert row(compare([*less, *base]), "wait.mean").cells[1].verdict == "worse"


def test_omits_a_figure_that_one_seed_lacks() -> None:
    never = make_outcome(
        "a",
        make_trace("t", submit=[0], run=[100], cpu=1000),
        Capacity(nodes=1, cpu=1000),
        start=np.array([math.nan]),
        end=np.array([math.nan]),
        seed=2,
    )
    keys = {one.key for one in compare([waited("a", 1), never]).rows}
    assert "jobs" in keys
    assert "wait.mean" not in keys


def test_omits_rows_without_information() -> None:
    keys = {one.key for one in compare([waited("a", 1), waited("b", 2)]).rows}
    assert "wait.mean" in keys
    assert not keys & {"preemptions", "fairness.jain", "gpu_allocation", "gang_waste"}


def test_only_the_same_seeds_can_be_compared() -> None:
    with pytest.raises(BadTrace, match="b: has other seeds than a"):
        compare([waited("a", 1, seed=1), waited("b", 1, seed=2)])
    with pytest.raises(BadTrace, match="two outcomes with seed 1"):
        compare([waited("a", 1), waited("a", 2)])


def test_only_the_same_jobs_can_be_compared() -> None:
    one, other = (schedule(lublin(jobs=50, processors=32, seed=seed), "easy") for seed in (1, 2))
    with pytest.raises(BadTrace, match="b: replayed other jobs than a"):
        compare([replace(one, policy="a"), replace(other, policy="b")])
    perfect = schedule(one.trace.perfect(), "easy")
    assert compare([one, replace(perfect, policy="perfect")]).policies == ("easy", "perfect")


def test_differences_in_words() -> None:
    ten = Cell(10, 10, 10)
    assert difference(Cell(5, 5, 5, -5, 0, ""), ten, number) == "-50.0 %"
    assert difference(Cell(10, 10, 10, 0, 0, ""), ten, number) == "="
    assert difference(Cell(500, 500, 500, 490, 1, "worse"), ten, number) == "x 50 worse"
    assert difference(Cell(90, 90, 90, 90, 0, ""), Cell(0, 0, 0), duration) == "+1.50 min"
    assert difference(Cell(1, 1, 1), ten, number) == "-"
    texts = cell_texts(Row("k", "label", (ten, Cell(12, 12, 12, 2, 5, "within spread"))), number)
    assert texts == ["10", "12", "+20.0 % within spread"]


def test_a_perturbed_trace_moves_arrivals_only() -> None:
    trace = lublin(jobs=500, processors=64, seed=2)
    moved = perturbed(trace, seed=7)
    assert moved.run.sum() == pytest.approx(trace.run.sum())
    at = dict(zip(moved.number.tolist(), moved.submit.tolist(), strict=True))
    shifts = np.array([at[n] for n in trace.number.tolist()]) - trace.submit
    assert np.abs(shifts).max() <= 30
    assert np.abs(shifts).mean() > 10
    assert moved.submit.min() >= 0
    assert (np.diff(moved.submit) >= 0).all()
    assert np.array_equal(moved.submit, perturbed(trace, seed=7).submit)
    assert not np.array_equal(moved.submit, perturbed(trace, seed=8).submit)


def test_perturbation_shows_sensitivity_to_arrivals() -> None:
    trace = lublin(jobs=300, processors=64, load=1.0, seed=4)
    assert len(list(perturbed_replicas(trace, seed=1))) == REPLICAS
    outcomes = [
        replace(schedule(one, policy), seed=seed)
        for policy in ("fcfs", "easy")
        for seed, one in perturbed_replicas(trace, seed=1, count=4)
    ]
    cell = row(compare(outcomes), "slowdown.mean").cells[1]
    assert cell.low < cell.high
    assert cell.verdict == "better"
