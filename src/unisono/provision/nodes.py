"""Node objects for machines that exist only here: ready, labelled and sized like real ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from unisono.provision.machines import MachineType, region_of
from unisono.provision.shapes import NodeGroup

Json = dict[str, Any]

_OS_IMAGE = "Unisono simulated node"
# Neighbours in the network: four nodes under a switch, four switches under the next.
_FAN_OUT = 4


def nodes_of(
    groups: Sequence[NodeGroup], *, now: str, taken: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield a Node for every machine; names count up per group name and leave out taken ones."""
    counts: dict[str, int] = {}
    place = len(taken)
    for group in groups:
        for _ in range(group.count):
            name = _next_name(group.name, counts)
            while name in taken:
                name = _next_name(group.name, counts)
            yield _node(group, name, place, now)
            place += 1


def _next_name(base: str, counts: dict[str, int]) -> str:
    counts[base] = counts.get(base, 0) + 1
    return f"{base}-{counts[base]}"


def _node(group: NodeGroup, name: str, place: int, now: str) -> dict[str, Any]:
    machine = group.machine
    region = region_of(group.zone)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine.arch if machine else "amd64",
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": group.zone,
        "topology.k8s.aws/network-node-layer-1": f"nn-1-{place // _FAN_OUT**3}",
        "topology.k8s.aws/network-node-layer-2": f"nn-2-{place // _FAN_OUT**2}",
        "topology.k8s.aws/network-node-layer-3": f"nn-3-{place // _FAN_OUT}",
        "karpenter.sh/capacity-type": "on-demand",
        **(machine_labels(machine) if machine else _plain_labels(group)),
        **group.labels,
    }
    annotations = {}
    if machine is not None and region in machine.price and machine.price[region].on_demand:
        annotations["unisono.dev/price-usd-hour"] = str(machine.price[region].on_demand)
    allocatable = dict(machine.allocatable if machine else group.resources)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"providerID": f"unisono:///{group.zone}/{name}"},
        "status": {
            "capacity": allocatable if machine is None else capacity_of(machine),
            "allocatable": allocatable,
            "conditions": _conditions(now),
            "addresses": [
                {"type": "InternalIP", "address": _address(place)},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "machineID": name,
                "systemUUID": name,
                "bootID": name,
                "kernelVersion": "simulated",
                "osImage": _OS_IMAGE,
                "containerRuntimeVersion": "unisono://1",
                "kubeletVersion": "v1.34.0",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": machine.arch if machine else "amd64",
            },
        },
    }


def bought_node(claim: Json, machine: MachineType, place: int, *, now: str) -> Json:
    """Return the node that a claim becomes: ready, and still without its devices.

    Its accelerators are counted when the device plugin has found them; until then there are none.
    """
    metadata, spec = claim["metadata"], claim["spec"]
    wanted = {one["key"]: one["values"][0] for one in spec["requirements"] if one.get("values")}
    zone = wanted["topology.kubernetes.io/zone"]
    group = NodeGroup(count=1, machine=machine, zone=zone)
    node = _node(group, metadata["name"], place, now)
    kept = ("karpenter.sh/do-not-disrupt", "unisono.dev/gang", "unisono.dev/price-usd-hour")
    own = metadata.get("annotations") or {}
    node["metadata"]["labels"] |= {
        **(metadata.get("labels") or {}),
        "karpenter.sh/capacity-type": wanted["karpenter.sh/capacity-type"],
        "karpenter.sh/registered": "true",
    }
    node["metadata"]["finalizers"] = ["karpenter.sh/termination"]  # pods go before the node does
    node["metadata"]["annotations"] = {key: own[key] for key in kept if key in own}
    node["spec"] = {
        "providerID": claim["status"]["providerID"],
        "taints": [*(spec.get("taints") or ()), *(spec.get("startupTaints") or ())],
    }
    for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
        amounts.update({name: "0" for name in amounts if "/" in name})
    return node


def machine_labels(machine: MachineType) -> dict[str, str]:
    """Return the labels that every node of a type has."""
    labels = {
        "node.kubernetes.io/instance-type": machine.name,
        "kubernetes.io/arch": machine.arch,
    }
    device = machine.accelerator
    if machine.provider == "aws":
        family, _, size = machine.name.partition(".")
        prefix = "karpenter.k8s.aws/instance"
        labels |= {
            f"{prefix}-category": machine.category,
            f"{prefix}-family": family,
            f"{prefix}-size": size,
            f"{prefix}-cpu": str(machine.vcpu),
            f"{prefix}-memory": str(machine.memory_mi_b),
        }
        if device is not None and device.kind == "gpu":
            labels |= {
                f"{prefix}-gpu-count": str(device.count),
                f"{prefix}-gpu-name": device.model,
                f"{prefix}-gpu-manufacturer": device.manufacturer,
            }
    if device is not None and device.manufacturer == "nvidia":
        labels |= {
            # What node pools call machines with such GPUs, and flavors select (seed 000).
            "nodeType": "nvidia",
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": str(device.count),
            "nvidia.com/gpu.memory": str(device.memory_mi_b),
        }
        if device.product:
            labels["nvidia.com/gpu.product"] = device.product
    return labels


def _plain_labels(group: NodeGroup) -> dict[str, str]:
    gpus = group.resources.get("nvidia.com/gpu", "0")
    return {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": gpus} if gpus != "0" else {}


def capacity_of(machine: MachineType) -> dict[str, str]:
    """Return what a machine has, before its agents take their share."""
    own = {"cpu": str(machine.vcpu), "memory": f"{machine.memory_mi_b}Mi"}
    return {**machine.allocatable, **own}


def _address(place: int) -> str:
    """Return an address in 10.0.0.0/8 that no other node has."""
    return f"10.{place >> 16 & 255}.{place >> 8 & 255}.{place & 255}"


def _conditions(now: str) -> list[dict[str, str]]:
    def condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }

    return [
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "memory is sufficient"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "disk space is sufficient"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "process ids are sufficient"),
        condition("Ready", "True", "KubeletReady", "the simulated kubelet is ready"),
    ]
