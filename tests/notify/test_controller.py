"""Stories of notifications on a whole control plane."""

from __future__ import annotations

import json

from tests.notify.worlds import MAIL, Postman, play, record, section
from tests.slurm.fake_api import FakeApi, context
from tests.support.control_objects import job, priority, queue
from tests.support.control_world import START, World
from unisono.control import names
from unisono.control.job_kinds import slurm
from unisono.engine.model.policy import Backfill, Policy
from unisono.kube.form import Json
from unisono.notify.controller import REFUSED
from unisono.slurm.commands.sbatch import run as sbatch

ADA = "ada@example.org"
RULE = {"events": ["all"], "mail": ["ops@example.org"]}


def asking(made: Json, notify: str, to: str = ADA, **more: str) -> Json:
    """Return a job that asks for notifications."""
    said = {"notify": notify, "notify-to": to, **more}
    annotations = {f"unisono.dev/{key.replace('_', '-')}": text for key, text in said.items()}
    made["metadata"]["annotations"] = annotations
    return made


def submitted(script: str, *options: str) -> list[Json]:
    """Return what sbatch stores."""
    api = FakeApi()
    api.objects = {
        "/api/v1/namespaces/kube-system/configmaps/slurm-conf": {
            "metadata": {"resourceVersion": "1", "annotations": {"unisono.dev/last-job-id": "41"}}
        }
    }
    sbatch([*options, "run.sh"], context(api, {"run.sh": script}))
    return [body for method, _, body in api.written if method == "POST"]


def test_a_job_gets_a_mail_when_it_begins_and_one_when_it_ends() -> None:
    async def story(world: World, postman: Postman) -> None:
        await world.create(asking(job("train", seconds=30), "begin,end"))
        assert await postman.deliver(world) == [(ADA, "Job default/train has begun")]
        await world.pass_time(60)
        assert await postman.deliver(world) == [(ADA, "Job default/train has ended")]
        assert {*record(world)} == {"begin", "end"}

    play(story, section(mail=MAIL))


def test_rules_tell_of_jobs_that_ask_for_nothing() -> None:
    async def story(world: World, postman: Postman) -> None:
        await world.create(job("train", seconds=30))
        await world.pass_time(60)
        told = await postman.deliver(world)
        assert [one for one, _ in told] == ["ops@example.org"] * 2

    play(story, section(mail=MAIL, rules=[RULE]))


def test_failures_are_told_to_a_webhook_and_to_users_that_asked_for_the_end() -> None:
    async def story(world: World, postman: Postman) -> None:
        said = {"exit-code": "3"}
        await world.create(asking(job("train", seconds=30, says=said, backoffLimit=0), "end"))
        await world.pass_time(60)
        told = await postman.deliver(world)
        failed = "Job default/train has failed"
        assert sorted(told) == [(ADA, failed), ("webhook of notifications.rules[0]", failed)]

    rule = {"events": ["fail"], "webhook": {"url": "https://hooks.example.org/x"}}
    play(story, section(mail=MAIL, rules=[rule]))


def test_a_new_leader_neither_forgets_nor_repeats() -> None:
    async def story(world: World, postman: Postman) -> None:
        await world.create(asking(job("train", seconds=30), "begin,end"))
        await world.pass_time(5)
        world.restart()  # before anything was sent
        assert await postman.deliver(world) == [(ADA, "Job default/train has begun")]
        world.restart()
        assert await postman.deliver(world) == []
        await world.pass_time(60)
        world.restart()
        assert await postman.deliver(world) == [(ADA, "Job default/train has ended")]
        world.restart()
        assert await postman.deliver(world) == []

    play(story, section(mail=MAIL))


