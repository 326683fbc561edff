"""What a Workload repeats of its job is kept in step while it waits."""

from __future__ import annotations

import pytest

from unisono.control.jobs.workload import new_words
from unisono.kube.form import Json


def _object(annotations: dict[str, str], labels: dict[str, str] | None = None) -> Json:
    metadata = {"name": "a", "annotations": annotations, "labels": labels or {}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}}


@pytest.mark.parametrize(
    ("job", "workload", "changes"),
    [
        ({"unisono.dev/hold": "user"}, {}, {"unisono.dev/hold": "user"}),
        ({}, {"unisono.dev/hold": "user"}, {"unisono.dev/hold": None}),
        # An administrator's hold is on the Workload, where the job's owner cannot take it off.
        ({}, {"unisono.dev/hold": "admin"}, {}),
        ({"unisono.dev/nice": "5"}, {"unisono.dev/nice": "7"}, {"unisono.dev/nice": "5"}),
        ({"unisono.dev/time-limit": "5m"}, {"other": "x"}, {"unisono.dev/time-limit": "5m"}),
    ],
)
def test_words_of_the_job_count(
    job: dict[str, str], workload: dict[str, str], changes: Json
) -> None:
    assert new_words(_object(job), _object(workload)) == changes


def test_a_label_will_do() -> None:
    assert new_words(_object({}, {"unisono.dev/qos": "high"}), _object({})) == {
        "unisono.dev/qos": "high"
    }
