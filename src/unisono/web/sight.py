"""What a person may see: the same that the API would let them list.

    workloads   gangs, their reasons, whose GPUs they are: by namespace
    nodes       machines and what they cost
    queues      ClusterQueues and cohorts, with what is used and who is next
    machines    node pools and claims
    reports     usage and money of everybody

Whoever may not list something sees that it is there (a GPU that is held, a place in the line that
is taken) and not whose it is.
"""

from __future__ import annotations

import msgspec

HIDDEN = "·"


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What one person may see."""

    name: str
    workloads: frozenset[str] | None = frozenset()  # namespaces; None: all
    pods: frozenset[str] | None = frozenset()
    nodes: bool = False
    queues: bool = False
    machines: bool = False
    reports: bool = False

    def sees(self, namespace: str) -> bool:
        """Say whether the gangs of a namespace may be seen."""
        return self.workloads is None or namespace in self.workloads

    def sees_pods(self, namespace: str) -> bool:
        """Say whether the pods of a namespace may be seen."""
        return self.pods is None or namespace in self.pods

    def named(self, namespace: str, name: str) -> str:
        """Return who something belongs to, as far as that may be told."""
        return f"{namespace}/{name}" if self.sees(namespace) else HIDDEN


def everything(name: str) -> Sight:
    """Return the sight of whoever owns the cluster."""
    return Sight(
        name=name, workloads=None, pods=None, nodes=True, queues=True, machines=True, reports=True
    )
