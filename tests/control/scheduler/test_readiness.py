"""Which workloads get PodsReady=False at their admission."""

from __future__ import annotations

from typing import Any

from tests.support.quota_builders import job
from unisono.control.admission import record
from unisono.control.conditions import find, with_condition
from unisono.engine.model.names import QueueName, WorkloadKey
from unisono.engine.model.plan import Admit
from unisono.engine.model.workload import Admission

NOW = 1_700_000_000.0
_JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}


def _ready_after(workload: dict[str, Any], *, minds_readiness: bool = False) -> str | None:
    """Admit a workload; return what it says of its pods."""
    admit = Admit(
        workload=WorkloadKey("default/w"), admission=Admission(queue=QueueName("q"), pod_sets=())
    )
    changes = record.admitted(
        workload,
        admit,
        job("w", "q"),
        lambda node: node,
        now=NOW,
        epoch=1,
        minds_readiness=minds_readiness,
    )
    ready = find(changes["status"]["conditions"], "PodsReady")
    return None if ready is None else ready["status"]


def _workload(*owners: dict[str, Any], conditions: list[Any] | None = None) -> dict[str, Any]:
    metadata = {"name": "w", "namespace": "default", "resourceVersion": "1"}
    return {
        "metadata": metadata | ({"ownerReferences": list(owners)} if owners else {}),
        "status": {"conditions": conditions or []},
    }


def test_a_job_will_say_when_its_pods_are_ready() -> None:
    assert _ready_after(_workload(_JOB)) == "False"


def test_a_workload_without_a_job_gets_no_pods_ready_condition() -> None:
    assert _ready_after(_workload()) is None


def test_every_workload_gets_it_where_readiness_has_a_timeout() -> None:
    assert _ready_after(_workload(), minds_readiness=True) == "False"


def test_pods_that_were_ready_before_are_not_any_more() -> None:
    before = with_condition([], "PodsReady", "True", "Started", "all", now=NOW - 60)
    assert _ready_after(_workload(conditions=before)) == "False"
