"""What a node's conditions say about its devices (jobs §7.3).

| condition                       | means                                             |
| ------------------------------- | ------------------------------------------------- |
| `GPUProblem` True               | a GPU is broken, as node-problem-detector says it |
| `AcceleratedHardwareReady` False| the same, as accelerator add-ons say it           |

An XID in its reason or message (`Xid79`, `NVRM: Xid (PCI:0000:00:1e): 79`) says how bad it is. An
error of the application is no fault of the node; some others are only worth watching.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from unisono.kinds import views
from unisono.kinds.json_texts import read_json

Severity = Literal["broken", "suspect", "application"]

# Which status of which condition says that devices are broken.
DEVICE_CONDITIONS = (("GPUProblem", "True"), ("AcceleratedHardwareReady", "False"))
# By NVIDIA's list of XID errors; whatever is not listed here is taken seriously.
_WATCHED = frozenset({63, 92, 94, 154})
_APPLICATION = frozenset({13, 31, 43, 45, 68, 109})
_XID = re.compile(r"xid\s*(?:\([^)]*\))?\D{0,3}(\d{1,4})", re.IGNORECASE)
_INDEX = re.compile(r"\bgpu\W{0,2}(\d{1,3})\b", re.IGNORECASE)
_LONGEST_VALUE = 63  # of a label, and of a taint


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a node's devices."""

    severity: Severity
    reason: str  # short: it becomes the value of a taint
    message: str


def fault_of(node: views.Raw) -> Fault | None:
    """Return what a node's conditions say is wrong with its devices; None if nothing is."""
    conditions = [*views.Object(node).conditions]
    for kind, means_broken in DEVICE_CONDITIONS:
        for one in conditions:
            if one.type == kind and one.status == means_broken:
                return fault(one.reason or kind, one.message)
    return None


def fault(reason: str, message: str) -> Fault:
    """Say how bad it is what was reported of a device."""
    xid = _XID.search(f"{reason} {message}")
    if xid is None:
        return Fault("broken", _value(reason), message or reason)
    number = int(xid[1])
    severity: Severity = "broken"
    if number in _APPLICATION:
        severity = "application"
    elif number in _WATCHED:
        severity = "suspect"
    return Fault(severity, f"Xid{number}", message or reason)


# ---- quarantine ----------------------------------------------------------------------------------

# What is remembered of a node's health, as JSON; `over_limit`: since when it is broken and open.
HEALTH = "unisono.dev/health"
# Such a share of the nodes of one machine type may be out at a time; one node always may.
_MOST_SHARE = 0.2


def most_closed(nodes: int) -> int:
    """Return how many of so many nodes of a machine type may be in quarantine at a time.

    >>> most_closed(1), most_closed(9), most_closed(10)
    (1, 1, 2)
    """
    return max(1, int(nodes * _MOST_SHARE))


def left_open(annotations: Mapping[str, str]) -> str:
    """Return what is wrong with a node that is not in quarantine because too many are; or empty."""
    try:
        record = read_json(annotations.get(HEALTH) or "{}")
        return str(record.get("doubted") or "") if record.get("over_limit") else ""
    except (ValueError, AttributeError, TypeError):
        return ""


def broken_devices(node: views.Raw, count: int) -> frozenset[int]:
    """Return the indexes of a node's devices that are known to be broken.

    Devices may only be chosen where it is known which ones these are.
    """
    found = fault_of(node)
    if found is None or found.severity != "broken":
        return frozenset()
    index = device_in(found.message)
    return frozenset() if index is None or index >= count else frozenset({index})


def device_in(message: str) -> int | None:
    """Return the index of the device that a message speaks of, if it names one.

    >>> device_in("GPU 3 reports Xid79"), device_in("two of eight GPUs are gone")
    (3, None)
    """
    found = _INDEX.search(message)
    return int(found[1]) if found is not None else None


def _value(text: str) -> str:
    """Write a text as the value of a label."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", text)[:_LONGEST_VALUE].strip("-._")
    return plain or "unknown"
