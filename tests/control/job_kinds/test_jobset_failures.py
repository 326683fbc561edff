"""JobSets of which something fails: restarts, limits, rules (jobs §2, §7.3, §9)."""

from __future__ import annotations

import pytest

from tests.control.training_world import (
    Json,
    World,
    conditions,
    crash,
    events,
    gpu_node,
    incident,
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
from unisono.control.conditions import timestamp
from unisono.control.gangs.recovery import Record
from unisono.control.job_kinds.jobset.failure import Restarted, answer_to
from unisono.control.job_kinds.jobset.rules import Jobs

SET = names.JOB_SET
DISRUPTED = {
    "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}],
}


async def succeed(world: World, *job: str) -> None:
    """Let all pods of some Jobs end well."""
    for pod in pods(world):
        if pod["metadata"]["labels"]["job-name"] in job:
            await world.set_status(names.POD, pod["metadata"]["name"], {"phase": "Succeeded"})
    await world.settle()


async def disrupt(world: World, pod: Json) -> None:
    """Let a pod be taken from its node."""
    because = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "drained",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }
    change = {"phase": "Failed", "conditions": [*pod["status"]["conditions"], because]}
    await world.set_status(names.POD, pod["metadata"]["name"], change)
    await world.settle()


# ---- failures ----------------------------------------------------------------------------------


def test_an_incident_restarts_everything_once_in_the_same_places() -> None:
    async def story(world: World) -> None:
        await world.create(
            gpu_node("n1"),
            gpu_node("n2"),
            *queues(),
            job_set(replicated("a", pods=1, gpus=8), replicated("b", pods=1, gpus=8), queue="lq"),
        )
        await world.settle()
        before, old = places(world), {one["metadata"]["uid"] for one in pods(world)}
        assert len(before) == 2
        await crash(world, pods(world)[0])
        await world.settle()
        assert pods(world) == []  # the survivor is killed at once
        assert conditions(world, SET, "js")["RestartingJobSet"] == ("True", "DefaultFailurePolicy")
        (workload,) = world.every(names.WORKLOAD)
        name = workload["metadata"]["name"]
        assert conditions(world, names.WORKLOAD, name)["PodsReady"] == ("False", "WaitForRecovery")
        await world.pass_time(9)
        assert pods(world) == []  # ten seconds after the first failure
        await world.pass_time(2)
        assert places(world) == before
        assert not old & {one["metadata"]["uid"] for one in pods(world)}
        assert conditions(world, SET, "js")["RestartingJobSet"] == ("False", "JobsReady")
        found = status(world, SET, "js")
        assert (found["restarts"], found["restartsCountTowardsMax"]) == (1, 1)
        (workload,) = world.every(names.WORKLOAD)
        kept = conditions(world, names.WORKLOAD, name)
        assert kept["Admitted"] == ("True", "Admitted")
        assert kept["PodsReady"] == ("True", "Recovered")
        assert {one["metadata"]["labels"][f"{PREFIX}restart-attempt"] for one in pods(world)} == {
            "1"
        }
        variables = {
            one["name"]: one.get("value") for one in pods(world)[0]["spec"]["containers"][0]["env"]
        }
        assert variables["UNISONO_RESTART_COUNT"] == "1"
        assert variables["UNISONO_RESTART_REASON"] == "Error"

    play(story)


PREFIX = "jobset.sigs.k8s.io/"


@pytest.mark.parametrize(
    ("annotations", "policy", "backoff", "limit"),
    [
        ({}, None, None, 6),
        ({}, None, 2, 2),
        ({}, {"maxRestarts": 3}, 2, 3),
        ({}, {}, None, 0),
        ({"unisono.dev/max-restarts": "1"}, {"maxRestarts": 3}, None, 1),
    ],
)
def test_the_limit_comes_from_the_first_place_that_sets_one(
    annotations: Json, policy: Json | None, backoff: int | None, limit: int
) -> None:
    async def story(world: World) -> None:
        more: Json = {"failurePolicy": policy} if policy is not None else {}
        spec: Json = {"backoffLimit": backoff} if backoff is not None else {}
        await world.create(
            node(), job_set(replicated(pods=2, **spec), annotations=annotations, **more)
        )
        await world.settle()
        for number in range(limit):
            await incident(world)
            assert len(places(world)) == 2, number
        await incident(world)
        assert places(world) == {}
        assert conditions(world, SET, "js")["Failed"] == ("True", "ReachedMaxRestarts")
        assert status(world, SET, "js")["restarts"] == limit
        failed = [one for one in world.every(names.POD) if one["status"]["phase"] == "Failed"]
        assert failed  # the last attempt can be looked at

    play(story)


def test_delays_double_and_begin_anew_after_a_long_run() -> None:
    async def story(world: World) -> None:
        await world.create(node(), job_set(replicated(pods=2)))
        await world.settle()
        for delay in (10, 20, 40):
            await crash(world, pods(world)[0])
            await world.settle()
            await world.pass_time(delay - 1)
            assert places(world) == {}
            await world.pass_time(2)
            assert len(places(world)) == 2
        await world.pass_time(700)
        await crash(world, pods(world)[0])
        await world.settle()
        await world.pass_time(11)
        assert len(places(world)) == 2

    play(story)


