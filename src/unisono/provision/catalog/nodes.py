"""Nodes of the catalogue: a short text that describes them, and the Node objects it stands for.

SHAPE  = GROUP [, GROUP …]           for example 4xg6e.48xlarge@us-east-1a,2x{gpu=8,cpu=96}
GROUP  = COUNT x TYPE [@ ZONE]       an instance type of the catalogue
       | COUNT x { KEY=VALUE, … }    gpu, cpu, memory, pods, zone, name; other keys are labels

A key that is nearly one of these, as `gpus`, is refused: as a label it would leave a node without
what it was meant to have. A group that only says how many GPUs it has gets the CPUs and the memory
that such nodes usually have. Nodes are ready, labelled and sized like real ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unisono.kinds.digits import whole_number
from unisono.kinds.nearest import nearest
from unisono.kinds.quantity import Quantity
from unisono.provision.catalog.instance_types import (
    MachineType,
    default_zone,
    machine_types,
    region_of,
)

if TYPE_CHECKING:
    from unisono.kube.form import Json

# As many nodes as the embedded cluster is meant for; a slip of the finger asks for more.
MAX_NODES = 100_000

# Keys of a group by name, and the resource that each gives to its nodes.
_RESOURCES = {
    "gpu": "nvidia.com/gpu",
    "nvidia.com/gpu": "nvidia.com/gpu",
    "amd.com/gpu": "amd.com/gpu",
    "cpu": "cpu",
    "memory": "memory",
    "pods": "pods",
    "ephemeral-storage": "ephemeral-storage",
}
_TEXTS = ("zone", "name")
# What other programs call them.
_MEANT = {
    "accelerator": "gpu",
    "accelerators": "gpu",
    "core": "cpu",
    "cores": "cpu",
    "vcpu": "cpu",
    "vcpus": "cpu",
    "mem": "memory",
    "ram": "memory",
    "disk": "ephemeral-storage",
    "storage": "ephemeral-storage",
    "az": "zone",
}
# More than any machine has of devices or pods.
_MOST_COUNTED = 10_000
_FEWEST_MEMORY_BYTES = 1 << 20

_GROUP = re.compile(r"([0-9]{1,9})x(?:\{([^{}]*)\}|([^,@{}]+)(?:@([^,@{}]+))?)(?:,|$)")


class BadShape(ValueError):
    """The text describes no nodes; the message says where it goes wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Several nodes that are alike."""

    count: int
    machine: MachineType | None = None  # None: made to measure
    zone: str = "local"
    name: str = "node"
    resources: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def parse_shape(text: str) -> tuple[NodeGroup, ...]:
    """Return the groups of nodes that a text describes.

    >>> [(group.count, group.name) for group in parse_shape("2xg6e.48xlarge,1x{gpu=8,cpu=96}")]
    [(2, 'g6e-48xlarge'), (1, 'node')]
    """
    groups = tuple(_groups("".join(text.split())))
    total = sum(group.count for group in groups)
    if total > MAX_NODES:
        raise BadShape(f"{total} nodes are more than {MAX_NODES}")
    return groups


def _groups(text: str) -> Iterator[NodeGroup]:
    at = 0
    if not text:
        raise BadShape("the shape is empty; write for example 2xg6e.48xlarge")
    while at < len(text):
        found = _GROUP.match(text, at)
        if found is None:
            raise BadShape(
                f'"{text[at:]}" is not COUNTxTYPE[@ZONE] or COUNTx{{gpu=8,cpu=96,memory=768Gi}}'
            )
        at = found.end()
        count, made, type_, zone = found.groups()
        yield _made(int(count), made) if made is not None else _of_type(int(count), type_, zone)


def _of_type(count: int, name: str, zone: str | None) -> NodeGroup:
    machine = machine_types().get(name)
    if machine is None:
        near = nearest(name, sorted(machine_types()))
        hint = f'; did you mean "{near}"?' if near else ""
        raise BadShape(f'there is no machine type "{name}" in the catalogue{hint}')
    plain = re.sub(r"[^a-z0-9-]", "-", name.lower())
    return NodeGroup(count=count, machine=machine, zone=zone or default_zone(machine), name=plain)


def _made(count: int, text: str) -> NodeGroup:
    resources: dict[str, str] = {}
    labels: dict[str, str] = {}
    texts = {"zone": "local", "name": "node"}
    seen: set[str] = set()
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise BadShape(f'"{part}" is not KEY=VALUE')
        if _RESOURCES.get(key, key) in seen:
            raise BadShape(f'"{part}": {key} is there twice')
        seen.add(_RESOURCES.get(key, key))
        if key in _RESOURCES:
            resources[_RESOURCES[key]] = _amount(key, value)
        elif key in _TEXTS:
            texts[key] = value
        else:
            labels[_label(key, value)] = value
    gpus = resources.get("nvidia.com/gpu") or resources.get("amd.com/gpu") or "0"
    return NodeGroup(
        count=count,
        zone=texts["zone"],
        name=texts["name"],
        resources={**_usual(gpus), **resources},
        labels=labels,
    )


def _label(key: str, value: str) -> str:
    """Return the key of a label; refuse one that was meant to be a resource, the zone or the name.

    >>> _label("rack", "1"), _label("pod", "west"), _label("nvidia.com/gpu.count", "8")
    ('rack', 'pod', 'nvidia.com/gpu.count')
    """
    short = key.rpartition("/")[2].casefold()
    known = [name for name in (*_RESOURCES, *_TEXTS) if "/" not in name]
    # Words after a domain are another matter, but not the plural of a device.
    near = nearest(key, known) if "/" not in key else "gpu" * (short in ("gpu", "gpus"))
    meant = _MEANT.get(short, near)
    # A resource is a number: with another value, the key is no slip of the finger.
    if meant in _TEXTS or (meant and _is_quantity(value)):
        raise BadShape(
            f'"{key}={value}": write {meant}={value} (keys are gpu, cpu, memory, pods, '
            "ephemeral-storage, zone and name; others are labels)"
        )
    return key


def _is_quantity(value: str) -> bool:
    try:
        Quantity.from_raw(value)
    except ValueError:
        return False
    return True


def _usual(gpus: str) -> dict[str, str]:
    """Return what a node has that says nothing but how many GPUs: as much as such machines do."""
    count = Quantity.from_raw(gpus).units
    if not count:
        return {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {"cpu": str(24 * count), "memory": f"{256 * count}Gi", "pods": "110"}


def _amount(key: str, value: str) -> str:
    try:
        amount = Quantity.from_raw(value)
    except ValueError as error:
        raise BadShape(f"{key}={value}: {error}") from error
    is_counted = key == "pods" or key.endswith("gpu")
    if is_counted and whole_number(value, _MOST_COUNTED) is None:
        raise BadShape(f"{key}={value} is not a whole number of at most {_MOST_COUNTED}")
    if amount.units < 0:
        raise BadShape(f"{key}={value} is negative")
    if key == "memory" and 0 < amount.units < _FEWEST_MEMORY_BYTES:
        raise BadShape(f"{key}={value} is less than a mebibyte; write a unit, as in 768Gi")
    return value


COMMON_LABELS = {"kubernetes.io/os": "linux"}
_OS_IMAGE = "Unisono simulated node"
# Neighbours in the network: four nodes under a switch, four switches under the next.
_FAN_OUT = 4


def nodes_of(
    groups: Sequence[NodeGroup], *, now: str, taken: Collection[str] = ()
) -> Iterator[Json]:
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


def _node(group: NodeGroup, name: str, place: int, now: str) -> Json:
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
