"""Jobs and pods that name a queue of another scheduler get the label of the one kept for it.

So they are held, queued and explained as if they had named it (`kinds.foreign_queues`). Left alone
is what names one of ours or belongs to a job, and what names a queue that does not exist.
"""

from __future__ import annotations

from unisono.apiserver.admission.suspend import PODS, controlling_owner, job_kind
from unisono.apiserver.objects import Json, annotations_of, at, child, labels_of
from unisono.apiserver.strategy import Context
from unisono.kinds.core.pod_groups import VOLCANO_ANNOTATIONS
from unisono.kinds.foreign_queues import (
    KAI_GROUP_ANNOTATION,
    KAI_QUEUE_LABELS,
    elastic_queue_name,
    kai_queue_name,
)
from unisono.kinds.shapes.served import Served
from unisono.kinds.snapshot.candidates import QUEUE_LABEL

KAI_QUEUES = "scheduling.run.ai/queues"
KAI_GROUPS = "scheduling.run.ai/podgroups"
ELASTIC_QUOTAS = "scheduling.x-k8s.io/elasticquotas"
KEPT = "volcano."  # before the name of a queue of Volcano, as a LocalQueue
_VOLCANO_JOBS = "batch.volcano.sh/jobs"


def name_queue(served: Served, obj: Json, context: Context) -> None:
    """Write the label into a new job or pod, and the group into a pod."""
    is_pod = served.key == PODS
    if (not is_pod and job_kind(served) is None) or served.key == _VOLCANO_JOBS:
        return
    if QUEUE_LABEL in labels_of(obj) or controlling_owner(obj, context) is not None:
        return
    namespace = str(at(obj, "metadata").get("namespace") or "")
    queue = _kai_queue(obj, context) or _elastic_quota(is_pod, obj, namespace, context)
    if queue:
        child(child(obj, "metadata"), "labels")[QUEUE_LABEL] = f"{KEPT}{queue}"
    group = annotations_of(obj).get(KAI_GROUP_ANNOTATION, "") if is_pod else ""
    if group and context.find(KAI_GROUPS, namespace, str(group)) is not None:
        child(child(obj, "metadata"), "annotations")[VOLCANO_ANNOTATIONS[0]] = str(group)


def _kai_queue(obj: Json, context: Context) -> str:
    for label in KAI_QUEUE_LABELS:
        name = labels_of(obj).get(label, "")
        if name and context.find(KAI_QUEUES, "", name) is not None:
            return kai_queue_name(name)
    return ""


def _elastic_quota(is_pod: bool, obj: Json, namespace: str, context: Context) -> str:
    scheduler = at(obj, "spec").get("schedulerName") if is_pod else None
    if is_pod and not (isinstance(scheduler, str) and scheduler.startswith("scheduler-plugins")):
        return ""  # also of a type that the schema is about to refuse
    there = context.every(ELASTIC_QUOTAS, namespace) if namespace else ()
    found = [str(at(dict(one), "metadata").get("name")) for one in there]
    return elastic_queue_name(namespace, min(found)) if found else ""
