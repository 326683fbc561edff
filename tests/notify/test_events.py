"""What happened to a Workload, read from its conditions and its record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from unisono.kinds.notifying import EVENTS
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.notify.events import events_of, is_fresh, read_told, written_told

T0 = 1_700_000_000.0  # 2023-11-14T22:13:20Z
WORKLOAD = Kind("kueue.x-k8s.io/v1beta2", "Workload")
ALL = frozenset(EVENTS)


def at(seconds: int) -> str:
    return f"2023-11-14T22:{13 + (20 + seconds) // 60:02}:{(20 + seconds) % 60:02}Z"


def condition(kind: str, since: int, *, holds: bool = True, **more: str) -> Json:
    status = "True" if holds else "False"
    return {"type": kind, "status": status, "lastTransitionTime": at(since), **more}


def workload(*conditions: Json, active: bool = True, **more: Any) -> Json:
    return {
        "apiVersion": WORKLOAD.api_version,
        "kind": WORKLOAD.kind,
        "metadata": {
            "name": "w",
            "namespace": "default",
            "uid": "u",
            "creationTimestamp": at(0),
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j"}],
            "annotations": more.pop("annotations", {}),
        },
        "spec": {"active": active, "podSets": []},
        "status": {"conditions": list(conditions), **more},
    }


ADMITTED = condition("Admitted", 10)
READY = condition("PodsReady", 15)
RESERVED = condition("QuotaReserved", 10)


def told(obj: Json, record: str = "", now: float = T0 + 60, **more: Any) -> list[tuple[str, str]]:
    found = events_of(obj, more.get("wanted", ALL), read_told(record), now)
    return [(one.event, one.mark) for one in found.events]


def test_it_begins_when_its_pods_are_ready_and_not_before() -> None:
    assert told(workload(RESERVED, ADMITTED)) == []
    assert told(workload(RESERVED, ADMITTED, condition("PodsReady", 12, holds=False))) == []
    found = events_of(workload(RESERVED, ADMITTED, READY), ALL, {}, T0 + 60)
    (begin,) = found.events
    assert (begin.event, begin.mark, begin.at) == ("begin", at(10), T0 + 15)
    assert begin.queued_s == 15


@pytest.mark.parametrize(
    ("reason", "message", "event"),
    [
        ("Succeeded", "done", "end"),
        ("Failed", "BackoffLimitExceeded", "fail"),
        ("Failed", "Job is CANCELLED (0:15)", "end"),  # as Slurm has it
        ("Failed", "Job is TIMEOUT (0:15)", "fail"),
    ],
)
def test_it_ends_well_or_badly(reason: str, message: str, event: str) -> None:
    finished = condition("Finished", 45, reason=reason, message=message)
    obj = workload(RESERVED, ADMITTED, READY, finished)
    assert told(obj) == [("begin", at(10)), (event, at(45))]
    (end,) = events_of(obj, {"end", "fail"}, {}, T0 + 60).events
    assert (end.ran_s, end.why) == (30, message)


def test_what_the_system_gave_up_has_failed() -> None:
    reason = "DeactivatedDueToRequeuingLimitExceeded"
    evicted = condition("Evicted", 30, reason=reason, message="too often")
    assert told(workload(evicted, active=False)) == [("fail", at(30))]
    assert told(workload(evicted, active=True)) == []


PREEMPTED = "Preempted to accommodate default/urgent"


def evicted_times(count: int, *, holds: bool = True) -> Json:
    message = "Preempted to accommodate a workload (UID: x, JobUID: y) due to priority"
    stats = {"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": count}]}
    return workload(
        condition("Evicted", 30, holds=holds, reason="Preempted", message=message),
        condition("unisono.dev/Eviction", 30, message=f"{PREEMPTED} (UID: x, JobUID: y) due to p"),
        schedulingStats=stats,
    )


def test_each_eviction_is_one_event_and_names_the_preemptor() -> None:
    assert told(evicted_times(1), "begin=x") == [("preempt", "1")]
    assert told(evicted_times(2), "begin=x preempt=1") == [("preempt", "2")]
    (event,) = events_of(evicted_times(1), ALL, {"begin": "x"}, T0 + 60).events
    assert event.why == f"{PREEMPTED} due to p"


def test_an_eviction_is_not_lost_when_it_runs_again_at_once() -> None:
    assert told(evicted_times(1, holds=False), "begin=x") == [("preempt", "1")]


def test_what_never_began_was_not_preempted() -> None:
    assert told(evicted_times(1)) == []


def pending(*facts: Json, message: str = "waits") -> Json:
    text = json.dumps({"facts": list(facts)})
    return workload(
        condition("QuotaReserved", 0, holds=False, message=message),
        condition("unisono.dev/Explanation", 0, message=text),
    )


def expected(start: int) -> Json:
    return {"fact": "Expected", "start": int((T0 + start) * 1000)}


def promise(start: int, made: int, slips: int = 0) -> str:
    return f"{int(T0) + start}/{int(T0) + made}/{slips}"


def test_a_first_estimate_is_the_promise_and_small_moves_are_none() -> None:
    found = events_of(pending(expected(3600)), ALL, {}, T0)
    assert (found.events, found.promise) == ((), promise(3600, 0))
    assert found.look_again == T0 + 3600 + 360 + 1
    later = events_of(pending(expected(3900)), ALL, {"promise": promise(3600, 0)}, T0 + 60)
    assert (later.events, later.promise) == ((), promise(3600, 0))
    for strange in ("x", "1/2", "0/0/0", "1/2/3/4"):
        assert events_of(pending(expected(9)), ALL, {"promise": strange}, T0).promise == promise(
            9, 0
        )


def test_a_promise_that_slips_is_one_event_and_a_new_promise() -> None:
    record = {"promise": promise(3600, 0)}
    obj = pending(expected(5000))
    (delay,) = events_of(obj, ALL, record, T0 + 60).events
    assert (delay.event, delay.promised, delay.start) == ("delay", T0 + 3600, T0 + 5000)
    # While the message is on its way the estimate moves: that is no second delay.
    (same,) = events_of(pending(expected(5400)), ALL, record, T0 + 90).events
    assert same.mark == delay.mark
    after = events_of(obj, ALL, {**record, "delay": delay.mark}, T0 + 120)
    assert after.promise == promise(5000, 120, 1)


def test_each_further_promise_may_slip_by_twice_as_much() -> None:
    for slips, seconds in ((0, 300), (1, 600), (3, 2400)):
        record = {"promise": promise(900, 600, slips)}
        assert events_of(pending(expected(900 + seconds)), ALL, record, T0).events == ()
        assert len(events_of(pending(expected(901 + seconds)), ALL, record, T0).events) == 1


def test_a_promise_that_passes_without_a_new_start_is_a_delay() -> None:
    record = {"promise": promise(600, 0)}
    assert events_of(pending(), ALL, record, T0 + 800).events == ()
    (delay,) = events_of(pending(), ALL, record, T0 + 901).events
    assert (delay.event, delay.start) == ("delay", 0.0)


def test_a_reservation_counts_before_an_estimate() -> None:
    planned = {"fact": "Planned", "start": int((T0 + 900) * 1000)}
    assert events_of(pending(expected(100), planned), ALL, {}, T0).promise == promise(900, 0)


def test_an_invalid_dependency_is_told_however_long_it_waited_before() -> None:
    obj = pending({"fact": "DependencyNeverSatisfied"}, message="default/a failed")
    (event,) = events_of(obj, ALL, {}, T0 + 90_000).events
    assert (event.event, event.why) == ("invalid-dependency", "default/a failed")
    assert is_fresh(event, T0 + 90_000)


def test_shares_of_the_time_limit_that_has_passed() -> None:
    obj = workload(RESERVED, ADMITTED, READY, annotations={"unisono.dev/time-limit": "1:40"})
    wanted = ALL - {"begin", "preempt"}
    assert told(obj, wanted=wanted, now=T0 + 20) == []
    assert told(obj, wanted=wanted, now=T0 + 65) == [("time-limit-50", at(10))]
    assert len(told(obj, wanted=wanted, now=T0 + 115)) == 4
    assert events_of(obj, wanted, {}, T0 + 65).look_again == T0 + 95


def test_the_limit_that_was_granted_counts() -> None:
    granted = condition("unisono.dev/GrantedLimit", 10, message="60")
    said = {"unisono.dev/time-limit": "1:40"}
    obj = workload(RESERVED, ADMITTED, READY, granted, annotations=said)
    assert told(obj, wanted={"time-limit-50"}, now=T0 + 46) == [("time-limit-50", at(10))]


def test_nothing_is_computed_that_is_not_wanted() -> None:
    finished = condition("Finished", 45, reason="Succeeded", message="")
    assert told(workload(RESERVED, ADMITTED, READY, finished), wanted=frozenset()) == []


def test_records_are_read_as_they_are_written() -> None:
    record = {"begin": at(10), "preempt": "2", "promise": "1/2"}
    assert read_told(written_told({**record, "delay": ""})) == record


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        '{"facts": 3}',
        '{"facts": [{"fact": "Expected", "start": "x"}]}',
        '{"facts": [1]}',
        "",
    ],
)
def test_strange_explanations_and_records_stop_nothing(text: str) -> None:
    obj = workload(condition("unisono.dev/Explanation", 0, message=text))
    assert told(obj, "promise=x/y ??? =") == []