def test_disruptions_and_nodes_restart_at_once_and_do_not_count() -> None:
    async def story(world: World) -> None:
        await world.create(node(), job_set(replicated(pods=2, backoffLimit=0)))
        await world.settle()
        await world.client.delete(names.POD, pods(world)[0]["metadata"]["name"], "default")
        await world.settle()
        await world.pass_time(1)
        assert len(places(world)) == 2
        found = status(world, SET, "js")
        assert (found["restarts"], found["restartsCountTowardsMax"]) == (1, 0)
        await disrupt(world, pods(world)[0])
        await world.pass_time(1)
        found = status(world, SET, "js")
        assert (found["restarts"], found["restartsCountTowardsMax"]) == (2, 0)
        assert "does not count" in events(world, "RestartingJobSet")[-1]

    play(story)


def test_several_failures_until_everything_is_down_are_one_incident() -> None:
    async def story(world: World) -> None:
        await world.create(node(), job_set(replicated(pods=4), replicated("v", pods=4)))
        await world.settle()
        for pod in pods(world)[:5]:
            await crash(world, pod)
        await world.settle()
        await world.pass_time(11)
        assert len(places(world)) == 8
        assert status(world, SET, "js")["restarts"] == 1

    play(story)


def test_nothing_new_starts_before_everything_old_is_gone() -> None:
    async def story(world: World) -> None:
        slow = {"unisono.dev/stop-seconds": "25"}
        await world.create(
            node(), job_set(replicated("a", pods=1), replicated("b", pods=1, says=slow))
        )
        await world.settle()
        await crash(world, pods(world)[0])
        await world.settle()
        await world.pass_time(20)  # the delay is over, but b has not stopped
        assert pods(world) == []
        await world.pass_time(6)
        assert sorted(places(world)) == ["js-a-0-0", "js-b-0-0"]

    play(story)


def test_a_decision_that_was_written_down_is_not_made_again() -> None:
    async def story(world: World) -> None:
        await world.create(node(), job_set(replicated(pods=1)))
        await world.settle()
        await crash(world, pods(world)[0])
        await world.settle()
        found = world.get(SET, "js")
        # As if the process had died after the first of the two writes.
        died = {**found, "status": {**found["status"], "restarts": 0}}
        failure = {
            "type": "Failed",
            "status": "True",
            "reason": "BackoffLimitExceeded",
            "lastTransitionTime": "2023-11-14T22:13:20Z",
        }
        failed = {"metadata": {"name": "js-w-0", "uid": "?"}, "status": {"conditions": [failure]}}
        answer = answer_to(died, Jobs(failed=[failed]), world.view, world.clock.now())
        assert isinstance(answer, Restarted)
        assert answer.record == Record.of(found["metadata"]["annotations"])
        assert answer.counts

    play(story)


def test_a_finished_prerequisite_is_not_done_again() -> None:
    async def story(world: World) -> None:
        await world.create(
            gpu_node("n1"),
            *queues(gpus=8),
            job_set(
                replicated("fetch", pods=1, gpus=2),
                replicated(
                    "train",
                    pods=2,
                    gpus=3,
                    dependsOn=[{"name": "fetch", "status": "Complete"}],
                ),
                queue="lq",
            ),
        )
        await world.settle()
        assert sorted(places(world)) == ["js-fetch-0-0"]
        await succeed(world, "js-fetch-0")
        assert sorted(places(world)) == ["js-train-0-0", "js-train-0-1"]
        (workload,) = world.every(names.WORKLOAD)
        assert workload["status"]["reclaimablePods"] == [{"name": "fetch", "count": 1}]
        fetched = world.get(names.JOB, "js-fetch-0")["metadata"]["uid"]
        await incident(world)
        assert sorted(places(world)) == ["js-train-0-0", "js-train-0-1"]
        assert world.get(names.JOB, "js-fetch-0")["metadata"]["uid"] == fetched
        assert status(world, SET, "js")["restarts"] == 1

    play(story)


# ---- scenario 9 --------------------------------------------------------------------------------


def test_a_rule_may_restart_without_counting_and_an_own_failure_counts() -> None:
    async def story(world: World) -> None:
        rule = {
            "name": "disrupted",
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
        }
        await world.create(
            node(),
            job_set(
                replicated(pods=2, podFailurePolicy=DISRUPTED),
                failurePolicy={"maxRestarts": 0, "rules": [rule]},
            ),
        )
        await world.settle()
        for number in range(1, 4):
            await disrupt(world, pods(world)[0])
            await world.pass_time(60)
            found = status(world, SET, "js")
            assert (found["restarts"], found["restartsCountTowardsMax"]) == (number, 0)
            assert conditions(world, SET, "js")["RestartingJobSet"][0] == "False"
        assert len(places(world)) == 2
        await incident(world)
        assert conditions(world, SET, "js")["Failed"] == ("True", "ReachedMaxRestarts")

    play(story)


