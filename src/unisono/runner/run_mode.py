"""Which pods this instance runs, and whether simulated or as processes.

Pods run as processes only where the instance was started for that, so that commands of manifests
never run on a machine by surprise. There a pod, or all pods of a node, may still be simulated
(annotation `unisono.dev/runner: simulated`); the other way round the annotation changes nothing.

On a real cluster only nodes that we made (`providerID: unisono:///…`) are ours; an embedded cluster
has no others.
"""

from __future__ import annotations

from typing import Literal

from unisono.control.actions import Json

RunMode = Literal["simulated", "process"]
RUNNER = "unisono.dev/runner"
PROVIDER = "unisono:///"


def run_mode_of(pod: Json, node: Json | None, default: RunMode) -> RunMode:
    """Return whether a pod is simulated or runs as processes."""
    for obj in (pod, node):
        mode = ((obj or {}).get("metadata", {}).get("annotations") or {}).get(RUNNER)
        if mode == "simulated":
            return "simulated"
    return default


def is_our_node(node: Json) -> bool:
    """Say whether a node exists only here."""
    return str((node.get("spec") or {}).get("providerID") or "").startswith(PROVIDER)