def test_what_happened_hours_before_the_rules_is_no_news() -> None:
    async def story(world: World, postman: Postman) -> None:
        await world.create(job("train", seconds=30))
        await world.pass_time(2 * 3600)
        policy = {"notifications": {"mail": MAIL, "rules": [RULE]}}
        head = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "metadata": {"name": "unisono"}}
        await world.client.create({**head, **policy})
        world.restart()
        assert await postman.deliver(world) == []
        await world.create(job("next", seconds=30))
        await world.pass_time(60)
        assert len(await postman.deliver(world)) == 2  # the policy counts as it is edited

    play(story, None)


def test_preemption_is_told_once_for_each_time() -> None:
    async def story(world: World, postman: Postman) -> None:
        await world.create(priority("high", 100))
        await world.create(asking(job("low", seconds=900), "preempt"))
        await world.pass_time(5)
        assert await postman.deliver(world) == []
        await world.create(job("urgent", seconds=20, priority_class="high"))
        await world.pass_time(10)
        ((to, said),) = await postman.deliver(world)
        assert (to, said) == (ADA, "Job default/low was stopped and waits again")
        why = postman.letters[-1].notice.happened.why
        assert why.startswith("Preempted to accommodate")
        assert "urgent" in why
        await world.pass_time(120)  # it runs again
        assert await postman.deliver(world) == []
        await world.create(job("again", seconds=20, priority_class="high"))
        await world.pass_time(10)
        assert len(await postman.deliver(world)) == 1

    async def with_preemption(world: World, postman: Postman) -> None:
        name = queue()[1]["metadata"]["name"]
        changes = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}
        await world.client.patch(names.CLUSTER_QUEUE, name, "", changes)
        await story(world, postman)

    play(with_preemption, section(mail=MAIL))


def test_shares_of_a_time_limit_are_told_when_they_have_passed() -> None:
    async def story(world: World, postman: Postman) -> None:
        made = asking(job("train", seconds=900), "time-limit-50,time-limit-80", time_limit="10:00")
        await world.create(made)
        await world.pass_time(290)
        assert await postman.deliver(world) == []
        await world.pass_time(20)
        said = "has used 50% of its time limit"
        assert await postman.deliver(world) == [(ADA, f"Job default/train {said}")]
        await world.pass_time(200)
        ((_, said),) = await postman.deliver(world)
        assert said.endswith("80% of its time limit")

    play(story, section(mail=MAIL))


def test_a_start_that_slips_is_told_with_the_new_one() -> None:
    async def story(world: World, postman: Postman) -> None:
        long = job("long", seconds=5000)
        long["metadata"]["annotations"] = {"unisono.dev/time-limit": "10:00"}
        await world.create(long)
        await world.create(asking(job("next", seconds=30), "delay,begin", time_limit="10:00"))
        await world.pass_time(300)
        assert await postman.deliver(world) == []
        assert record(world, 1)["promise"]
        await world.pass_time(1200)
        ((to, said),) = await postman.deliver(world)
        assert (to, said) == (ADA, "Job default/next starts later than promised")
        happened = postman.letters[-1].notice.happened
        assert 500 < happened.promised - START < 700
        assert happened.start == 0  # it may start at any moment, as long as the other overruns
        told = []
        for _ in range(60):  # the estimate moves every minute
            await world.pass_time(60)
            told += await postman.deliver(world)
        assert told[-1] == (ADA, "Job default/next has begun")
        assert len(told) <= 2, told

    play(story, section(mail=MAIL))


def test_a_reservation_that_moves_is_told_with_the_new_start() -> None:
    async def story(world: World, postman: Postman) -> None:
        first, other = job("first", seconds=600), job("other", seconds=3600, priority_class="high")
        first["metadata"]["annotations"] = {"unisono.dev/time-limit": "10:00"}
        other["metadata"]["annotations"] = {"unisono.dev/time-limit": "60:00"}
        await world.create(priority("high", 100), first)
        await world.create(asking(job("next", seconds=30), "delay", time_limit="10:00"))
        await world.pass_time(60)
        await world.create(other)
        await world.pass_time(60)
        ((to, said),) = await postman.deliver(world)
        assert (to, said) == (ADA, "Job default/next starts later than promised")
        happened = postman.letters[-1].notice.happened
        assert abs(happened.start - happened.promised - 3600) < 120
        await world.pass_time(4300)
        assert await postman.deliver(world) == []  # the new promise was kept

    play(story, section(mail=MAIL), Policy(backfill=Backfill()))


