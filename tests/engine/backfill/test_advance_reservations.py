"""Advance reservations: no job runs into one that it may not use, with and without backfill."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.quota_builders import pods, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.messages import message_of
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.explanation import GangDoesNotFit, Planned, Reserved
from unisono.engine.model.multifactor import SubmitOptions
from unisono.engine.model.names import Instant, LocalQueueKey, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.policy import AdvanceReservation, Backfill, Policy
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import PolicySet, TimePassed, WorkloadGone, WorkloadWaits
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

HOUR = 3_600_000
WAYS = [None, Backfill(dates=1), Backfill()]
MAINTENANCE = AdvanceReservation(
    name="cooling", start=Instant(2 * HOUR), end=Instant(4 * HOUR), nodes=(NodeName("n1"),)
)


def cluster(
    backfill: Backfill | None, *reservations: AdvanceReservation, nodes: int = 2, quota: int = 64
) -> ClusterState:
    return restore(
        world(
            queue("q", str(quota)),
            policy=Policy(backfill=backfill, reservations=reservations),
            nodes=tuple(
                Node(name=NodeName(f"n{number}"), allocatable=amounts({"gpu": 8}))
                for number in range(1, nodes + 1)
            ),
        )
    )


def job(
    name: str, hours: float | None, *, gpus: int = 8, submit_options: SubmitOptions | None = None
) -> Workload:
    return Workload(
        key=WorkloadKey(f"ns/{name}"),
        uid=name,
        queue=LocalQueueKey("ns/q"),
        pod_sets=(pods(1, {"gpu": gpus}),),
        time_limit_ms=None if hours is None else int(hours * HOUR),
        submit_options=submit_options or SubmitOptions(),
    )


def submit(state: ClusterState, *jobs: Workload) -> None:
    for each in jobs:
        state.apply(WorkloadWaits(each))


def running(state: ClusterState, hours: float = 0) -> dict[str, str]:
    """Decide all there is to decide at an hour; return the node of each job."""
    now = Instant(int(hours * HOUR))
    state.apply(TimePassed(now))
    dry_run(state, now)
    return {
        key.removeprefix("ns/"): held.admitted.admission.pod_sets[0].nodes[0][0]
        for key, held in state.running.items()
    }


def why(state: ClusterState, name: str) -> tuple[object, ...]:
    found = explanation(state, WorkloadKey(f"ns/{name}"))
    assert found is not None, f"{name} does not wait"
    return tuple(found.blockers)


def start_of(state: ClusterState, name: str) -> Instant:
    first = why(state, name)[0]
    assert isinstance(first, Planned)
    return first.start


@pytest.mark.parametrize("way", WAYS)
def test_jobs_that_end_before_it_start_there_and_others_wait_until_it_is_over(
    way: Backfill | None,
) -> None:
    state = cluster(way, MAINTENANCE, nodes=1)
    submit(state, job("long", 3))
    assert running(state) == {}
    fact = Reserved(
        name="cooling", start=Instant(2 * HOUR), end=Instant(4 * HOUR), nodes=1, limit_ms=3 * HOUR
    )
    assert fact in why(state, "long")
    submit(state, job("short", 2))
    assert running(state) == {"short": "n1"}
    state.apply(WorkloadGone(WorkloadKey("ns/short")))
    assert running(state, 2) == {}
    assert running(state, 3.99) == {}
    assert running(state, 4) == {"long": "n1"}


@pytest.mark.parametrize("way", WAYS)
def test_other_nodes_are_free_to_all(way: Backfill | None) -> None:
    state = cluster(way, MAINTENANCE)
    submit(state, job("a", 3), job("b", 3), job("c", 1))
    assert running(state) == {"a": "n2", "c": "n1"}


@pytest.mark.parametrize("way", WAYS)
def test_no_limit_is_a_long_one(way: Backfill | None) -> None:
    state = cluster(way, MAINTENANCE, nodes=1)
    submit(state, job("unknown", None))
    assert running(state) == {}
    assert running(state, 4) == {"unknown": "n1"}
    if way is not None:
        brief = msgspec.structs.replace(way, default_limit_ms=HOUR)
        state = cluster(brief, MAINTENANCE, nodes=1)
        submit(state, job("unknown", None))
        assert running(state) == {"unknown": "n1"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "members",
    [
        {"local_queues": (LocalQueueKey("ns/q"),)},
        {"namespaces": ("ns",)},
        {"accounts": ("vision",)},
        {"users": ("ann",)},
    ],
)
def test_members_use_it_and_run_beyond_it(
    way: Backfill | None, members: dict[str, tuple[str, ...]]
) -> None:
    state = cluster(way, msgspec.structs.replace(MAINTENANCE, **members), nodes=1)
    submit(state, job("ours", 24, submit_options=SubmitOptions(account="vision", user="ann")))
    assert running(state, 3) == {"ours": "n1"}


@pytest.mark.parametrize("way", WAYS)
def test_one_equivalence_class_is_divided_by_user_and_limit(
    way: Backfill | None,
) -> None:
    state = cluster(way, msgspec.structs.replace(MAINTENANCE, users=("ann",)), nodes=1)
    submit(state, job("bob", 9, gpus=2), job("bob-short", 1, gpus=2))
    submit(state, job("ann", 9, gpus=2, submit_options=SubmitOptions(user="ann")))
    assert running(state) == {"bob-short": "n1", "ann": "n1"}


@pytest.mark.parametrize("way", WAYS)
def test_it_comes_again_every_day(way: Backfill | None) -> None:
    daily = msgspec.structs.replace(MAINTENANCE, repeat="daily", nodes=())
    state = cluster(way, daily, nodes=1)
    submit(state, job("day", 22))
    assert running(state, 0) == {}
    assert running(state, 4) == {"day": "n1"}
    state.apply(WorkloadGone(WorkloadKey("ns/day")))
    submit(state, job("next", 21))
    assert running(state, 5.5) == {}
    assert running(state, 27) == {}
    assert running(state, 28) == {"next": "n1"}


def test_a_backfill_reservation_is_after_it() -> None:
    for way in (Backfill(dates=1), Backfill()):
        state = cluster(way, MAINTENANCE, nodes=1)
        submit(state, job("long", 3))
        running(state)
        assert start_of(state, "long") == 4 * HOUR
        # It must neither run into the advance reservation nor delay the backfill reservation.
        submit(state, job("late", 5, gpus=4))
        assert running(state) == {}


def test_the_second_backfill_reservation_is_earlier_if_only_the_first_runs_into_it() -> None:
    state = cluster(Backfill(), MAINTENANCE, nodes=1)
    submit(state, job("now", 1), job("long", 3), job("short", 1))
    running(state)
    assert start_of(state, "short") == HOUR
    state.apply(WorkloadGone(WorkloadKey("ns/now")))
    assert running(state, 1) == {"short": "n1"}


@pytest.mark.parametrize("way", WAYS)
def test_reservations_come_and_go_with_the_policy(way: Backfill | None) -> None:
    state = cluster(way, nodes=1)
    state.apply(PolicySet(Policy(backfill=way, reservations=(MAINTENANCE,))))
    submit(state, job("a", 3, gpus=1), job("b", 3, gpus=1))
    assert running(state) == {}
    state.apply(PolicySet(Policy(backfill=way)))
    assert running(state) == {"a": "n1", "b": "n1"}


def test_reports_a_gang_that_would_not_fit_anyway() -> None:
    state = cluster(None, MAINTENANCE, nodes=2)
    submit(state, job("too-big", 3, gpus=9))
    running(state)
    (fact,) = why(state, "too-big")
    assert isinstance(fact, GangDoesNotFit)
    assert ("reserved", 1) in fact.refusals


def test_the_message_names_it() -> None:
    state = cluster(None, MAINTENANCE, nodes=1)
    submit(state, job("long", 3))
    running(state)
    found = explanation(state, WorkloadKey("ns/long"))
    assert found is not None
    assert message_of(found).startswith("Reservation: 1 node is reserved as cooling from 1970-")


@pytest.mark.parametrize("way", WAYS)
def test_a_restored_state_decides_alike(way: Backfill | None) -> None:
    state = cluster(way, MAINTENANCE)
    submit(state, job("a", 3), job("b", 3), job("c", 1))
    running(state)
    again = restore(snapshot(state))
    assert snapshot(again) == snapshot(state)
    assert running(again, 4) == running(state, 4)
