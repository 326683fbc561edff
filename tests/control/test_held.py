"""The explanation of a held workload follows its reason."""

from __future__ import annotations

from tests.control.jobs.test_live_jobs import workload
from tests.control.scheduler.test_start_times import play
from tests.support.control_objects import job
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json


def said_of(world: World, name: str) -> str:
    """Return why a job waits, in words."""
    found = find(workload(world, name)["status"]["conditions"], "QuotaReserved")
    assert found is not None
    return str(found["message"])


def saying(name: str, **annotations: str) -> Json:
    """Return a job of one pod with annotations of ours."""
    made = job(name, pods=1)
    said = {f"unisono.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    made["metadata"]["annotations"] = said
    return made


def test_a_dependency_on_a_deleted_job_is_explained_as_never_satisfied() -> None:
    async def story(world: World) -> None:
        await world.create(job("prepare", pods=1, seconds=600))
        await world.settle()
        await world.create(saying("train", depends_on="afterok:prepare"))
        await world.settle()
        assert "waits for default/prepare to succeed" in said_of(world, "train")
        await world.client.delete(names.JOB, "prepare", "default")
        await world.pass_time(30)
        assert said_of(world, "train").startswith("DependencyNeverSatisfied")

    play(story, Settings())


def test_a_missed_deadline_is_explained() -> None:
    async def story(world: World) -> None:
        await world.create(job("first", pods=2, seconds=6000))
        await world.settle()
        late = saying("late", time_limit="5:00", deadline="now+10minutes")
        await world.create(late)
        await world.settle()
        assert "misses its deadline" not in said_of(world, "late")
        await world.pass_time(400)
        assert "misses its deadline" in said_of(world, "late")

    play(story, Settings())
