"""Events: counted, summed up, bounded, and never in the way."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.kube.fake_api import FakeApi, refuse
from tests.kube.virtual import START, VirtualClock, run, settle
from unisono.kube import Recorder, client_over
from unisono.kube.events import (
    MOST_REMEMBERED,
    OVERTAKEN_WITHIN_S,
    Correlator,
    Count,
    Create,
    Note,
    Reference,
)
from unisono.kube.form import Json

EVENTS = "/api/v1/namespaces/team-a/events"


def job(name: str = "train") -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team-a", "uid": "u", "resourceVersion": "5"},
    }


def note(message: str, *, at: float = 1000.0, reason: str = "Waiting", name: str = "train") -> Note:
    about = Reference.of(job(name))
    return Note(about=about, type="Normal", reason=reason, message=message, at=at)


def correlator() -> Correlator:
    return Correlator(component="unisono", instance="one")


def test_a_new_event_has_its_object_reason_and_time() -> None:
    preemptor = Reference.of(job("urgent"))
    told = Note(
        about=Reference.of(job()),
        type="Warning",
        reason="Preempted",
        message="by urgent",
        related=preemptor,
        at=1_767_268_800.5,
    )
    decided = correlator().decide(told)
    assert isinstance(decided, Create)
    assert decided.event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"train.{1_767_268_800_500_000_000:x}", "namespace": "team-a"},
        "involvedObject": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "train",
            "namespace": "team-a",
            "uid": "u",
            "resourceVersion": "5",
        },
        "related": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "urgent",
            "namespace": "team-a",
            "uid": "u",
            "resourceVersion": "5",
        },
        "type": "Warning",
        "reason": "Preempted",
        "message": "by urgent",
        "source": {"component": "unisono"},
        "reportingComponent": "unisono",
        "reportingInstance": "one",
        "firstTimestamp": "2026-01-01T12:00:00Z",
        "lastTimestamp": "2026-01-01T12:00:00Z",
        "count": 1,
    }


def test_the_same_again_is_counted() -> None:
    made = correlator()
    first = made.decide(note("for quota", at=1000.0))
    assert isinstance(first, Create)
    again = made.decide(note("for quota", at=1060.0))
    assert again == Count(
        first.event["metadata"]["name"],
        "team-a",
        {"count": 2, "lastTimestamp": "1970-01-01T00:17:40Z", "message": "for quota"},
    )
    assert isinstance(made.decide(note("for nodes", at=1061.0)), Create)
    assert isinstance(made.decide(note("for quota", at=1062.0, name="other")), Create)


def test_the_eleventh_different_message_sums_up() -> None:
    made = correlator()
    decided = [
        made.decide(note(f"{number} GPUs are free", at=1000.0 + number)) for number in range(13)
    ]
    assert all(isinstance(each, Create) for each in decided[:11])
    summed_up = decided[10]
    assert isinstance(summed_up, Create)
    assert summed_up.event["message"] == "one of many, the latest: 10 GPUs are free"
    last = decided[12]
    assert isinstance(last, Count)
    assert last.name == summed_up.event["metadata"]["name"]
    assert last.changes["count"] == 3
    assert last.changes["message"] == "one of many, the latest: 12 GPUs are free"
    # Another reason has its own count, and so has another time.
    assert isinstance(made.decide(note("else", reason="Evicted", at=1020.0)), Create)
    later = made.decide(note("quite new", at=1012.0 + 601))
    assert isinstance(later, Create)
    assert later.event["message"] == "quite new"


def test_an_object_has_25_events_at_once_and_then_one_in_five_minutes() -> None:
    made = correlator()
    written = [made.decide(note("again", at=1000.0)) for _ in range(40)]
    assert sum(each is not None for each in written) == 25
    assert made.decide(note("again", at=1299.0)) is None
    assert made.decide(note("again", at=1301.0)) is not None
    assert made.decide(note("again", at=1302.0)) is None
    assert made.decide(note("again", at=1302.0, name="other")) is not None


def test_names_are_unique_even_if_time_stands_still() -> None:
    made = correlator()
    decided = [made.decide(note(text, at=1000.0)) for text in "abc"]
    names = {each.event["metadata"]["name"] for each in decided if isinstance(each, Create)}
    assert len(names) == 3


def test_what_is_remembered_is_bounded() -> None:
    made = correlator()
    first = note("x", name="first")
    made.decide(first)
    for number in range(MOST_REMEMBERED):
        made.decide(note("x", name=f"job-{number}"))
    assert isinstance(made.decide(first), Create), "it was forgotten"


def test_a_cluster_wide_object_has_its_events_in_default() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    told = Note(about=Reference.of(node), type="Normal", reason="Joined", message="x", at=0.0)
    decided = correlator().decide(told)
    assert isinstance(decided, Create)
    assert decided.event["metadata"]["namespace"] == "default"
    assert decided.event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


# --- writing ------------------------------------------------------------------------------------


def recorder(api: FakeApi) -> Recorder:
    clock = VirtualClock()
    client = client_over(api, clock=clock, random_source=random.Random(1))
    return Recorder(client, clock=clock)


def test_events_are_written_in_the_background() -> None:
    async def main() -> None:
        api = FakeApi()
        made = recorder(api)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(made.run())
            await settle()
            made.record(job(), "Normal", "Waiting", "for quota")
            made.record(job(), "Normal", "Waiting", "for quota", related=job("other"))
            await settle()
            assert api.asked == []
            await VirtualClock().sleep(OVERTAKEN_WITHIN_S)
            await settle()
            (event,) = api.collections[EVENTS].values()
            assert (event["count"], event["reason"]) == (2, "Waiting")
            assert [asked.method for asked in api.asked] == ["POST", "PATCH"]
            task.cancel()

    run(main())


def test_news_takes_the_place_of_what_it_says_too_unless_that_is_written() -> None:
    async def main() -> None:
        api = FakeApi()
        made = recorder(api)
        made.record(job("late"), "Normal", "Created", "as a workload")
        await made.flush()
        for name in ("late", "quick"):
            made.record(job(name), "Normal", "Waiting", "for quota")
            made.record(job(name), "Normal", "Started", "in a queue", instead_of=("Created",))
        made.record(job("quick"), "Normal", "Created", "as another workload")
        made.record(job("quick"), "Normal", "Started", "again", instead_of=("Created", "Gone"))
        await made.flush()
        told = [
            (event["involvedObject"]["name"], event["reason"])
            for event in api.collections[EVENTS].values()
        ]
        late = [("late", "Created"), ("late", "Waiting"), ("late", "Started")]
        assert told == [*late, ("quick", "Waiting"), ("quick", "Started"), ("quick", "Started")]

    run(main())


def test_an_event_that_has_expired_is_written_anew_with_its_count() -> None:
    async def main() -> None:
        api = FakeApi()
        made = recorder(api)
        made.record(job(), "Normal", "Waiting", "for quota")
        await made.flush()
        (name,) = api.collections[EVENTS]
        api.remove(EVENTS, name)
        await VirtualClock().sleep(4000)
        made.record(job(), "Normal", "Waiting", "for quota")
        await made.flush()
        (event,) = api.collections[EVENTS].values()
        assert event["count"] == 2
        assert event["metadata"]["name"] == f"train.{int((START + 4000) * 1e9):x}"

    run(main())


def test_an_api_that_will_not_have_it_is_no_trouble() -> None:
    async def main() -> None:
        api = FakeApi()
        made = recorder(api)
        api.fail(refuse(403, "Forbidden"))
        made.record(job(), "Normal", "Waiting", "for quota")
        await made.flush()
        assert made.dropped == 1

    run(main())


@pytest.mark.slow
def test_a_full_queue_loses_the_oldest() -> None:
    async def main() -> None:
        api = FakeApi()
        made = recorder(api)
        for number in range(1003):
            made.record(job(f"job-{number}"), "Normal", "Waiting", "x")
        assert made.dropped == 3
        await made.flush()
        assert len(api.collections[EVENTS]) == 1000
        assert api.asked[0].json["involvedObject"]["name"] == "job-3"

    run(main())
