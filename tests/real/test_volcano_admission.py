"""What Volcano's webhook refuses, refused by a real API server with our policies."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.control.job_kinds.test_volcano_flows import flow, step
from tests.control.job_kinds.test_volcano_policies import on, task, vcjob
from tests.real.cluster import until
from tests.real.control_plane import ControlPlane
from unisono.kube.form import Json

pytestmark = [pytest.mark.real, pytest.mark.slow]

JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}


def applied(plane: ControlPlane, obj: Json) -> str:
    """Return what kubectl says of an object that is not stored."""
    done = subprocess.run(
        ["kubectl", "--kubeconfig", str(plane.kubeconfig), "apply", "--dry-run=server", "-f", "-"],
        input=json.dumps(obj),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (vcjob(task("w", 2), policies=[on("PodGone", "AbortJob")]), "invalid policy event"),
        (vcjob(task("w", 2, policies=[on("*", "Explode")])), "invalid policy action"),
        (vcjob(task("w", 2), task("w", 1)), "duplicated task name"),
        (vcjob(task("w", 2), plugins={"other": []}), "unable to find job plugin"),
        (vcjob(task("w", 2), volumes=[{"mountPath": "/a"}]), "either VolumeClaim or"),
        (flow(step("a", "b")), "vertex is not defined"),
    ],
)
def test_the_api_server_refuses(deployed: ControlPlane, made: Json, said: str) -> None:
    until("the policy is in force", lambda: said in applied(deployed, made))


def test_the_api_server_takes_what_is_sound(deployed: ControlPlane) -> None:
    policies = [on("PodEvicted", "RestartJob"), {"exitCode": 3, "action": "AbortJob"}]
    sound = vcjob(task("w", 2, policies=policies), policies=policies, plugins={"svc": []})
    assert "created (server dry run)" in applied(deployed, sound)
    assert "created (server dry run)" in applied(deployed, flow(step("a"), step("b", "a")))
