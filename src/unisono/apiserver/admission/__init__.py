"""What happens to an object on its way in, besides its kind's own rules.

Other spellings of fields are read as the usual ones, and a job's submitter is noted. Then:

    foreign_queues         what names a queue of another scheduler gets the queue kept for it
    suspend                what a queue has to admit first is created suspended, or with a gate
    serving                what keeps pods running hands its queue on to its pods
    priority_class_rules   a priority class that its author may not use is refused
    submit_warnings        a job that will probably not start as its author expects gets a warning;
                           kinds that are stored and never acted on get one, too

Nothing is ever sent to a webhook.
"""

from __future__ import annotations

from collections.abc import Iterable

from unisono.apiserver.admission import (
    foreign_queues,
    priority_class_rules,
    serving,
    submit_warnings,
    suspend,
)
from unisono.apiserver.admission.suspend import PODS, controlling_owner, job_kind
from unisono.apiserver.objects import Json, annotations_of, at, child, items
from unisono.apiserver.request import MASTERS
from unisono.apiserver.strategy import Context
from unisono.apiserver.times import timestamp
from unisono.kinds.shapes.foreign import foreign_kinds
from unisono.kinds.shapes.served import Served
from unisono.kinds.trainer.stock import DEFAULT_RUNTIME
from unisono.kinds.unsupported import (
    NOT_SUPPORTED,
    SUPPORTED,
    has_conditions,
    unsupported,
)


def normalise(served: Served, obj: Json) -> list[str]:
    """Rewrite other spellings of fields in place; return warnings that name the usual ones."""
    return _normalise_spellings(served.key, obj)


def mutate(served: Served, obj: Json, old: Json | None, context: Context) -> None:
    """Hold back what a queue has to admit first, and keep what only the server may write."""
    _record_submitter(served, obj, old, context)
    priority_class_rules.refuse_class(served, obj, old, context)
    if old is None:
        foreign_queues.name_queue(served, obj, context)
        suspend.hold(served, obj, context)
        _note_unsupported(served, obj, context)
    else:
        suspend.refuse_changes(served, obj, old)
        suspend.keep_held(served, obj, old, context)
    serving.carry_queue(served, obj, old, context)


def advise(served: Served, obj: Json, context: Context) -> Iterable[str]:
    """Yield what a new object's author should know."""
    if text := _unsupported(served, obj):
        yield text
    yield from submit_warnings.advise(served, obj, context)


def _unsupported(served: Served, obj: Json) -> str:
    foreign = foreign_kinds().get(served.key)
    if foreign is not None and served not in foreign:
        return ""  # it has a definition here: its author knows what acts on it
    return unsupported(served.key, served.kind, obj)


def _note_unsupported(served: Served, obj: Json, context: Context) -> None:
    """Write the condition that nothing acts on an object, where its kind has conditions."""
    text = _unsupported(served, obj)
    if text and has_conditions(served):
        child(obj, "status")["conditions"] = [
            {
                "type": SUPPORTED,
                "status": "False",
                "reason": NOT_SUPPORTED,
                "message": text,
                "lastTransitionTime": timestamp(context.now),
            }
        ]


# ---- other spellings -----------------------------------------------------------------------------
#
# Spellings that widely used manifests have and upstream does not know.
#
#     ResourceFlavor   spec.nodeSelector                   spec.nodeLabels
#     ClusterQueue     flavors: [a, b] and resources       kept as it is: one quota for all flavors
#                      without coveredResources            coveredResources are the resources' names
#     TrainJob         an empty spec                       one pod of the usual runtime
#
# The pool is a form of ours that every reader here knows, so it is stored as it was written; its
# warning comes from the rules of the kind, which see whether it makes sense.


def _normalise_spellings(key: str, obj: Json) -> list[str]:
    """Rewrite in place; return warnings."""
    if key == "kueue.x-k8s.io/resourceflavors":
        return _flavor(at(obj, "spec"))
    if key == "trainer.kubeflow.org/trainjobs" and not obj.get("spec"):
        obj["spec"] = {"runtimeRef": {"name": DEFAULT_RUNTIME}}
        return [f"spec: is empty; taken as one pod of {DEFAULT_RUNTIME} that asks for nothing"]
    if key in ("kueue.x-k8s.io/clusterqueues", "kueue.x-k8s.io/cohorts"):
        for group in items(at(obj, "spec"), "resourceGroups"):
            _cover(group)
    if key == "jobset.x-k8s.io/jobsets":
        _name_rules(items(at(obj, "spec", "failurePolicy"), "rules"))
    return []


def _name_rules(rules: list[Json]) -> None:
    """Give each rule of a JobSet's failure policy that has no name the one of its place."""
    for index, rule in enumerate(rules):
        if not rule.get("name"):
            rule["name"] = f"failurePolicyRule{index}"


def _flavor(spec: Json) -> list[str]:
    """Read `nodeSelector` as `nodeLabels`; if both say different things, neither is touched."""
    selector, labels = spec.get("nodeSelector"), spec.get("nodeLabels")
    if not isinstance(selector, dict) or (labels and labels != selector):
        return []
    del spec["nodeSelector"]
    spec["nodeLabels"] = selector
    return ["spec.nodeSelector: is read as spec.nodeLabels, the only name that Kueue knows"]


def _cover(group: Json) -> None:
    quotas = items(group, "resources")
    if quotas and not group.get("coveredResources"):
        group["coveredResources"] = [str(one["name"]) for one in quotas if one.get("name")]


# ---- the submitter -------------------------------------------------------------------------------
#
# What a controller makes for a job has the submitter of that job. That is believed of controllers
# alone: any user can write an owner reference.


_SUBMITTER = "unisono.dev/submitter"

_ALSO = (PODS, "kueue.x-k8s.io/workloads")
# What makes jobs later, or keeps pods running, in the name of its author.
_MAKERS = (
    "batch/cronjobs",
    "batch.volcano.sh/cronjobs",
    "ray.io/raycronjobs",
    "flow.volcano.sh/jobflows",
    "apps/daemonsets",
    "leaderworkerset.x-k8s.io/leaderworkersets",
    "ray.io/rayservices",
    *serving.SETS,
)


def _record_submitter(served: Served, obj: Json, old: Json | None, context: Context) -> None:
    """Set the submitter of a job, or put it back if an update says otherwise."""
    if job_kind(served) is None and served.key not in (*_ALSO, *_MAKERS):
        return
    if old is not None:
        name = annotations_of(old).get(_SUBMITTER, "")
        if not name and _SUBMITTER not in annotations_of(obj):
            return
    else:
        is_controller = MASTERS in context.user.groups
        owner = controlling_owner(obj, context, (*_ALSO, *_MAKERS)) if is_controller else None
        above = annotations_of(owner).get(_SUBMITTER, "") if owner is not None else ""
        name = above or context.user.name
    annotations = child(child(obj, "metadata"), "annotations")
    if name:
        annotations[_SUBMITTER] = name
    else:
        annotations.pop(_SUBMITTER, None)
