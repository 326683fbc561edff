"""Spellings that widely used manifests have and upstream does not know.

    ResourceFlavor   spec.nodeSelector                   spec.nodeLabels
    ClusterQueue     flavors: [a, b] and resources       kept as it is: one quota for all flavors
                     without coveredResources            coveredResources are the resources' names
    TrainJob         an empty spec                       one pod of the usual runtime

The pool is a form of ours that every reader here knows, so it is stored as it was written; its
warning comes from the rules of the kind, which see whether it makes sense.
"""

from __future__ import annotations

from unisono.apiserver.builtin.fields import Json, at, items
from unisono.kinds.trainer.stock import DEFAULT_RUNTIME


def normalise(key: str, obj: Json) -> list[str]:
    """Rewrite in place; return warnings."""
    if key == "kueue.x-k8s.io/resourceflavors":
        return _flavor(at(obj, "spec"))
    if key == "trainer.kubeflow.org/trainjobs" and not obj.get("spec"):
        obj["spec"] = {"runtimeRef": {"name": DEFAULT_RUNTIME}}
        return [f"spec: is empty; taken as one pod of {DEFAULT_RUNTIME} that asks for nothing"]
    if key in ("kueue.x-k8s.io/clusterqueues", "kueue.x-k8s.io/cohorts"):
        for group in items(at(obj, "spec"), "resourceGroups"):
            _cover(group)
    return []


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
