"""Courses of things: played by the engine, or by amounts alone where too many are ahead."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.quota_builders import job, pods, queue, running, snapshot
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.estimates import first_pending
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.resources import amounts
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload
from unisono.sim import what_if as module
from unisono.sim.gpu_counts import CountedPool
from unisono.sim.random_source import random_source
from unisono.sim.what_if import FEWEST, SHORTEST, what_if

SECOND = 1000
ASKED = WorkloadKey("ns/asked")


def limited(name: str, queue_name: str, gpus: int, seconds: int | None, **options: int) -> Workload:
    made = job(name, queue_name, gpus, **options)
    return msgspec.structs.replace(
        made, time_limit_ms=None if seconds is None else seconds * SECOND
    )


def in_turn(*jobs: tuple[str, str, int, int | None]) -> tuple[Workload, ...]:
    return tuple(
        msgspec.structs.replace(limited(*each), created_at=Instant(place))
        for place, each in enumerate(jobs)
    )


def start_of(world: Snapshot, seed: int | None = None) -> int | None:
    """Return when the job that is asked about starts by amounts, in seconds."""
    state = restore(world)
    dry_run(state, world.now)
    state.refresh()
    first = first_pending(state, ASKED, 1000)
    pool = CountedPool(state, first, world.nodes, shortest=SHORTEST, default_ms=None)
    found = pool.start(None if seed is None else random_source(seed, "test"))
    return None if found is None else found // SECOND


# --- by amounts ----------------------------------------------------------------------------------


def alone(*jobs: tuple[str, str, int, int | None], strategy: str = "BestEffortFIFO") -> Snapshot:
    """Return one queue of four GPUs, all of which `h` has for a hundred seconds."""
    return snapshot(
        queue("q", "4", strategy=strategy),
        admitted_workloads=(running(limited("h", "q", 4, 100)),),
        waiting=in_turn(*jobs),
    )


def test_jobs_that_fit_start_in_order_when_others_end() -> None:
    jobs = (("a", "q", 3, 50), ("b", "q", 2, 30), ("asked", "q", 2, 10))
    assert start_of(alone(*jobs)) == 150  # a until then, b beside it
    assert start_of(alone(*jobs[:1], ("asked", "q", 1, 10))) == 100  # beside a


def test_a_strict_queue_keeps_its_order() -> None:
    jobs = (("a", "q", 3, 50), ("b", "q", 2, 30), ("asked", "q", 1, 10))
    assert start_of(alone(*jobs)) == 100
    assert start_of(alone(*jobs, strategy="StrictFIFO")) == 150
    dated = msgspec.structs.replace(
        alone(*jobs, strategy="StrictFIFO"), policy=Policy(backfill=Backfill(dates=1))
    )
    assert start_of(dated) == 100


def test_a_job_without_a_time_limit_never_ends() -> None:
    assert start_of(alone(("a", "q", 3, None), ("asked", "q", 2, 10))) is None
    assert start_of(alone(("a", "q", 2, None), ("asked", "q", 2, 10))) == 100


def test_queues_compete_for_what_their_cohort_has_and_stop_at_their_own_limits() -> None:
    lends = snapshot(
        queue("q", "4", "c"),
        queue("r", "4", "c"),
        admitted_workloads=(running(limited("h", "q", 8, 100)),),
        waiting=in_turn(("a", "r", 6, 50), ("asked", "q", 4, 10)),
    )
    assert start_of(lends) == 150
    apart = msgspec.structs.replace(
        lends, queues=tuple(msgspec.structs.replace(one, cohort=None) for one in lends.queues)
    )
    apart = msgspec.structs.replace(apart, waiting=in_turn(("a", "r", 4, 50), ("asked", "q", 4, 9)))
    assert start_of(apart) == 100


def test_counts_nodes_where_they_are_fewer_than_quota() -> None:
    node = Node(name=NodeName("n"), allocatable=amounts({"gpu": 4}))
    sets = (pods(4, {"gpu": 1}),)
    admitted = running(msgspec.structs.replace(limited("h", "q", 4, 100), pod_sets=sets))
    placed = tuple(
        msgspec.structs.replace(one, nodes=((NodeName("n"), 4),))
        for one in admitted.admission.pod_sets
    )
    admission = msgspec.structs.replace(admitted.admission, pod_sets=placed)
    world = snapshot(
        queue("q", "100"),
        nodes=(node,),
        admitted_workloads=(msgspec.structs.replace(admitted, admission=admission),),
        waiting=in_turn(("a", "q", 3, 50), ("asked", "q", 2, 10)),
    )
    assert start_of(world) == 150


def test_random_run_times_repeat_with_the_seed() -> None:
    world = alone(("a", "q", 4, 50), ("asked", "q", 4, 10))
    found = [start_of(world, seed) for seed in range(20)]
    assert all(one is not None and 5 + 2 <= one <= 150 for one in found)
    assert len(set(found)) > 10
    assert start_of(world, 3) == found[3]


# --- courses -------------------------------------------------------------------------------------


def test_counts_one_resource_with_too_many_jobs_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = alone(("a", "q", 4, 50), ("b", "q", 4, 50), ("asked", "q", 4, 10))
    played = what_if(world, ASKED)
    assert (played.by_amounts_of, played.samples) == ("", 20)
    monkeypatch.setattr(module, "STARTS_A_SECOND", 2)
    found = what_if(world, ASKED)
    assert (found.by_amounts_of, found.samples, found.started) == ("gpu", 20, 20)
    assert found.start_by_limits == played.start_by_limits == Instant(200 * SECOND)
    assert found.start_p50 is not None and played.start_p50 is not None  # noqa: PT018  # for types
    assert abs(found.start_p50 - played.start_p50) < 40 * SECOND
    assert what_if(world, ASKED) == found


@pytest.mark.parametrize("policy", [Policy(), Policy(backfill=Backfill())])
def test_a_slow_simulated_run_gives_way_to_counts(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = alone(("a", "q", 4, 50), ("asked", "q", 4, 10))
    world = msgspec.structs.replace(world, policy=policy)
    monkeypatch.setattr(module, "RESERVATIONS_A_SECOND", 1)
    looks = iter([0.1])
    found = what_if(world, ASKED, elapsed=lambda: next(looks, 2.0))
    assert (found.by_amounts_of, found.samples) == ("gpu", FEWEST)


def test_a_job_in_no_queue_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = msgspec.structs.replace(limited("asked", "q", 4, 10), begin_at=Instant(500 * SECOND))
    world = msgspec.structs.replace(alone(), waiting=(waits,))
    monkeypatch.setattr(module, "STARTS_A_SECOND", -1)
    found = what_if(world, ASKED)
    assert (found.verdict, found.samples, found.by_amounts_of) == ("later", 0, "")


def test_a_job_may_start_and_be_preempted_at_one_instant() -> None:
    """When h ends, b borrows for big at once, and a takes that back for its second job."""
    world = snapshot(
        queue("a", "4", "c", preemption=PreemptionRules(reclaim="Any")),
        queue("b", "4", "c"),
        admitted_workloads=(running(limited("h", "a", 8, 100)),),
        waiting=in_turn(
            ("one", "a", 2, 10), ("two", "a", 2, 10), ("big", "b", 6, 10), ("asked", "b", 8, 10)
        ),
    )
    found = what_if(world, ASKED)
    assert (found.verdict, found.samples, found.started) == ("later", 20, 20)
