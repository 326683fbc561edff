"""Kinds that are stored and nothing more: what their author should know.

Install bundles of upstream controllers must be accepted as they are. Where we do what such a
controller does, its Deployment is not started, and is not missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unisono.apiserver.builtin.fields import Json, at, items
from unisono.kinds.shapes.served import Served

# How the upstream controllers of what is built in are called, in their own bundles.
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

_NOT_RUN = "is stored, but nothing runs its pods here"
_NOT_CALLED = "is stored, but webhooks are never called here"
_NOT_EVALUATED = "is stored, but admission policies are not evaluated here"
_NO_EFFECT = "is stored, but has no effect here"
_INERT: Mapping[str, str] = {
    "apps/deployments": _NOT_RUN,
    "apps/replicasets": _NOT_RUN,
    "apps/statefulsets": _NOT_RUN,
    "apps/daemonsets": _NOT_RUN,
    "/replicationcontrollers": _NOT_RUN,
    "/resourcequotas": "is stored, but not enforced here; give queues a quota instead",
    "autoscaling/horizontalpodautoscalers": "is stored, but nothing is scaled by it here",
    "networking.k8s.io/ingresses": _NO_EFFECT,
    "networking.k8s.io/networkpolicies": _NO_EFFECT,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": _NOT_CALLED,
    "admissionregistration.k8s.io/validatingwebhookconfigurations": _NOT_CALLED,
    "admissionregistration.k8s.io/mutatingadmissionpolicies": _NOT_EVALUATED,
    "admissionregistration.k8s.io/validatingadmissionpolicies": _NOT_EVALUATED,
    "apiregistration.k8s.io/apiservices": "is stored, but no other API server is asked",
    "flowcontrol.apiserver.k8s.io/flowschemas": _NO_EFFECT,
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": _NO_EFFECT,
}


def advise(served: Served, obj: Json) -> Iterator[str]:
    """Say of an object that no controller acts on it."""
    text = _INERT.get(served.key)
    if text is None:
        return
    known = _upstream(obj) if served.group == "apps" else ""
    name = at(obj, "metadata").get("name")
    if known:
        yield f"{served.kind} {name}: {known} is built in, not started"
    else:
        yield f"{served.kind} {name} {text}"


def _upstream(obj: Json) -> str:
    """Return what a Deployment is the controller of, by its name or that of an image."""
    names = [str(at(obj, "metadata").get("name"))]
    for container in items(at(obj, "spec", "template", "spec"), "containers"):
        image = str(container.get("image") or "").partition("@")[0]
        names.append(image.rpartition("/")[2].partition(":")[0])
    for name in names:
        for known, what in _BUILT_IN.items():
            if name == known or name.endswith(f"-{known}"):
                return what
    return ""
