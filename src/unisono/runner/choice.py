"""Which pods are ours to run, and how.

A pod says it itself (annotation `unisono.dev/runner: simulated|process`), else its node does (the
same annotation), else the instance's default counts. On a real cluster only nodes that we made
(`providerID: unisono:///…`) are ours; an embedded cluster has no others.
"""

from __future__ import annotations

from typing import Literal

from unisono.control.actions import Json

Manner = Literal["simulated", "process"]
RUNNER = "unisono.dev/runner"
PROVIDER = "unisono:///"


def manner_of(pod: Json, node: Json | None, default: Manner) -> Manner:
    """Return how a pod is run."""
    for obj in (pod, node):
        match ((obj or {}).get("metadata", {}).get("annotations") or {}).get(RUNNER):
            case "simulated":
                return "simulated"
            case "process":
                return "process"
            case _:
                pass
    return default


def is_our_node(node: Json) -> bool:
    """Say whether a node exists only here."""
    return str((node.get("spec") or {}).get("providerID") or "").startswith(PROVIDER)
