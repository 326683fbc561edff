"""The messages of Kueue's own conditions, as Kueue writes them."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.control import names
from unisono.control.admission.kueue_messages import (
    Preemptor,
    eviction_message,
    preempted,
    stopped,
)
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.plan import DueEviction, Eviction

KEY = WorkloadKey("default/low")


def test_a_preemption_names_uids_and_paths() -> None:
    eviction = Eviction(workload=KEY, reason="InClusterQueue", by=WorkloadKey("default/high"))
    by = Preemptor("default/high", "u1", "", "/root/team")
    assert preempted(eviction, by, "/root/other") == (
        "Preempted to accommodate a workload (UID: u1, JobUID: UNKNOWN) due to prioritization in "
        "the ClusterQueue; preemptor path: /root/team; preemptee path: /root/other"
    )


def checks(*states: tuple[str, str, str]) -> dict[str, Any]:
    listed = [{"name": name, "state": state, "message": text} for name, state, text in states]
    metadata = {"namespace": "default", "name": "low"}
    return {"metadata": metadata, "status": {"admissionChecks": listed}}


@pytest.mark.parametrize(
    ("workload", "reason", "deactivates", "message"),
    [
        (checks(), "ClusterQueueStopped", False, "The ClusterQueue is stopped"),
        (checks(), "Deactivated", False, "The workload is deactivated"),
        (checks(), "PodsReadyTimeout", False, "Exceeded the PodsReady timeout default/low"),
        (
            checks(),
            "PodsReadyTimeout",
            True,
            "The workload is deactivated due to exceeding the maximum number of re-queuing retries",
        ),
        (
            checks(("b", "Retry", ""), ("a", "Retry", "later"), ("c", "Ready", "")),
            "AdmissionCheck",
            False,
            'Evicted due to AdmissionChecks in Retry state: "a" (later); "b"',
        ),
        (
            checks(("a", "Rejected", "no"), ("b", "Retry", "")),
            "AdmissionCheck",
            True,
            'The workload is deactivated due to AdmissionCheck in Rejected state: "a" (no)',
        ),
    ],
)
def test_an_eviction_says_what_kueue_says(
    workload: dict[str, Any], reason: Any, deactivates: bool, message: str
) -> None:
    stop = DueEviction(workload=KEY, reason=reason, deactivate=deactivates)
    assert stopped(workload, reason, stop) == message


def test_people_read_the_name_of_the_preemptor() -> None:
    def condition(kind: str, message: str) -> dict[str, str]:
        return {"type": kind, "status": "True", "reason": "Preempted", "message": message}

    own = condition(
        names.EVICTION,
        "Preempted to accommodate default/high due to prioritization in the ClusterQueue",
    )
    kueues = condition("Evicted", "Previously: Preempted to accommodate a workload (UID: u1)")
    assert eviction_message([kueues, own]) == own["message"]
    assert eviction_message([condition("Evicted", "The ClusterQueue is stopped"), own]) == (
        "The ClusterQueue is stopped"
    )
    assert eviction_message(None) == ""
