"""What the bridge does about a job and its gang, state by state."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.slurm.bridge.worlds import cluster_view, gang, job, pods, slurm_view
from unisono.slurm.bridge import actions
from unisono.slurm.bridge.cluster_view import Gang
from unisono.slurm.bridge.decide import Timeouts, UnboundTimer, decide
from unisono.slurm.bridge.nodes import avoided
from unisono.slurm.bridge.slurm_view import SlurmJob

NOW = 1_000_000.0


def decided(one: SlurmJob | None, of: Gang | None = None, **said: object) -> list[actions.Action]:
    """Return what is decided about one job."""
    jobs = (one,) if one is not None else ()
    gangs = (of,) if of is not None else ()
    unbound = said.pop("patience", None) or UnboundTimer()
    assert isinstance(unbound, UnboundTimer)
    return list(decide(slurm_view(*jobs), cluster_view(*gangs), Timeouts(), unbound, NOW))


def test_a_job_at_the_gate_gets_a_gang_then_a_reason_then_its_nodes() -> None:
    waiting = job(nodes=2, cpus=2)
    assert decided(waiting) == [actions.MakeGang(waiting)]
    queued = gang(waiting, why="needs 2 nodes, 1 is free")
    assert decided(waiting, queued) == [actions.Explain(waiting, "needs 2 nodes, 1 is free")]
    told = msgspec.structs.replace(waiting, comment="unisono:gate | needs 2 nodes, 1 is free")
    assert decided(told, queued) == []
    half = gang(waiting, "n1")
    assert decided(waiting, half) == []
    whole = gang(waiting, "n1", "n2")
    assert decided(waiting, whole) == [actions.Start(waiting, whole)]


def test_two_pods_on_one_node_are_no_gang_of_two_nodes() -> None:
    waiting = job(nodes=2, cpus=2)
    assert decided(waiting, gang(waiting, "n1", "n1")) == []


@pytest.mark.parametrize(
    "said",
    [
        {"comment": "unisono:hold"},
        {"comment": "of another tool"},
        {"dependency": "afterok:1(unfulfilled)"},  # itself: it is not over
        {"eligible": NOW + 60},
        {"reason": "Cleaning"},
    ],
)
def test_a_job_that_may_not_begin_reserves_nothing(said: dict[str, Any]) -> None:
    assert decided(job(**said)) == []


def test_a_users_hold_releases_the_reservation() -> None:
    held = job(comment="unisono:hold")
    assert [type(one) for one in decided(held, gang(held, "n1"))] == [actions.DropGang]


def test_a_released_job_without_its_reservation_is_held_back() -> None:
    released = job(comment="unisono:pinned", priority=7, required=("n1",))
    assert [type(one) for one in decided(released)] == [actions.Hold]
    lost = gang(released, released_at=NOW)
    assert [type(one) for one in decided(released, lost)] == [actions.Hold]
    moved = gang(released, "n2", released_at=NOW)
    assert [type(one) for one in decided(released, moved)] == [actions.Hold]
    assert decided(released, gang(released, "n1", released_at=NOW)) == []


def test_a_job_that_passed_the_gate_is_held() -> None:
    assert [type(one) for one in decided(job(priority=7))] == [actions.Hold]


def test_a_job_that_slurm_does_not_start_backs_off() -> None:
    stuck = job(comment="unisono:pinned", priority=7, required=("n1",), reason="Licenses")
    for tries, wait in ((0, 5.0), (1, 10.0), (9, 300.0)):
        late = gang(stuck, "n1", released_at=NOW - 61, tries=tries)
        held, parked = decided(stuck, late)
        assert isinstance(held, actions.Hold)
        assert isinstance(parked, actions.Deactivate)
        assert parked.until == NOW + wait
        assert "Licenses" in parked.why
    requeued = job(
        comment="unisono:pinned",
        priority=7,
        required=("n1",),
        reason="BeginTime",
        restarts=1,
        submitted=NOW - 5,
    )
    again = gang(requeued, "n1", released_at=NOW - 600)
    assert decided(requeued, again) == [actions.StartNow(requeued)]


def test_a_deactivated_gang_is_reactivated_in_time() -> None:
    waiting = job()
    assert decided(waiting, gang(waiting, is_active=False, retry_at=NOW + 1)) == []
    ready = gang(waiting, is_active=False, retry_at=NOW - 1)
    assert decided(waiting, ready) == [actions.Reactivate(ready)]


def test_a_running_job_on_its_reserved_nodes_is_left_alone() -> None:
    runs = job(on=("n1", "n2"), gpus_per_node=4)
    assert decided(runs, gang(runs, "n2", "n1", released_at=NOW)) == []


def test_a_job_with_more_than_was_reserved_loses_its_nodes() -> None:
    runs = job(on=("n1",), gpus_per_node=4)
    small = gang(runs, released_at=NOW, is_admitted=True, pods=pods("1", "n1", gpus=2))
    (taken,) = decided(runs, small)
    assert isinstance(taken, actions.RevokeNodes)
    assert "2 GPUs on n1" in taken.why


def test_the_deadlock_ends_after_the_bind_timeout() -> None:
    stuck = job(on=("n1",), state="CONFIGURING", started=NOW - 100)
    nowhere = gang(stuck, "", released_at=NOW - 100, why="no node fits")
    unbound = UnboundTimer()
    assert list(decide(slurm_view(stuck), cluster_view(nowhere), Timeouts(), unbound, NOW)) == []
    assert (
        list(decide(slurm_view(stuck), cluster_view(nowhere), Timeouts(), unbound, NOW + 60)) == []
    )
    taken, parked = decide(slurm_view(stuck), cluster_view(nowhere), Timeouts(), unbound, NOW + 61)
    assert isinstance(taken, actions.RevokeNodes)
    assert taken.is_deadlock
    assert "no node fits" in taken.why
    assert isinstance(parked, actions.Deactivate)


def test_a_preempted_gang_takes_its_job_with_it_at_once() -> None:
    runs = job(on=("n1",))
    (taken,) = decided(runs, gang(runs, is_evicted=True, released_at=NOW))
    assert isinstance(taken, actions.RevokeNodes)
    assert not taken.is_deadlock


def test_a_job_that_ran_before_the_bridge_is_adopted_and_never_ended() -> None:
    old = job(on=("n1",), comment="", started=NOW - 9000)
    assert decided(old) == [actions.MakeGang(old, only=("n1",))]
    unbound = UnboundTimer()
    without = gang(old, "")
    for later in (0.0, 61.0, 6100.0):
        assert (
            list(decide(slurm_view(old), cluster_view(without), Timeouts(), unbound, NOW + later))
            == []
        )


def test_recreates_the_lost_gang_of_a_running_job() -> None:
    runs = job(on=("n1", "n2"))
    assert decided(runs) == [actions.MakeGang(runs, only=("n1", "n2"))]


def test_a_deleted_gang_cancels_its_job_and_goes_when_that_is_over() -> None:
    runs = job(on=("n1",))
    deleted = gang(runs, "n1", is_deleted=True)
    assert [type(one) for one in decided(runs, deleted)] == [actions.Cancel]
    over = msgspec.structs.replace(runs, state="CANCELLED", held=())
    assert [type(one) for one in decided(over, deleted)] == [actions.DropGang]


def test_a_job_that_slurm_does_not_list_is_given_up_only_after_a_while() -> None:
    runs = job(on=("n1",))
    there, unbound = gang(runs, "n1"), UnboundTimer()
    forgotten = slurm_view()
    assert list(decide(forgotten, cluster_view(there), Timeouts(), unbound, NOW)) == []
    assert list(decide(forgotten, cluster_view(there), Timeouts(), unbound, NOW + 9)) == []
    assert list(decide(slurm_view(runs), cluster_view(there), Timeouts(), unbound, NOW + 10)) == []
    assert list(decide(forgotten, cluster_view(there), Timeouts(), unbound, NOW + 11)) == []
    (gone,) = decide(forgotten, cluster_view(there), Timeouts(), unbound, NOW + 21)
    assert isinstance(gone, actions.DropGang)


def test_a_terminating_pod_stays_until_slurm_has_left() -> None:
    runs = job(on=("n1",))
    leaving = pods("1", "n1", leaves=True)
    cleared = msgspec.structs.replace(runs, state="PENDING", priority=0, held=())
    cleaning = msgspec.structs.replace(cleared, reason="Cleaning")
    for one, is_freed in ((runs, False), (cleaning, False), (cleared, True), (None, True)):
        jobs = (one,) if one is not None else ()
        done = decide(
            slurm_view(*jobs), cluster_view(others=leaving), Timeouts(), UnboundTimer(), NOW
        )
        assert (actions.DeletePod(leaving[0]) in list(done)) == is_freed


def test_an_array_has_as_many_gangs_as_tasks_may_run() -> None:
    tasks = [job(f"5_{task}", array=5, most_at_once=2) for task in range(10)]
    made = list(decide(slurm_view(*tasks), cluster_view(), Timeouts(), UnboundTimer(), NOW))
    assert made == [actions.MakeGang(tasks[0]), actions.MakeGang(tasks[1])]
    runs = job("5_0", array=5, most_at_once=2, on=("n1",))
    there = gang(runs, "n1", released_at=NOW)
    made = list(
        decide(slurm_view(runs, *tasks[1:]), cluster_view(there), Timeouts(), UnboundTimer(), NOW)
    )
    assert made == [actions.MakeGang(tasks[1])]


def test_a_changed_request_gets_a_new_gang() -> None:
    small, large = job(nodes=1), job(nodes=2, cpus=2)
    assert [type(one) for one in decided(large, gang(small, "n1"))] == [actions.DropGang]


def test_a_gang_leaves_a_node_that_slurm_does_not_use() -> None:
    drained = slurm_view(
        released := job(comment="unisono:pinned", priority=7, required=("n1",)),
        states=frozenset(("DOWN",)),
        reason="fan",
    )
    on_it = gang(released, "n1", released_at=NOW)
    held, parked = decide(drained, cluster_view(on_it), Timeouts(), UnboundTimer(), NOW)
    assert isinstance(held, actions.Hold)
    assert isinstance(parked, actions.Deactivate)
    assert "n1 (fan)" in held.why
    assert list(avoided(drained, cluster_view())) == [
        actions.MarkAway("n1", True),
        actions.MarkAway("n2", True),
    ]
