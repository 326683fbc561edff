"""Among equals of one instant the number of a job decides, and of an array that of the task."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.quota_builders import job, pods, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.estimates import estimates
from unisono.engine.model.multifactor import SubmitOptions
from unisono.engine.model.names import Instant
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.workload import Workload

NOW = Instant(1000)


def submitted(name: str, uid: str, number: int, task: int = 0) -> Workload:
    """Return a job that takes all there is for a minute."""
    return msgspec.structs.replace(
        job(name, "q", pod_sets=(pods(4, {"gpu": 1}),)),
        uid=uid,
        created_at=Instant(0),
        time_limit_ms=60_000,
        submit_options=SubmitOptions(number=number, task=task),
    )


@pytest.mark.parametrize("backfill", [None, Backfill(dates=1), Backfill()])
def test_numbers_go_before_uids(backfill: Backfill | None) -> None:
    jobs = (
        submitted("d", "a", 20),
        submitted("c", "b", 3, task=10),
        submitted("b", "c", 3, task=9),
        submitted("a", "d", 2),
    )
    state = restore(world(queue("q", "4"), policy=Policy(backfill=backfill), waiting=jobs))
    started = [one.workload for made in dry_run(state, NOW) for one in made.admissions]
    assert started == ["ns/a"]
    later = estimates(state, NOW)
    assert sorted(later, key=lambda key: later[key].start) == ["ns/b", "ns/c", "ns/d"]
