"""The loop: virtual time around the engine, with published and hand-counted results."""

from __future__ import annotations

import numpy as np
import pytest

from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import amounts
from unisono.sim.loop import simulate
from unisono.sim.measures import measure, slowdowns
from unisono.sim.outcome import Outcome
from unisono.sim.setup import POLICIES, Restarts, with_overrun
from unisono.sim.trace import Trace, make_trace


def processors(count: int) -> tuple[Node, ...]:
    """Return nodes of one CPU each."""
    return tuple(
        Node(name=NodeName(f"n{number}"), allocatable=amounts({"cpu": 1000}))
        for number in range(count)
    )


def jobs(*rows: tuple[float, int, float, float], **options: object) -> Trace:
    """Make a trace of (submit, size, run, request)."""
    submit, size, run, request = zip(*rows, strict=True)
    return make_trace(
        "test",
        submit=list(submit),
        run=list(run),
        request=list(request),
        pods=list(size),
        cpu=1000,
        **options,  # type: ignore[arg-type]
    )


def starts(outcome: Outcome) -> list[float]:
    return [float(start) for start in outcome.start]


A_TO_E = (
    (0, 60, 100, 100),
    (1, 80, 100, 100),
    (1, 30, 50, 50),
    (1, 30, 200, 200),
    (1, 20, 200, 200),
)


def test_easy_as_counted_by_hand() -> None:
    """Performance scenario 4."""
    outcome = simulate(jobs(*A_TO_E), processors(100), POLICIES["easy"], checked=True)
    assert starts(outcome) == [0, 100, 1, 200, 51]


def test_easy_without_the_smallest() -> None:
    """Performance scenario 5."""
    outcome = simulate(jobs(*A_TO_E[:4]), processors(100), POLICIES["easy"], checked=True)
    assert starts(outcome) == [0, 100, 1, 200]


@pytest.mark.parametrize("name", ["fifo", "easy", "conservative"])
def test_a_job_submitted_as_another_completes_starts_at_once(name: str) -> None:
    """Performance scenario 6."""
    trace = jobs((0, 4, 10, 10), (10, 4, 5, 5))
    assert starts(simulate(trace, processors(4), POLICIES[name], checked=True)) == [0, 10]


def test_fifo_keeps_the_order() -> None:
    outcome = simulate(jobs(*A_TO_E), processors(100), POLICIES["fifo"], checked=True)
    assert starts(outcome) == [0, 100, 200, 200, 200]


def test_plans_with_requested_times() -> None:
    """The second ends early: what it asked for kept the third from going first."""
    trace = jobs((0, 3, 10, 10), (1, 4, 10, 10), (2, 1, 5, 50))
    assert starts(simulate(trace, processors(4), POLICIES["easy"], checked=True)) == [0, 10, 20]
    assert starts(simulate(trace.perfect(), processors(4), POLICIES["easy"])) == [0, 10, 2]


def test_jobs_beyond_their_limit() -> None:
    trace = jobs((0, 1, 50, 20))
    assert with_overrun(trace, "raise").request.tolist() == [50]
    assert with_overrun(trace, "kill").run.tolist() == [20]
    assert with_overrun(trace, "allow") is trace
    late = jobs((0, 2, 50, 20), (1, 2, 10, 10), (2, 1, 5, 5))
    outcome = simulate(late, processors(2), POLICIES["easy"], checked=True)
    assert starts(outcome) == [0, 50, 60]


def taking_back() -> Trace:
    """Two queues own a CPU each; the first borrows the other's, which is wanted back at 60."""
    return jobs((0, 2, 100, 100), (60, 1, 20, 20), (500, 1, 180, 180), queue=["a", "b", "b"])


