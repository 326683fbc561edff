"""Pods that the API refuses show as events about their job."""

from __future__ import annotations

import asyncio

import pytest

from tests.control.job_kinds.test_kubeflow import torch
from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.test_huge_counts import _ray, _ray_spec, _slurm
from tests.control.training_world import gpu_node, job_set, replicated
from tests.kinds.test_known import poked_at
from tests.support.control_objects import job
from tests.support.control_world import World
from unisono.control.actions import Note
from unisono.kube.form import Json

BATCH = job("j", queue_name="")
JOBS = {
    "Job": (BATCH, "spec/template", "Job"),
    "JobSet": (
        job_set(replicated(gpus=1)),
        "spec/replicatedJobs/0/template/spec/template",
        "Job",
    ),
    "PyTorchJob": (torch(), "spec/pytorchReplicaSpecs/Worker/template", "PyTorchJob"),
    "RayCluster": (
        _ray(_ray_spec(1, replicas=1)),
        "spec/headGroupSpec/template",
        "RayCluster",
    ),
    "Volcano Job": (vcjob(task("w", 2)), "spec/tasks/0/template", "Job"),
    "SlurmJob": (_slurm(), "spec/groups/0/template", "SlurmJob"),
}


def told_of(*objects: Json) -> list[Note]:
    """Let controllers work, and return what they told of refusals."""
    world = World()

    async def main() -> None:
        async with world.running():
            await world.create(gpu_node("n1", 8), *objects)
            await world.settle()

    asyncio.run(main())
    return [note for note in world.notes if note.reason == "FailedCreate"]


@pytest.mark.parametrize("kind", JOBS)
def test_the_owner_hears_why_a_pod_was_not_made(kind: str) -> None:
    made, template, owner = JOBS[kind]
    told = told_of(poked_at(made, f"{template}/spec/priorityClassName", "missing-class"))
    assert told, "the API's reason is in no event"
    assert {(note.about.kind.kind, note.type) for note in told} == {(owner, "Warning")}
    assert all(note.message.startswith("Error creating: pods ") for note in told)
    assert all("missing-class" in note.message for note in told)
    assert told[0].about.uid


def test_one_attempt_is_told_of_once_however_many_pods_were_refused() -> None:
    many = poked_at(BATCH, "spec/parallelism", 50)
    many = poked_at(many, "spec/completions", 50)
    told = told_of(poked_at(many, "spec/template/spec/priorityClassName", "missing-class"))
    assert len(told) == 1


def test_what_is_made_is_not_told_of() -> None:
    assert told_of(BATCH) == []
