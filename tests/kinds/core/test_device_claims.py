"""What asks for devices by dynamic resource allocation is found, and waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from unisono.engine.cluster import restore
from unisono.engine.dry_run import one_cycle
from unisono.engine.explain.messages import message_of, reason_of
from unisono.engine.explain.waiting import explanations
from unisono.engine.model.names import Instant
from unisono.kinds.snapshot.build import read_world
from unisono.kube.form import Json

BY_TEMPLATE = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
BY_CLAIM = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.example.com"},
    "spec": {"extendedResourceName": "example.com/gpu"},
}


def template(**spec: Any) -> Json:
    limits = spec.pop("limits", {"cpu": "1"})
    container = {"name": "main", "image": "busybox", "resources": {"limits": limits}}
    return {"spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def a_job(**spec: Any) -> Json:
    labels = {"kueue.x-k8s.io/queue-name": "lq"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "labels": labels},
        "spec": {"template": template(**spec)},
    }


def a_pod(**spec: Any) -> Json:
    labels = {"kueue.x-k8s.io/queue-name": "lq"}
    metadata = {"name": "one", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **template(**spec)}


def a_stray(**spec: Any) -> Json:
    made = template(schedulerName="unisono", **spec)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, **made}


def a_node(**more: str) -> Json:
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "110", **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


KUEUE = "kueue.x-k8s.io/v1beta2"
RESOURCES = ("cpu", "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu.example.com")
QUOTA = [{"name": resource, "nominalQuota": 8} for resource in RESOURCES]
QUEUE = [
    {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}},
    {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": "cq"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": [*RESOURCES],
                    "flavors": [{"name": "f", "resources": QUOTA}],
                }
            ],
        },
    },
    {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "lq", "namespace": "default"},
        "spec": {"clusterQueue": "cq"},
    },
]


def decided(*objects: Json) -> tuple[int, list[str], list[str]]:
    """Return how many start, why the others wait, and the warnings."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [*QUEUE, *objects]}
    world = read_world([("cluster", json.dumps(listed).encode())], now=Instant(0))
    assert not world.problems
    state = restore(world.snapshot)
    one_cycle(state, Instant(0), checked=True)
    waits = [f"{reason_of(one)}: {message_of(one)}" for one in explanations(state)]
    return len(state.running), waits, [one.message for one in world.warnings]


@pytest.mark.parametrize("nodes", [(), (a_node(),)], ids=["no nodes", "nodes"])
@pytest.mark.parametrize("make", [a_job, a_pod])
@pytest.mark.parametrize("asks", [BY_TEMPLATE, BY_CLAIM])
def test_claims_are_never_admitted_for_their_cpu(make: Any, asks: Json, nodes: Any) -> None:
    started, [why], warnings = decided(*nodes, make(**asks))
    assert started == 0
    assert why.startswith("Misconfigured: pod set main: asks for devices by resource claim gpu:")
    assert "dynamic resource allocation is not supported yet" in why
    assert any("resource claim gpu" in one for one in warnings)


def test_a_pod_in_no_queue_waits_too() -> None:
    started, [why], _ = decided(a_node(), a_stray(**BY_TEMPLATE))
    assert started == 0
    assert "resource claim gpu" in why


@pytest.mark.parametrize("resource", RESOURCES[1:])
def test_an_extended_resource_of_a_device_class_waits(resource: str) -> None:
    asks = a_job(limits={"cpu": "1", resource: "1"})
    started, [why], _ = decided(a_node(), CLASS, asks)
    assert started == 0
    assert f"asks for {resource} of DeviceClass gpu.example.com" in why


def test_a_device_plugin_s_resource_is_an_ordinary_one() -> None:
    asks = a_job(limits={"cpu": "1", "example.com/gpu": "1"})
    plain = a_node(**{"example.com/gpu": "4"})
    assert decided(plain, CLASS, asks)[0] == 1
    assert decided(plain, asks)[0] == 1
    assert decided(asks)[0] == 1  # quota alone
