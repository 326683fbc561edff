"""The history of evictions: counted by reason and by what led to it, as in Kueue."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.control.admission.evictions import checks_after, with_eviction
from unisono.control.admission.record import evicted
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import DueEviction, Eviction

Json = dict[str, Any]


def ready(reason: str) -> Json:
    condition = {"type": "PodsReady", "status": "False", "reason": reason, "message": ""}
    return {"conditions": [condition]}


def test_a_reason_with_two_causes_is_counted_twice() -> None:
    first = with_eviction({}, "PodsReadyTimeout", "WaitForStart")
    second = with_eviction({"schedulingStats": first}, "PodsReadyTimeout", "WaitForRecovery")
    third = with_eviction({"schedulingStats": second}, "PodsReadyTimeout", "WaitForStart")
    assert third["evictions"] == [
        {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 2},
        {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForRecovery", "count": 1},
    ]


@pytest.mark.parametrize(
    ("reason", "status", "cause"),
    [
        ("PodsReadyTimeout", {}, "WaitForStart"),
        ("PodsReadyTimeout", ready("WaitForStart"), "WaitForStart"),
        ("PodsReadyTimeout", ready("WaitForRecovery"), "WaitForRecovery"),
        ("ClusterQueueStopped", ready("WaitForRecovery"), ""),
    ],
)
def test_what_led_to_a_timeout(reason: str, status: Json, cause: str) -> None:
    eviction = Eviction(workload=WorkloadKey("ns/one"), reason=reason)  # type: ignore[arg-type]  # one of its literals
    workload = {"metadata": {"name": "one", "namespace": "ns"}, "status": status}
    patch = evicted(workload, eviction, None, None, "", now=0.0)
    (counted,) = patch["status"]["schedulingStats"]["evictions"]
    assert counted == {"reason": reason, "underlyingCause": cause, "count": 1}


def test_a_pause_is_never_shorter_than_it_was_meant() -> None:
    """A status has whole seconds, so its end is rounded up."""
    eviction = Eviction(workload=WorkloadKey("ns/one"), reason="PodsReadyTimeout")
    due = DueEviction(
        workload=eviction.workload, reason="PodsReadyTimeout", requeue_at=Instant(1_500)
    )
    workload = {"metadata": {"name": "one", "namespace": "ns"}, "status": {}}
    patch = evicted(workload, eviction, due, None, "", now=0.5)
    assert patch["status"]["requeueState"]["requeueAt"] == "1970-01-01T00:00:02Z"
    retry = {"name": "check", "state": "Retry", "requeueAfterSeconds": 1}
    changes = checks_after({"admissionChecks": [retry]}, 0.5)
    assert changes["requeueState"] == {"requeueAt": "1970-01-01T00:00:02Z"}
