"""JobSets: their Jobs and names, dependencies, and how they end (jobs §2)."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from tests.control.training_world import (
    Json,
    World,
    conditions,
    events,
    gpu_node,
    job_set,
    node,
    places,
    play,
    pods,
    queues,
    replicated,
    status,
)
from unisono.control import names
from unisono.control.assembly import Assembly, embedded
from unisono.control.view import View
from unisono.kinds.policy.settings import Settings

SET = names.JOB_SET


def counts(world: World, job: str) -> dict[str, int]:
    found = status(world, SET, "js")["replicatedJobsStatus"]
    return next(
        {key: value for key, value in one.items() if key != "name" and value}
        for one in found
        if one["name"] == job
    )


def job_names(world: World) -> list[str]:
    return sorted(one["metadata"]["name"] for one in world.every(names.JOB))


async def succeed(world: World, *job: str) -> None:
    """Let all pods of some Jobs end well."""
    for pod in pods(world):
        if pod["metadata"]["labels"]["job-name"] in job:
            await world.set_status(names.POD, pod["metadata"]["name"], {"phase": "Succeeded"})
    await world.settle()


# ---- Jobs, names, addresses --------------------------------------------------------------------


def test_jobs_have_the_names_labels_and_addresses_of_a_jobset() -> None:
    async def story(world: World) -> None:
        coordinator = {"replicatedJob": "lead", "jobIndex": 0, "podIndex": 0}
        await world.create(
            node(),
            job_set(
                replicated("lead", pods=1, groupName="g"),
                replicated("w", replicas=2),
                coordinator=coordinator,
            ),
        )
        await world.settle()
        assert job_names(world) == ["js-lead-0", "js-w-0", "js-w-1"]
        job = world.get(names.JOB, "js-w-1")
        template = job["spec"]["template"]
        expected = {
            "jobset-name": "js",
            "jobset-uid": world.get(SET, "js")["metadata"]["uid"],
            "replicatedjob-name": "w",
            "replicatedjob-replicas": "2",
            "global-replicas": "3",
            "job-index": "1",
            "job-global-index": "2",
            "job-key": hashlib.sha1(b"default/js-w-1").hexdigest(),
            "restart-attempt": "0",
            "group-name": "default",
            "group-replicas": "2",
            "job-group-index": "1",
            "coordinator": "js-lead-0-0.js",
        }
        for where in (job["metadata"], template["metadata"]):
            for part in ("labels", "annotations"):
                found = {f"jobset.sigs.k8s.io/{key}": value for key, value in expected.items()}
                assert found.items() <= where[part].items()
        assert job["spec"]["completionMode"] == "Indexed"
        assert sorted(places(world)) == [
            "js-lead-0-0",
            "js-w-0-0",
            "js-w-0-1",
            "js-w-1-0",
            "js-w-1-1",
        ]
        assert {pod["spec"]["subdomain"] for pod in pods(world)} == {"js"}
        service = world.get(names.SERVICE, "js")["spec"]
        assert service["clusterIP"] == "None"
        assert service["selector"] == {"jobset.sigs.k8s.io/jobset-name": "js"}
        assert service["publishNotReadyAddresses"] is True
        assert counts(world, "w") == {"ready": 2, "active": 2}

    play(story)


def test_network_settings_are_followed() -> None:
    async def story(world: World) -> None:
        network = {"subdomain": "peers", "publishNotReadyAddresses": False}
        await world.create(
            node(),
            job_set(name="a", network=network),
            job_set(name="b", network={"enableDNSHostnames": False}),
        )
        await world.settle()
        service = world.get(names.SERVICE, "peers")["spec"]
        assert service["publishNotReadyAddresses"] is False
        assert [one["metadata"]["name"] for one in world.every(names.SERVICE)] == ["peers"]

    play(story)


def test_another_manager_s_jobset_is_left_alone() -> None:
    async def story(world: World) -> None:
        await world.create(node(), job_set(managedBy="kueue.x-k8s.io/multikueue"))
        await world.settle()
        assert world.every(names.JOB) == []

    play(story)


# ---- order -------------------------------------------------------------------------------------


def test_a_job_waits_until_what_it_depends_on_is_complete_and_another_until_it_is_ready() -> None:
    async def story(world: World) -> None:
        await world.create(
            node(),
            job_set(
                replicated("fetch", pods=1),
                replicated("server", pods=1, dependsOn=[{"name": "fetch", "status": "Complete"}]),
                replicated("client", pods=1, dependsOn=[{"name": "server", "status": "Ready"}]),
            ),
        )
        await world.settle()
        assert job_names(world) == ["js-fetch-0"]
        await succeed(world, "js-fetch-0")
        assert job_names(world) == ["js-client-0", "js-fetch-0", "js-server-0"]
        await succeed(world, "js-server-0", "js-client-0")
        assert status(world, SET, "js")["terminalState"] == "Completed"

    play(story)


def test_jobs_start_in_order_if_the_startup_policy_says_so() -> None:
    async def story(world: World) -> None:
        slow = {"unisono.dev/ready-seconds": "30"}
        await world.create(
            node(),
            job_set(
                replicated("a", pods=1, says=slow),
                replicated("b", pods=1),
                startupPolicy={"startupPolicyOrder": "InOrder"},
            ),
        )
        await world.settle()
        assert job_names(world) == ["js-a-0"]
        assert conditions(world, SET, "js")["StartupPolicyInProgress"][0] == "True"
        await world.pass_time(31)
        assert job_names(world) == ["js-a-0", "js-b-0"]
        assert conditions(world, SET, "js")["StartupPolicyCompleted"][0] == "True"
        assert conditions(world, SET, "js")["StartupPolicyInProgress"][0] == "False"

    play(story)


# ---- success -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "enough"),
    [
        (None, ("js-a-0", "js-b-0")),
        ({"operator": "All", "targetReplicatedJobs": ["a"]}, ("js-a-0",)),
        ({"operator": "Any"}, ("js-b-0",)),
        ({"operator": "Any", "targetReplicatedJobs": ["a"]}, ("js-a-0",)),
    ],
)
def test_the_success_policy_says_when_it_is_done(
    policy: Json | None, enough: tuple[str, ...]
) -> None:
    async def story(world: World) -> None:
        more: Json = {"successPolicy": policy} if policy else {}
        await world.create(
            node(), job_set(replicated("a", pods=1), replicated("b", pods=1), **more)
        )
        await world.settle()
        for place, name in enumerate(enough):
            assert "terminalState" not in status(world, SET, "js"), place
            await succeed(world, name)
        await world.pass_time(60)
        assert conditions(world, SET, "js")["Completed"] == ("True", "AllJobsCompleted")
        assert status(world, SET, "js")["terminalState"] == "Completed"
        assert pods(world) == []  # the others were stopped
        assert events(world, "AllJobsCompleted")

    play(story)


def test_quota_is_given_back_when_the_last_pod_is_gone() -> None:
    async def story(world: World) -> None:
        slow = {"unisono.dev/stop-seconds": "25"}
        await world.create(
            node(),
            job_set(
                replicated("a", pods=1),
                replicated("b", pods=1, says=slow),
                successPolicy={"operator": "Any"},
            ),
        )
        await world.settle()
        await succeed(world, "js-a-0")
        await world.pass_time(10)
        assert status(world, SET, "js")["terminalState"] == "Completed"
        (workload,) = world.every(names.WORKLOAD)
        name = workload["metadata"]["name"]
        assert "Finished" not in conditions(world, names.WORKLOAD, name)
        await world.pass_time(20)
        assert conditions(world, names.WORKLOAD, name)["Finished"] == ("True", "Succeeded")

    play(story)


def test_a_jobset_that_has_ended_goes_when_its_time_is_up() -> None:
    async def story(world: World) -> None:
        await world.create(
            node(),
            job_set(replicated(command=["sleep", "5"]), ttlSecondsAfterFinished=60),
        )
        await world.settle()
        await world.pass_time(30)
        assert status(world, SET, "js")["terminalState"] == "Completed"
        await world.pass_time(40)
        assert world.every(SET) == []
        assert world.every(names.JOB) == []
        assert world.every(names.POD) == []
        assert world.every(names.SERVICE) == []

    play(story)


# ---- held back ---------------------------------------------------------------------------------


def test_a_jobset_without_a_queue_still_starts_whole_or_not_at_all() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), job_set(replicated(pods=2, gpus=8)))
        await world.settle()
        assert pods(world) == []
        await world.create(gpu_node("n2"))
        await world.settle()
        assert len(places(world)) == 2

    play(story)


def test_its_operator_waits_for_the_queue_even_if_it_is_not_suspended_yet() -> None:
    def only_operators(view: View, settings: Settings) -> Assembly:
        whole = embedded(view, settings)
        quick = [one for one in whole.controllers if one.name in ("jobset", "job")]
        return Assembly(whole.scheduler, quick)

    async def run() -> None:
        async with World(assemble=only_operators).running() as world:
            await world.create(node(), job_set(replicated(pods=2)))
            await world.settle()
            (job,) = world.every(names.JOB)
            assert job["spec"]["suspend"] is True
            assert world.every(names.POD) == []

    asyncio.run(run())


def test_a_suspended_jobset_sends_its_pods_away_and_is_put_back_as_it_was() -> None:
    async def story(world: World) -> None:
        await world.create(
            gpu_node("n1"), *queues(), job_set(replicated(pods=1, gpus=8), queue="lq")
        )
        await world.settle()
        template = world.get(SET, "js")["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        assert template["spec"]["nodeSelector"] == {
            "topology.kubernetes.io/zone": "ap-northeast-2a"
        }
        assert len(places(world)) == 1
        (workload,) = world.every(names.WORKLOAD)
        name = workload["metadata"]["name"]
        await world.client.patch(names.WORKLOAD, name, "default", {"spec": {"active": False}})
        await world.settle()
        await world.pass_time(60)
        assert pods(world) == []
        assert conditions(world, SET, "js")["Suspended"] == ("True", "SuspendedJobs")
        template = world.get(SET, "js")["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        assert "nodeSelector" not in template["spec"] or not template["spec"]["nodeSelector"]
        assert names.WORKLOAD_ANNOTATION not in template["metadata"].get("annotations", {})

    play(story)
