"""An installation that only queues, on a real control plane: it admits Jobs and can make nothing.

The stock job controller creates the pods. Our replica has the role of queueing and no other.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.cluster import (
    account,
    asked,
    kubectl,
    kubelets,
    put,
    replica,
    there,
    unisono,
    until,
)
from tests.real.control_plane import CONTROLLERS, ControlPlane, running
from tests.real.test_controller import _job, _queues
from unisono.control import names
from unisono.kube.client import Client
from unisono.kube.errors import Forbidden
from unisono.kube.form import Json

pytestmark = [pytest.mark.real, pytest.mark.slow]

HOME = "unisono-system"
AS_UNISONO = f"--as=system:serviceaccount:{HOME}:unisono"
SHAPE = "2x{gpu=8,cpu=32,memory=256Gi}"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Have a cluster to which the queueing part alone was installed."""
    from tests.real.binaries import NoControlPlane

    directory = tmp_path_factory.mktemp("queue-only")
    controllers = (*CONTROLLERS, "job-controller")
    try:
        with running(directory, controllers=controllers, has_scheduler=True) as found:
            done = unisono(found, "install", "--operators", "none")
            assert (done.returncode, done.stderr) == (0, "")
            yield found
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


def may(plane: ControlPlane, verb: str, resource: str) -> bool:
    """Ask the server whether our account may do something in all namespaces."""
    command = ("kubectl", "--kubeconfig", str(plane.kubeconfig), AS_UNISONO, "auth", "can-i", verb)
    done = subprocess.run(
        [*command, resource, "--all-namespaces"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.strip() in ("yes", "no"), done.stderr
    return done.stdout.strip() == "yes"


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("create", "pods"),
        ("create", "jobs.batch"),
        ("create", "services"),
        ("create", "configmaps"),
        ("create", "jobsets.jobset.x-k8s.io"),
        ("create", "rayclusters.ray.io"),
        ("create", "persistentvolumeclaims"),
        ("get", "secrets"),
        ("create", "pods/exec"),
        ("impersonate", "users"),
    ],
)
def test_it_may_create_nothing_that_runs(plane: ControlPlane, verb: str, resource: str) -> None:
    assert not may(plane, verb, resource)


def test_it_admits_a_job_and_the_cluster_makes_its_pods(
    plane: ControlPlane, tmp_path: Path
) -> None:
    assert may(plane, "create", "workloads.kueue.x-k8s.io")
    ours = account(plane, HOME, "unisono", tmp_path / "kubeconfig")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }

    async def create(client: Client) -> None:
        with pytest.raises(Forbidden, match="cannot create resource"):
            await client.create(pod)

    asked(ours, create)
    put(plane, *_queues(16))
    with (
        kubelets(plane, SHAPE, 10.0),
        replica(ours, tmp_path / "log", "--operators", "none") as one,
    ):
        one.until_told("leading")
        put(plane, _job("train", 2, 5))
        until("the job runs to its end", lambda: _is_complete(plane), instead=lambda: _all(plane))
    (workload,) = there(plane, names.WORKLOAD, "default")
    conditions = {one["type"]: one["status"] for one in workload["status"]["conditions"]}
    assert conditions["Admitted"] == conditions["Finished"] == "True"
    assert "not allowed" not in (tmp_path / "log").read_text()
    made_by = kubectl(
        plane, "get", "pods", "-o", "jsonpath={.items[*].metadata.ownerReferences[0].kind}"
    )
    assert set(made_by.split()) <= {"Job"}


def _is_complete(plane: ControlPlane) -> bool:
    (job,) = there(plane, names.JOB, "default")
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)


def _all(plane: ControlPlane) -> list[Json]:
    return there(plane, names.WORKLOAD, "default")
