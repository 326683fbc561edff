"""What an earlier version has left on a cluster: definitions with less in them, and objects."""

from __future__ import annotations

from unisono.kube.form import Json

_GROUP = "kueue.x-k8s.io"
_OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TEXTS: Json = {"type": "object", "additionalProperties": {"type": "string"}}


def _definition(kind: str, plural: str, spec: Json) -> Json:
    """Return one that serves and stores v1beta1 alone, as all of them once did."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    version = {"name": "v1beta1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{_GROUP}",
            "labels": {"app.kubernetes.io/managed-by": "unisono"},
            # Groups of Kubernetes' own community need it.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": _GROUP,
            "scope": "Cluster",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


DEFINITIONS = (
    _definition("ResourceFlavor", "resourceflavors", {"nodeLabels": _TEXTS}),
    _definition(
        "ClusterQueue",
        "clusterqueues",
        {"namespaceSelector": _OPEN, "resourceGroups": {"type": "array", "items": _OPEN}},
    ),
)

FLAVOR: Json = {
    "apiVersion": f"{_GROUP}/v1beta1",
    "kind": "ResourceFlavor",
    "metadata": {"name": "older"},
    "spec": {"nodeLabels": {"pool": "older"}},
}
QUEUE: Json = {
    "apiVersion": f"{_GROUP}/v1beta1",
    "kind": "ClusterQueue",
    "metadata": {"name": "older"},
    "spec": {
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [
                    {"name": "older", "resources": [{"name": "cpu", "nominalQuota": "3"}]},
                ],
            }
        ],
    },
}


def deployment(namespace: str, name: str) -> list[Json]:
    """Return an operator of another project; no controller makes its pods here."""
    labels = {"app": name}
    pod = {"containers": [{"name": "manager", "image": f"registry.example/{name}:1"}]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        },
    ]