def test_a_job_that_asks_in_vain_gets_one_event_that_says_why() -> None:
    async def story(world: World, postman: Postman) -> None:
        await world.create(asking(job("train", seconds=30), "all", "eve@evil.org"))
        await world.pass_time(60)
        world.restart()
        await world.settle()
        assert await postman.deliver(world) == []
        (note,) = [one for one in world.notes if one.reason == REFUSED]
        assert note.message == (
            "Gets no mail: eve@evil.org is not among the addresses that jobs may name "
            "(notifications.mail.recipients)"
        )

    play(story, section(mail=MAIL))


def test_without_a_mail_server_the_event_says_so() -> None:
    async def story(world: World, postman: Postman) -> None:
        await world.create(asking(job("train", seconds=30), "all"))
        await world.pass_time(5)
        (note,) = [one for one in world.notes if one.reason == REFUSED]
        assert "names no mail server" in note.message

    play(story, None)


def test_mails_that_sbatch_asks_for_have_slurms_subjects() -> None:
    async def story(world: World, postman: Postman) -> None:
        script = "#!/bin/sh\nsleep 30\n"
        await world.create(*submitted(script, "--mail-type=ALL", "--mail-user=ada", "-J", "train"))
        await world.pass_time(5)
        ((to, begun),) = await postman.deliver(world)
        assert to == ADA
        assert begun.startswith("Slurm Job_id=42 Name=train Began, Queued time 00:00:0")
        await world.pass_time(60)
        ((_, ended),) = await postman.deliver(world)
        assert ended == (
            "Slurm Job_id=42 Name=train Ended, Run time 00:00:30, COMPLETED, ExitCode 0"
        )

    play(story, section(mail=MAIL))


def test_an_array_is_told_as_a_whole_unless_its_tasks_are_asked_for() -> None:
    script = "#!/bin/sh\nsleep 30\n"

    async def story(world: World, postman: Postman) -> None:
        await world.create(*submitted(script, "--array=0-2", "--mail-type=BEGIN,END", "-J", "a"))
        await world.pass_time(90)
        told = await postman.deliver(world)
        assert [(to, said.partition(" (")[0]) for to, said in told] == [
            ("ann@example.org", "Slurm Array Summary Job_id=42_*")
        ] * 2
        assert told[1][1].endswith("(42) Name=a Ended, COMPLETED, ExitCode [0-0]")
        await world.client.delete(slurm.JOB, "a-42", "default")
        await world.settle()
        types = "--mail-type=END,ARRAY_TASKS"
        await world.create(*submitted(script, "--array=0-2", types, "-J", "b"))
        await world.pass_time(90)
        said = sorted(said for _, said in await postman.deliver(world))
        assert [one.partition(", ")[0] for one in said] == [
            "Slurm Array Task Job_id=42_0 (43) Name=b Ended",
            "Slurm Array Task Job_id=42_1 (44) Name=b Ended",
            "Slurm Array Task Job_id=42_2 (42) Name=b Ended",
        ]

    play(story, section(mail=MAIL))


def test_jobs_of_which_nothing_is_told_are_written_no_record() -> None:
    async def story(world: World, postman: Postman) -> None:
        await world.create(job("train", seconds=30))
        await world.pass_time(60)
        assert await postman.deliver(world) == []
        assert record(world) == {}
        assert json.dumps(world.every(names.WORKLOAD)).count("unisono.dev/notif") == 0

    rule = {"events": ["fail"], "mail": ["ops@example.org"]}
    play(story, section(mail=MAIL, rules=[rule]))
