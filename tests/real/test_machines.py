"""Nodes that come late, in pieces and by name of others, on a real control plane.

A stand-in plays Karpenter (`tests.real.karpenter`); the stock kube-scheduler binds; other people's
pods take nodes meanwhile.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from tests.real.cluster import asked, kubelets, put, there, until
from tests.real.control_plane import ControlPlane
from tests.real.karpenter import GPU, Karpenter, at_work
from tests.real.stage import SPEED, WORKLOAD, Stage, staged
from unisono.cli.install.manifests import HOME, Wanted, roles
from unisono.control import names
from unisono.kinds.shapes.crds import crds_of
from unisono.kube.client import Client
from unisono.kube.errors import NotFound, UnknownKind
from unisono.kube.form import Json
from unisono.provision import keys

pytestmark = [pytest.mark.real, pytest.mark.slow]

_STARTUP = {"key": "node.example/agent-not-ready", "effect": "NoSchedule"}
_POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "gpu"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": keys.INSTANCE_TYPE, "operator": "In", "values": ["g6e.48xlarge"]},
                    {"key": keys.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]},
                ],
                "startupTaints": [_STARTUP],
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws",
                    "kind": "EC2NodeClass",
                    "name": "gpu",
                },
            }
        }
    },
}


@pytest.fixture(scope="module")
def plane(deployed: ControlPlane) -> Iterator[ControlPlane]:
    """Have one node without GPUs, the definitions that Karpenter brings, and our role for it."""
    put(deployed, *crds_of(["karpenter.sh"]), *roles(Wanted(namespace=HOME), "karpenter"))
    until("pools are served", lambda: _is_put(deployed))
    with kubelets(deployed, "1x{cpu=8,memory=32Gi,name=small}", SPEED):
        yield deployed


def _is_put(plane: ControlPlane) -> bool:
    try:
        put(plane, _POOL)
    except (NotFound, UnknownKind):
        return False
    return True


@pytest.fixture
def stage(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Stage]:
    name = request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-")
    with staged(plane, name, tmp_path_factory.mktemp("machines")) as made:
        yield made
    asked(plane, _forget_nodes)


async def _forget_nodes(client: Client) -> None:
    """Let nothing of a story be left for the next one."""
    for kind in (names.NODE_CLAIM, names.NODE):
        for one in (await client.list(kind)).items:
            name = one["metadata"]["name"]
            if not name.startswith("small"):
                await client.patch(kind, name, "", {"metadata": {"finalizers": None}})
                try:
                    await client.delete(kind, name)
                except NotFound:
                    continue


@pytest.fixture
def karpenter(stage: Stage) -> Iterator[Karpenter]:
    with at_work(stage.plane) as found:
        yield found


def _buying(stage: Stage) -> None:
    stage.replica(None, "--machines", "karpenter").until_told("leading")


def test_no_pod_exists_before_the_last_machine_has_its_gpus(
    stage: Stage, karpenter: Karpenter
) -> None:
    karpenter.plugin_s = (0.0, 6.0)
    _buying(stage)
    stage.submit("train", 2)
    until("the first machine is ready", lambda: len(karpenter.initialized) == 1)
    until("both are nodes", lambda: len(karpenter.registered) == 2)
    assert there(stage.plane, names.POD, stage.namespace) == []
    stage.judge()
    pods = there(stage.plane, names.POD, stage.namespace)
    assert {pod["spec"]["nodeName"][:3] for pod in pods} == {"ip-"}
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    # What is done may go: nothing of ours keeps Karpenter from taking its machines back.
    until("nothing holds them", lambda: not any(map(_is_held, there(stage.plane, names.NODE))))
    assert len(there(stage.plane, names.NODE_CLAIM)) == 2


def _is_held(node: Json) -> bool:
    """Karpenter asks a node, not its claim, once it is initialized."""
    annotations = node["metadata"].get("annotations") or {}
    taints = node["spec"].get("taints") or ()
    is_closed = any(one["key"] == keys.HELD_FOR for one in taints)
    return is_closed or keys.DO_NOT_DISRUPT in annotations


def test_a_zone_without_machines_is_left_as_a_whole(stage: Stage, karpenter: Karpenter) -> None:
    karpenter.out_of_stock = {"ap-northeast-2a"}
    pool = copy.deepcopy(_POOL)
    zones = ["ap-northeast-2a", "ap-northeast-2c"]
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements.append({"key": keys.ZONE, "operator": "In", "values": zones})
    put(stage.plane, pool)
    _buying(stage)
    stage.submit("train", 2)
    stage.judge()
    assert set(karpenter.refused) == {"ap-northeast-2a"}
    found = {
        node["metadata"]["labels"][keys.ZONE]
        for node in there(stage.plane, names.NODE)
        if node["metadata"]["name"].startswith("ip-")
    }
    assert found == {"ap-northeast-2c"}
    put(stage.plane, _POOL)


# ---- nodes from another provisioner --------------------------------------------------------------


def _late(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {names.HOSTNAME: name}},
        "spec": {
            "providerID": f"unisono:///local/{name}",
            "taints": [{"key": keys.UNREGISTERED, "effect": "NoExecute"}, _STARTUP],
        },
    }


def _become(stage: Stage, name: str, *, ready: bool, gpus: int, taints: list[Json]) -> None:
    allocatable = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    if gpus:
        allocatable[GPU] = str(gpus)
    condition = {"type": "Ready", "status": str(ready), "reason": "Kubelet", "message": ""}
    times = dict.fromkeys(("lastTransitionTime", "lastHeartbeatTime"), "2026-01-01T00:00:00Z")
    status = {
        "allocatable": allocatable,
        "capacity": allocatable,
        "conditions": [condition | times],
    }

    async def work(client: Client) -> None:
        await client.patch(names.NODE, name, "", {"status": status}, subresource="status")
        await client.patch(names.NODE, name, "", {"spec": {"taints": taints or None}})

    asked(stage.plane, work)


def _stranger(stage: Stage, name: str) -> Json:
    container = {"name": "main", "image": "x:1", "resources": {"limits": {GPU: "8"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": stage.namespace,
            "annotations": {"unisono.dev/run-seconds": "forever"},
        },
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def _told(stage: Stage, text: str) -> bool:
    return any(
        text in one["message"]
        for workload in there(stage.plane, WORKLOAD, stage.namespace)
        for one in (workload.get("status") or {}).get("conditions") or ()
    )


def test_nodes_in_the_making_and_nodes_that_others_take_do_not_count(stage: Stage) -> None:
    stage.replica().until_told("leading")
    for name in ("late-1", "late-2", "late-3"):
        put(stage.plane, _late(name))
        _become(stage, name, ready=False, gpus=0, taints=_late(name)["spec"]["taints"])
    stage.submit("train", 2)
    until("it waits", lambda: _told(stage, "0 of 2 pods fit"))
    _become(stage, "late-1", ready=True, gpus=0, taints=[_STARTUP])  # registered
    _become(stage, "late-2", ready=True, gpus=8, taints=[_STARTUP])  # its agent is not there yet
    _become(stage, "late-1", ready=True, gpus=8, taints=[])
    until("one counts", lambda: _told(stage, "1 of 2 pods fit"))
    put(stage.plane, _stranger(stage, "stranger"))
    until("another gang has it", lambda: stage.on_nodes() == 1)
    _become(stage, "late-2", ready=True, gpus=8, taints=[])
    until("the next one counts", lambda: _told(stage, "1 of 2 pods fit"))
    assert len(there(stage.plane, names.POD, stage.namespace)) == 1
    _become(stage, "late-3", ready=True, gpus=8, taints=[])
    stage.judge()
    used = {pod["spec"]["nodeName"] for pod in there(stage.plane, names.POD, stage.namespace)}
    assert used == {"late-1", "late-2", "late-3"}


def test_a_node_that_is_deleted_under_a_gang_is_replaced(stage: Stage) -> None:
    stage.replica().until_told("leading")
    for name in ("lost-1", "lost-2", "lost-3"):
        put(stage.plane, _late(name))
        _become(stage, name, ready=True, gpus=8, taints=[])
    stage.submit("train", 2, seconds=3000)
    until("it runs", lambda: len(_running(stage)) == 2)
    first = _running(stage)
    gone, stays = sorted(first)

    async def lose(client: Client) -> None:
        await client.delete(names.NODE, gone)

    asked(stage.plane, lose)
    (other,) = {"lost-1", "lost-2", "lost-3"} - set(first)
    until("it is whole again", lambda: set(_running(stage)) == {stays, other})
    assert _running(stage)[stays] == first[stays]  # the healthy one was not stopped
    assert stage.auditor.wrong == []
    assert stage.replicas[0].told("a step failed") is None

    async def end(client: Client) -> None:
        await client.delete(names.JOB, "train", stage.namespace)

    asked(stage.plane, end)
    until("it is gone", lambda: _running(stage) == {})


def _running(stage: Stage) -> dict[str, str]:
    """Return the pods that run on nodes that are there, by their node."""
    nodes = {one["metadata"]["name"] for one in there(stage.plane, names.NODE)}
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["uid"]
        for pod in there(stage.plane, names.POD, stage.namespace)
        if (pod.get("status") or {}).get("phase") == "Running" and pod["spec"]["nodeName"] in nodes
    }
