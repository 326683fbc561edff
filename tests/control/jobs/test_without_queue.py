"""Jobs that name no queue: the policy's, the one named `default`, or a warning."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.control.gangs.test_gates import assembled
from tests.control.job_kinds.test_kubeflow import torch
from tests.control.pod_gangs.test_pod_gangs import bare
from tests.control.test_huge_counts import _ray, _ray_spec
from tests.control.training_world import job_set, replicated
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.actions import Note
from unisono.control.assembly import Assembly, cluster, embedded
from unisono.control.view import View
from unisono.engine.model.selection import LabelSelector
from unisono.kinds.policy.schema import PriorityClassRule
from unisono.kinds.policy.settings import DEFAULTS, QueueRule, Settings
from unisono.kube.form import Json

RULED = Settings(default_queues=(QueueRule(LabelSelector(), "lq-cq"),))
SLURM: Json = {
    "apiVersion": "unisono.dev/v1",
    "kind": "SlurmJob",
    "metadata": {"name": "batch-1", "namespace": "default"},
    "spec": {
        "jobId": 1,
        "jobName": "batch",
        "user": "ada",
        "userId": 1000,
        "groupId": 1000,
        "command": "batch.sh",
        "arguments": [],
        "workDir": "/",
        "submitHost": "login",
        "cluster": "c",
        "script": "batch-1",
        "options": {},
        "tasks": 1,
        "cpusPerTask": 1,
        "groups": [
            {
                "name": "main",
                "nodes": 1,
                "tasks": 1,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "main", "image": "x"}],
                    }
                },
            }
        ],
    },
}


BARE = bare("lonely", schedulerName="unisono")


def after(made: Json, settings: Settings = DEFAULTS, *more: Json) -> tuple[list[str], list[Note]]:
    """Return the queues of workloads, and what was told, after a job came where there is quota."""
    world = World(settings=settings, assemble=assembled)

    async def main() -> list[str]:
        async with world.running():
            await world.create(node("n1"), node("n2"), *queue(), *more, made)
            await world.settle()
            return [one["spec"].get("queueName", "") for one in world.every(names.WORKLOAD)]

    queues = asyncio.run(main())
    return queues, [note for note in world.notes if note.type == "Warning"]


@pytest.mark.parametrize(
    "made", [job("train", queue_name=""), SLURM, BARE], ids=["Job", "SlurmJob", "Pod"]
)
def test_the_policy_gives_a_namespace_its_queue(made: Json) -> None:
    assert after(made, RULED) == (["lq-cq"], [])


@pytest.mark.parametrize("made", [job("train", queue_name=""), SLURM], ids=["Job", "SlurmJob"])
def test_a_job_that_no_quota_holds_says_so(made: Json) -> None:
    _, notes = after(made)
    note = notes[0]
    assert note.type == "Warning"
    assert "runs outside of every quota" in note.message
    assert note.about.name == made["metadata"]["name"]


def test_a_queue_that_is_named_default_is_one() -> None:
    door: Json = {
        "apiVersion": names.KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "default", "namespace": "default"},
        "spec": {"clusterQueue": "cq"},
    }
    assert after(job("train", queue_name=""), DEFAULTS, door) == (["default"], [])


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (PriorityClassRule(names=("urgent",), namespaces=("default",)), 1000),
        (PriorityClassRule(names=("other",)), 1000),
        (PriorityClassRule(names=("urgent",), namespaces=("prod",)), 0),
        (PriorityClassRule(names=("*",), users=("ada",)), 0),
    ],
)
def test_a_class_counts_where_it_is_meant_for(rule: PriorityClassRule, value: int) -> None:
    """On a real cluster; only our own API knows the submitter of a job, and refuses."""
    world = World(settings=Settings(priority_classes=(rule,)), assemble=assembled)

    async def main() -> list[int]:
        async with world.running():
            made = job("train", priority_class="urgent")
            await world.create(node("n1"), node("n2"), *queue(), priority("urgent", 1000), made)
            await world.settle()
            await world.settle()
            return [one["spec"]["priority"] for one in world.every(names.WORKLOAD)]

    assert asyncio.run(main()) == [value]
    told = [note.message for note in world.notes if note.reason == "PriorityClassNotAllowed"]
    assert bool(told) is (value == 0)
    assert all("priority class urgent is not allowed in namespace default" in text for text in told)


@pytest.mark.parametrize(
    "made",
    [
        job("train", queue_name=""),
        SLURM,
        job_set(replicated(gpus=1)),
        torch(),
        _ray(_ray_spec(1, replicas=1)),
        BARE,
    ],
    ids=lambda made: f"{made['kind']}.{made['apiVersion']}",
)
def test_where_every_job_needs_a_queue_no_kind_goes_without(made: Json) -> None:
    """Kinds whose pods are ours to place went into the queue without limits."""
    assert after(made, Settings(manages_unqueued=True))[0] == [""]


@pytest.mark.parametrize("assemble", [assembled, embedded], ids=["real", "embedded"])
def test_a_pod_that_names_our_scheduler_waits_until_it_names_a_queue(assemble: Any) -> None:
    """On a real cluster it was placed without limits: no policy there knows what was chosen."""
    world = World(settings=Settings(manages_unqueued=True), assemble=assemble)

    async def main() -> None:
        async with world.running():
            await world.create(node("n1"), *queue(), BARE, bare("theirs", schedulerName="other"))
            await world.settle()
            (workload,) = world.every(names.WORKLOAD)
            assert "queueName" not in workload["spec"]
            assert "nodeName" not in world.get(names.POD, "lonely")["spec"]
            named = {"metadata": {"labels": {names.QUEUE_LABEL: "lq-cq"}}}
            await world.client.patch(names.POD, "lonely", "default", named)
            await world.settle()
            (workload,) = world.every(names.WORKLOAD)
            assert workload["status"]["admission"]["clusterQueue"] == "cq"
            assert world.get(names.POD, "lonely")["spec"]["nodeName"] == "n1"

    asyncio.run(main())


POLICY = {
    "apiVersion": "unisono.dev/v1",
    "kind": "Policy",
    "metadata": {"name": "unisono"},
    "priorityClasses": [{"names": ["urgent"], "users": ["ada"]}],
}


@pytest.mark.parametrize(("api_checks", "value"), [(False, 0), (True, 1000)])
def test_rules_are_the_apis_where_it_checks_users(api_checks: bool, value: int) -> None:
    """A real API with our policies has refused all other users; one without them has not."""

    def made(view: View, settings: Settings) -> Assembly:
        return cluster(view, settings, epoch=1, operators=(), api_checks_classes=api_checks)

    world = World(assemble=made)

    async def main() -> list[int]:
        async with world.running():
            await world.create(node("n1"), node("n2"), *queue(), priority("urgent", 1000))
            await world.create(POLICY, job("train", priority_class="urgent"))
            await world.settle()
            await world.settle()
            return [one["spec"]["priority"] for one in world.every(names.WORKLOAD)]

    assert asyncio.run(main()) == [value]
    told = [note.message for note in world.notes if note.reason == "PriorityClassNotAllowed"]
    assert bool(told) is (value == 0)
    (written,) = (one for one in world.every(names.CONFIG_MAP) if "classes" in str(one["metadata"]))
    assert written["data"] == {"0.names": "urgent", "0.users": "ada"}


def test_rules_that_are_gone_are_taken_out_for_the_api_too() -> None:
    rule = PriorityClassRule(names=("a", "b"), groups=("staff",))
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "unisono-system"}}
    world = World(settings=Settings(priority_classes=(rule,)), assemble=assembled)

    def written() -> Json:
        (found,) = (
            one for one in world.every(names.CONFIG_MAP) if "classes" in str(one["metadata"])
        )
        return found.get("data") or {}

    async def main() -> None:
        async with world.running():
            await world.create(home)
            await world.settle()
            assert written() == {"0.names": "a\nb", "0.groups": "staff"}
            await world.create(POLICY)
            await world.settle()
            assert written() == {"0.names": "urgent", "0.users": "ada"}
            await world.client.delete(names.POLICY, "unisono")
            await world.settle()
            assert written() == {"0.names": "a\nb", "0.groups": "staff"}

    asyncio.run(main())
