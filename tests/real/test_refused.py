"""A pod that a real API server refuses to our operator: its reason is in an event, and in `why`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.kinds.test_known import poked_at
from tests.real.cluster import account, put, replica, there, unisono, until
from tests.real.control_plane import ControlPlane
from unisono.kube.mapping import EVENT

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_the_reason_of_the_api_reaches_the_user(plane: ControlPlane, tmp_path: Path) -> None:
    ours = account(plane, "unisono-system", "unisono", tmp_path / "kubeconfig")
    place = "spec/tasks/0/template/spec/priorityClassName"
    refused = poked_at(vcjob(task("w", 2)), place, "missing-class")

    def told() -> list[str]:
        return [
            str(one["message"])
            for one in there(plane, EVENT, "default")
            if (one["reason"], one["involvedObject"]["kind"]) == ("FailedCreate", "Job")
        ]

    with replica(ours, tmp_path / "log", "--operators", "volcano") as one:
        one.until_told("leading")
        put(plane, refused)
        until("an event says it", lambda: bool(told()), instead=(tmp_path / "log").read_text)
    assert all(text.startswith("Error creating: pods ") for text in told())
    assert all("no PriorityClass with name missing-class was found" in text for text in told())
    why = unisono(plane, "why", "jobs.batch.volcano.sh/j", "-n", "default")
    assert why.returncode == 0, why.stderr
    assert "no PriorityClass with name missing-class" in " ".join(why.stdout.split())
