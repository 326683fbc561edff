"""Figures of outcomes, by hand: the examples of the specification and the odd ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unisono.sim.fairness import jain
from unisono.sim.fragmentation import TypicalPod, fragmentation, nodes_allowing, typical_pods
from unisono.sim.measures import bounded_slowdown, measure, spread
from unisono.sim.outcome import Capacity, Effort, Fragments, Outcome, RunIntervals, make_outcome
from unisono.sim.trace import Trace, make_trace


def outcome_of(trace: Trace, start: list[float], capacity: Capacity) -> Outcome:
    begun = np.array(start)
    return make_outcome("p", trace, capacity, start=begun, end=begun + trace.run)


@pytest.mark.parametrize(("wait", "run", "slowdown"), [(90, 1, 9.1), (0, 1, 1), (5, 100, 1.05)])
def test_bounded_slowdown(wait: float, run: float, slowdown: float) -> None:
    assert float(bounded_slowdown(wait + run, run)) == pytest.approx(slowdown)


def test_the_95th_percentile_is_an_element() -> None:
    assert spread(np.arange(1.0, 21.0)).p95 == 20
    assert spread(np.arange(20.0, 0.0, -1.0)).p95 == 20
    assert spread(np.arange(1.0, 101.0)).p95 == 96
    assert spread(np.array([7.0])).p95 == 7
    assert math.isnan(spread(np.array([])).p95)


def test_two_jobs_on_one_processor() -> None:
    trace = make_trace("t", submit=[10, 10], run=[100, 50], cpu=1000)
    found = measure(outcome_of(trace, [10, 110], Capacity(nodes=1, cpu=1000)))
    assert (found.jobs, found.started, found.completed) == (2, 2, 2)
    assert found.wait.mean == 50
    assert found.wait.largest == 100
    assert found.response.mean == 125
    assert found.slowdown.mean == pytest.approx((1 + 3) / 2)
    assert found.makespan == 150
    assert found.utilisation == pytest.approx(1.0)
    assert found.queue_mean == pytest.approx(100 / 150)
    assert found.queue_largest == 1
    assert found.goodput == 1
    assert found.gang_waste == 0
    assert math.isnan(found.fairness.jain)  # one tenant is neither fair nor unfair


def test_the_drain_is_outside_the_window() -> None:
    trace = make_trace("t", submit=[0, 100], run=[50, 900], cpu=1000, pods=[2, 1])
    found = measure(outcome_of(trace, [0, 100], Capacity(cpu=2000)))
    assert found.makespan == 1000
    assert found.utilisation == pytest.approx((2 * 50 + 900) / 2000)
    assert found.utilisation_window == pytest.approx(2 * 50 / 200)


def test_slowdown_per_processor_divides_by_the_size() -> None:
    trace = make_trace("t", submit=[0], run=[100], cpu=1000, pods=[4])
    found = measure(outcome_of(trace, [900], Capacity(cpu=4000)))
    assert found.slowdown.mean == 10
    assert found.slowdown_per_processor.mean == 2.5


def preempted(*, end: float, running: float, lost: float) -> Outcome:
    """One job of 100 s: submitted at 0, starts at 10, is preempted at 60, starts again at 80."""
    return make_outcome(
        "p",
        make_trace("t", submit=[0], run=[100], gpus=2),
        Capacity(gpu_milli=2000),
        start=np.array([10.0]),
        end=np.array([end]),
        running=np.array([running]),
        lost=np.array([lost]),
        preemptions=np.array([1]),
        reclaims=np.array([1]),
        run_intervals=RunIntervals(
            job=np.array([0, 0]), start=np.array([10.0, 80.0]), end=np.array([60.0, end])
        ),
    )


def test_a_preempted_job_that_starts_again() -> None:
    found = measure(preempted(end=180, running=150, lost=50))
    assert (found.wait.mean, found.total_wait.mean, found.lost) == (10, 30, 100)
    assert found.slowdown.mean == pytest.approx(1.8)
    assert (found.preemptions, found.reclaims) == (1, 1)
    assert found.goodput == pytest.approx(100 / 150)
    assert found.gpu_allocation == pytest.approx(150 / 180)
    assert found.gpu_allocation_peak == 1


def test_a_preempted_job_that_restores_a_checkpoint() -> None:
    # 40 of 50 s are kept; restoring takes 5 s, then 60 s remain.
    found = measure(preempted(end=145, running=115, lost=15))
    assert found.total_wait.mean == 30
    assert found.slowdown.mean == pytest.approx(1.45)
    assert found.goodput == pytest.approx(100 / 115)


def test_a_job_that_never_starts_has_no_wait() -> None:
    trace = make_trace("t", submit=[0, 0], run=[10, 10], cpu=1000)
    found = measure(outcome_of(trace, [0, math.nan], Capacity(cpu=1000)))
    assert (found.jobs, found.started, found.completed) == (2, 1, 1)
    assert found.wait.mean == 0
    nothing = measure(outcome_of(trace, [math.nan, math.nan], Capacity(cpu=1000)))
    assert math.isnan(nothing.wait.mean)
    assert math.isnan(nothing.makespan)
    assert math.isnan(nothing.utilisation)
    assert nothing.starving == 0


def test_an_empty_trace_has_no_figures() -> None:
    found = measure(outcome_of(make_trace("t", submit=[], run=[]), [], Capacity(cpu=1000)))
    assert found.jobs == 0
    assert math.isnan(found.utilisation)


def test_gang_waste_is_not_good() -> None:
    trace = make_trace("t", submit=[0], run=[100], pods=4, gpus=8)
    found = measure(
        make_outcome(
            "p",
            trace,
            Capacity(gpu_milli=32_000),
            start=np.array([50.0]),
            end=np.array([150.0]),
            held=np.array([3 * 8 * 50.0]),
        )
    )
    assert found.gang_waste == 1200
    assert found.goodput == pytest.approx(3200 / 4400)


@pytest.mark.parametrize("at_once", [0, 20])
def test_starving_jobs_wait_ten_times_the_median_wait(at_once: int) -> None:
    trace = make_trace("t", submit=np.zeros(5 + at_once), run=1, cpu=1000)
    waits = [20.0, 20.0, 20.0, 200.0, 201.0] + [0.0] * at_once
    found = measure(outcome_of(trace, waits, Capacity(cpu=5000)))
    assert found.starving == 1


def test_effort_and_fragmentation_are_passed_on() -> None:
    trace = make_trace("t", submit=[0], run=[100], gpus=1)
    outcome = make_outcome(
        "p",
        trace,
        Capacity(gpu_milli=2000),
        start=np.array([0.0]),
        end=np.array([100.0]),
        effort=Effort(decisions=3, cpu_s=0.5, wall_s=2.0),
        fragments=Fragments(
            time=np.array([0.0, 50.0, 100.0]),
            fragmented=np.array([500.0, 0.0, 0.0]),
            idle=np.array([1000.0, 1000.0, 2000.0]),
        ),
    )
    found = measure(outcome)
    assert (found.decisions, found.policy_cpu, found.speed) == (3, 0.5, 50)
    assert found.fragmentation == pytest.approx(250 / 2000)
    assert found.fragmentation_of_idle == pytest.approx(0.25)


# --- fairness ------------------------------------------------------------------------------------


def shared(start: list[float], *, entitlement: tuple[float, float] = (1, 1)) -> Outcome:
    """Two tenants with four hour-long jobs each on two processors, all there from the start.

    A fifth job of each, submitted at the end, keeps both waiting all the time.
    """
    trace = make_trace(
        "t",
        submit=[*([0.0] * 8), 4 * 3600, 4 * 3600],
        run=3600,
        cpu=1000,
        queue=[*"aaaabbbb", "a", "b"],
    )
    begun = np.array([*start, 5 * 3600, 5 * 3600])
    return make_outcome(
        "p",
        trace,
        Capacity(cpu=2000),
        start=begun,
        end=begun + 3600,
        entitlement=np.array(entitlement, np.float64),
    )


HOURS = [0.0, 3600.0, 7200.0, 10_800.0]


def test_equal_tenants_are_fair() -> None:
    fair = measure(shared(HOURS + HOURS)).fairness
    assert fair.jain == pytest.approx(1.0)
    assert fair.jain_hourly == pytest.approx(1.0)
    assert fair.contended_hours == 3  # in the fourth no job is left waiting
    assert fair.shortfall == 0


def test_one_after_the_other_is_not_fair() -> None:
    twice = [0.0, 0.0, 3600.0, 3600.0]
    unfair = measure(shared(twice + [at + 7200 for at in twice])).fairness
    assert unfair.jain_worst_hour == pytest.approx(0.5)
    assert unfair.shortfall == 1  # b had nothing while a had all
    assert unfair.jain == pytest.approx(1.0)  # in the end both had the same


def test_an_entitlement_of_three_to_one() -> None:
    fair = measure(shared(HOURS + HOURS, entitlement=(3, 1))).fairness
    # x is 1/3 and 1: (4/3)^2 / (2 * 10/9)
    assert fair.jain == pytest.approx(0.8)
    assert fair.shortfall == pytest.approx(1 / 3)  # a had half of the cluster instead of 3/4


def test_a_queue_without_entitlement_is_not_compared() -> None:
    assert math.isnan(measure(shared(HOURS + HOURS, entitlement=(1, 0))).fairness.jain)


def test_finish_time_ratios_compare_with_an_equal_part() -> None:
    # Alone on one processor, a's jobs would have responses of 1, 2, 3, 4 hours, as they had.
    fair = measure(shared(HOURS + HOURS)).fairness
    # The last ones were submitted at 4 h, started at 5 h and would have started at once.
    assert fair.finish_time_ratio == pytest.approx((8 * 1 + 2 * 2) / 10)
    assert fair.finish_time_ratio_worst_queue == pytest.approx(6 / 5)


def test_jain() -> None:
    assert jain(np.array([5.0, 5.0])) == 1
    assert jain(np.array([1.0, 0.0, 0.0, 0.0])) == 0.25
    assert math.isnan(jain(np.zeros(2)))


# --- fragmentation -------------------------------------------------------------------------------


def test_fragmentation_of_the_specification() -> None:
    shapes = (TypicalPod(1000, 1, 1000, weight=0.5), TypicalPod(1000, 1, 500, weight=0.5))
    gpu_free = np.array([[1000, 300], [1000, 300]])
    found = fragmentation(
        shapes,
        cpu_free=np.array([64_000, 0]),
        gpu_free=gpu_free,
        allowed_nodes=nodes_allowing(shapes, ["T4", "T4"]),
    )
    assert found.tolist() == [300, 1300]  # with CPU in plenty, and with none left
    assert found[0] / gpu_free[0].sum() == pytest.approx(0.231, abs=5e-4)


def test_shapes_that_cannot_use_a_node_call_all_of_it_fragmented() -> None:
    gpu_free = np.array([[1000, 1000]])
    for shape, fragmented in [
        (TypicalPod(0, 0, 0), 2000),  # needs no GPU
        (TypicalPod(0, 4, 1000), 2000),  # needs more than there are
        (TypicalPod(0, 1, 1000, ("V100",)), 2000),  # needs others
        (TypicalPod(0, 2, 1000, ("T4", "V100")), 0),
    ]:
        here = nodes_allowing([shape], ["T4"])
        cpu_free = np.array([8000])
        found = fragmentation([shape], cpu_free=cpu_free, gpu_free=gpu_free, allowed_nodes=here)
        assert found.tolist() == [fragmented], shape


def test_typical_pods_cover_most_of_a_trace() -> None:
    trace = make_trace("t", submit=np.arange(100.0), run=1, gpus=[1] * 60 + [2] * 36 + [4] * 4)
    typical = typical_pods(trace)
    assert [(shape.gpus, round(shape.weight, 3)) for shape in typical] == [(1, 0.625), (2, 0.375)]
    assert typical_pods(trace.take([])) == ()


def test_work_is_counted_in_what_jobs_ask_for_and_a_part_is_no_more_than_the_whole() -> None:
    """A trace of CPUs on nodes that have GPUs as well; and pods with a tenth of a GPU."""
    trace = make_trace("t", submit=[0], run=[100], cpu=1000, pods=[4])
    found = measure(outcome_of(trace, [900], Capacity(cpu=4000, gpu_milli=8000)))
    assert found.utilisation == pytest.approx(100 / 1000)
    assert found.slowdown_per_processor.mean == 2.5
    part = make_trace("t", submit=[0], run=[100], gpus=1, gpu_milli=[100])
    found = measure(outcome_of(part, [0], Capacity(gpu_milli=8000)))
    assert (found.slowdown.mean, found.slowdown_per_processor.mean) == (1, 1)
