"""Jobs and CronJobs: defaults, selectors, what is refused and what may change."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.surroundings import created, refusals
from unisono.apiserver.objects import Json
from unisono.kinds.cron import wrong_with_schedule

JOBS = "batch/jobs"


def job(spec: Json | None = None, pod: Json | None = None, **metadata: Any) -> Json:
    first = {"name": "a", "image": "x"}
    template = {"spec": {"restartPolicy": "Never", "containers": [first], **(pod or {})}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", **metadata},
        "spec": {"template": template, **(spec or {})},
    }


def test_a_plain_job_is_filled_in() -> None:
    made = created(JOBS, job())
    labels = {
        "batch.kubernetes.io/controller-uid": "uid-1",
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": "uid-1",
        "job-name": "j",
    }
    assert {name: value for name, value in made["spec"].items() if name != "template"} == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "suspend": False,
        "manualSelector": False,
        "completionMode": "NonIndexed",
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-1"}},
    }
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] == labels, "a job without labels gets those of its pods"
    assert "enableServiceLinks" not in made["spec"]["template"]["spec"]


def test_a_job_without_labels_gets_all_labels_of_its_pods() -> None:
    given = job()
    given["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
    made = created(JOBS, given)
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert len(labels) == 5
    assert made["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] is not labels


def test_own_labels_are_kept() -> None:
    assert created(JOBS, job(labels={"a": "b"}))["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("spec", "field", "expected"),
    [
        ({"parallelism": 3}, "completions", None),
        ({"completions": 3}, "parallelism", 1),
        ({"backoffLimitPerIndex": 1}, "backoffLimit", 2147483647),
        ({"podFailurePolicy": {"rules": []}}, "podReplacementPolicy", "Failed"),
    ],
)
def test_defaults_that_depend_on_others(spec: Json, field: str, expected: object) -> None:
    assert created(JOBS, job(spec))["spec"].get(field) == expected


RESTARTS = "spec.template.spec.restartPolicy"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (job(), []),
        (job({"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}), None),
        (job(pod={"restartPolicy": None}), [("Required", RESTARTS)]),
        (job(pod={"restartPolicy": "Always"}), [("Required", RESTARTS)]),
        (job(pod={"restartPolicy": "Foo"}), [("NotSupported", RESTARTS)]),
        (
            job({"parallelism": -1, "completions": -1, "backoffLimit": -1}),
            [
                ("Invalid", "spec.parallelism"),
                ("Invalid", "spec.completions"),
                ("Invalid", "spec.backoffLimit"),
            ],
        ),
        (
            job({"completionMode": "Indexed", "parallelism": 2}),
            [("Required", "spec.completions")],
        ),
        (job({"completionMode": "X"}), [("NotSupported", "spec.completionMode")]),
        (
            job({"selector": {"matchLabels": {"a": "b"}}}),
            [("Invalid", "spec.selector"), ("Invalid", "spec.template.metadata.labels")],
        ),
        (
            job({"backoffLimitPerIndex": 1, "successPolicy": {"rules": []}}),
            [("Invalid", "spec.backoffLimitPerIndex"), ("Invalid", "spec.successPolicy")],
        ),
        (job({"podReplacementPolicy": "X"}), [("NotSupported", "spec.podReplacementPolicy")]),
        (job({"managedBy": "foo"}), [("Invalid", "spec.managedBy")]),
        (
            job(pod={"containers": []}),
            [("Required", "spec.template.spec.containers")],
        ),
        (
            job(
                {
                    "podFailurePolicy": {
                        "rules": [
                            {"action": "X", "onPodConditions": [{"type": "A", "status": "Y"}]},
                            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [0]}},
                        ]
                    }
                }
            ),
            [
                ("NotSupported", "spec.podFailurePolicy.rules[0].action"),
                ("NotSupported", "spec.podFailurePolicy.rules[0].onPodConditions[0].status"),
                ("Invalid", "spec.podFailurePolicy.rules[1].onExitCodes.values[0]"),
            ],
        ),
        (
            job(
                {
                    "completionMode": "Indexed",
                    "completions": 5,
                    "successPolicy": {
                        "rules": [
                            {"succeededIndexes": "0-2,4"},
                            {"succeededIndexes": "0-9"},
                            {"succeededIndexes": "3,1"},
                            {},
                            {"succeededCount": 9},
                        ]
                    },
                }
            ),
            [
                ("Invalid", "spec.successPolicy.rules[1].succeededIndexes"),
                ("Invalid", "spec.successPolicy.rules[2].succeededIndexes"),
                ("Required", "spec.successPolicy.rules[3]"),
                ("Invalid", "spec.successPolicy.rules[4].succeededCount"),
            ],
        ),
        (
            job(annotations={"kueue.x-k8s.io/job-min-parallelism": "5"}),
            [("Invalid", "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]")],
        ),
    ],
)
def test_a_new_job(made: Json, expected: list[tuple[str, str]] | None) -> None:
    found = refusals(JOBS, made)
    assert found == (
        [("Invalid", "spec.template.metadata.labels")] if expected is None else expected
    )


HELD = {"suspend": True}


@pytest.mark.parametrize(
    ("before", "change", "expected"),
    [
        ({}, {"parallelism": 5}, []),
        ({}, {"suspend": True}, []),
        ({}, {"backoffLimit": 1, "ttlSecondsAfterFinished": 1, "activeDeadlineSeconds": 1}, []),
        ({}, {"completions": 5}, [("Invalid", "spec.completions")]),
        (
            {"completionMode": "Indexed", "completions": 2, "parallelism": 2},
            {"completions": 3, "parallelism": 3},
            [],
        ),
        (
            {"completionMode": "Indexed", "completions": 2, "parallelism": 2},
            {"completions": 3},
            [("Invalid", "spec.completions")],
        ),
        ({}, {"managedBy": "a.b/c"}, [("Invalid", "spec.managedBy")]),
    ],
)
def test_an_old_job(before: Json, change: Json, expected: list[tuple[str, str]]) -> None:
    old = created(JOBS, job(before))
    new = deepcopy(old)
    new["spec"].update(change)
    assert refusals(JOBS, new, old) == expected


@pytest.mark.parametrize(
    ("before", "status", "change", "expected"),
    [
        (HELD, {}, {"nodeSelector": {"a": "b"}}, ""),
        (HELD, {}, {"tolerations": [{"operator": "Exists"}]}, ""),
        (HELD, {}, {"schedulingGates": [{"name": "x"}]}, ""),
        ({}, {}, {"nodeSelector": {"a": "b"}}, "spec.template"),
        (
            HELD,
            {"startTime": "2026-01-01T00:00:00Z"},
            {"nodeSelector": {"a": "b"}},
            "spec.template",
        ),
        (HELD, {}, {"priorityClassName": "x"}, "spec.template.spec"),
    ],
)
def test_the_template_changes_only_before_the_start(
    before: Json, status: Json, change: Json, expected: str
) -> None:
    old = created(JOBS, job(before))
    old["status"] = status
    new = deepcopy(old)
    new["spec"]["template"]["spec"].update(change)
    assert refusals(JOBS, new, old) == ([("Invalid", expected)] if expected else [])


def test_directions_and_the_start_may_come_together() -> None:
    old = created(JOBS, job(HELD))
    new = deepcopy(old)
    new["spec"]["template"]["spec"]["nodeSelector"] = {"a": "b"}
    new["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    new["spec"]["template"]["metadata"]["labels"]["x"] = "y"
    new["spec"]["suspend"] = False
    assert refusals(JOBS, new, old) == []
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert refusals(JOBS, new, old) == [("Invalid", "spec.template.spec")]


# ---- CronJobs ----------------------------------------------------------------------------------


def cron(spec: Json | None = None, jobs: Json | None = None) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": job(jobs)["spec"]},
            **(spec or {}),
        },
    }


def test_a_cron_job_is_filled_in() -> None:
    spec = created("batch/cronjobs", cron())["spec"]
    assert spec["concurrencyPolicy"] == "Allow"
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert "backoffLimit" not in spec["jobTemplate"]["spec"], "a job gets its own when it is made"
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (cron(), []),
        (cron({"schedule": "@hourly", "timeZone": "UTC"}), []),
        (
            cron({"schedule": "x", "concurrencyPolicy": "Foo", "timeZone": ""}),
            [
                ("Invalid", "spec.schedule"),
                ("Invalid", "spec.timeZone"),
                ("NotSupported", "spec.concurrencyPolicy"),
            ],
        ),
        (cron({"schedule": "99 * * * *"}), [("Invalid", "spec.schedule")]),
        (cron({"schedule": "TZ=UTC * * * * *"}), [("Invalid", "spec.schedule")]),
        (cron({"schedule": ""}), [("Required", "spec.schedule")]),
        (cron({"timeZone": "Mars/Olympus"}), [("Invalid", "spec.timeZone")]),
        (cron({"timeZone": "Local"}), [("Invalid", "spec.timeZone")]),
        (cron({"timeZone": "Asia/Seoul"}), []),
        (
            cron(jobs={"manualSelector": True}),
            [("NotSupported", "spec.jobTemplate.spec.manualSelector")],
        ),
    ],
)
def test_a_cron_job(made: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals("batch/cronjobs", made) == expected


@pytest.mark.parametrize("key", ["batch.volcano.sh/cronjobs", "ray.io/raycronjobs"])
def test_schedules_of_other_kinds_are_checked_too(key: str) -> None:
    made = {"metadata": {"name": "c"}, "spec": {"schedule": "61 * * * *", "timeZone": "Mars"}}
    assert refusals(key, made) == [("Invalid", "spec.schedule"), ("Invalid", "spec.timeZone")]


# ---- schedules of CronJobs -----------------------------------------------------------------------

BAD = """
* * * *
60 * * * *
* 24 * * *
* * 0 * *
* * * 13 *
* * * * 7
5-1 * * * *
*/0 * * * *
x * * * *
@sometimes
@every soon
@every 0s
"""


@pytest.mark.parametrize("text", ["", *BAD.strip().splitlines()])
def test_no_schedules(text: str) -> None:
    assert wrong_with_schedule(text) != ""