def test_a_rule_may_fail_the_jobset() -> None:
    async def story(world: World) -> None:
        rule = {"name": "never", "action": "FailJobSet", "targetReplicatedJobs": ["w"]}
        await world.create(
            node(), job_set(failurePolicy={"maxRestarts": 5, "rules": [rule]}, name="js")
        )
        await world.settle()
        await incident(world)
        failed = conditions(world, SET, "js")["Failed"]
        assert failed == ("True", "FailJobSetFailurePolicyAction")
        assert status(world, SET, "js")["restarts"] == 0

    play(story)


def test_a_rule_may_restart_one_job_alone() -> None:
    async def story(world: World) -> None:
        rule = {"name": "alone", "action": "RestartJob", "targetReplicatedJobs": ["w"]}
        await world.create(
            node(),
            job_set(
                replicated(pods=1, replicas=2, backoffLimit=0),
                failurePolicy={"maxRestarts": 1, "rules": [rule]},
            ),
        )
        await world.settle()
        first, second = (world.get(names.JOB, f"js-w-{one}")["metadata"]["uid"] for one in (0, 1))
        await incident(world, 1)
        assert world.get(names.JOB, "js-w-0")["metadata"]["uid"] == first
        assert world.get(names.JOB, "js-w-1")["metadata"]["uid"] != second
        found = status(world, SET, "js")
        assert (found["restarts"], found["restartsCountTowardsMax"]) == (0, 1)
        assert len(places(world)) == 2
        await incident(world, 1)
        assert conditions(world, SET, "js")["Failed"] == ("True", "ReachedMaxRestarts")

    play(story)


def test_a_job_that_restarts_alone_backs_off_and_the_others_run_on() -> None:
    async def story(world: World) -> None:
        rule = {
            "name": "r",
            "action": "RestartJobAndIgnoreMaxRestarts",
            "targetReplicatedJobs": ["w"],
        }
        await world.create(
            node(),
            job_set(
                replicated(pods=1, replicas=2, backoffLimit=0),
                failurePolicy={"maxRestarts": 0, "rules": [rule]},
            ),
        )
        await world.settle()
        first = world.get(names.JOB, "js-w-0")["metadata"]["uid"]
        for number, delay in enumerate((0, 10, 20, 40), 1):
            await crash(world, pods(world)[1])
            await world.settle()
            if delay:
                due = timestamp(world.clock.now() + delay)
                text = f"; starts again at {due} (back-off: restart {number} in a row)"
                assert events(world, "RestartingJobSet")[-1].endswith(text)
                await world.pass_time(delay - 1)
                assert sorted(places(world)) == ["js-w-0-0"]
            await world.pass_time(2)
            assert sorted(places(world)) == ["js-w-0-0", "js-w-1-0"]
        assert world.get(names.JOB, "js-w-0")["metadata"]["uid"] == first
        await world.pass_time(700)
        await crash(world, pods(world)[1])
        await world.pass_time(1)
        assert len(places(world)) == 2  # the run before was a long one

    play(story)


def test_restarts_that_no_limit_counts_back_off() -> None:
    async def story(world: World) -> None:
        rule = {
            "name": "r",
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "targetReplicatedJobs": ["w"],
        }
        await world.create(
            node(), job_set(replicated(pods=2), failurePolicy={"maxRestarts": 0, "rules": [rule]})
        )
        await world.settle()
        for delay in (0, 10, 20, 40):
            await crash(world, pods(world)[0])
            await world.settle()
            if delay:
                await world.pass_time(delay - 1)
                assert places(world) == {}
            await world.pass_time(2)
            assert len(places(world)) == 2

    play(story)


# ---- upstream accounting -----------------------------------------------------------------------

UPSTREAM = {"unisono.dev/restart-accounting": "upstream"}


def test_upstream_accounting_without_a_policy_fails_with_the_first_job() -> None:
    async def story(world: World) -> None:
        await world.create(
            node(), job_set(replicated(pods=2, backoffLimit=0), annotations=UPSTREAM)
        )
        await world.settle()
        await incident(world)
        assert conditions(world, SET, "js")["Failed"] == ("True", "FailedJobs")

    play(story)


def test_upstream_accounting_restarts_jobs_when_their_own_limit_is_used_up() -> None:
    async def story(world: World) -> None:
        await world.create(
            node(),
            job_set(
                replicated(pods=2, backoffLimit=1),
                annotations=UPSTREAM,
                failurePolicy={"maxRestarts": 1},
            ),
        )
        await world.settle()
        await incident(world)  # the pod is replaced by its Job
        assert status(world, SET, "js").get("restarts") == 0
        assert len(places(world)) == 2
        await incident(world)
        assert status(world, SET, "js")["restarts"] == 1
        assert len(places(world)) == 2
        await incident(world)
        await incident(world)
        assert conditions(world, SET, "js")["Failed"] == ("True", "ReachedMaxRestarts")

    play(story)
