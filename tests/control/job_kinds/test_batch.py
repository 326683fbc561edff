"""Jobs of batch/v1, as jobs §3 has them and §9 tells them (10 to 12)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.control.stories import phases, pods, told
from tests.runner.simulated_world import node
from tests.support.control_objects import queue
from tests.support.control_world import World
from unisono.control.conditions import seconds, timestamp
from unisono.control.names import JOB, POD, WORKLOAD
from unisono.kube.form import Json


def job(
    command: str = "exit 0", *, says: Json | None = None, labels: Json | None = None, **spec: Any
) -> Json:
    """Return a Job `j` whose pods run a command."""
    container = {"name": "main", "image": "x", "command": ["sh", "-c", command]}
    template = {
        "metadata": {"annotations": {f"unisono.dev/{k}": v for k, v in (says or {}).items()}},
        "spec": {"restartPolicy": spec.pop("restart", "Never"), "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "labels": labels or {}},
        "spec": {"template": template, **spec},
    }


def state(world: World) -> dict[str, Any]:
    """Return what the status of the job says, with its true conditions and their reasons."""
    status = dict(world.get(JOB, "j").get("status") or {})
    status["is"] = {
        one["type"]: one["reason"]
        for one in status.pop("conditions", ())
        if one["status"] == "True"
    }
    return status


def test_a_queued_job_waits_runs_leaves_and_comes_back() -> None:
    async def story(world: World) -> None:
        held = job(
            "sleep 1000",
            labels={"kueue.x-k8s.io/queue-name": "lq-cq"},
            parallelism=4,
            completions=4,
            suspend=True,
        )
        await world.create(*queue(), held)
        await world.settle()
        assert phases(world) == {}
        assert state(world)["is"] == {"Suspended": "JobSuspended"}
        await world.create(node("n1"))
        await world.settle()
        assert list(phases(world).values()) == ["Running"] * 4
        first = state(world)["startTime"]
        (workload,) = world.every(WORKLOAD)
        inactive = {"spec": {"active": False}}
        await world.client.patch(WORKLOAD, workload["metadata"]["name"], "default", inactive)
        await world.pass_time(60)
        assert phases(world) == {}
        stopped = state(world)
        assert (stopped.get("failed", 0), stopped.get("startTime")) == (0, None)
        assert stopped["is"] == {"Suspended": "JobSuspended"}
        active = {"spec": {"active": True}}
        await world.client.patch(WORKLOAD, workload["metadata"]["name"], "default", active)
        await world.pass_time(5)
        assert list(phases(world).values()) == ["Running"] * 4
        assert seconds(state(world)["startTime"]) > seconds(first)

    told(story)


def test_failures_are_tried_again_later_each_time_until_the_limit() -> None:
    async def story(world: World) -> None:
        await world.create(node(), job("exit 1", says={"run-seconds": "0"}, backoffLimit=2))
        await world.settle()
        began = world.clock.time
        made: dict[str, float] = {}
        for _ in range(60):
            await world.pass_time(1)
            for pod in world.every(POD):
                made.setdefault(pod["metadata"]["name"], world.clock.time - began)
        assert [round(at, -1) for at in sorted(made.values())] == [0, 10, 30]
        assert state(world)["failed"] == 3
        assert state(world)["is"]["Failed"] == "BackoffLimitExceeded"

    told(story)


def test_back_off_begins_anew_after_a_success() -> None:
    async def story(world: World) -> None:
        says = {"run-seconds": "1", "exit-code": "1", "fail-times": "1"}
        await world.create(node(), job(says=says, completions=2, completionMode="Indexed"))
        await world.pass_time(100)
        made = sorted(seconds(pod["metadata"]["creationTimestamp"]) for pod in world.every(POD))
        # Index 0 fails and succeeds ten seconds later; index 1 does the same.
        waits = [round(late - early) for early, late in pairwise(made)]
        assert waits == [11, 1, 11]
        assert state(world)["is"]["Complete"] == "CompletionsReached"

    told(story)


def test_a_pod_that_comes_when_its_job_is_over_does_not_run_again() -> None:
    async def story(world: World) -> None:
        says = {"run-seconds": "1"}
        await world.create(node(), job(says=says, completions=1, completionMode="Indexed"))
        await world.pass_time(10)
        assert state(world)["is"]["Complete"] == "CompletionsReached"
        (done,) = pods(world).values()
        # A request of a leader that is dead arrives now: it creates the same index once more.
        kept = ("labels", "annotations", "ownerReferences", "namespace", "finalizers")
        metadata = {key: value for key, value in done["metadata"].items() if key in kept}
        spec = {key: value for key, value in done["spec"].items() if key != "nodeName"}
        late = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
        await world.create({**late, "metadata": {**metadata, "name": "j-0-late"}})
        await world.pass_time(10)
        assert list(pods(world)) == [done["metadata"]["name"]]

    told(story)


async def succeed(world: World, name: str) -> None:
    """Let the only container of a pod end well."""
    ended = {"exitCode": 0, "reason": "Completed", "finishedAt": timestamp(world.clock.now())}
    statuses = [
        {**one, "ready": False, "state": {"terminated": ended}}
        for one in pods(world)[name]["status"]["containerStatuses"]
    ]
    await world.set_status(POD, name, {"phase": "Succeeded", "containerStatuses": statuses})


def test_a_success_policy_ends_the_job_and_sends_the_others_away() -> None:
    async def story(world: World) -> None:
        await world.create(
            node(),
            job(
                "sleep 1000",
                parallelism=5,
                completions=5,
                completionMode="Indexed",
                successPolicy={"rules": [{"succeededIndexes": "0"}]},
            ),
        )
        await world.settle()
        assert list(phases(world).values()) == ["Running"] * 5
        first = next(iter(phases(world)))
        await succeed(world, first)
        await world.pass_time(60)
        assert state(world)["is"] == {
            "SuccessCriteriaMet": "SuccessPolicy",
            "Complete": "SuccessPolicy",
        }
        assert phases(world) == {first: "Succeeded"}

    told(story)


EXIT_42 = {"containerName": "main", "operator": "In", "values": [42]}


@pytest.mark.parametrize(
    ("spec", "says", "reason", "failed", "indexes"),
    [
        # Every index may fail once; index 1 always does, the others go on.
        ({"backoffLimitPerIndex": 1}, {"fail-index": "1"}, "FailedIndexes", 2, "1"),
        (
            {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1},
            {"fail-index": "1,2"},
            "MaxFailedIndexesExceeded",
            2,
            "1,2",
        ),
        (
            {
                "backoffLimitPerIndex": 5,
                "podFailurePolicy": {"rules": [{"action": "FailIndex", "onExitCodes": EXIT_42}]},
            },
            {"fail-index": "0", "exit-code": "42"},
            "FailedIndexes",
            1,
            "0",
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": EXIT_42}]}},
            {"fail-index": "0", "exit-code": "42"},
            "PodFailurePolicy",
            1,
            None,
        ),
    ],
)
def test_failures_of_indexes(
    spec: Json, says: Json, reason: str, failed: int, indexes: str | None
) -> None:
    async def story(world: World) -> None:
        says_all = {"run-seconds": "1", "exit-code": "1", **says}
        await world.create(
            node(), job(says=says_all, completions=3, completionMode="Indexed", **spec)
        )
        await world.pass_time(200)
        found = state(world)
        assert found["is"]["Failed"] == reason
        assert (found["failed"], found.get("failedIndexes")) == (failed, indexes)

    told(story)
