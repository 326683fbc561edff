"""Kinds of names, so that the checker refuses to mix them.

A namespaced object is named `namespace/name` in one string: it is a dictionary key everywhere.
"""

from __future__ import annotations

from typing import NewType

WorkloadKey = NewType("WorkloadKey", str)  # namespace/name
LocalQueueKey = NewType("LocalQueueKey", str)  # namespace/name
QueueName = NewType("QueueName", str)  # a ClusterQueue
CohortName = NewType("CohortName", str)
FlavorName = NewType("FlavorName", str)
ResourceName = NewType("ResourceName", str)
NodeName = NewType("NodeName", str)

# Milliseconds since the epoch. The engine never reads a clock: instants come in with events.
Instant = NewType("Instant", int)

CPU = ResourceName("cpu")
PODS = ResourceName("pods")


def namespace_of(key: str) -> str:
    """Return the namespace half of a `namespace/name` key."""
    return key.partition("/")[0]
