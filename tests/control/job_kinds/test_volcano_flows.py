"""JobFlows: jobs that follow each other, one story per test."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.job_kinds.test_volcano_policies import task
from tests.control.stories import delete, gpu_node, told
from tests.support.control_world import World
from unisono.control.job_kinds import volcano
from unisono.kinds.volcano.flows import patched
from unisono.kube.errors import Invalid
from unisono.kube.form import Json


def template(name: str, seconds: str = "5", exit_code: str = "0", **spec: Any) -> Json:
    tasks = [task("w", 1, run_seconds=seconds, exit_code=exit_code)]
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": tasks, **spec},
    }


def flow(*flows: Json, **spec: Any) -> Json:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "f", "namespace": "default"},
        "spec": {"flows": list(flows), **spec},
    }


def step(name: str, *after: str, **more: Any) -> Json:
    return {"name": name, **({"dependsOn": {"targets": list(after)}} if after else {}), **more}


def jobs(world: World) -> dict[str, str]:
    found = world.every(volcano.JOB)
    return {one["metadata"]["name"]: one["status"]["state"]["phase"] for one in found}


def state(world: World) -> Json:
    status: Json = world.get(volcano.FLOW, "f")["status"]
    return status


def test_jobs_follow_each_other() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 8), template("a"), template("b"), template("c"))
        await world.create(flow(step("a"), step("b", "a"), step("c", "a", "b")))
        await world.settle()
        assert jobs(world) == {"f-a": "Running"}
        assert state(world)["state"] == {"phase": "Running"}
        made = world.get(volcano.JOB, "f-a")["metadata"]
        assert made["labels"]["volcano.sh/createdByJobFlow"] == "default.f"
        assert made["ownerReferences"][0]["kind"] == "JobFlow"
        await world.pass_time(6)
        assert jobs(world) == {"f-a": "Completed", "f-b": "Running"}
        await world.pass_time(12)
        assert jobs(world) == dict.fromkeys(("f-a", "f-b", "f-c"), "Completed")
        assert state(world)["state"] == {"phase": "Succeed"}
        assert state(world)["completedJobs"] == ["f-a", "f-b", "f-c"]
        past = [one["state"] for one in state(world)["jobStatusList"][0]["runningHistories"]]
        assert past[-1] == "Completed"
        assert world.get(volcano.JOB_TEMPLATE, "b")["status"] == {"jobDependsOnList": ["f-b"]}
        await delete(world, volcano.FLOW, "f")
        assert jobs(world) == {}

    told(story)


def test_a_job_that_fails_ends_the_flow() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 8), template("a", exit_code="1"), template("b"))
        await world.create(flow(step("a"), step("b", "a")))
        await world.pass_time(10)
        assert jobs(world) == {"f-a": "Failed"}
        assert state(world)["state"] == {"phase": "Failed"}

    told(story)


def test_jobs_go_when_all_are_completed_if_the_flow_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 8), template("a"))
        await world.create(flow(step("a"), jobRetainPolicy="delete"))
        await world.pass_time(10)
        assert state(world)["state"] == {"phase": "Succeed"}
        assert jobs(world) == {}

    told(story)


def test_a_flow_waits_for_its_templates() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 8), flow(step("a")))
        await world.settle()
        assert jobs(world) == {}
        assert not world.get(volcano.FLOW, "f").get("status")
        await world.create(template("a"))
        await world.settle()
        assert jobs(world) == {"f-a": "Running"}

    told(story)


def test_a_flow_may_say_otherwise_than_its_template() -> None:
    spec = {"maxRetry": 1, "tasks": [{"name": "w", "replicas": 1}, {"name": "x", "replicas": 2}]}
    patch = {"maxRetry": 5, "tasks": [{"name": "w", "replicas": 3}, {"name": "y"}]}
    assert patched(spec, patch) == {
        "maxRetry": 5,
        "tasks": [{"name": "w", "replicas": 3}, {"name": "x", "replicas": 2}, {"name": "y"}],
    }


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        ([step("a", "b")], "vertex is not defined: b"),
        ([step("a", "a")], "jobflow Flow is not DAG"),
        ([step("a", "b"), step("b", "c"), step("c", "a")], "these wait for each other: a, b, c"),
    ],
)
def test_flows_that_could_never_end_are_refused(flows: list[Json], said: str) -> None:
    async def story(world: World) -> None:
        with pytest.raises(Invalid, match=said):
            await world.create(flow(*flows))

    told(story)
