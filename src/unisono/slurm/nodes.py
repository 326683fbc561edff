"""Nodes as Slurm's programs show them: their state, what they have, what is used of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unisono.slurm.formats import size_text
from unisono.slurm.labels import GPU, GPU_TYPE, feature_of, partition_of
from unisono.slurm.lite_typing import ReadOnlyJson
from unisono.slurm.site import cores_of, mib_of_quantity
from unisono.slurm.times import read

# On a drained node: the reason, the user and the time.
REASON = "unisono.dev/drain-reason"
_DONE = ("Succeeded", "Failed")


class NodeRow:
    """One node."""

    def __init__(self, node: ReadOnlyJson, pods: Sequence[ReadOnlyJson]) -> None:
        """Take a node and the pods on it."""
        self.node = node
        self.metadata = node["metadata"]
        self.labels = self.metadata.get("labels") or {}
        self._has = (node.get("status") or {}).get("allocatable") or {}
        self._used = [used for pod in pods for used in _requests(pod)]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata["name"])

    @property
    def partitions(self) -> list[str]:
        """The partitions that its labels name."""
        return sorted(filter(None, (partition_of(label) for label in self.labels)))

    @property
    def features(self) -> list[str]:
        """Its features."""
        return sorted(filter(None, (feature_of(label) for label in self.labels)))

    @property
    def cpus(self) -> int:
        """Its cores."""
        return cores_of(str(self._has.get("cpu", "0")))

    @property
    def memory_mib(self) -> int:
        """Its memory."""
        return mib_of_quantity(str(self._has.get("memory", "0")))

    @property
    def gpus(self) -> int:
        """Its GPUs."""
        return int(self._has.get(GPU) or 0)

    @property
    def cpus_used(self) -> int:
        """Cores that pods asked for."""
        return -(-sum(_milli(str(one.get("cpu", "0"))) for one in self._used) // 1000)

    @property
    def memory_used(self) -> int:
        """Memory that pods asked for."""
        return sum(mib_of_quantity(str(one.get("memory", "0"))) for one in self._used)

    @property
    def gpus_used(self) -> int:
        """GPUs that pods asked for."""
        return sum(int(one.get(GPU) or 0) for one in self._used)

    @property
    def gres(self) -> str:
        """Its devices as Slurm writes them."""
        if not self.gpus:
            return ""
        kind = self.labels.get(GPU_TYPE) or self.labels.get("karpenter.k8s.aws/instance-gpu-name")
        return f"gpu:{kind}:{self.gpus}" if kind else f"gpu:{self.gpus}"

    @property
    def tres(self) -> str:
        """What it has."""
        gpus = f",gres/gpu={self.gpus}" if self.gpus else ""
        return f"cpu={self.cpus},mem={size_text(self.memory_mib)},billing={self.cpus}{gpus}"

    @property
    def tres_used(self) -> str:
        """What is used of it."""
        if not self._used:
            return ""
        gpus = f",gres/gpu={self.gpus_used}" if self.gpus_used else ""
        return f"cpu={self.cpus_used},mem={size_text(self.memory_used)}{gpus}"

    # ---- state --------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether it answers."""
        conditions = (self.node.get("status") or {}).get("conditions") or ()
        ready = [one["status"] for one in conditions if one["type"] == "Ready"]
        return not ready or ready[0] == "True"

    @property
    def is_drained(self) -> bool:
        """Whether it gets nothing new."""
        spec = self.node.get("spec") or {}
        tainted = any(one.get("effect") == "NoExecute" for one in spec.get("taints") or ())
        return bool(spec.get("unschedulable")) or tainted

    @property
    def load(self) -> str:
        """IDLE, MIXED or ALLOCATED."""
        if not self._used:
            return "IDLE"
        is_full = self.cpus_used >= self.cpus or (self.gpus and self.gpus_used >= self.gpus)
        return "ALLOCATED" if is_full else "MIXED"

    @property
    def long_state(self) -> str:
        """The state as scontrol has it: parts joined by +."""
        if not self.is_ready:
            return "DOWN+NOT_RESPONDING"
        return f"{self.load}+DRAIN" if self.is_drained else self.load

    @property
    def state(self) -> str:
        """The state in one word, as sinfo has it."""
        if not self.is_ready:
            return "down*"
        if self.is_drained:
            return "drained" if self.load == "IDLE" else "draining"
        return {"IDLE": "idle", "MIXED": "mixed", "ALLOCATED": "allocated"}[self.load]

    @property
    def short_state(self) -> str:
        """The same in a few letters."""
        short = {"drained": "drain", "draining": "drng", "mixed": "mix", "allocated": "alloc"}
        return short.get(self.state, self.state)

    @property
    def reason(self) -> str:
        """Why it is drained or down."""
        if not self.is_ready:
            return "Not responding"
        if not self.is_drained:
            return ""
        reason = (self.metadata.get("annotations") or {}).get(REASON, "")
        return reason.split("|")[0] or "cordoned"

    @property
    def drained_by(self) -> str:
        """The user that drained it."""
        parts = (self.metadata.get("annotations") or {}).get(REASON, "").split("|")
        return parts[1] if len(parts) > 1 else "root"

    @property
    def since(self) -> float:
        """Since when."""
        parts = (self.metadata.get("annotations") or {}).get(REASON, "").split("|")
        return (
            read(parts[2]) if len(parts) > 2 else read(self.metadata.get("creationTimestamp") or "")
        )


def node_rows(nodes: Iterable[ReadOnlyJson], pods: Iterable[ReadOnlyJson]) -> list[NodeRow]:
    """Return the nodes in the order of their names' numbers."""
    there: dict[str, list[ReadOnlyJson]] = {}
    for pod in pods:
        place = (pod.get("spec") or {}).get("nodeName")
        if place and (pod.get("status") or {}).get("phase") not in _DONE:
            there.setdefault(place, []).append(pod)
    rows = [NodeRow(node, there.get(node["metadata"]["name"], ())) for node in nodes]
    return sorted(rows, key=lambda row: natural(row.name))


def natural(name: str) -> tuple[str, int, str]:
    """Order names by the number at their end."""
    prefix = name.rstrip("0123456789")
    digits = name[len(prefix) :]
    return prefix, int(digits or 0), name


def _requests(pod: ReadOnlyJson) -> list[ReadOnlyJson]:
    return [
        (one.get("resources") or {}).get("requests")
        or (one.get("resources") or {}).get("limits")
        or {}
        for one in (pod.get("spec") or {}).get("containers") or ()
    ]


def _milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


WITHOUT_CONF = "default"


def partitions_of(
    stored: Mapping[str, Any] | None, nodes: Sequence[NodeRow]
) -> dict[str, tuple[list[NodeRow], dict[str, str]]]:
    """Return the nodes of each partition, and what slurm.conf says of it (keys in lower case)."""
    text = ((stored or {}).get("data") or {}).get("slurm.conf") or ""
    if not text.strip():
        return {WITHOUT_CONF: (list(nodes), {"default": "YES", "state": "UP"})}
    from unisono.slurm.conf import read_conf

    conf = read_conf(text)
    return {
        one.name: (
            [node for node in nodes if one.name in node.partitions],
            {key: value.text for key, value in one.keys.items()},
        )
        for one in conf.partitions
    }
