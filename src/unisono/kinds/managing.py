"""Names that say which jobs are ours, and jobs that are another job's business (spec quota §16).

A job that belongs to another one (an owner among the documents) is decided about with that one.
Which queue a job is in is worked out in `snapshot.local_queues`.
"""

from __future__ import annotations

from unisono.kinds.objects import Entry, Objects
from unisono.kinds.registry import Registry

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
QUEUE_LABEL_PATH = f"metadata.labels[{QUEUE_LABEL}]"
DEFAULT_QUEUE = "default"


def has_managed_owner(entry: Entry, objects: Objects, registry: Registry) -> bool:
    """Say whether a job or pod belongs to a job that was given, too."""
    for owner in entry.metadata.owner_references:
        kind = registry.kinds.get((owner.api_version, owner.kind))
        if kind is None or kind.job is None:
            continue
        if objects.exists(f"{kind.kind}.{kind.group}", owner.name, namespace=entry.namespace):
            return True
    return False
