"""Operators of other projects whose work is built in; install bundles bring their Deployments.

Those Deployments are stored and never started: two of a kind would fight over the same objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# What programs of what is built in are called, in their own bundles.
_BUILT_IN: Mapping[str, str] = {
    "jobset-controller-manager": "JobSet",
    "karpenter": "Karpenter",
    "kube-scheduler": "the scheduler",
    "kubeflow-trainer-controller-manager": "the Kubeflow Trainer",
    "kuberay-operator": "KubeRay",
    "kueue-controller-manager": "Kueue",
    "mpi-operator": "the MPI operator",
    "scheduler-plugins-controller": "coscheduling",
    "scheduler-plugins-scheduler": "coscheduling",
    "training-operator": "the training operator",
    "volcano-admission": "Volcano",
    "volcano-controllers": "Volcano",
    "volcano-scheduler": "Volcano",
}


def built_in(obj: Mapping[str, Any]) -> str:
    """Return what a Deployment is the controller of, by its name or that of an image.

    >>> built_in({"metadata": {"name": "kueue-controller-manager"}}), built_in({})
    ('Kueue', '')
    """
    for name in _names(obj):
        for known, what in _BUILT_IN.items():
            if name == known or name.endswith(f"-{known}"):
                return what
    return ""


def _names(obj: Mapping[str, Any]) -> Iterator[str]:
    yield str(_at(obj, "metadata").get("name"))
    containers = _at(obj, "spec", "template", "spec").get("containers")
    for container in containers if isinstance(containers, list) else ():
        image = str((container or {}).get("image") or "").partition("@")[0]
        yield image.rpartition("/")[2].partition(":")[0]


def _at(obj: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    found: Any = obj
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
