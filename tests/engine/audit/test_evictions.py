"""Quota that is taken away without cause is caught."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.audit_plans import breaks, passes
from tests.support.quota_builders import job, plan, queue, running, snapshot
from unisono.engine.model.names import Instant, QueueName
from unisono.engine.model.plan import DueEviction, EvictionReason
from unisono.engine.model.policy import PodsReady, Policy
from unisono.engine.model.queue import LocalQueue, StopPolicy
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import CheckState

JOB = job("a", "q", 2)
MINUTE = 60_000


def world(*, local: StopPolicy = "None", stop: StopPolicy = "None", **admitted: Any) -> Snapshot:
    return snapshot(
        queue("q", stop=stop),
        local_queues=(LocalQueue(key=JOB.queue, queue=QueueName("q"), stop=local),),
        admitted_workloads=(running(JOB, **admitted),),
        policy=Policy(pods_ready=PodsReady(timeout_ms=5 * MINUTE, recovery_timeout_ms=2 * MINUTE)),
    )


def check(expected: bool, reason: EvictionReason, snapshot: Snapshot, now: int = 0) -> None:
    made = plan(now=Instant(now), evictions_due=(DueEviction(workload=JOB.key, reason=reason),))
    if expected:
        passes(snapshot, made)
    else:
        breaks("eviction", snapshot, made)


@pytest.mark.parametrize(
    ("policy", "admitted", "expected"),
    [
        ("None", False, False),
        ("Hold", False, True),
        ("Hold", True, False),
        ("HoldAndDrain", True, True),
    ],
)
def test_scenario_57_a_stopped_queue(policy: StopPolicy, admitted: bool, expected: bool) -> None:
    check(expected, "ClusterQueueStopped", world(stop=policy, may_start=admitted))
    check(expected, "LocalQueueStopped", world(local=policy, may_start=admitted))


def test_the_other_queue_s_stop_is_no_cause() -> None:
    check(False, "ClusterQueueStopped", world(local="HoldAndDrain"))
    check(False, "LocalQueueStopped", world(stop="HoldAndDrain"))


@pytest.mark.parametrize(
    ("admitted", "now", "expected"),
    [
        ({"ready": False}, 5 * MINUTE, True),
        ({"ready": False}, 5 * MINUTE - 1, False),
        ({"ready": True}, 5 * MINUTE, False),
        ({"ready": False, "may_start": False}, 5 * MINUTE, False),
        ({"ready": False, "reserved_at": Instant(1)}, 5 * MINUTE, False),
        ({"ready": False, "admitted_at": Instant(1)}, 5 * MINUTE, False),
        ({"ready": False, "unready_since": Instant(0)}, 2 * MINUTE, True),
        ({"ready": False, "unready_since": Instant(1)}, 2 * MINUTE, False),
    ],
)
def test_pods_that_are_overdue(admitted: dict[str, Any], now: int, expected: bool) -> None:
    check(expected, "PodsReadyTimeout", world(**admitted), now)


@pytest.mark.parametrize(("recovery_ms", "expected"), [(None, True), (0, False)])
def test_a_recovery_may_take_as_long_as_a_start_or_for_ever(
    recovery_ms: int | None, expected: bool
) -> None:
    holder = running(JOB, ready=False, unready_since=Instant(0))
    policy = Policy(pods_ready=PodsReady(timeout_ms=MINUTE, recovery_timeout_ms=recovery_ms))
    awaiting = snapshot(queue("q"), admitted_workloads=(holder,), policy=policy)
    check(expected, "PodsReadyTimeout", awaiting, MINUTE)


@pytest.mark.parametrize("state", ["Pending", "Ready", "Retry", "Rejected"])
def test_a_check_that_says_no(state: Any) -> None:
    checked = msgspec.structs.replace(JOB, checks=(CheckState("p", state),))
    asked = snapshot(queue("q"), admitted_workloads=(running(checked, may_start=False),))
    check(state in ("Retry", "Rejected"), "AdmissionCheck", asked)


@pytest.mark.parametrize(
    ("limit_ms", "now", "expected"), [(600, 900, True), (600, 899, False), (None, 9999, False)]
)
def test_scenario_58_time_is_up(limit_ms: int | None, now: int, expected: bool) -> None:
    """It ran 200 before, and is admitted again at 500."""
    limited = msgspec.structs.replace(JOB, max_execution_ms=limit_ms, past_execution_ms=200)
    again = running(limited, reserved_at=Instant(400), admitted_at=Instant(500))
    reason: EvictionReason = "MaximumExecutionTimeExceeded"
    check(expected, reason, snapshot(queue("q"), admitted_workloads=(again,)), now)
    waits = msgspec.structs.replace(again, may_start=False)
    check(False, reason, snapshot(queue("q"), admitted_workloads=(waits,)), now)


def test_deactivated_workloads_are_evicted() -> None:
    off = msgspec.structs.replace(JOB, active=False)
    check(True, "Deactivated", snapshot(queue("q"), admitted_workloads=(running(off),)))
    check(False, "Deactivated", world())


def test_no_readiness_timeout_without_wait_for_pods_ready() -> None:
    calm = snapshot(queue("q"), admitted_workloads=(running(JOB, ready=False),))
    check(False, "PodsReadyTimeout", calm, 100 * MINUTE)
