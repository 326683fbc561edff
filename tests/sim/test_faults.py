"""Failing and recovering nodes, and advance reservations: events that are not of jobs."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import msgspec
import numpy as np
import pytest

from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.policy import AdvanceReservation, Policy
from unisono.engine.model.resources import amounts
from unisono.sim.faults import MOST_INTERRUPTIONS, random_faults, scheduled_faults
from unisono.sim.generators import gpu
from unisono.sim.loop import simulate
from unisono.sim.measures import measure
from unisono.sim.outcome import Outcome
from unisono.sim.setup import POLICIES, Restarts
from unisono.sim.trace import BadTrace, Trace, make_trace

EPOCH = 1_767_225_600.0  # 2026-01-01
NODES = tuple(
    Node(name=NodeName(f"n{number}"), allocatable=amounts({"cpu": 1000})) for number in (1, 2)
)
NAMES = [node.name for node in NODES]


def jobs(*rows: tuple[float, float, int], request: float | None = None) -> Trace:
    """Return a trace of jobs: submitted when, running how long, on how many nodes."""
    submit, run, pods = zip(*rows, strict=True)
    asked = None if request is None else [request] * len(rows)
    return make_trace(
        "t", submit=submit, run=run, request=asked, pods=pods, cpu=[1000] * len(rows), epoch=EPOCH
    )


def failing(text: str, trace: Trace, policy: str = "easy", **options: Any) -> Outcome:
    """Replay a trace while nodes fail as it is written."""
    faults = scheduled_faults(text.split(), NAMES, "f.csv")
    return simulate(trace, NODES, POLICIES[policy], faults=faults, checked=True, **options)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_job_of_a_failed_node_starts_over_when_it_fits(policy: str) -> None:
    """Performance scenario 18, by a node instead of a preemption."""
    trace = jobs((10, 100, 2))
    outcome = failing("60,n1,down 80,n1,up", trace, policy)
    assert (outcome.start[0], outcome.end[0], outcome.lost[0]) == (10, 180, 50)
    found = measure(outcome)
    assert (found.interruptions, found.preemptions) == (1, 0)
    assert found.total_wait.mean == 20


def test_resumes_from_the_last_checkpoint() -> None:
    """Performance scenario 19."""
    trace = jobs((10, 100, 2))
    outcome = failing("60,n1,down 80,n1,up", trace, restarts=Restarts(20, 5))
    assert (outcome.end[0], outcome.lost[0]) == (145, 15)


def test_a_failed_node_loses_suspended_work() -> None:
    outcome = failing("60,n1,down 80,n1,up", jobs((10, 100, 2)), restarts=Restarts(suspends=True))
    assert (outcome.end[0], outcome.lost[0]) == (180, 50)


def test_other_jobs_continue_and_none_starts_on_a_failed_node() -> None:
    trace = jobs((0, 100, 1), (0, 100, 1), (20, 10, 1))
    outcome = failing("10,n1,down 500,n1,up", trace, spans=True)
    assert outcome.spans is not None
    assert set(outcome.spans.node[outcome.spans.end > 10].tolist()) == {1}
    # An interrupted job stays before jobs that were submitted later.
    assert sorted(outcome.end.tolist()) == [100, 200, 210]


def test_order_at_one_instant_is_failure_completion_recovery_submission() -> None:
    outcome = failing("100,n1,down 200,n1,up", jobs((0, 100, 2), (200, 10, 2)))
    assert outcome.end.tolist() == [300, 310]
    assert outcome.lost.tolist() == [100, 0]


def test_gives_up_a_job_after_too_many_interruptions() -> None:
    told: list[str] = []
    events = " ".join(f"{60 * n},n1,down {60 * n + 1},n1,up" for n in range(1, 300))
    outcome = failing(events, jobs((0, 3600, 2)), complain=told.append)
    assert math.isnan(outcome.end[0])
    assert measure(outcome).interruptions == MOST_INTERRUPTIONS
    assert told == [f"1 job given up, interrupted {MOST_INTERRUPTIONS} times"]


@pytest.mark.parametrize("policy", ["easy", "kueue-fair", "multifactor+conservative"])
def test_random_faults_repeat_and_plans_pass_the_audit(policy: str) -> None:
    trace = gpu(jobs=80, gpus=32, load=1.0, seed=3)
    nodes = tuple(
        Node(name=NodeName(f"n{n}"), allocatable=amounts({"nvidia.com/gpu": 8})) for n in range(4)
    )
    ran = []
    for _ in range(2):
        faults = random_faults("mtbf=2d,repair=30m", [node.name for node in nodes], seed=1)
        ran.append(simulate(trace, nodes, POLICIES[policy], faults=faults, checked=True))
    assert measure(ran[0]).interruptions > 0
    assert not np.isnan(ran[0].end).any()
    assert ran[0].end.tobytes() == ran[1].end.tobytes()
    other = random_faults("mtbf=2d,repair=30m", [node.name for node in nodes], seed=2)
    again = simulate(trace, nodes, POLICIES[policy], faults=other)
    assert again.end.tobytes() != ran[0].end.tobytes()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x,n1,down", 'f.csv: line 1: "x" is not a time'),
        ("60,n1", "f.csv: line 1: has 2 cells"),
        ("60,n1,down\n70,n9,up", 'f.csv: line 2: there is no node "n9"'),
        ("60,n1,broken", '"broken" is neither down nor up'),
    ],
)
def test_errors_in_a_fault_file_name_the_line(text: str, says: str) -> None:
    with pytest.raises(BadTrace, match=re.escape(says)):
        scheduled_faults(text.splitlines(), NAMES, "f.csv")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("often", 'unknown setting "often"'),
        ("repair=1h", "mtbf=30d"),
        ("mtbf=0h", "must be above 0"),
        ("mtbf=1h,seed=x", "must be a whole number"),
    ],
)
def test_refuses_invalid_settings(text: str, says: str) -> None:
    with pytest.raises(BadTrace, match=re.escape(says)):
        random_faults(text, NAMES, 0)


# --- reservations -----------------------------------------------------------------------------


def _reserved(
    policy: str, begins: float, ends: float, repeat: Literal["", "daily"] = ""
) -> Outcome:
    """Replay two one-hour jobs; for a while an advance reservation keeps all nodes free."""
    made = AdvanceReservation(
        name="work",
        start=Instant(int((EPOCH + begins) * 1000)),
        end=Instant(int((EPOCH + ends) * 1000)),
        repeat=repeat,
    )
    rules = POLICIES[policy]
    changed: Policy = msgspec.structs.replace(rules.policy, reservations=(made,))
    rules = msgspec.structs.replace(rules, policy=changed)
    trace = jobs((0, 600, 2), (10, 600, 2), request=3600)
    return simulate(trace, NODES, rules, checked=True)


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "multifactor"])
def test_a_job_that_overlaps_an_advance_reservation_starts_after_it(policy: str) -> None:
    """The first is over in time. Nothing happens when the reservation ends but that it ends."""
    assert _reserved(policy, 4000, 9000).start.tolist() == [0, 9000]
    assert _reserved(policy, 4300, 9000).start.tolist() == [0, 600]


def test_a_job_that_never_fits_between_reservations_does_not_run_for_ever() -> None:
    outcome = _reserved("easy", -10, 86_400 - 20, repeat="daily")
    assert np.isnan(outcome.start).all()
