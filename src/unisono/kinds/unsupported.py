"""Kinds that an embedded cluster stores and does not act upon, each with a sentence that says so.

Install bundles of upstream controllers must be accepted as they are, and so must the manifests that
stand beside a job. Nothing of that is silent: the sentence is a warning at `kubectl apply`, the
condition `unisono.dev/Supported` where the kind has conditions, and the answer of `unisono why`.
Where we do what an upstream controller does, its Deployment is not started, and is not missed.

On a real cluster others act on these kinds; nothing here is said of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from unisono.kinds.managers import other_manager
from unisono.kinds.meta import Json
from unisono.kinds.shapes.foreign import acted_upon_by, foreign_kinds
from unisono.kinds.shapes.served import Served, served_kinds
from unisono.kinds.upstream_operators import built_in

SUPPORTED = "unisono.dev/Supported"
NOT_SUPPORTED = "NotSupported"

_NOT_CALLED = "is stored, but webhooks are never called here"
_NOT_EVALUATED = "is stored, but admission policies are not evaluated here"
_NO_EFFECT = "is stored, but has no effect here"
_NO_MULTI_KUEUE = "is stored, but jobs are not sent to other clusters"
_NO_DRIVER = "is stored, but no driver offers devices here: pods that refer to it wait"
_STORED_ONLY: Mapping[str, str] = {
    "kueue.x-k8s.io/multikueueclusters": _NO_MULTI_KUEUE,
    "kueue.x-k8s.io/multikueueconfigs": _NO_MULTI_KUEUE,
    "/podtemplates": _NO_EFFECT,
    "/resourcequotas": "is stored, but not enforced here; give queues a quota instead",
    "networking.k8s.io/ingresses": _NO_EFFECT,
    "networking.k8s.io/ingressclasses": _NO_EFFECT,
    "networking.k8s.io/networkpolicies": _NO_EFFECT,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": _NOT_CALLED,
    "admissionregistration.k8s.io/validatingwebhookconfigurations": _NOT_CALLED,
    "admissionregistration.k8s.io/mutatingadmissionpolicies": _NOT_EVALUATED,
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings": _NOT_EVALUATED,
    "admissionregistration.k8s.io/validatingadmissionpolicies": _NOT_EVALUATED,
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": _NOT_EVALUATED,
    "apiregistration.k8s.io/apiservices": "is stored, but no other API server is asked",
    "flowcontrol.apiserver.k8s.io/flowschemas": _NO_EFFECT,
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": _NO_EFFECT,
    "resource.k8s.io/resourceclaims": _NO_DRIVER,
    "resource.k8s.io/resourceclaimtemplates": _NO_DRIVER,
    "scheduling.k8s.io/compositepodgroups": "is stored, but nothing acts on it here: its groups "
    "are placed each by itself",
}


def unsupported(key: str, kind: str, obj: Json) -> str:
    """Return what is said of an object that nothing acts on; empty if something does.

    >>> unsupported("networking.k8s.io/ingresses", "Ingress", {"metadata": {"name": "web"}})
    'Ingress web is stored, but has no effect here'
    """
    metadata = obj.get("metadata") or {}
    name = f"{kind} {metadata.get('name') or metadata.get('generateName') or ''}"
    if key.startswith("apps/") and (known := built_in(obj)):
        return f"{name}: {known} is built in, not started"
    if text := _STORED_ONLY.get(key):
        return f"{name} {text}"
    if actor := acted_upon_by(key):
        return f"{name} is stored, but nothing acts on it here: {actor}"
    path, manager = other_manager(obj)
    return f"{name} waits for {manager}, which does not run here ({path})" if manager else ""


def unsupported_object(obj: Json) -> str:
    """Return the same of a stored object of any version.

    A kind of another project may have been defined since, and its controller may run: then only
    the condition that was written when the object was made can tell.
    """
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == SUPPORTED and one.get("status") == "False":
            return str(one.get("message") or "")
    kind = str(obj.get("kind"))
    key = _keys().get((str(obj.get("apiVersion")).rpartition("/")[0], kind))
    return unsupported(key, kind, obj) if key is not None else ""


def has_conditions(served: Served) -> bool:
    """Say whether objects of a kind may have any conditions in their status.

    Those of apps get theirs from the controllers of their kinds.
    """
    if served.group == "apps":
        return False
    if served.key in foreign_kinds():
        return True
    status = served.shape.field("status")
    return status is not None and status.field("conditions") is not None


@cache
def _keys() -> Mapping[tuple[str, str], str]:
    return {(served.group, served.kind): served.key for served in served_kinds()}
