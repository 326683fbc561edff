"""What runs `unisono controller` on a cluster: every object of an installation, as data.

Two replicas under an account with just the rights that are needed; probes; a budget that keeps one
of them; a Service for metrics; a policy that lets nothing else in. `unisono install` applies it,
and the files in `deploy/` are made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from unisono import __version__
from unisono.cli.admission import MUTATING, mutating, validating
from unisono.cli.webhook import configuration as webhook
from unisono.control.assembly import KINDS
from unisono.control.rights import KEYS, MACHINES, OWN, REQUESTS, WEB, Right, rights
from unisono.kinds.decode import encode
from unisono.kinds.shapes.crds import crds_of, custom_groups
from unisono.kinds.trainer.stock import STOCK_RUNTIMES
from unisono.kube.mapping import Kind

Json = dict[str, Any]

NAME = "unisono"
# Bound by hand where MPI jobs need keys, namespace by namespace.
KEYS_ROLE = "unisono-job-keys"
MANAGED_BY = "app.kubernetes.io/managed-by"
_PORT = 8080
_WEB_PORT = 8081
_USER = 65_532
_LABELS = {"app.kubernetes.io/name": NAME}
_RBAC = "rbac.authorization.k8s.io/v1"
# Nodes are bought by Karpenter or an autoscaler; their definitions come with them.
_NOT_OURS_TO_BRING = ("karpenter.sh", "karpenter.k8s.aws", "autoscaling.x-k8s.io")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the operator chose."""

    namespace: str
    image: str = f"unisono:{__version__}"
    replicas: int = 2
    webhooks: frozenset[webhook.Which] = frozenset()  # for what the server has no policies


# In which version our controllers read each kind; nobody runs the others, so nobody brings them.
_READ = {(kind.api_version.partition("/")[0], kind.kind): kind for kind in KINDS}


def definitions() -> Iterator[Json]:
    """Yield the definitions of every kind that our controllers look at."""
    groups = [group for group in custom_groups() if group not in _NOT_OURS_TO_BRING]
    return (one for one in crds_of(groups) if version_read(one))


def version_read(definition: Json) -> str:
    """Return the version in which our controllers read what is defined; empty if they do not."""
    spec = definition["spec"]
    kind = _READ.get((spec["group"], spec["names"]["kind"]))
    return kind.api_version.rpartition("/")[2] if kind is not None else ""


def admission(versions: Mapping[str, str]) -> Iterator[Json]:
    """Yield the rules for jobs that a server applies by itself, as far as it can.

    `versions` says in which API version it serves a kind; what is not there it does not serve.
    """
    if "ValidatingAdmissionPolicy" in versions:
        yield from map(_labelled, validating())
    if "MutatingAdmissionPolicy" in versions:
        yield from map(_labelled, mutating(versions["MutatingAdmissionPolicy"]))


# What a server of today has of that.
ALL_ADMISSION = {
    "ValidatingAdmissionPolicy": MUTATING[0],
    "MutatingAdmissionPolicy": MUTATING[0],
}
SERVICE_MONITOR = Kind("monitoring.coreos.com/v1", "ServiceMonitor")
FLOW_SCHEMA = Kind("flowcontrol.apiserver.k8s.io/v1", "FlowSchema")
RUNTIME = Kind("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime")


def service_monitor(wanted: Wanted) -> Json:
    """Return what has Prometheus scrape us, where its operator runs."""
    made = _own(wanted, *SERVICE_MONITOR)
    endpoint = {"port": "metrics", "path": "/metrics", "interval": "30s"}
    return made | {"spec": {"selector": {"matchLabels": _LABELS}, "endpoints": [endpoint]}}


def flows(wanted: Wanted) -> Iterator[Json]:
    """Yield how a busy API server treats our requests, where it sorts requests at all.

    Who leads must renew a lease every few seconds. Among everybody's requests it would wait in line
    behind a storm of them, lose its lease, and a cluster in trouble would lose its scheduler, too.
    """
    lease = {
        "verbs": ["get", "create", "update"],
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "namespaces": [wanted.namespace],
    }
    everything = {
        "verbs": ["*"],
        "apiGroups": ["*"],
        "resources": ["*"],
        "namespaces": ["*"],
        "clusterScope": True,
    }
    yield _flow(wanted, f"{NAME}-lease", "leader-election", 190, lease)
    yield _flow(wanted, NAME, "workload-high", 890, everything)


def _flow(wanted: Wanted, name: str, level: str, precedence: int, asked: Json) -> Json:
    """Put an account's requests on a level; schemas of lower precedence are asked first."""
    account = {"name": NAME, "namespace": wanted.namespace}
    rule = {
        "subjects": [{"kind": "ServiceAccount", "serviceAccount": account}],
        "resourceRules": [asked],
    }
    return _made(*FLOW_SCHEMA, name) | {
        "spec": {
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": {"name": level},
            "rules": [rule],
        }
    }


def runtimes() -> Iterator[Json]:
    """Yield the stock runtimes of Trainer: without them, TrainJobs name nothing that is there."""
    for name, spec in STOCK_RUNTIMES.items():
        made = _made(*RUNTIME, name)
        made["metadata"]["labels"]["trainer.kubeflow.org/framework"] = name.partition("-")[0]
        yield made | {"spec": encode(spec)}


