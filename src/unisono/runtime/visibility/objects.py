"""What an installation has so that its API server asks us for pending workloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unisono.kinds.shapes.served import VISIBILITY
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

# The Service, the Secret and everything else that only the visibility API needs.
NAME = "unisono-visibility"
PORT = 8082
API_SERVICE = Kind("apiregistration.k8s.io/v1", "APIService")
VERSIONS = ("v1beta2", "v1beta1")
_ACCOUNT = "unisono"
_RBAC = "rbac.authorization.k8s.io"
# As Kueue has it: below the kinds of kueue.x-k8s.io, to which words such as `clusterqueue` lead.
_PRIORITY = 100
_AGGREGATED_TO = ("view", "edit", "admin")


def host_names(namespace: str) -> tuple[str, ...]:
    """Return the names under which an API server looks for us."""
    return f"{NAME}.{namespace}.svc", f"{NAME}.{namespace}.svc.cluster.local"


def api_service_name(version: str) -> str:
    """Return the name of the object that leads to us for a version."""
    return f"{version}.{VISIBILITY}"


def objects(namespace: str, labels: Json, sources: Sequence[Json] = ()) -> Iterator[Json]:
    """Yield them in the order in which they are applied; the APIServices come last.

    `sources` are the addresses of API servers; without them, any TLS client may ask.
    """
    own = {"namespace": namespace}
    yield _made("v1", "Secret", NAME, labels, **own) | {"type": "Opaque"}
    for kind, place, rule in (("Role", own, _SECRET), ("ClusterRole", {}, _TRUST)):
        yield _made(f"{_RBAC}/v1", kind, NAME, labels, **place) | {"rules": [rule]}
        yield _binding(f"{kind}Binding", labels, (kind, NAME), namespace, **place)
    # It names the authority of the API server's own client certificate; every cluster has the role.
    reader = "Role", "extension-apiserver-authentication-reader"
    yield _binding("RoleBinding", labels, reader, namespace, namespace="kube-system")
    yield from user_roles(labels)
    selector = {"app.kubernetes.io/name": _ACCOUNT}
    ingress = {
        **({"from": [*sources]} if sources else {}),
        "ports": [{"port": PORT, "protocol": "TCP"}],
    }
    yield _made("networking.k8s.io/v1", "NetworkPolicy", NAME, labels, **own) | {
        "spec": {
            "podSelector": {"matchLabels": selector},
            "policyTypes": ["Ingress"],
            "ingress": [ingress],
        }
    }
    port = {"name": "visibility", "port": 443, "protocol": "TCP", "targetPort": "visibility"}
    yield _made("v1", "Service", NAME, labels, **own) | {
        "spec": {"selector": selector, "ports": [port]}
    }
    yield from api_services(namespace, labels)


def api_services(namespace: str, labels: Json) -> Iterator[Json]:
    """Yield what makes the API server ask us; a replica writes the authority into it."""
    for version in VERSIONS:
        yield _made(*API_SERVICE, api_service_name(version), labels) | {
            "spec": {
                "group": VISIBILITY,
                "version": version,
                "groupPriorityMinimum": _PRIORITY,
                "versionPriority": _PRIORITY,
                # Kueue's own says yes here; with an authority it has to be no.
                "insecureSkipTLSVerify": False,
                "service": {"name": NAME, "namespace": namespace, "port": 443},
            }
        }


def user_roles(labels: Json) -> Iterator[Json]:
    """Yield the roles of users, each gathered into the roles that every cluster has.

    A role in a namespace shows its LocalQueues; only one for all namespaces shows ClusterQueues,
    which name workloads of all of them.
    """
    aggregated = {f"{_RBAC}/aggregate-to-{one}": "true" for one in _AGGREGATED_TO}
    rule = {
        "apiGroups": [VISIBILITY],
        "resources": ["clusterqueues/pendingworkloads", "localqueues/pendingworkloads"],
        "verbs": ["get", "list", "watch"],
    }
    role = _made(f"{_RBAC}/v1", "ClusterRole", "unisono:pending-workloads", labels | aggregated)
    yield role | {"rules": [rule]}


# Exactly our Secret, and exactly the objects that hold the trusted authority.
_SECRET = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [NAME]}
_SECRET |= {"verbs": ["get", "update"]}
_TRUST = {
    "apiGroups": ["apiregistration.k8s.io"],
    "resources": ["apiservices"],
    "resourceNames": [api_service_name(version) for version in VERSIONS],
    "verbs": ["get", "update"],
}


def _binding(kind: str, labels: Json, role: tuple[str, str], home: str, **place: str) -> Json:
    account = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": home}
    reference = {"apiGroup": _RBAC, "kind": role[0], "name": role[1]}
    made = _made(f"{_RBAC}/v1", kind, NAME, labels, **place)
    return made | {"roleRef": reference, "subjects": [account]}


def _made(api_version: str, kind: str, name: str, labels: Json, **more: str) -> Json:
    metadata = {"name": name, "labels": {**labels}, **more}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
