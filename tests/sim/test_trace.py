"""Traces as columns: order, defaults, parts, and outcomes that follow from starts and ends."""

from __future__ import annotations

import numpy as np

from unisono.sim.outcome import Capacity, RunIntervals, make_outcome
from unisono.sim.trace import WHOLE_GPU, make_trace


def test_jobs_are_sorted_by_submit_time_then_number() -> None:
    trace = make_trace("t", number=[3, 1, 2], submit=[5, 5, 0], run=1, names=["c", "a", "b"])
    assert trace.number.tolist() == [2, 1, 3]
    assert trace.names == ("b", "a", "c")
    assert [trace.name_of(row) for row in range(3)] == ["b", "a", "c"]


def test_what_is_left_out_has_a_default() -> None:
    trace = make_trace("t", submit=[0, 1], run=[10, 20], request=[0, 30], gpus=[0, 2])
    assert trace.request.tolist() == [10, 30]
    assert trace.gpu_milli.tolist() == [0, WHOLE_GPU]
    assert trace.job_gpu_milli.tolist() == [0, 2000]
    assert trace.model_sets == ((),)
    assert trace.queues == ("",)
    assert trace.name_of(1) == "2"


def test_sets_of_models_and_names_are_kept_once() -> None:
    trace = make_trace(
        "t", submit=[0, 1, 2], run=1, gpus=1, models=[("B", "A"), (), ("A", "B")], user=[7, 12, 7]
    )
    assert trace.model_sets == ((), ("A", "B"))
    assert trace.model.tolist() == [1, 0, 1]
    assert trace.users == ("7", "12")  # numbers in their own order, not as text
    assert trace.user.tolist() == [0, 1, 0]


def test_a_part_keeps_its_order_and_its_names() -> None:
    trace = make_trace("t", submit=[0, 1, 2], run=[1, 2, 3], queue=["x", "y", "x"])
    part = trace.take([2, 0])
    assert part.run.tolist() == [1, 3]
    assert part.queues == ("x", "y")
    assert trace.take(trace.run > 1).run.tolist() == [2, 3]


def test_moved_jobs_are_sorted_again() -> None:
    trace = make_trace("t", submit=[0, 1], run=[5, 6], request=100)
    moved = trace.with_submits(np.array([3.0, 2.5]))
    assert moved.number.tolist() == [2, 1]
    assert moved.perfect().request.tolist() == [6, 5]


def test_queue_depth_follows_from_run_intervals() -> None:
    trace = make_trace("t", submit=[0, 0], run=[10, 5], pods=[2, 1], cpu=1000)
    outcome = make_outcome(
        "fifo", trace, Capacity(cpu=2000), start=np.array([0.0, 10.0]), end=np.array([10.0, 15.0])
    )
    assert outcome.depth.time.tolist() == [0, 10, 15]
    assert outcome.depth.pending.tolist() == [1, 0, 0]
    assert outcome.depth.running.tolist() == [1, 1, 0]
    assert outcome.depth.cpu.tolist() == [2000, 1000, 0]
    assert outcome.running.tolist() == [10, 5]


def test_an_interrupted_job_waits_again_and_a_stuck_one_for_ever() -> None:
    trace = make_trace("t", submit=[0, 3], run=[10, 5], gpus=1)
    outcome = make_outcome(
        "p",
        trace,
        Capacity(gpu_milli=1000),
        start=np.array([0.0, np.nan]),
        end=np.array([22.0, np.nan]),
        run_intervals=RunIntervals(
            job=np.array([0, 0]), start=np.array([0.0, 12.0]), end=np.array([4.0, 22.0])
        ),
    )
    assert outcome.depth.time.tolist() == [0, 3, 4, 12, 22]
    assert outcome.depth.pending.tolist() == [0, 1, 2, 1, 1]
    assert outcome.depth.gpu_milli.tolist() == [1000, 1000, 0, 1000, 0]


def test_a_job_without_an_end_runs_until_the_last_known_event() -> None:
    trace = make_trace("t", submit=[0, 1, 2], run=np.inf, gpus=1)
    outcome = make_outcome(
        "fill",
        trace,
        Capacity(gpu_milli=2000),
        start=np.array([0.0, 1.0, np.nan]),
        end=np.full(3, np.nan),
    )
    assert outcome.running.tolist() == [2, 1, 0]
    assert outcome.depth.gpu_milli.max() == 2000
    assert outcome.depth.pending.tolist()[-1] == 1
