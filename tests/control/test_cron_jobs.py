"""CronJobs make their jobs on time, once, and as many as their policy allows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.stories import delete, phases, queue_of, told
from tests.faults.jobs import JOB_KINDS, Wish
from tests.runner.simulated_world import node
from tests.support.control_objects import queue
from tests.support.control_world import START, World
from unisono.control import cron_jobs
from unisono.control.conditions import seconds, timestamp
from unisono.control.job_kinds import ray, volcano
from unisono.control.names import CRON_JOB, JOB, WORKLOAD
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

MINUTE = 60
# START is 22:13:20; the first full minute after it.
FIRST = int(START // MINUTE + 1) * MINUTE


def cron(runs_s: int = 20, *, name: str = "c", labels: Json | None = None, **spec: Any) -> Json:
    """Return a CronJob of every minute whose jobs take so long."""
    container = {"name": "main", "image": "x", "command": ["sleep", str(runs_s)]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {
                "metadata": {"labels": labels or {}, "annotations": {"team": "blue"}},
                "spec": {"backoffLimit": 0, "template": {"spec": pod}},
            },
            **spec,
        },
    }


def failing(**spec: Any) -> Json:
    """Return a CronJob with failing jobs."""
    made = cron(**spec)
    (container,) = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    container["command"] = ["sh", "-c", "sleep 5; exit 3"]
    return made


def jobs(world: World, kind: Kind = JOB) -> dict[int, str]:
    """Return how the jobs are by the minutes after the start that they were made for."""
    found = {}
    for job in world.every(kind):
        minutes = int(job["metadata"]["name"].rpartition("-")[2]) - FIRST // MINUTE
        ended = [
            one["type"]
            for one in (job.get("status") or {}).get("conditions") or ()
            if one["status"] == "True" and one["type"] in ("Complete", "Failed", "Suspended")
        ]
        found[minutes] = "".join(ended) or "runs"
    return dict(sorted(found.items()))


def status(world: World, name: str = "c") -> Json:
    return dict(world.get(CRON_JOB, name).get("status") or {})


def events(world: World) -> list[str]:
    return [note.reason for note in world.notes if note.about.kind == CRON_JOB]


async def until(world: World, minutes: int, more: float = 0.0) -> None:
    """Move the clock to so many minutes after the first time."""
    await world.pass_time(FIRST + minutes * MINUTE + more - world.clock.time)


def test_runs_on_time_and_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), cron())
        await world.settle()
        assert jobs(world) == {}
        assert status(world) == {}
        await until(world, 0, 5)
        assert jobs(world) == {0: "runs"}
        (job,) = world.every(JOB)
        assert job["metadata"]["name"] == f"c-{FIRST // MINUTE}"
        at = "batch.kubernetes.io/cronjob-scheduled-timestamp"
        assert (
            job["metadata"]["annotations"] | {"team": "blue", at: timestamp(FIRST)}
            == (job["metadata"]["annotations"])
        )
        (owner,) = job["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"]) == ("CronJob", True)
        (active,) = status(world)["active"]
        assert (active["name"], active["uid"]) == (
            job["metadata"]["name"],
            job["metadata"]["uid"],
        )
        assert status(world)["lastScheduleTime"] == timestamp(FIRST)
        await until(world, 0, 30)
        assert jobs(world) == {0: "Complete"}
        (job,) = world.every(JOB)
        assert status(world) == {
            "lastScheduleTime": timestamp(FIRST),
            "lastSuccessfulTime": job["status"]["completionTime"],
        }
        assert events(world) == ["SuccessfulCreate", "SawCompletedJob"]

    told(story)


def test_keeps_the_newest_of_each_kind_of_end() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), cron(successfulJobsHistoryLimit=2))
        await until(world, 5, 30)
        assert jobs(world) == {4: "Complete", 5: "Complete"}
        await delete(world, CRON_JOB, "c")
        assert jobs(world) == {}
        await world.create(failing(name="d", failedJobsHistoryLimit=0))
        await until(world, 8, 30)
        assert jobs(world) == {}
        assert status(world, "d") == {"lastScheduleTime": timestamp(FIRST + 8 * MINUTE)}

    told(story)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Allow", {0: "runs", 1: "runs", 2: "runs"}),
        ("Forbid", {0: "runs"}),
        ("Replace", {2: "runs"}),
    ],
)
def test_a_run_that_is_due_while_the_last_one_runs(policy: str, expected: dict[int, str]) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), cron(150, concurrencyPolicy=policy))
        await until(world, 2, 10)
        assert jobs(world) == expected
        assert len(status(world)["active"]) == len(expected)
        assert len(phases(world)) == len(expected)
        assert ("JobAlreadyActive" in events(world)) == (policy == "Forbid")

    told(story)


def test_with_forbid_the_latest_missed_run_starts_when_the_last_one_ends() -> None:
    async def story(world: World) -> None:
        forbids = cron(150, name="late", concurrencyPolicy="Forbid")
        strict = cron(150, name="strict", concurrencyPolicy="Forbid", startingDeadlineSeconds=10)
        await world.create(node("n1"), forbids, strict)
        await until(world, 2, 45)
        assert status(world, "late")["lastScheduleTime"] == timestamp(FIRST + 2 * MINUTE)
        assert status(world, "strict")["lastScheduleTime"] == timestamp(FIRST)
        assert "MissSchedule" in events(world)
        await until(world, 3, 5)
        assert status(world, "strict")["lastScheduleTime"] == timestamp(FIRST + 3 * MINUTE)

    told(story)


def test_runs_that_do_not_end_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cron_jobs, "MOST_ACTIVE", 3)

    async def story(world: World) -> None:
        await world.create(node("n1"), cron(runs_s=4 * MINUTE + 30))
        await until(world, 3, 5)
        assert jobs(world) == dict.fromkeys((0, 1, 2), "runs")
        assert "TooManyActiveJobs" in events(world)
        assert len(status(world)["active"]) == 3
        await until(world, 4, 50)
        assert jobs(world) == {0: "Complete", 1: "runs", 2: "runs", 4: "runs"}

    told(story)


def test_one_run_is_made_for_all_that_were_missed() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), cron())
        await until(world, 0, 30)
        world.clock.time = FIRST + 500 * MINUTE + 10  # nothing ran for eight hours
        world.restart()
        await world.settle()
        assert list(jobs(world)) == [0, 500]
        assert "TooManyMissedTimes" in events(world)

    told(story)


def test_a_suspended_one_makes_nothing_until_it_is_resumed() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), cron(suspend=True))
        await until(world, 3)
        assert jobs(world) == {}
        await world.client.patch(CRON_JOB, "c", "default", {"spec": {"suspend": False}})
        await world.settle()
        assert list(jobs(world)) == [3]
        await world.client.patch(CRON_JOB, "c", "default", {"spec": {"suspend": True}})
        await until(world, 5, 30)
        assert jobs(world) == {3: "Complete"}, "what runs goes on"

    told(story)


def test_runs_within_one_minute_are_told_apart() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), cron(2, schedule="@every 20s"))
        await world.pass_time(62)
        assert len(world.every(JOB)) == 3
        assert events(world).count("SuccessfulCreate") == 3

    told(story)


def test_hours_are_those_of_the_time_zone() -> None:
    async def story(world: World) -> None:
        seoul = cron(schedule="30 7 * * *", timeZone="Asia/Seoul")  # 22:30 in UTC
        await world.create(node("n1"), seoul)
        await until(world, 15)
        assert jobs(world) == {}
        await until(world, 16)
        (job,) = world.every(JOB)
        said = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert said == "2023-11-15T07:30:00+09:00"

    told(story)


def test_jobs_wait_in_the_queue_that_their_template_names() -> None:
    async def story(world: World) -> None:
        label = {"kueue.x-k8s.io/queue-name": "lq-cq"}
        made = cron(labels=label, concurrencyPolicy="Forbid")
        (container,) = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        container["resources"] = {"limits": {"nvidia.com/gpu": "4"}}
        await world.create(*queue(gpus=2), made, node("n1", **{"nvidia.com/gpu": "8"}))
        await until(world, 1, 10)
        assert jobs(world) == {0: "Suspended"}
        assert len(status(world)["active"]) == 1, "a job that waits is a run, too"
        await world.client.patch(
            Kind("kueue.x-k8s.io/v1beta2", "ClusterQueue"), "cq", "", queue(gpus=4)[1]
        )
        await world.settle()
        assert jobs(world) == {0: "runs"}
        (workload,) = world.every(WORKLOAD)
        assert workload["spec"]["queueName"] == "lq-cq"

    told(story)


def test_a_crash_after_the_job_was_made_makes_no_second_one() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), cron(300, concurrencyPolicy="Replace"))
        await until(world, 0, 5)
        before = status(world)
        # As if the process had died before it wrote the status.
        empty = {"lastScheduleTime": None, "active": None}
        await world.client.patch(CRON_JOB, "c", "default", {"status": empty}, subresource="status")
        world.restart()
        await world.settle()
        assert jobs(world) == {0: "runs"}
        assert status(world)["lastScheduleTime"] == before["lastScheduleTime"]
        assert [one["uid"] for one in status(world)["active"]] == [before["active"][0]["uid"]]

    told(story)


def test_a_job_made_by_hand_is_kept_and_is_no_run() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), cron(300, suspend=True, concurrencyPolicy="Forbid"))
        owner = world.get(CRON_JOB, "c")
        by_hand = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": "mine-7",
                "namespace": "default",
                "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
                "ownerReferences": [
                    {
                        "apiVersion": "batch/v1",
                        "kind": "CronJob",
                        "name": "c",
                        "uid": owner["metadata"]["uid"],
                        "controller": True,
                    }
                ],
            },
            "spec": owner["spec"]["jobTemplate"]["spec"],
        }
        await world.create(by_hand)
        await world.client.patch(CRON_JOB, "c", "default", {"spec": {"suspend": False}})
        await until(world, 0, 5)
        assert {one["metadata"]["name"] for one in world.every(JOB)} == {
            "mine-7",
            f"c-{FIRST // MINUTE}",
        }
        assert [one["name"] for one in status(world)["active"]] == [f"c-{FIRST // MINUTE}"]

    told(story)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "soon"}, "UnparseableSchedule"),
        ({"schedule": "0 0 31 2 *"}, "UnparseableSchedule"),
        ({"timeZone": "Mars/Olympus"}, "UnknownTimeZone"),
    ],
)
def test_what_cannot_be_read_is_an_event(spec: Json, reason: str) -> None:
    """The API refuses most of it; a database of an older version may hold it all the same."""

    async def story(world: World) -> None:
        await world.create(cron(suspend=True))
        stored = world.get(CRON_JOB, "c")
        stored["spec"].update(spec, suspend=False)
        for _ in world.view.upsert(CRON_JOB, stored):
            pass
        world.driver.want("cronjob", next(iter(world.view.keys(CRON_JOB))))
        await world.settle()
        assert reason in events(world)

    told(story)


@pytest.mark.parametrize(
    ("sort", "kind", "job"),
    [("vcjob", volcano.CRON_JOB, volcano.JOB), ("rayjob", ray.CRON_JOB, ray.JOB)],
)
def test_other_jobs_are_made_at_times_too(sort: str, kind: Kind, job: Kind) -> None:
    async def story(world: World) -> None:
        wish = Wish(
            name="it",
            queue="lq-cq",
            pods=2,
            gpus=1,
            seconds=3000,
            priority="",
            fails_once=False,
        )
        (gang,) = (one for one in JOB_KINDS[sort](wish).objects if one["kind"] == job.kind)
        template = gang["spec"] if sort == "rayjob" else {"spec": gang["spec"]}
        made = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {
                "name": "c",
                "namespace": "default",
                "labels": {"kueue.x-k8s.io/queue-name": "lq-cq"},
            },
            "spec": {"schedule": "*/5 * * * *", "jobTemplate": template},
        }
        await world.create(*queue_of(8), node("n1", **{"nvidia.com/gpu": "8"}), made)
        await until(world, 2, 10)
        (one,) = world.every(job)
        assert one["metadata"]["ownerReferences"][0]["name"] == "c"
        last = world.get(kind, "c")["status"]["lastScheduleTime"]
        assert seconds(last) == FIRST + MINUTE
        assert phases(world), "its pods run"

    told(story)
