"""Which jobs are ours, and which LocalQueue each of them is in (spec quota §16).

A job is managed if its namespace is, and it has a queue:

    label kueue.x-k8s.io/queue-name
    a queue that its own kind names (Volcano), if there is a LocalQueue of that name
    the LocalQueue `default` of its namespace

With `manageJobsWithoutQueueName` a job without any is held back all the same. A job that belongs to
another one (an owner among the documents) is that one's business.
"""

from __future__ import annotations

from unisono.engine.model.selection import label_map, selects
from unisono.engine.model.snapshot import Namespace
from unisono.kinds.objects import Entry, Objects
from unisono.kinds.registry import Registry
from unisono.kinds.settings import Settings

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
QUEUE_LABEL_PATH = f"metadata.labels[{QUEUE_LABEL}]"
DEFAULT_QUEUE = "default"


def queue_name(entry: Entry, own_queue: str, objects: Objects) -> str:
    """Return the name of the LocalQueue that a job is in; empty if it is in none."""
    label = entry.metadata.labels.get(QUEUE_LABEL, "")
    if label:
        return label
    for name in (own_queue, DEFAULT_QUEUE):
        if name and objects.exists("LocalQueue", name, namespace=entry.namespace):
            return name
    return ""


def is_managed(entry: Entry, queue: str, namespace: Namespace, settings: Settings) -> bool:
    """Say whether a job is ours; warn if its author may think that it is."""
    if not selects(settings.managed_namespaces, label_map(namespace.labels)):
        if queue:
            message = f"namespace {namespace.name} is not managed; the job runs without a queue"
            entry.notes.warn("NotManaged", QUEUE_LABEL_PATH, message)
        return False
    if queue or settings.manages_unqueued:
        return True
    message = "names no queue, so it is not managed and no part of the decision"
    entry.notes.warn("NotManaged", QUEUE_LABEL_PATH, message)
    return False


def has_managed_owner(entry: Entry, objects: Objects, registry: Registry) -> bool:
    """Say whether a job or pod belongs to a job that was given, too."""
    for owner in entry.metadata.owner_references:
        kind = registry.kinds.get((owner.api_version, owner.kind))
        if kind is None or kind.job is None:
            continue
        if objects.exists(owner.kind, owner.name, namespace=entry.namespace):
            return True
    return False
