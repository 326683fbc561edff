"""Time limits, begins and deadlines as people write them, from every place they may stand."""

from __future__ import annotations

import pytest

from tests.kinds.snapshot.test_workloads import QUEUES, job
from tests.support.manifests import NOW, sound, world
from unisono.engine.model.names import Instant
from unisono.kinds.job_annotations import wrong_with_annotations
from unisono.kinds.times import active_seconds, instant_of, limit_ms

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("90", 90 * MINUTE),
        ("1:30", 90_000),
        ("1:30:05", HOUR + 30 * MINUTE + 5000),
        ("2-12", 2 * DAY + 12 * HOUR),
        ("2-12:30", 2 * DAY + 12 * HOUR + 30 * MINUTE),
        ("2-12:30:15", 2 * DAY + 12 * HOUR + 30 * MINUTE + 15_000),
        ("90m", 90 * MINUTE),
        ("1h30m", 90 * MINUTE),
        (" 45s ", 45_000),
        ("0", None),
        ("UNLIMITED", None),
    ],
)
def test_limits_are_read_as_slurm_and_go_write_them(text: str, milliseconds: int | None) -> None:
    assert limit_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "soon", "1:2:3:4", "-5", "1-", "0:0", "1d", "90 m", "1:100"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not .*; write it like"):
        limit_ms(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:01:00Z", MINUTE),
        ("now", 5),
        ("now+90", 90_005),
        ("now+2hours", 2 * HOUR + 5),
        ("now+1week", 7 * DAY + 5),
        ("now+1h30m", 90 * MINUTE + 5),
    ],
)
def test_now_is_when_the_job_was_created(text: str, milliseconds: int) -> None:
    assert instant_of(text, Instant(5)) == milliseconds


@pytest.mark.parametrize("text", ["tomorrow", "now+", "now-1h", "2026-01-31", "now+soon"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time; write it like"):
        instant_of(text, Instant(0))


def test_a_job_says_when_and_how_long() -> None:
    meta = (
        ", annotations: {unisono.dev/time-limit: '1:00:00', unisono.dev/begin: now+10m,"
        " unisono.dev/deadline: '2030-01-01T00:00:00Z'}"
    )
    (made,) = sound(QUEUES, job("a", meta)).snapshot.waiting
    assert (made.time_limit_ms, made.limit_from) == (HOUR, "request")
    assert made.begin_at == NOW + 10 * MINUTE
    assert made.deadline == 1_893_456_000_000


def test_the_shorter_of_limit_and_active_deadline_counts() -> None:
    text = job("a", ", annotations: {unisono.dev/time-limit: 10m}")
    for seconds, limit in ((300, (5 * MINUTE, "job")), (900, (10 * MINUTE, "request"))):
        limited = text.replace(
            "spec: {template", f"spec: {{activeDeadlineSeconds: {seconds}, template", 1
        )
        (made,) = sound(QUEUES, limited).snapshot.waiting
        assert (made.time_limit_ms, made.limit_from) == limit


def test_bad_values_are_problems_that_name_the_field() -> None:
    for key in ("time-limit", "begin", "deadline"):
        found = world(QUEUES, job("a", f", annotations: {{unisono.dev/{key}: whenever}}"))
        (problem,) = found.problems
        assert problem.path == f"metadata.annotations[unisono.dev/{key}]"
        assert '"whenever" is not a time' in problem.message
    bad = QUEUES.replace(
        "{name: lq}", "{name: lq, annotations: {unisono.dev/default-time-limit: x}}"
    )
    (problem,) = world(bad, job("a")).problems
    assert problem.path == "metadata.annotations[unisono.dev/default-time-limit]"
    assert list(
        wrong_with_annotations({"unisono.dev/begin": "x", "unisono.dev/time-limit": "5"})
    ) == ["metadata.annotations[unisono.dev/begin]"]


def test_a_queue_speaks_for_jobs_that_say_nothing() -> None:
    def with_default(text: str, name: str, limit: str) -> str:
        whole = f"{{name: {name}, annotations: {{unisono.dev/default-time-limit: '{limit}'}}}}"
        return text.replace(f"{{name: {name}}}", whole)

    of_cluster_queue = with_default(QUEUES, "q", "2:00:00")
    (made,) = sound(of_cluster_queue, job("a")).snapshot.waiting
    assert (made.time_limit_ms, made.limit_from) == (2 * HOUR, "queue")
    of_both = with_default(of_cluster_queue, "lq", "30")
    (made,) = sound(of_both, job("a")).snapshot.waiting
    assert (made.time_limit_ms, made.limit_from) == (30 * MINUTE, "queue")
    labels = ", kueue.x-k8s.io/max-exec-time-seconds: '600'"
    (made,) = sound(of_both, job("a", "", labels)).snapshot.waiting
    assert (made.time_limit_ms, made.longest_ms) == (None, 10 * MINUTE)


def test_finished_workloads_teach_how_long_the_next_takes() -> None:
    def finished(number: int, minutes: int, reason: str = "Succeeded", more: str = "") -> str:
        told = f"lastTransitionTime: '1970-01-01T{number:02d}:"
        return (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\n"
            f"metadata: {{name: w{number}, ownerReferences:"
            f" [{{apiVersion: batch/v1, kind: Job, name: train-{number}, uid: u{number}}}]}}\n"
            "spec: {queueName: lq, podSets: [{template: {spec: {containers:"
            " [{name: c, resources: {requests: {cpu: 1}}}]}}}]}\n"
            f"status: {{{more}conditions: [\n"
            f"  {{type: Admitted, status: 'True', reason: A, {told}00:00Z'}},\n"
            f"  {{type: Finished, status: 'True', reason: {reason}, {told}{minutes}:00Z'}}]}}\n"
        )

    runs = [finished(1, 10), finished(2, 30), finished(3, 20)]
    noise = [
        finished(4, 50, "Failed"),
        finished(5, 55, more="accumulatedPastExecutionTimeSeconds: 9, "),
    ]
    (made,) = sound(QUEUES, *runs, *noise, job("train-77")).snapshot.waiting
    assert (made.time_limit_ms, made.limit_from) == (30 * MINUTE, "history")
    (other,) = sound(QUEUES, *runs, job("eval-77")).snapshot.waiting
    assert other.time_limit_ms is None
    (larger,) = sound(QUEUES, *runs, job("train-77", requests="cpu: 2")).snapshot.waiting
    assert larger.time_limit_ms is None


def test_every_kind_that_has_an_active_deadline_is_asked() -> None:
    assert active_seconds({"spec": {"activeDeadlineSeconds": 60}}) == 60
    assert active_seconds({"spec": {"runPolicy": {"activeDeadlineSeconds": 61}}}) == 61
    each = [{"template": {"spec": {"activeDeadlineSeconds": s}}} for s in (5, 9)]
    assert active_seconds({"spec": {"replicatedJobs": each}}) == 9
    assert active_seconds({"spec": {"replicatedJobs": [*each, {"template": {}}]}}) is None
    assert active_seconds({"spec": {"activeDeadlineSeconds": "soon"}}) is None
