"""Nodes, flavors and queues of an import.

Nodes with the same type of GPU are one flavor: a gang gets one flavor, and must be able to spread
over all nodes of a partition. What they have together is the quota of one cohort; every partition
is a ClusterQueue of it that may use all of its flavors, as partitions in Slurm share their nodes,
and a LocalQueue of its name. Which nodes those are is said by labels (`partition_label`),
which jobs from `sbatch` select.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unisono.kinds.digits import whole_number
from unisono.slurm.conf import Conf, Record, hosts_of, minutes_of
from unisono.slurm.imports.report import Report
from unisono.slurm.labels import (
    GPU,
    GPU_TYPE,
    NODE_CLASS,
    feature_label,
    gres_of,
    object_name,
    partition_label,
    resource_of,
)

Json = dict[str, object]
KUEUE = "kueue.x-k8s.io/v1beta2"
_POD_LIMIT = 110


@dataclass(frozen=True, slots=True)
class Machine:
    """A node of slurm.conf as Kubernetes would have it."""

    name: str
    cpus: int
    memory_mib: int
    devices: tuple[tuple[str, int], ...]  # resource, count
    gpu_type: str
    features: tuple[str, ...]
    partitions: tuple[str, ...]

    @property
    def flavor(self) -> str:
        """What nodes that are alike are called."""
        has_gpus = any(resource == GPU for resource, _ in self.devices)
        return object_name(self.gpu_type or ("gpu" if has_gpus else "cpu"))


def machines(conf: Conf, report: Report) -> list[Machine]:
    """Return the nodes, each with its partitions."""
    inside: dict[str, list[str]] = {}
    for part in conf.partitions:
        for name in hosts_of(conf, part):
            inside.setdefault(name, []).append(part.name)
    made = []
    for node in conf.nodes:
        devices, kind = _devices(node.text("gres"), node, report)
        features = node.text("features", node.text("feature"))
        made.append(
            Machine(
                name=node.name,
                cpus=_cpus(node),
                memory_mib=int(node.text("realmemory", "1")),
                devices=devices,
                gpu_type=kind,
                features=tuple(sorted(filter(None, features.split(",")))),
                partitions=tuple(inside.get(node.name, ())),
            )
        )
    return made


def _devices(text: str, node: Record, report: Report) -> tuple[tuple[tuple[str, int], ...], str]:
    counts: dict[str, int] = {}
    kind = ""
    for name, sort, count in gres_of(text):
        counts[resource_of(name)] = counts.get(resource_of(name), 0) + count
        if name == "gpu" and sort:
            if kind and kind != sort:
                report.approximated(
                    f"Gres={text} of {node.name}", f"counted together as {kind}", node.at.place
                )
            kind = kind or sort
    return tuple(sorted(counts.items())), kind


def _cpus(node: Record) -> int:
    if (cpus := whole_number(node.text("cpus", node.text("procs")))) is not None:
        return cpus
    sockets = int(node.text("sockets", node.text("socketsperboard", "1")))
    boards = int(node.text("boards", "1"))
    cores = int(node.text("corespersocket", "1"))
    return boards * sockets * cores * int(node.text("threadspercore", "1"))


def node_objects(found: Sequence[Machine]) -> list[Json]:
    """Return the nodes as Kubernetes writes them, for a cluster of simulated ones."""
    made: list[Json] = []
    for one in found:
        amounts = {
            "cpu": str(one.cpus),
            "memory": f"{one.memory_mib}Mi",
            "pods": str(_POD_LIMIT),
            **{resource: str(count) for resource, count in one.devices},
        }
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": one.name, "labels": labels_of(one)},
                "status": {"capacity": amounts, "allocatable": amounts},
            }
        )
    return made


def labels_of(one: Machine) -> dict[str, str]:
    """Return the labels that a node needs for all of this to work."""
    labels = {"kubernetes.io/hostname": one.name, NODE_CLASS: one.flavor}
    labels |= {partition_label(name): "true" for name in one.partitions}
    labels |= {feature_label(name): "true" for name in one.features}
    if one.gpu_type:
        labels[GPU_TYPE] = one.gpu_type
    return labels


def queue_objects(
    conf: Conf, found: Sequence[Machine], namespace: str, report: Report
) -> list[Json]:
    """Return flavors, the cohort, and a ClusterQueue and a LocalQueue for every partition."""
    cohort = object_name(conf.text("ClusterName") or "slurm")
    flavors = list(dict.fromkeys(one.flavor for one in found))
    made: list[Json] = [
        _object("ResourceFlavor", name, {"nodeLabels": {NODE_CLASS: name}}) for name in flavors
    ]
    resources = ["cpu", "memory", *sorted({name for one in found for name, _ in one.devices})]
    quotas = [
        {"name": name, "resources": _quota([one for one in found if one.flavor == name], resources)}
        for name in flavors
    ]
    group = {"coveredResources": resources, "flavors": quotas}
    made.append(_object("Cohort", cohort, {"resourceGroups": [group]}))
    nothing = [{"name": resource, "nominalQuota": "0"} for resource in resources]
    for part in conf.partitions:
        own = dict.fromkeys(one.flavor for one in found if part.name in one.partitions)
        if not own:
            report.dropped(f"partition {part.name}", "has no nodes", part.at.place)
            continue
        queue = object_name(part.name)
        spec: Json = {
            "cohortName": cohort,
            "namespaceSelector": {},
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [
                {
                    "coveredResources": resources,
                    "flavors": [{"name": name, "resources": nothing} for name in own],
                }
            ],
        }
        made.append(_object("ClusterQueue", queue, spec))
        made.append(_local_queue(part, queue, namespace))
        report.mapped(f"nodes of {part.name}", f"ClusterQueue {queue} with {', '.join(own)}")
    return made


def _local_queue(part: Record, queue: str, namespace: str) -> Json:
    local = _object("LocalQueue", queue, {"clusterQueue": queue})
    metadata: Json = {"name": queue, "namespace": namespace}
    limit = minutes_of(part.text("defaulttime")) or minutes_of(part.text("maxtime"))
    if limit is not None:
        metadata["annotations"] = {"unisono.dev/default-time-limit": f"{limit}m"}
    return {**local, "metadata": metadata}


def _object(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _quota(found: Sequence[Machine], resources: Sequence[str]) -> list[Json]:
    totals: dict[str, str] = {
        "cpu": str(sum(one.cpus for one in found)),
        "memory": f"{sum(one.memory_mib for one in found)}Mi",
    }
    for resource in resources[2:]:
        totals[resource] = str(sum(dict(one.devices).get(resource, 0) for one in found))
    return [{"name": name, "nominalQuota": totals[name]} for name in resources]
