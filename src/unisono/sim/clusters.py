"""The nodes of a simulation, from manifests or published inventories.

    *.yaml, *.json                      Node manifests, with whatever else is in the file
    sn,cpu_milli,memory_mib,gpu,model   Alibaba's openb clusters
    gpu_model,gpu_capacity_num,…        Alibaba's spot cluster of 2026

Shapes (`4xg6e.48xlarge`) become manifests above this package, where machine types are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.model.resources import amounts, is_gpu
from unisono.kinds.snapshot.build import read_world
from unisono.sim.outcome import Capacity
from unisono.sim.trace import WHOLE_GPU, BadTrace, IntArray
from unisono.sim.traces.files import Sheet, read_bytes, read_sheet

GPU = "nvidia.com/gpu"
MODEL = "nvidia.com/gpu.product"  # the label that says which GPUs a node has
MIB = 1 << 20

_OPENB = frozenset({"sn", "cpu_milli", "memory_mib", "gpu", "model"})
_SPOT = frozenset({"gpu_model", "gpu_capacity_num", "cpu_num", "node_name"})


def read_cluster(path: Path) -> tuple[Node, ...]:
    """Return the nodes that a file lists."""
    if not path.name.removesuffix(".gz").endswith(".csv"):
        return manifest_nodes([(str(path), read_bytes(path))])
    sheet = read_sheet(path)
    if set(sheet.columns) >= _OPENB:
        return _openb(sheet)
    if set(sheet.columns) >= _SPOT:
        return _spot(sheet)
    raise BadTrace(
        str(path), f"is not a known list of nodes; its columns are {', '.join(sheet.columns)}"
    )


def manifest_nodes(files: Sequence[tuple[str, bytes]]) -> tuple[Node, ...]:
    """Return the nodes of manifests (a name to call each file by, and its content)."""
    world = read_world(files, now=Instant(0))
    for problem in world.problems:
        raise BadTrace(problem.path, problem.message)
    if not world.snapshot.nodes:
        names = ", ".join(name for name, _ in files)
        raise BadTrace(names, "has no nodes; add at least one Node")
    return world.snapshot.nodes


def capacity_of(nodes: Iterable[Node]) -> Capacity:
    """Return what nodes have together."""
    listed = list(nodes)
    sums = {"cpu": 0, "memory": 0, "gpu": 0}
    for node in listed:
        for resource, amount in node.allocatable:
            key = "gpu" if is_gpu(resource) else str(resource)
            if key in sums:
                sums[key] += amount
    return Capacity(
        nodes=len(listed),
        cpu=sums["cpu"],
        memory=sums["memory"] // MIB,
        gpu_milli=sums["gpu"] * WHOLE_GPU,
    )


def node_sizes(nodes: Sequence[Node], *, in_gpus: bool = True) -> IntArray:
    """Return how large each node is: thousandths of GPUs if any has some, else of CPUs."""
    each = [capacity_of([node]) for node in nodes]
    has_gpus = in_gpus and any(one.gpu_milli for one in each)
    return np.array([one.gpu_milli if has_gpus else one.cpu for one in each], np.int64)


def _openb(sheet: Sheet) -> tuple[Node, ...]:
    columns = zip(
        sheet.column("sn"),
        sheet.numbers("cpu_milli").tolist(),
        sheet.numbers("memory_mib").tolist(),
        sheet.numbers("gpu").tolist(),
        sheet.column("model"),
        strict=True,
    )
    return tuple(
        _node(name, cpu=int(cpu), memory=int(memory) * MIB, gpus=int(gpus), model=model)
        for name, cpu, memory, gpus, model in columns
    )


def _spot(sheet: Sheet) -> tuple[Node, ...]:
    columns = zip(
        sheet.column("node_name"),
        sheet.numbers("cpu_num").tolist(),
        sheet.numbers("gpu_capacity_num").tolist(),
        sheet.column("gpu_model"),
        strict=True,
    )
    return tuple(
        _node(f"spot-node-{name}", cpu=int(1000 * cpu), memory=0, gpus=int(gpus), model=model)
        for name, cpu, gpus, model in columns
    )


def _node(name: str, *, cpu: int, memory: int, gpus: int, model: str) -> Node:
    has = {"cpu": cpu, "memory": memory, GPU: gpus}
    labels = {HOSTNAME: name, **({MODEL: model} if model else {})}
    return Node(
        name=NodeName(name),
        labels=tuple(sorted(labels.items())),
        allocatable=amounts({resource: amount for resource, amount in has.items() if amount}),
    )
