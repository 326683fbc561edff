"""Who submitted a job: written down once, for shares, accounts and system users of processes.

What a controller makes for a job was submitted by whoever submitted that job. That is believed of
controllers alone: anybody can write an owner reference.
"""

from __future__ import annotations

from unisono.apiserver.admission.job_kinds import PODS, controlling_owner, job_kind
from unisono.apiserver.builtin.fields import Json, annotations_of, child
from unisono.apiserver.request import MASTERS
from unisono.apiserver.strategy import Surroundings
from unisono.kinds.shapes.served import Served

SUBMITTER = "unisono.dev/submitter"

_ALSO = (PODS, "kueue.x-k8s.io/workloads")
# What makes jobs at its times, in the name of whoever wrote it.
_TIMED = ("batch/cronjobs", "batch.volcano.sh/cronjobs", "ray.io/raycronjobs")


def record(served: Served, obj: Json, old: Json | None, around: Surroundings) -> None:
    """Write down who submits a job, or put it back if an update says otherwise."""
    if job_kind(served) is None and served.key not in (*_ALSO, *_TIMED):
        return
    if old is not None:
        name = annotations_of(old).get(SUBMITTER, "")
        if not name and SUBMITTER not in annotations_of(obj):
            return
    else:
        is_controller = MASTERS in around.user.groups
        owner = controlling_owner(obj, around, (*_ALSO, *_TIMED)) if is_controller else None
        above = annotations_of(owner).get(SUBMITTER, "") if owner is not None else ""
        name = above or around.user.name
    annotations = child(child(obj, "metadata"), "annotations")
    if name:
        annotations[SUBMITTER] = name
    else:
        annotations.pop(SUBMITTER, None)
