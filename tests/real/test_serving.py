"""Serving on a real cluster: the stock controllers make the pods, and our queues hold them back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.cluster import account, asked, kubelets, put, replica, there, unisono, until
from tests.real.control_plane import CONTROLLERS, ControlPlane, running
from tests.real.test_controller import _queues
from unisono.control import names
from unisono.control.apps import DEPLOYMENT, STATEFUL_SET
from unisono.control.conditions import is_true
from unisono.kube.client import Client
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

pytestmark = [pytest.mark.real, pytest.mark.slow]

HOME = "unisono-system"
SHAPE = "1x{gpu=8,cpu=32,memory=256Gi}"
_STOCK = ("deployment-controller", "replicaset-controller", "statefulset-controller")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Have a cluster with the stock controllers of Deployments and StatefulSets."""
    from tests.real.binaries import NoControlPlane

    directory = tmp_path_factory.mktemp("serving")
    controllers = (*CONTROLLERS, *_STOCK)
    try:
        with running(directory, controllers=controllers, has_scheduler=True) as found:
            done = unisono(found, "install", "--operators", "none")
            assert (done.returncode, done.stderr) == (0, "")
            put(found, *_queues(3))
            yield found
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


def set_of(kind: Kind, replicas: int) -> Json:
    """Return a set of servers with a GPU each; only the set itself names its queue."""
    container = {
        "name": "server",
        "image": "x",
        "resources": {"limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}},
    }
    template = {
        "metadata": {
            "labels": {"app": kind.kind.lower()},
            "annotations": {"unisono.dev/run-seconds": "forever"},
        },
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {names.QUEUE_LABEL: "team"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": kind.kind.lower()}},
            "template": template,
        },
    }


def pods(plane: ControlPlane) -> list[Json]:
    return there(plane, names.POD, "default")


def _with_a_node(plane: ControlPlane) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods(plane))


def _ready(plane: ControlPlane) -> int:
    """Return how many Workloads are admitted and have their pods ready."""
    return sum(
        is_true((one.get("status") or {}).get("conditions"), "PodsReady")
        for one in there(plane, names.WORKLOAD, "default")
    )


@pytest.mark.parametrize("kind", [DEPLOYMENT, STATEFUL_SET], ids=lambda kind: kind.kind)
def test_pods_of_stock_controllers_wait_for_quota(
    plane: ControlPlane, tmp_path: Path, kind: Kind
) -> None:
    ours = account(plane, HOME, "unisono", tmp_path / "kubeconfig")

    async def scale(client: Client) -> None:
        await client.patch(kind, "web", "default", {"spec": {"replicas": 2}})

    async def remove(client: Client) -> None:
        await client.delete(kind, "web", "default")

    with (
        kubelets(plane, SHAPE, 10.0),
        replica(ours, tmp_path / "log", "--operators", "none") as one,
    ):
        one.until_told("leading")
        put(plane, set_of(kind, 4))
        until("four pods are there", lambda: len(pods(plane)) == 4)
        until("three of them run", lambda: _with_a_node(plane) == 3 and _ready(plane) == 3)
        (held,) = (pod for pod in pods(plane) if not pod["spec"].get("nodeName"))
        gates = {gate["name"] for gate in held["spec"].get("schedulingGates") or ()}
        assert "kueue.x-k8s.io/admission" in gates
        asked(plane, scale)
        until("the waiting pod goes, and one more", lambda: len(pods(plane)) == 2)
        until("their Workloads go with them", lambda: _count(plane) == 2)
        asked(plane, remove)
        until("nothing is left", lambda: not pods(plane) and _count(plane) == 0)
    assert "not allowed" not in (tmp_path / "log").read_text()


def _count(plane: ControlPlane) -> int:
    return len(there(plane, names.WORKLOAD, "default"))
