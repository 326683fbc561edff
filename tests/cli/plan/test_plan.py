"""`unisono plan`, and what `why` and `decide` say about when a job starts."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.cli.why.test_why import why
from tests.control.scheduler.test_start_times import limited, play
from tests.control.scheduler.test_time_limits import saying
from tests.support.control_objects import job
from tests.support.control_world import World
from unisono.cli.main import main
from unisono.cli.plan.rows import living_rows
from unisono.control import names
from unisono.kinds.policy.settings import Settings

Story = Callable[[World], Coroutine[Any, Any, None]]

CLUSTER = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq, annotations: {unisono.dev/default-time-limit: '30'}}
spec: {clusterQueue: q}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, pods: 10}, conditions: [{type: Ready, status: 'True'}]}
"""
POLICY = "apiVersion: unisono.dev/v1\nkind: Policy\nbackfill: {dates: 0}\n"


def batch_job(name: str, cpus: int, limit: str = "") -> str:
    annotations = f", annotations: {{unisono.dev/time-limit: '{limit}'}}" if limit else ""
    return (
        "---\napiVersion: batch/v1\nkind: Job\n"
        f"metadata: {{name: {name}, labels: {{kueue.x-k8s.io/queue-name: lq}}{annotations}}}\n"
        "spec: {template: {spec: {restartPolicy: Never, containers:"
        f" [{{name: c, resources: {{requests: {{cpu: {cpus}}}}}}}]}}}}}}\n"
    )


def test_workloads_that_start_at_once_are_said_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER + batch_job("a", 3, "1:00:00"))
    assert main(["plan", "-f", str(tmp_path / "cluster.yaml")]) == 0
    assert capsys.readouterr() == ("", "unisono: all of these workloads start now\n")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    jobs = batch_job("a", 3, "1:00:00") + batch_job("b", 4) + batch_job("c", 2, "10")
    (tmp_path / "cluster.yaml").write_text(CLUSTER + jobs)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return ["-f", str(tmp_path / "cluster.yaml"), "--now", "2026-01-01T12:00:00Z"]


def test_manifests_are_planned_without_a_cluster(
    files: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["plan", *files]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "POS  NAME   QUEUE  PRIO  PODS  START   IN     LIMIT  WHY",
        "  1  job-b  lq        0     1  ~13:00  1h       30m  starts once job-a has ended",
        "  2  job-c  lq        0     1  ~13:30  1h30m    10m  starts once job-a has ended, "
        "and job-b is no l…",
    ]
    assert main(["plan", *files, "--policy", str(tmp_path / "policy.yaml"), "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["plan"]
    assert [(row["name"], row["start"], row["promised"]) for row in rows] == [
        ("job-b", "2026-01-01T13:00:00Z", True),
        ("job-c", "2026-01-01T13:30:00Z", True),
    ]
    assert rows[0]["limit"] == {"seconds": 1800, "from": "queue"}
    assert rows[1]["behind"] == "default/job-b"
    assert main(["plan", *files, "-n", "elsewhere"]) == 0
    assert capsys.readouterr().err == "unisono: no pending workloads\n"


def test_decide_has_dates_and_estimates(
    files: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["decide", *files, "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["reservations"] == []
    assert [one["estimatedStart"] for one in answer["pending"]] == [
        "2026-01-01T13:00:00Z",
        "2026-01-01T13:30:00Z",
    ]
    assert main(["decide", *files, "--policy", str(tmp_path / "policy.yaml"), "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["reservations"][0] == {
        "workload": "default/job-b",
        "start": "2026-01-01T13:00:00Z",
        "end": "2026-01-01T13:30:00Z",
    }
    assert main(["decide", *files]) == 0
    told = capsys.readouterr().out
    assert "estimated start: 13:00, in 1 h" in told
    assert "T13:00:00Z" not in told


def rows_of(world: World) -> list[dict[str, Any]]:
    doors = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one
        for one in world.every(names.LOCAL_QUEUE)
    }
    queues = {one["metadata"]["name"]: one for one in world.every(names.CLUSTER_QUEUE)}
    return living_rows(world.every(names.WORKLOAD), doors, queues)


def test_a_living_cluster_shows_the_next_workload_and_why_names_limit_and_place() -> None:
    async def story(world: World) -> None:
        await world.create(limited("first", 8, 500, 600))
        await world.settle()
        await world.create(saying(job("large", pods=2, gpus=8), time_limit="10:00"))
        await world.create(limited("long", 8, 900, 900))
        await world.settle()
        rows = rows_of(world)
        assert [(row["position"], row["name"], row["promised"]) for row in rows] == [
            (1, "job/large", True),
            (2, "job/long", True),
        ]
        assert rows[1]["behind"] == f"default/{rows[0]['workload']}"
        found, words = await why(world, "long")
        assert found["limit"] == {"seconds": 900, "from": "request"}
        assert found["estimate"]["promised"] is True
        assert "  limit     15m (as requested)" in words
        promise = f"in 19 min 58 s (reserved; after default/{rows[0]['workload']})"
        assert promise in words
        assert "workloads that end before their time limits, a time limit below 15m" in words
        found, words = await why(world, "first")
        assert found["until"] is not None
        assert "  limit     10m (as requested), ends by " in words

    play(story)


def test_without_backfill_why_has_an_estimate() -> None:
    async def story(world: World) -> None:
        await world.create(limited("first", 8, 500, 600), limited("second", 8, 500, 900))
        await world.settle()
        await world.create(limited("third", 8, 50, 100))
        await world.settle()
        found, words = await why(world, "third")
        assert found["estimate"]["promised"] is False
        assert "estimate: starts at about " in words
        assert "(estimate, no reservation)" in words
        assert [row["promised"] for row in rows_of(world)] == [False]

    play(story, Settings())
