"""Bad input on a living cluster: refused, or it waits with a sentence that says what to change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.stories import delete
from tests.control.training_world import train_job
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.cli.why.answer import answer
from unisono.cli.why.read import gather
from unisono.cli.why.text import text
from unisono.control import names
from unisono.control.job_kinds import volcano
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.policy.settings import Settings
from unisono.kinds.views.objects import Conditions
from unisono.kube.errors import Invalid
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

Story = Callable[[World], Awaitable[None]]


def play(story: Story, **more: Any) -> None:
    """Run a story on a cluster with a node of 8 GPUs and a queue of 16."""

    async def run() -> None:
        async with simulated_world(**more).running() as world:
            await world.create(node("n1"), *queue())
            await story(world)

    asyncio.run(run())


async def why(world: World, name: str, kind: Kind = names.JOB) -> tuple[str, str]:
    """Return the state of a job and what `unisono why` says about it, on one line."""
    found = answer(await gather(world.client, world.get(kind, name)))
    return found["state"], " ".join(text(found, world.clock.now()).split())


def training(name: str, **more: Any) -> Json:
    """Return a TrainJob in the queue, with these fields of its spec in place of the usual."""
    made = train_job(name, queue="lq-cq")
    made["metadata"]["namespace"] = "default"
    made["spec"] |= more
    return made


def overriding(**spec: Any) -> list[Json]:
    return [{"targetJobs": [{"name": "node"}], "spec": spec}]


@pytest.mark.parametrize(
    ("manifest", "kind", "says"),
    [
        pytest.param(
            job("bad", queue_name="nope"),
            names.JOB,
            (
                "LocalQueue default/nope does not exist",
                "create LocalQueue default/nope, or correct the queue name",
            ),
            id="no such queue",
        ),
        pytest.param(
            job("bad", pods=1, gpus=16),
            names.JOB,
            (
                "the best node has 8 of 16 nvidia.com/gpu",
                "never, unless there is a node with 16 nvidia.com/gpu; the largest node has 8",
            ),
            id="larger than any node",
        ),
        pytest.param(
            job("bad", pods=1, gpus=64),
            names.JOB,
            (
                "queue cq can never use more than 16 nvidia.com/gpu",
                "never, unless queue cq has 48 nvidia.com/gpu more of quota in flavor",
            ),
            id="larger than the quota",
        ),
    ],
)
def test_it_waits_and_says_what_to_change(
    manifest: Json, kind: Kind, says: tuple[str, ...]
) -> None:
    async def story(world: World) -> None:
        await world.create(manifest)
        await world.pass_time(5)
        state, words = await why(world, "bad", kind)
        assert state == "waiting"
        assert [part for part in says if part not in words] == []
        (workload,) = world.every(names.WORKLOAD)
        message = waiting_message(Conditions(workload["status"]["conditions"]))
        assert all(part in message for part in says), "kubectl users see it, too"
        assert world.every(names.POD) == []

    play(story)


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        pytest.param(
            training("bad", runtimeRef={"name": "torch-distributd"}),
            ("spec.runtimeRef.name", "torch-distributd", 'did you mean "torch-distributed"?'),
            id="unknown runtime",
        ),
        pytest.param(
            training(
                "bad",
                podTemplateOverrides=overriding(
                    containers=[{"name": "trainer", "env": [{"name": "A", "value": "1"}]}]
                ),
            ),
            ("podTemplateOverrides[0].spec.containers[0].name", '"trainer"; it has node'),
            id="wrong container name",
        ),
        pytest.param(
            training(
                "bad",
                podTemplateOverrides=[
                    {"targetJobs": [{"name": "nod"}], "spec": {"nodeSelector": {"a": "b"}}}
                ],
            ),
            ("podTemplateOverrides[0].targetJobs[0].name", '"nod"; it has node'),
            id="wrong job name",
        ),
    ],
)
def test_it_cannot_start_and_says_which_field(manifest: Json, says: tuple[str, ...]) -> None:
    async def story(world: World) -> None:
        await world.create(manifest)
        await world.pass_time(5)
        state, words = await why(world, "bad", names.TRAIN_JOB)
        assert state == "stuck"
        assert [part for part in says if part not in words] == []
        status = world.get(names.TRAIN_JOB, "bad")["status"]
        told = " ".join(one["message"] for one in status["conditions"])
        assert all(part in told for part in says), "kubectl users see it, too"
        assert world.every(names.POD) == []

    play(story)


def test_a_volcano_queue_that_is_missing_is_refused_and_one_that_goes_is_told() -> None:
    async def story(world: World) -> None:
        bad = {
            **vcjob(task("w", 1, gpus=64), queue="nope"),
            "metadata": {"name": "bad", "namespace": "default"},
        }
        with pytest.raises(Invalid, match="unable to find job queue"):
            await world.create(bad)
        queue = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "nope"},
        }
        await world.create(queue, bad)
        await world.pass_time(5)
        await delete(world, names.VOLCANO_QUEUE, "nope", "")
        await world.pass_time(5)
        state, words = await why(world, "bad", volcano.JOB)
        assert state == "waiting"
        assert "Volcano Queue nope does not exist" in words
        assert "create Queue nope, or correct spec.queue" in words

    play(story)


def test_a_job_that_names_no_queue_waits_where_all_have_to() -> None:
    async def story(world: World) -> None:
        await world.create(job("bad", queue_name=""))
        await world.pass_time(5)
        state, words = await why(world, "bad")
        assert state == "waiting"
        assert "names no queue" in words
        assert "label the job kueue.x-k8s.io/queue-name=NAME" in words
        labels = {"kueue.x-k8s.io/queue-name": "lq-cq"}
        await world.client.patch(names.JOB, "bad", "default", {"metadata": {"labels": labels}})
        await world.create(node("n2"))
        await world.pass_time(5)
        assert (await why(world, "bad"))[0] == "running"

    play(story, settings=Settings(manages_unqueued=True))


def test_a_queue_that_comes_later_lets_it_go_on() -> None:
    async def story(world: World) -> None:
        _, _, local_queue = queue()
        local_queue["metadata"]["name"] = "late"
        await world.create(job("early", pods=1, queue_name="late", seconds=500))
        await world.settle()
        assert (await why(world, "early"))[0] == "waiting"
        await world.create(local_queue)
        await world.pass_time(5)
        assert (await why(world, "early"))[0] == "running"

    play(story)


def test_a_stopped_queue_explains_all_pending_workloads_until_it_restarts() -> None:
    async def story(world: World) -> None:
        waiting = [f"j{number}" for number in range(3)]
        await world.create(*(job(name) for name in waiting))
        await world.settle()
        before = {name: (await why(world, name))[1] for name in waiting}
        assert all("1 of 2 pods fit" in words for words in before.values()), "equal ones as well"
        for policy, expected in (("Hold", "is stopped (stopPolicy Hold)"), ("None", "pods fit")):
            await world.client.patch(
                names.CLUSTER_QUEUE, "cq", "", {"spec": {"stopPolicy": policy}}
            )
            await world.settle()
            for name in waiting:
                assert expected in (await why(world, name))[1]

    play(story)


def test_behind_the_head_of_a_strict_queue_it_says_so_when_the_queue_opens() -> None:
    async def story(world: World) -> None:
        strict = {"queueingStrategy": "StrictFIFO", "stopPolicy": "Hold"}
        await world.client.patch(names.CLUSTER_QUEUE, "cq", "", {"spec": strict})
        await world.settle()
        await world.create(job("head"), job("other", pods=3, gpus=4))
        await world.settle()
        assert "is stopped" in (await why(world, "other"))[1]
        await world.client.patch(names.CLUSTER_QUEUE, "cq", "", {"spec": {"stopPolicy": "None"}})
        await world.settle()
        assert "1 of 2 pods fit" in (await why(world, "head"))[1]
        state, words = await why(world, "other")
        assert state == "waiting"
        assert "is at the head, and in a StrictFIFO queue no workload passes the head" in words

    play(story)
