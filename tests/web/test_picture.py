"""What the page shows of a small cluster."""

from __future__ import annotations

import json

import pytest

from tests.monitor import objects
from unisono.kube.mapping import POD
from unisono.monitor.books import CLUSTER_QUEUE, LOCAL_QUEUE, NODE, WORKLOAD, Books, fill
from unisono.web.picture import Painter


@pytest.fixture
def books() -> Books:
    """Return two nodes, one of them in quarantine, and a queue."""
    made = Books()
    broken = objects.node("n2", 4)
    broken["spec"] = {"taints": [{"key": "unisono.dev/quarantine", "value": "Xid79"}]}
    fill(made, NODE, (objects.node("n1", 4), broken))
    fill(made, CLUSTER_QUEUE, (objects.cluster_queue(),))
    fill(made, LOCAL_QUEUE, (objects.local_queue(),))
    return made


def test_gpus_are_held_free_or_on_closed_nodes(books: Books) -> None:
    fill(books, POD, (objects.pod("p0", "n1", 3),))
    picture = Painter(books).picture(0.0)
    gpus = picture["gpus"]
    assert (gpus["there"], gpus["held"], gpus["free"], gpus["down"]) == (8, 3, 1, 4)
    first, second = picture["nodes"]
    assert first["holders"] == ["team-a/gang"] * 3 + [""]
    assert (second["closed"], second["why"]) == (True, ["quarantine=Xid79"])


def test_who_waits_is_explained(books: Books) -> None:
    waiting = objects.workload("gang")
    told = {
        "stage": "quota",
        "facts": [
            {"fact": "QuotaExhausted", "changes": "4 GPUs freed"},
            {"fact": "Planned", "start": 90_000},
        ],
    }
    waiting["status"]["conditions"] = [
        {"type": "QuotaReserved", "status": "False", "reason": "X", "message": "4 GPUs short"},
        {"type": "unisono.dev/Explanation", "status": "True", "message": json.dumps(told)},
    ]
    fill(books, WORKLOAD, (waiting,))
    picture = Painter(books).picture(0.0)
    (queue,) = picture["queues"]
    assert (queue["head"], queue["says"], queue["planned"]) == ("team-a/gang", "4 GPUs short", 90)
    (one,) = picture["workloads"]
    assert (one["stage"], one["changes"], one["place"]) == ("quota", ("4 GPUs freed",), 1)
    assert (one["state"], one["gpus"], one["job"]) == ("inadmissible", 8, "trainjob/gang")


def test_a_gang_that_runs_has_times_and_pods(books: Books) -> None:
    running = objects.workload(
        "gang", QuotaReserved="2026-01-01T10:01:00Z", PodsReady="2026-01-01T10:02:00Z"
    )
    fill(books, WORKLOAD, (running,))
    fill(books, POD, (objects.pod("p1", "n1"), objects.pod("p0", "n1")))
    (one,) = Painter(books).picture(0.0)["workloads"]
    assert one["state"] == "running"
    assert [pod[0] for pod in one["pods"]] == ["p0", "p1"]
    assert one["times"][3] - one["times"][1] == 60


def test_a_long_queue_is_cut_and_counted(books: Books) -> None:
    fill(books, WORKLOAD, (objects.workload(f"w{at}") for at in range(700)))
    picture = Painter(books).picture(0.0)
    assert picture["counts"]["waiting"] == 700
    assert len(picture["workloads"]) == 500
