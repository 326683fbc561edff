"""Words that every part of a scenario uses: resources, names, labels, taints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.scenarios.reading import Part
from unisono.engine.model.names import PODS, ResourceName, WorkloadKey
from unisono.engine.model.selection import Labels

DEFAULT_NAMESPACE = "default"

# What a scenario may ask for. A closed list, so that a misspelt field is not taken for a resource.
RESOURCES = {
    "gpu": ResourceName("nvidia.com/gpu"),
    "cpu": ResourceName("cpu"),
    "memory": ResourceName("memory"),
    "pods": PODS,
    "fpga": ResourceName("example.com/fpga"),
    "gpu-memory": ResourceName("example.com/gpu-memory"),
}
_TAINT = re.compile(r"(?P<key>[^=:]+)(=(?P<value>[^:]*))?:(?P<effect>\w+)")


def resource(part: Part, word: str) -> ResourceName:
    """Return the resource that a scenario's word stands for."""
    if word not in RESOURCES:
        part.fail(f"no field and no resource is called {word}; resources: {', '.join(RESOURCES)}")
    return RESOURCES[word]


def requests(given: Mapping[str, Part]) -> dict[str, int]:
    """Return the amounts among the fields of something that has, or asks for, resources."""
    return {
        RESOURCES[word]: value.amount(RESOURCES[word])
        for word, value in given.items()
        if word in RESOURCES
    }


def key_of(name: str, namespace: str = DEFAULT_NAMESPACE) -> WorkloadKey:
    """Return a workload's key; a name with a slash is one already."""
    return WorkloadKey(name if "/" in name else f"{namespace}/{name}")


def labels(part: Part) -> Labels:
    """Read labels."""
    return tuple(sorted((key, value.text()) for key, value in part.entries()))


def taint(part: Part) -> tuple[str, str, Any]:
    """Read `key=value:NoSchedule`."""
    shape = _TAINT.fullmatch(part.text())
    if shape is None:
        part.fail(f"must look like key=value:NoSchedule or key:NoSchedule, not {part.value!r}")
    return shape["key"], shape["value"] or "", shape["effect"]
