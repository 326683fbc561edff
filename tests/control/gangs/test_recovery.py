"""What an incident is, and what follows from it, as tables (jobs §7.3)."""

from __future__ import annotations

import pytest

from unisono.control.conditions import timestamp
from unisono.control.gangs.recovery import (
    Budget,
    GiveUp,
    Incident,
    Record,
    Restart,
    decide,
    first_cause,
    limit_of,
    record_of,
    recovered,
)
from unisono.kube.form import Json

NOW = 10_000.0


def pod(
    name: str = "p",
    *,
    ended: float | None = None,
    code: int = 1,
    reason: str = "Error",
    deleted: float | None = None,
    grace: int = 30,
    phase: str | None = None,
    disruption: str = "",
    node: str = "n1",
    status_reason: str = "",
) -> Json:
    """Return a pod that ended or was told to go at some time."""
    status: Json = {"phase": phase or ("Failed" if ended is not None else "Running")}
    if ended is not None:
        over = {"exitCode": code, "reason": reason, "finishedAt": timestamp(ended)}
        status["containerStatuses"] = [{"name": "main", "state": {"terminated": over}}]
    if disruption:
        status["conditions"] = [
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": disruption,
                "lastTransitionTime": timestamp(ended or deleted or NOW),
            }
        ]
    if status_reason:
        status["reason"] = status_reason
    metadata: Json = {"name": name}
    if deleted is not None:
        metadata["deletionTimestamp"] = timestamp(deleted + grace)
        metadata["deletionGracePeriodSeconds"] = grace
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


def condition(kind: str, status: str) -> Json:
    return {"type": kind, "status": status, "message": "", "lastTransitionTime": timestamp(0)}


NODES: dict[str, Json] = {
    "n1": {"status": {"conditions": [condition("Ready", "True")]}},
    "dead": {"status": {"conditions": [condition("Ready", "Unknown")]}},
    "broken": {
        "status": {"conditions": [condition("Ready", "True"), condition("GPUProblem", "True")]}
    },
}


@pytest.mark.parametrize(
    ("pods", "cause", "reason", "culprit"),
    [
        ([pod(ended=5), pod("q")], "app", "Error", "p"),
        ([pod(ended=5, code=137, reason="OOMKilled")], "app", "OOMKilled", "p"),
        ([pod(ended=5, code=128, reason="StartError")], "config", "StartError", "p"),
        ([pod(deleted=5)], "disruption", "PodDeleted", "p"),
        ([pod(ended=5, disruption="Drained")], "disruption", "Drained", "p"),
        ([pod(ended=5, disruption="DeletionByTaintManager")], "infra", "NodeFailure", "p"),
        ([pod(ended=5, status_reason="NodeLost")], "infra", "NodeFailure", "p"),
        ([pod(ended=5, node="dead")], "infra", "NodeFailure", "p"),
        ([pod(ended=5, node="gone")], "infra", "NodeFailure", "p"),
        ([pod(ended=5, node="broken")], "infra", "NodeFailure", "p"),
        # What happened first counts.
        ([pod(ended=5), pod("q", ended=4)], "app", "Error", "q"),
        ([pod(ended=5), pod("q", deleted=3)], "disruption", "PodDeleted", "q"),
        # A survivor that was told to go ends in an error, too: that is a consequence.
        ([pod(ended=5), pod("q", ended=7, deleted=6, code=143)], "app", "Error", "p"),
        # In the same second, a pod that was not deleted is the cause.
        ([pod("a", deleted=5), pod(ended=5)], "app", "Error", "p"),
        # A pod that succeeded is no cause.
        ([pod("a", ended=1, code=0, phase="Succeeded"), pod(ended=5)], "app", "Error", "p"),
        ([], "disruption", "PodsGone", ""),
    ],
)
def test_the_first_cause(pods: list[Json], cause: str, reason: str, culprit: str) -> None:
    found = first_cause(pods, NODES.get, now=NOW)
    assert (found.cause, found.reason, found.pod) == (cause, reason, culprit)


APP = Incident("app", "Error", "it failed", at=NOW)
BAD_START = Incident("config", "StartError", "it did not start", at=NOW)
NODE_GONE = Incident("infra", "NodeFailure", "its node is gone", at=NOW)


def before(row: int) -> Record:
    return Record(attempt=row, cause="app", reason="Error", message="", row=row)


@pytest.mark.parametrize(
    ("incident", "used", "last", "ready_at", "expected"),
    [
        (APP, 0, None, 0.0, Restart(NOW + 10, 1, counts=True)),
        (APP, 1, before(1), 0.0, Restart(NOW + 20, 2, counts=True)),
        (APP, 1, before(1), NOW - 599, Restart(NOW + 20, 2, counts=True)),
        (APP, 1, before(1), NOW - 600, Restart(NOW + 10, 1, counts=True)),
        (APP, 5, before(9), 0.0, Restart(NOW + 600, 10, counts=True)),
        (APP, 6, before(1), 0.0, "ReachedMaxRestarts"),
        (NODE_GONE, 6, before(3), 0.0, Restart(NOW, 3, counts=False)),
        (NODE_GONE, 0, None, 0.0, Restart(NOW, 0, counts=False)),
        (BAD_START, 0, None, 0.0, Restart(NOW + 10, 1, counts=True)),
        (BAD_START, 2, before(2), 0.0, "CrashLoop"),
        (BAD_START, 2, before(2), NOW - 5, Restart(NOW + 40, 3, counts=True)),
    ],
)
def test_what_follows(
    incident: Incident,
    used: int,
    last: Record | None,
    ready_at: float,
    expected: Restart | str,
) -> None:
    budget = Budget(limit=6, used=used)
    found = decide(incident, budget, last, ready_at=ready_at, now=NOW)
    assert (found.reason if isinstance(found, GiveUp) else found) == expected


def test_a_record_survives_being_written() -> None:
    restart = Restart(NOW + 10, 2, counts=True)
    record = recovered(record_of(APP, restart, 3), NOW + 42)
    assert record.lost_seconds == 42
    assert Record.of({"unisono.dev/last-incident": record.text()}) == record
    assert Record.of({"unisono.dev/last-incident": "{}"}) is None
    assert Record.of(None) is None


@pytest.mark.parametrize(
    ("annotations", "written", "limit"),
    [
        (None, (), 6),
        ({}, (None, 3), 3),
        ({}, (0, 3), 0),
        ({"unisono.dev/max-restarts": "2"}, (0, 3), 2),
        ({"unisono.dev/max-restarts": "many"}, (None, None), 6),
    ],
)
def test_limits(annotations: Json | None, written: tuple[int | None, ...], limit: int) -> None:
    assert limit_of(annotations, *written) == limit
