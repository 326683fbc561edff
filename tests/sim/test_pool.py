"""The plain scheduler that others are measured by: small stories, and the published results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.simulations import POLICIES, published, schedule
from unisono.sim.generators import lublin
from unisono.sim.measures import measure
from unisono.sim.outcome import Outcome
from unisono.sim.trace import make_trace
from unisono.sim.traces.swf import read_swf

#            A    B    C   D    E
SIZES = [60, 80, 30, 30, 20]
RUNS = [100, 100, 50, 200, 200]


def story(count: int, policy: str) -> list[float]:
    submit = [0.0, *([1.0] * (count - 1))]
    trace = make_trace(
        "t", submit=submit, run=RUNS[:count], pods=SIZES[:count], cpu=1000, processors=100
    )
    starts: list[float] = schedule(trace, policy).start.tolist()
    return starts


def test_easy_backfills_behind_the_head() -> None:
    # The head B can start at 100 and leaves 20: C is over by then, E fits into the 20, D neither.
    assert story(5, "easy") == [0, 100, 1, 200, 51]


def test_easy_without_the_small_one() -> None:
    assert story(4, "easy") == [0, 100, 1, 200]


def test_fcfs_keeps_the_order() -> None:
    assert story(4, "fcfs") == [0, 100, 200, 200]


def test_conservative_delays_no_earlier_job() -> None:
    # E would delay D, which is promised 200.
    assert story(5, "conservative") == [0, 100, 1, 200, 51]
    trace = make_trace(
        "t", submit=[0, 1, 2, 3], run=[10, 10, 10, 25], pods=[6, 10, 5, 4], cpu=1000, processors=10
    )
    assert schedule(trace, "conservative").start.tolist() == [0, 10, 20, 20]


def test_shortest_first_overtakes_equals() -> None:
    trace = make_trace(
        "t",
        submit=[0, 1, 2, 3],
        run=[100, 100, 60, 30],
        pods=[6, 10, 4, 4],
        cpu=1000,
        processors=10,
    )
    assert schedule(trace, "easy").start.tolist() == [0, 100, 2, 62]
    held = make_trace(
        "t",
        submit=[0, 1, 2, 2],
        run=[100, 100, 60, 30],
        pods=[6, 10, 4, 4],
        cpu=1000,
        processors=10,
    )
    assert schedule(held, "easy-sjbf").start.tolist() == [0, 100, 32, 2]


def test_completions_come_before_arrivals_of_the_same_instant() -> None:
    trace = make_trace("t", submit=[0, 10], run=[10, 5], pods=4, cpu=1000, processors=4)
    assert schedule(trace, "easy").start.tolist() == [0, 10]


def test_beyond_the_request() -> None:
    trace = make_trace("t", submit=[0], run=[100], request=[40], pods=1, cpu=1000, processors=1)
    assert schedule(trace, "easy").end.tolist() == [100]
    assert schedule(trace, "easy", overrun="kill").end.tolist() == [40]


@pytest.mark.parametrize("policy", POLICIES)
def test_each_job_runs_once_within_capacity(policy: str) -> None:
    trace = lublin(jobs=400, processors=64, load=1.2, seed=3)
    outcome = schedule(trace, policy)
    assert (outcome.start >= trace.submit).all()
    assert outcome.depth.cpu.max() <= 64_000
    assert outcome.depth.pending[-1] == 0


def test_backfilling_helps() -> None:
    trace = lublin(jobs=2000, processors=128, load=0.9, seed=1)
    waits = {policy: measure(schedule(trace, policy)).wait.mean for policy in ("fcfs", "easy")}
    assert waits["easy"] < 0.5 * waits["fcfs"]


# --- the published results -----------------------------------------------------------------------

KTH, BLUE = "KTH-SP2-1996-2.1-cln", "SDSC-BLUE-2000-4.2-cln"
HPC2N, LUBLIN = "HPC2N-2002-2.1-cln", "lublin_256"
PUBLISHED = [
    (KTH, "fcfs", "", 218_832, 4294.5, 29_991),
    (KTH, "easy", "", 6351.5, 86.37, 406.0),
    (KTH, "easy", "perfect", 6098.6, 71.52, 339.6),
    (KTH, "easy-sjbf", "", 5623.4, 66.40, 237.5),
    (KTH, "easy-sjbf", "perfect", 5225.0, 48.69, 180.3),
    (KTH, "conservative", "", 7627.9, 97.48, 428.6),
    (BLUE, "fcfs", "", 379_080, 3427.8, 19_386),
    (BLUE, "easy", "", 7751.1, 35.21, 181.1),
    (BLUE, "easy", "kill", 7870.3, 37.41, 191.6),
    (BLUE, "easy", "perfect", 7569.3, 31.91, 164.5),
    (BLUE, "easy-sjbf", "", 5902.6, 20.02, 70.9),
    (HPC2N, "fcfs", "", 16_188.7, 207.80, 750.3),
    (HPC2N, "easy", "", 10_799.8, 87.10, 119.2),
    (HPC2N, "easy", "perfect", 11_164.5, 78.10, 129.3),
    (HPC2N, "easy-sjbf", "", 10_227.3, 82.09, 107.5),
    (LUBLIN, "fcfs", "", 2_388_444, 66_502, 349_361),
    (LUBLIN, "easy", "", 97_156, 590.05, 3209),
    (LUBLIN, "easy-sjbf", "", 73_394, 219.56, 1285),
]


def replay(name: str, policy: str, how: str) -> Outcome:
    trace = read_swf(published(f"swf/{name}.swf.gz"))
    asked = trace.perfect() if how == "perfect" else trace
    return schedule(asked, policy, overrun="kill" if how == "kill" else "raise")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "policy", "how", "wait", "slowdown", "p95"), PUBLISHED)
def test_published_results(
    name: str, policy: str, how: str, wait: float, slowdown: float, p95: float
) -> None:
    found = measure(replay(name, policy, how))
    # As far as the table has digits.
    assert found.wait.mean == pytest.approx(wait, rel=1e-4)
    assert found.slowdown.mean == pytest.approx(slowdown, rel=2e-4, abs=0.005)
    assert found.slowdown.p95 == pytest.approx(p95, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "utilisation", "makespan"),
    [(KTH, 0.684, None), (BLUE, 0.768, None), (HPC2N, 0.594, None), (LUBLIN, 0.936, 8_730_698)],
)
def test_published_utilisation(name: str, utilisation: float, makespan: float | None) -> None:
    found = measure(replay(name, "easy", ""))
    assert found.utilisation == pytest.approx(utilisation, abs=5e-4)
    assert makespan is None or found.makespan == pytest.approx(makespan, abs=1)
    assert np.isfinite(found.queue_mean)
