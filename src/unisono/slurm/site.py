"""What the administrator set, read from the slurm.conf that the cluster keeps; little without one.

Loaded by every sbatch, so the parser is loaded only if there is something to parse.
"""

from __future__ import annotations

from unisono.kinds.digits import finite_number, whole_number
from unisono.slurm.labels import CONF, NAMESPACE, partition_label
from unisono.slurm.lite_typing import TYPE_CHECKING, NamedTuple, ReadOnlyJson
from unisono.slurm.sbatch.layout import NodeSize, Site

if TYPE_CHECKING:
    from unisono.slurm.conf import Conf


MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CONF}"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
LAST_ID = "unisono.dev/last-job-id"


class PartitionRules(NamedTuple):
    """A partition as sbatch sees it."""

    name: str
    is_default: bool = False
    state: str = "UP"
    default_minutes: int | None = None
    max_minutes: int | None = None
    site: Site = Site()


class Rules(NamedTuple):
    """All that is known when a job is submitted."""

    cluster: str = "unisono"
    partitions: tuple[PartitionRules, ...] = ()
    max_array: int = 4_000_001
    requeues: bool = True
    enforces_limits: bool = False
    gres: frozenset[str] = frozenset()  # known generic resources; empty: unknown

    def partition(self, name: str) -> PartitionRules | None:
        """Return a partition; the default one for an empty name."""
        for one in self.partitions:
            if one.name == name or (not name and one.is_default):
                return one
        return None


def rules_of(stored: ReadOnlyJson | None) -> Rules:
    """Return the rules of a ConfigMap; those of a cluster without any if it has none."""
    text = ((stored or {}).get("data") or {}).get("slurm.conf") or ""
    if not text.strip():
        return Rules()
    from unisono.slurm.conf import minutes_of, read_conf

    conf = read_conf(text)
    whole = Site(
        mem_per_cpu_mib=_number(conf.text("DefMemPerCPU")),
        mem_per_node_mib=_number(conf.text("DefMemPerNode")),
        mem_per_gpu_mib=_number(conf.text("DefMemPerGPU")),
        cpus_per_gpu=_number(conf.text("DefCpuPerGPU")),
    )
    partitions = tuple(
        PartitionRules(
            name=one.name,
            is_default=one.text("default").upper() == "YES",
            state=one.text("state", "UP").upper(),
            default_minutes=minutes_of(one.text("defaulttime")),
            max_minutes=minutes_of(one.text("maxtime")),
            site=Site(
                mem_per_cpu_mib=_number(one.text("defmempercpu")) or whole.mem_per_cpu_mib,
                mem_per_node_mib=_number(one.text("defmempernode")) or whole.mem_per_node_mib,
                mem_per_gpu_mib=_number(one.text("defmempergpu")) or whole.mem_per_gpu_mib,
                cpus_per_gpu=_number(one.text("defcpupergpu")) or whole.cpus_per_gpu,
            ),
        )
        for one in conf.partitions
    )
    return Rules(
        cluster=conf.text("ClusterName") or "unisono",
        partitions=partitions,
        max_array=_number(conf.text("MaxArraySize")) or 1001,
        requeues=conf.text("JobRequeue", "1") != "0",
        enforces_limits=conf.text("EnforcePartLimits", "NO").upper() not in ("NO", ""),
        gres=_gres(conf),
    )


def _gres(conf: Conf) -> frozenset[str]:
    """Return the generic resources that are declared, or that nodes have."""
    declared = conf.text("GresTypes").split(",")
    of_nodes = [one for node in conf.nodes for one in node.text("gres").split(",")]
    return frozenset(one.partition(":")[0].strip().lower() for one in (*declared, *of_nodes)) - {""}


def _number(text: str) -> int:
    return whole_number(text) or 0


def size_of(nodes: list[ReadOnlyJson], partition: str) -> NodeSize:
    """Return what the largest nodes of a partition have: what a node of a job may ask for."""
    label = partition_label(partition) if partition else ""
    cpus = memory = gpus = count = 0
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        if label and label not in labels:
            continue
        amounts = (node.get("status") or {}).get("allocatable") or {}
        cpus = max(cpus, cores_of(str(amounts.get("cpu", "0"))))
        memory = max(memory, mib_of_quantity(str(amounts.get("memory", "0"))))
        gpus = max(gpus, int(amounts.get("nvidia.com/gpu") or 0))
        count += 1
    return NodeSize(cpus, memory, gpus, count)


def cores_of(text: str) -> int:
    """Return an amount of cores of Kubernetes, whole ones."""
    if text.endswith("m"):
        return (whole_number(text[:-1]) or 0) // 1000
    return int(finite_number(text, _MOST) or 0)


# Of an amount that a node has; more is no amount.
_MOST = 10.0**18
_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "k": 10**3, "M": 10**6}


def mib_of_quantity(text: str) -> int:
    """Return an amount of memory of Kubernetes in MiB."""
    for unit, size in {**_UNITS, "G": 10**9, "T": 10**12}.items():
        if text.endswith(unit):
            return int((finite_number(text[: -len(unit)], _MOST) or 0) * size) >> 20
    return (whole_number(text) or 0) >> 20
