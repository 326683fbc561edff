"""What keeps pods running hands its queue on to them, as Kueue's webhooks do.

A Deployment, ReplicaSet, ReplicationController or StatefulSet is never suspended: it is the pods
that wait. So the labels that name queue and priority class go to the template of its pods, and each
of these is held back on its own (`suspend`).
"""

from __future__ import annotations

from unisono.apiserver.admission.suspend import namespace_labels, read_settings
from unisono.apiserver.objects import Json, at, child, items, labels_of
from unisono.apiserver.strategy import Context
from unisono.kinds.policy.settings import is_managed
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.kinds.shapes.served import Served
from unisono.kinds.snapshot.candidates import QUEUE_LABEL

SETS = ("apps/deployments", "apps/replicasets", "apps/statefulsets", "/replicationcontrollers")


def carry_queue(served: Served, obj: Json, old: Json | None, context: Context) -> None:
    """Put the labels of a set on its template; what a controller made of another set has them."""
    if served.key not in SETS or _is_made(obj):
        return
    labels = labels_of(obj)
    if old is not None:
        _take_back(obj, labels_of(old), labels)
    if QUEUE_LABEL not in labels:
        return
    namespace = str(at(obj, "metadata").get("namespace") or "")
    if not is_managed(read_settings(context), namespace_labels(namespace, context)):
        return
    template = child(child(obj, "spec"), "template")
    carried = child(child(template, "metadata"), "labels")
    for label in (QUEUE_LABEL, PRIORITY_LABEL):
        if labels.get(label):
            carried[label] = labels[label]


def _take_back(obj: Json, before: Json, now: Json) -> None:
    """Take a label off the template that the set does not have any more."""
    carried = at(obj, "spec", "template", "metadata", "labels")
    for label in (QUEUE_LABEL, PRIORITY_LABEL):
        if before.get(label) and label not in now and carried.get(label) == before[label]:
            del carried[label]


def _is_made(obj: Json) -> bool:
    owners = items(at(obj, "metadata"), "ownerReferences")
    return any(owner.get("controller") is True for owner in owners)