def test_a_preempted_job_starts_over() -> None:
    """Performance scenario 18, with a queue that takes its own back at 60."""
    trace = taking_back()
    outcome = simulate(trace, processors(2), POLICIES["kueue"], checked=True)
    assert starts(outcome) == [0, 60, 500]
    assert outcome.end.tolist() == [180, 80, 680]
    assert (outcome.lost[0], outcome.preemptions[0], outcome.reclaims[0]) == (60, 1, 1)
    assert slowdowns(outcome)[0] == pytest.approx(1.8)


def test_a_preempted_job_resumes_from_its_checkpoint() -> None:
    """Performance scenario 19: 40 of 60 seconds are kept, and 5 restore them."""
    trace = taking_back()
    restarts = Restarts(checkpoint_s=40, restore_s=5)
    outcome = simulate(trace, processors(2), POLICIES["kueue"], restarts=restarts, checked=True)
    assert outcome.end.tolist() == [80 + 5 + 60, 80, 680]
    assert outcome.lost[0] == 20 + 5  # restoring is no progress
    assert slowdowns(outcome)[0] == pytest.approx(1.45)


def test_a_suspended_job_resumes_without_loss() -> None:
    outcome = simulate(
        taking_back(), processors(2), POLICIES["kueue"], restarts=Restarts(suspends=True)
    )
    assert outcome.end.tolist() == [80 + 40, 80, 680]
    assert (outcome.lost[0], outcome.preemptions[0]) == (0, 1)


def test_queues_own_all_of_the_cluster_together() -> None:
    """A job that needs the whole cluster starts once it is empty, however quota is divided."""
    trace = jobs((0, 1, 10, 10), (0, 1, 11, 11), (1, 8, 5, 5), queue=["a", "b", "c"])
    outcome = simulate(trace, processors(8), POLICIES["kueue"], checked=True)
    assert starts(outcome) == [0, 0, 11]


def test_records_jobs_on_nodes() -> None:
    outcome = simulate(jobs((0, 2, 10, 10)), processors(3), POLICIES["easy"], spans=True)
    spans = outcome.spans
    assert spans is not None
    assert [spans.names[node] for node in spans.node] == ["n0", "n1"]
    assert (spans.start.tolist(), spans.end.tolist()) == ([0, 0], [10, 10])
    assert spans.size is not None
    assert spans.size.tolist() == [1000, 1000, 1000]


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_all_jobs_complete_and_runs_repeat(name: str) -> None:
    rng = np.random.default_rng(7)
    rows = [
        (float(submit), int(size), float(run), float(run * over))
        for submit, size, run, over in zip(
            np.cumsum(rng.exponential(8, 50)),
            rng.integers(1, 13, 50),
            rng.integers(1, 90, 50),
            rng.uniform(1, 3, 50),
            strict=True,
        )
    ]
    trace = jobs(*rows, queue=[str(number % 3) for number in range(50)])
    first = simulate(trace, processors(16), POLICIES[name], checked=True)
    again = simulate(trace, processors(16), POLICIES[name])
    assert not np.isnan(first.end).any()
    assert first.start.tobytes() == again.start.tobytes()
    assert measure(first).utilisation <= 1
    running = first.depth.cpu
    assert running.max() <= 16_000


def test_names_a_job_that_never_starts_with_its_reason() -> None:
    heard: list[str] = []
    trace = jobs((0, 1, 10, 10), (1, 9, 10, 10))
    outcome = simulate(trace, processors(4), POLICIES["easy"], complain=heard.append)
    assert np.isnan(outcome.start).tolist() == [False, True]
    assert heard[0].startswith("1 job never started; job 2: pod set main needs 9 cpu")


def test_resources_that_no_node_lists_are_not_requested() -> None:
    trace = make_trace("gpus", submit=[0], run=[5], pods=[2], cpu=[4000], gpus=[8])
    nodes = tuple(
        Node(name=NodeName(name), allocatable=amounts({"nvidia.com/gpu": 8})) for name in "ab"
    )
    assert starts(simulate(trace, nodes, POLICIES["easy"], checked=True)) == [0]