def _labelled(obj: Json) -> Json:
    metadata = {**obj["metadata"], "labels": {**_LABELS, MANAGED_BY: NAME}}
    return {**obj, "metadata": metadata}


def objects(wanted: Wanted) -> Iterator[Json]:
    """Yield everything but the definitions, in the order in which it is applied."""
    yield _made("v1", "Namespace", wanted.namespace)
    yield _own(wanted, "v1", "ServiceAccount")
    yield _made(_RBAC, "ClusterRole", NAME) | {
        "rules": _rules((*rights(), *WEB, *MACHINES, *REQUESTS))
    }
    yield _made(_RBAC, "ClusterRole", KEYS_ROLE) | {"rules": _rules(KEYS)}
    yield _made(_RBAC, "ClusterRoleBinding", NAME) | _bound("ClusterRole", wanted)
    yield _own(wanted, _RBAC, "Role") | {"rules": _rules(OWN)}
    yield _own(wanted, _RBAC, "RoleBinding") | _bound("Role", wanted)
    yield _own(wanted, "networking.k8s.io/v1", "NetworkPolicy") | {"spec": _network()}
    yield _own(wanted, "policy/v1", "PodDisruptionBudget") | {
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _LABELS}}
    }
    yield _own(wanted, "v1", "Service") | {"spec": _service()}
    yield _web_service(wanted)
    yield _own(wanted, "apps/v1", "Deployment") | {"spec": _deployment(wanted)}
    if wanted.webhooks:  # last: from then on the server asks us
        yield from webhook.objects(wanted.namespace, {**_LABELS, MANAGED_BY: NAME}, wanted.webhooks)


def _made(api_version: str, kind: str, name: str) -> Json:
    labels = {**_LABELS, MANAGED_BY: NAME}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels}}


def _own(wanted: Wanted, api_version: str, kind: str) -> Json:
    made = _made(api_version, kind, NAME)
    made["metadata"]["namespace"] = wanted.namespace
    return made


def _rules(needed: Iterable[Right]) -> list[Json]:
    """Return rules for rights; resources of a group with the same verbs share one."""
    shared: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in needed:
        shared.setdefault((one.group, tuple(one.verbs)), []).append(one.resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
        for (group, verbs), resources in shared.items()
    ]


def _bound(kind: str, wanted: Wanted) -> Json:
    return {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": wanted.namespace}],
    }


def _network() -> Json:
    """Let in who asks for probes, metrics and the page; where the API is, nobody can say."""
    return {
        "podSelector": {"matchLabels": _LABELS},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": one, "protocol": "TCP"} for one in (_PORT, _WEB_PORT)]}],
    }


def _service() -> Json:
    port = {"name": "metrics", "port": _PORT, "protocol": "TCP", "targetPort": "http"}
    return {"selector": _LABELS, "ports": [port]}


def _web_service(wanted: Wanted) -> Json:
    """Return where people find the page; an Ingress of theirs leads here, or a forwarded port."""
    made = _own(wanted, "v1", "Service")
    made["metadata"]["name"] = f"{NAME}-web"
    port = {"name": "web", "port": 80, "protocol": "TCP", "targetPort": "web"}
    return made | {"spec": {"selector": _LABELS, "ports": [port]}}


def _deployment(wanted: Wanted) -> Json:
    apart = {
        "labelSelector": {"matchLabels": _LABELS},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = {"weight": 100, "podAffinityTerm": apart}
    pod: Json = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
        },
        "containers": [_container(wanted)],
    }
    return {
        "replicas": wanted.replicas,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }


ARGUMENTS = ("controller", "--listen", f"0.0.0.0:{_PORT}", "--web", f"0.0.0.0:{_WEB_PORT}")
# What a replica that is a webhook has besides.
WEBHOOK_ARGUMENTS = ("--webhook", f"0.0.0.0:{webhook.PORT}")
WEBHOOK_PORT = {"name": "webhook", "containerPort": webhook.PORT, "protocol": "TCP"}


def _container(wanted: Wanted) -> Json:
    return {
        "name": "controller",
        "image": wanted.image,
        "args": [
            *ARGUMENTS,
            *(WEBHOOK_ARGUMENTS if wanted.webhooks else ()),
        ],
        "ports": [
            {"name": "http", "containerPort": _PORT, "protocol": "TCP"},
            {"name": "web", "containerPort": _WEB_PORT, "protocol": "TCP"},
            *((WEBHOOK_PORT,) if wanted.webhooks else ()),
        ],
        "livenessProbe": _probe("/healthz", every=20, failures=3),
        "readinessProbe": _probe("/readyz", every=5, failures=2),
        "resources": {
            "requests": {"cpu": "250m", "memory": "512Mi"},
            "limits": {"memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _probe(path: str, *, every: int, failures: int) -> Mapping[str, Any]:
    page = {"path": path, "port": "http"}
    return {"httpGet": page, "periodSeconds": every, "failureThreshold": failures}
