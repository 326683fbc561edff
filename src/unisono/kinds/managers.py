"""The controller of a job: `spec.managedBy`, or `spec.runPolicy.managedBy`, as written.

A job that names a controller other than its kind's usual one is that controller's. Where no other
runs, its pods would never be made, so it is left alone: not suspended, not queued, and its author
is told.
"""

from __future__ import annotations

from unisono.kinds.meta import Json

# What upstream's own controllers are called; ours stand in their place.
_USUAL = frozenset(
    {
        "jobset.sigs.k8s.io/jobset-controller",
        "kubeflow.org/mpi-operator",
        "kubeflow.org/training-operator",
        "kubernetes.io/job-controller",
        "ray.io/kuberay-operator",
        "trainer.kubeflow.org/trainjob-controller",
    }
)
# Kinds whose field means that: elsewhere the word may mean anything.
_GROUPS = frozenset({"batch", "jobset.x-k8s.io", "kubeflow.org", "ray.io", "trainer.kubeflow.org"})


def other_manager(obj: Json) -> tuple[str, str]:
    """Return the controller that a job names instead of the usual one, and where; else empty texts.

    >>> other_manager({"apiVersion": "batch/v1", "spec": {"managedBy": "acme.io/runner"}})
    ('spec.managedBy', 'acme.io/runner')
    """
    if str(obj.get("apiVersion")).partition("/")[0] not in _GROUPS:
        return "", ""
    spec = obj.get("spec")
    places = [("spec.managedBy", spec)]
    if isinstance(spec, dict):
        places.append(("spec.runPolicy.managedBy", spec.get("runPolicy")))
    for path, part in places:
        named = part.get("managedBy") if isinstance(part, dict) else None
        if isinstance(named, str) and named and named not in _USUAL:
            return path, named
    return "", ""
