"""Machines on paper: nodes, the claims they came from, pools, and machines on their way."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from tools.sample.times import text
from unisono.kinds.core.nodes import HELD_FOR
from unisono.kube.form import Json

_GPU = "nvidia.com/gpu"
_HOUR = 3600
_TYPES = (
    ("p5.48xlarge", "NVIDIA-H100-80GB-HBM3", "h100", 55.04),
    ("g6e.48xlarge", "NVIDIA-L40S", "l40s", 30.13),
)
_QUARANTINE = {"key": "unisono.dev/quarantine", "value": "Xid79", "effect": "NoSchedule"}
# Of a cluster that is large enough to spare them.
_BROKEN, _GONE, _LARGE = 7, 19, 20


class Made(NamedTuple):
    """A node, its claim, and whether pods may come."""

    node: Json
    claim: Json
    flavor: str
    is_well: bool


def node(number: int, of: int, now: float, dice: random.Random) -> Made:
    """Return one of so many nodes with eight GPUs."""
    machine, model, flavor, price = _TYPES[0 if number % 3 else 1]
    name = f"{flavor}-{number + 1:0{max(2, len(str(of)))}d}"
    is_spot = flavor == "l40s" and number % 2 == 0
    is_broken = of >= _LARGE and number == _BROKEN
    is_gone = of >= _LARGE and number == _GONE
    made = {
        "metadata": {
            "name": name,
            "uid": f"node-{number}",
            "creationTimestamp": text(now - _HOUR * dice.randint(20, 300)),
            "labels": {
                "nvidia.com/gpu.product": model,
                "node.kubernetes.io/instance-type": machine,
                "topology.kubernetes.io/zone": f"us-east-1{'abc'[number % 3]}",
                "karpenter.sh/nodepool": f"{flavor}-pool",
                "karpenter.sh/capacity-type": "spot" if is_spot else "on-demand",
            },
            "annotations": {"unisono.dev/price-usd-hour": str(price * (0.4 if is_spot else 1))},
        },
        "spec": {"taints": [_QUARANTINE]} if is_broken else {},
        "status": {
            "capacity": {_GPU: "8"},
            "allocatable": {_GPU: "8"},
            "conditions": [{"type": "Ready", "status": "False" if is_gone else "True"}],
        },
    }
    is_well = not is_broken and not is_gone
    return Made(made, _claim(name, machine, made, flavor), flavor, is_well)


def pool(flavor: str, types: list[str], most: int) -> Json:
    """Return a NodePool."""
    sold = ["on-demand"] if flavor == "h100" else ["spot", "on-demand"]
    requirements = {
        "node.kubernetes.io/instance-type": types,
        "karpenter.sh/capacity-type": sold,
    }
    return {
        "metadata": {"name": f"{flavor}-pool", "uid": f"pool-{flavor}"},
        "spec": {
            "weight": 10 if flavor == "h100" else 5,
            "limits": {_GPU: str(most)},
            "disruption": {"consolidateAfter": "15m"},
            "template": {"spec": {"requirements": _requirements(requirements)}},
        },
    }


def _claim(name: str, machine: str, node: Json, flavor: str) -> Json:
    about = {
        "unisono.dev/price-usd-hour": node["metadata"]["annotations"]["unisono.dev/price-usd-hour"]
    }
    return {
        "metadata": {
            "name": name,
            "uid": f"claim-{name}",
            "creationTimestamp": node["metadata"]["creationTimestamp"],
            "labels": {"karpenter.sh/nodepool": f"{flavor}-pool"},
            "annotations": about,
        },
        "spec": {"requirements": _requirements({"node.kubernetes.io/instance-type": [machine]})},
        "status": {
            "nodeName": name,
            "conditions": [
                {"type": "Launched", "status": "True"},
                {"type": "Initialized", "status": "True"},
            ],
        },
    }


def coming(number: int, now: float) -> Json:
    """Return a machine on its way, for a gang that waits for it."""
    wanted = {
        "node.kubernetes.io/instance-type": ["p5.48xlarge"],
        "topology.kubernetes.io/zone": ["us-east-1b"],
        "karpenter.sh/capacity-type": ["on-demand"],
    }
    return {
        "metadata": {
            "name": f"h100-pool-x{number}7f{number}",
            "uid": f"coming-{number}",
            "creationTimestamp": text(now - 95),
            "labels": {"karpenter.sh/nodepool": "h100-pool"},
            "annotations": {
                "unisono.dev/price-usd-hour": "55.04",
                HELD_FOR: "team-language/trainjob-pretrain-900",
            },
        },
        "spec": {"requirements": _requirements(wanted)},
        "status": {"conditions": [{"type": "Launched", "status": "True"}] if number else []},
    }


def _requirements(values: Mapping[str, list[str]]) -> list[Json]:
    return [{"key": key, "operator": "In", "values": some} for key, some in values.items()]
