"""Nodes from a short text: `4xg6e.48xlarge@us-east-1a,2x{gpu=8,cpu=96,memory=768Gi,rack=r1}`.

SHAPE  = GROUP [, GROUP …]
GROUP  = COUNT x TYPE [@ ZONE]       a type of the catalogue
       | COUNT x { KEY=VALUE, … }    gpu, cpu, memory, pods, zone, name; other keys are labels

A node that only says how many GPUs it has gets the CPUs and the memory of machines with so many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from unisono.kinds.nearest import nearest
from unisono.kinds.quantity import Quantity
from unisono.provision.machines import MachineType, default_zone, machine_types

# As many nodes as the embedded cluster is meant for; a slip of the finger asks for more.
MAX_NODES = 100_000

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
    zone, name = "local", "node"
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise BadShape(f'"{part}" is not KEY=VALUE')
        match key:
            case "zone":
                zone = value
            case "name":
                name = value
            case "gpu":
                resources["nvidia.com/gpu"] = _amount(key, value)
            case "cpu" | "memory" | "pods" | "ephemeral-storage":
                resources[key] = _amount(key, value)
            case _:
                labels[key] = value
    given = {**_usual(resources.get("nvidia.com/gpu", "0")), **resources}
    return NodeGroup(count=count, zone=zone, name=name, resources=given, labels=labels)


def _usual(gpus: str) -> dict[str, str]:
    """Return what a node has that says nothing but how many GPUs: as much as such machines do."""
    count = Quantity.from_raw(gpus).units
    if not count:
        return {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {"cpu": str(24 * count), "memory": f"{256 * count}Gi", "pods": "110"}


def _amount(key: str, value: str) -> str:
    try:
        Quantity.from_raw(value)
    except ValueError as error:
        raise BadShape(f"{key}={value}: {error}") from error
    return value
