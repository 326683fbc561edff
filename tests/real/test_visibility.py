"""The visibility API as an extension of a real API server: installed, trusted, asked by users.

As with the webhooks there is no network of pods: the Service is an external name.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.cluster import account, asked, kubectl, put, replica, until
from tests.real.cluster import unisono as command
from tests.real.control_plane import CONTROLLERS, ControlPlane, free_ports, running
from unisono.kube.client import Client
from unisono.kube.errors import Forbidden, NotFound
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.runtime.visibility.objects import API_SERVICE, NAME, VERSIONS, api_service_name

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]

_HOME = "unisono-system"
_KUEUE = "kueue.x-k8s.io/v1beta2"
_ROOT = "/apis/visibility.kueue.x-k8s.io"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    from tests.real.binaries import NoControlPlane

    directory = tmp_path_factory.mktemp("visibility")
    try:
        with running(directory, controllers=CONTROLLERS) as found:
            installed = command(found, "install", "--visibility")
            assert (installed.returncode, installed.stderr) == (0, "")
            (port,) = free_ports(1)
            asked(found, lambda client: _redirect(client, port))
            put(found, *_objects())
            flags = ("--visibility", f"127.0.0.1:{port}")
            rights = account(found, _HOME, "unisono", directory / "role")
            with replica(rights, directory / "replica.log", *flags) as one:
                one.until_told("answering for the visibility API")
                until("the API server has found us", lambda: _is_available(found))
                yield found
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


async def _redirect(client: Client, port: int) -> None:
    """Have the API server come to a port of this machine instead of the Service's pods."""
    external = {"type": "ExternalName", "externalName": "localhost"}
    service = {"spec": {**external, "clusterIP": None, "clusterIPs": None, "selector": None}}
    await client.patch(Kind("v1", "Service"), NAME, _HOME, service)
    for version in VERSIONS:
        reached = {"spec": {"service": {"port": port}}}
        await client.patch(API_SERVICE, api_service_name(version), "", reached)


def _is_available(plane: ControlPlane) -> bool:
    async def work(client: Client) -> bool:
        for version in VERSIONS:
            found = await client.get(API_SERVICE, api_service_name(version))
            conditions = (found.get("status") or {}).get("conditions") or ()
            if not any(
                one["type"] == "Available" and one["status"] == "True" for one in conditions
            ):
                return False
        return True

    return asked(plane, work)


def _objects() -> Iterator[Json]:
    def made(kind: str, name: str, spec: Json, **place: str) -> Json:
        metadata = {"name": name, **place}
        return {"apiVersion": _KUEUE, "kind": kind, "metadata": metadata, "spec": spec}

    yield made("ResourceFlavor", "gpu", {})
    quota = {"name": "nvidia.com/gpu", "nominalQuota": 0}
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": "gpu", "resources": [quota]}],
    }
    yield made("ClusterQueue", "cq", {"namespaceSelector": {}, "resourceGroups": [group]})
    yield made("LocalQueue", "lq", {"clusterQueue": "cq"}, namespace="default")
    container = {
        "name": "main",
        "image": "train:1",
        "resources": {"requests": {"nvidia.com/gpu": "1"}},
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pod_set = {"name": "main", "count": 1, "template": template}
    for name, priority in (("low", 1), ("high", 9)):
        spec = {"queueName": "lq", "priority": priority, "podSets": [pod_set]}
        yield made("Workload", name, spec, namespace="default")


def test_discovery_has_both_versions(plane: ControlPlane) -> None:
    for version in VERSIONS:
        found = json.loads(kubectl(plane, "get", "--raw", f"{_ROOT}/{version}"))
        assert {one["name"] for one in found["resources"]} >= {"clusterqueues/pendingworkloads"}
    # The words that people type still mean the kinds of Kueue.
    named = kubectl(plane, "get", "clusterqueue", "-o", "name")
    assert named == "clusterqueue.kueue.x-k8s.io/cq\n"


def test_pending_workloads_in_their_order(plane: ControlPlane) -> None:
    def places(path: str) -> list[tuple[str, int, int]]:
        items = json.loads(kubectl(plane, "get", "--raw", f"{_ROOT}/{path}"))["items"]
        return [
            (one["metadata"]["name"], one["positionInClusterQueue"], one["positionInLocalQueue"])
            for one in items
        ]

    expected = [("high", 0, 0), ("low", 1, 1)]
    whole = "v1beta2/clusterqueues/cq/pendingworkloads"
    until("both wait", lambda: places(whole) == expected)
    local = "v1beta1/namespaces/default/localqueues/lq/pendingworkloads"
    assert places(local) == expected
    assert places(f"{whole}?limit=1&offset=1") == expected[1:]


async def _read(client: Client, path: str) -> Json:
    return dict(json.loads(await client.read(path)))


def test_roles_decide_which_user_sees_which_queue(plane: ControlPlane, tmp_path: Path) -> None:
    sa = {"name": "viewer", "namespace": "default"}
    put(plane, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": sa})
    viewer = account(plane, "default", "viewer", tmp_path / "viewer")
    local = f"{_ROOT}/v1beta2/namespaces/default/localqueues/lq/pendingworkloads"
    whole = f"{_ROOT}/v1beta2/clusterqueues/cq/pendingworkloads"
    with pytest.raises(Forbidden):
        asked(viewer, lambda client: _read(client, local))
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "viewer", "namespace": "default"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "unisono:pending-workloads"},
        "subjects": [{"kind": "ServiceAccount", **sa}],
    }
    put(plane, binding)

    def may() -> bool:
        try:
            return bool(asked(viewer, lambda client: _read(client, local)))
        except Forbidden:
            return False

    until("the binding counts", may)
    with pytest.raises(Forbidden):
        asked(viewer, lambda client: _read(client, whole))


def test_a_queue_that_is_not_there(plane: ControlPlane) -> None:
    path = f"{_ROOT}/v1beta2/clusterqueues/no/pendingworkloads"
    with pytest.raises(NotFound, match='"no" not found'):
        asked(plane, lambda client: _read(client, path))


def test_a_client_cannot_name_a_user_by_itself(plane: ControlPlane) -> None:
    """Headers count only beside the certificate of the API server."""
    service = asked(plane, lambda client: client.get(API_SERVICE, api_service_name("v1beta2")))
    port = service["spec"]["service"]["port"]
    url = f"https://127.0.0.1:{port}{_ROOT}/v1beta2/clusterqueues/cq/pendingworkloads"
    said = subprocess.run(
        ["curl", "-sk", "-H", "X-Remote-User: admin", "-H", "X-Remote-Group: system:masters", url],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(said.stdout)["code"] == 401
