"""What runs `unisono controller` on a cluster: every object of an installation, as data.

Two replicas under an account with just the rights that are needed, a role for each part of us that
is wanted (`control.rights`); probes; a budget that keeps one of them; a Service for metrics; a
policy that lets nothing in or out but what is named. `unisono install` applies it, and the files in
`deploy/` are made of it. Whatever only a part needs is added behind what all have, so that a
component of kustomize can add the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from unisono import __version__
from unisono.apiserver.access.roles import USER_ROLES
from unisono.control.assembly import KINDS, OPERATORS
from unisono.control.rbac import KEYS, PARTS, QUEUEING, WEB, Right, rights, rights_at_home
from unisono.kinds.decode import encode
from unisono.kinds.policy.notifications import SECRET as NOTIFICATION_SECRET
from unisono.kinds.shapes.crds import crds_of, custom_groups
from unisono.kinds.trainer.stock import STOCK_RUNTIMES
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.runtime.admission.policies import MUTATING, mutating, validating
from unisono.runtime.visibility import objects as visibility
from unisono.runtime.webhook import configuration as webhook

NAME = "unisono"
HOME = "unisono-system"
# Bound by hand where MPI jobs need keys, namespace by namespace.
KEYS_ROLE = "unisono-job-keys"
# Rules of cluster roles with this label are part of the role of that name: kinds that are declared.
WORKLOAD_KINDS_ROLE = "unisono-workload-kinds"
WORKLOAD_KINDS_LABEL = "unisono.dev/aggregate-to-controller"
MANAGED_BY = "app.kubernetes.io/managed-by"
_PORT = 8080
_WEB_PORT = 8081
_TLS_PORT = 443
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
    has_conditions: bool = True  # whether it can tell what to ask webhooks about
    operators: tuple[str, ...] = OPERATORS  # jobs to run where no upstream operator does
    machines: Literal["none", "karpenter", "autoscaler"] = "none"
    visibility: bool = False  # whether pending workloads are read as with Kueue
    hosts: tuple[str, ...] = ()  # names of the web page and the metrics, besides our Services
    web_from: str = ""  # the namespace of the proxy that the web page is behind
    web_tls: str = ""  # the Secret with the certificate of the web page
    grafana: str = ""  # its address: the web page links to the panels
    scraped_from: str = "monitoring"  # the namespace of Prometheus
    api_servers: tuple[str, ...] = ()  # where they are, as CIDRs; anywhere if none is given

    @property
    def parts(self) -> tuple[str, ...]:
        """What of us is wanted, in the order of the table."""
        return tuple(one for one in PARTS if one in (QUEUEING, *self.operators, self.machines))


# In which version our controllers read each kind; other versions are not read.
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


def admission(versions: Mapping[str, str], home: str = HOME) -> Iterator[Json]:
    """Yield the rules for jobs that a server applies by itself, as far as it can.

    `versions` says in which API version it serves a kind; what is not there it does not serve.
    `home` is the namespace of the installation.
    """
    if "ValidatingAdmissionPolicy" in versions:
        yield from map(_labelled, validating(home))
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

    The leader must renew a lease every few seconds. Behind a storm of other requests it would lose
    the lease, and a cluster in trouble would lose its scheduler, too.
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
    yield _namespace(wanted)
    yield _own(wanted, "v1", "ServiceAccount") | {"automountServiceAccountToken": False}
    for part in wanted.parts:
        yield from roles(wanted, part)
    yield from workload_kind_roles(wanted)
    yield _made(_RBAC, "ClusterRole", KEYS_ROLE) | {"rules": _rules(KEYS)}
    for name, rules in USER_ROLES.items():
        yield _made(_RBAC, "ClusterRole", name) | {"rules": rules}
    yield _own(wanted, _RBAC, "Role") | {"rules": _rules(rights_at_home())}
    yield _own(wanted, _RBAC, "RoleBinding") | _bound("Role", NAME, wanted)
    yield from notification_roles(wanted)
    yield _own(wanted, "networking.k8s.io/v1", "NetworkPolicy") | {"spec": _network(wanted)}
    yield _own(wanted, "policy/v1", "PodDisruptionBudget") | {
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _LABELS}}
    }
    yield _own(wanted, "v1", "Service") | {"spec": _service()}
    yield _web_service(wanted)
    if wanted.web_from or wanted.web_tls:
        yield web_policy(wanted)
    yield _own(wanted, "apps/v1", "Deployment") | {"spec": _deployment(wanted)}
    if wanted.visibility:  # after what answers: an API that nothing answers for stops a namespace
        yield from visibility_objects(wanted)
    if wanted.webhooks:  # last: from then on the server asks us
        labels = {**_LABELS, MANAGED_BY: NAME}
        sources = _blocks(wanted.api_servers)
        yield from webhook.objects(
            wanted.namespace,
            labels,
            wanted.webhooks,
            sources,
            has_conditions=wanted.has_conditions,
        )


def visibility_objects(wanted: Wanted) -> Iterator[Json]:
    """Yield what the API server needs to ask us for pending workloads."""
    labels = {**_LABELS, MANAGED_BY: NAME}
    return visibility.objects(wanted.namespace, labels, _blocks(wanted.api_servers))


def _namespace(wanted: Wanted) -> Json:
    made = _made("v1", "Namespace", wanted.namespace)
    if wanted.namespace == HOME:
        # Nothing runs there but what can do without privileges. Another namespace that a user
        # own may have other pods in it.
        made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return made


def roles(wanted: Wanted, part: str) -> Iterator[Json]:
    """Yield the role of one part of us, and that our account has it."""
    name = role_name(part)
    needed = (*rights(part), *(WEB if part == QUEUEING else ()))
    yield _made(_RBAC, "ClusterRole", name) | {"rules": _rules(needed)}
    yield _made(_RBAC, "ClusterRoleBinding", name) | _bound("ClusterRole", name, wanted)


def workload_kind_roles(wanted: Wanted) -> Iterator[Json]:
    """Yield the role that grows with the kinds which WorkloadKinds declare.

    An administrator makes a ClusterRole for such a kind and labels it; the API server adds its
    rules to this one. None are written here: an empty list would take them away again.
    """
    selector = {"matchLabels": {WORKLOAD_KINDS_LABEL: "true"}}
    aggregation = {"clusterRoleSelectors": [selector]}
    made = _made(_RBAC, "ClusterRole", WORKLOAD_KINDS_ROLE)
    yield made | {"aggregationRule": aggregation}
    bound = _bound("ClusterRole", WORKLOAD_KINDS_ROLE, wanted)
    yield _made(_RBAC, "ClusterRoleBinding", WORKLOAD_KINDS_ROLE) | bound


def notification_roles(wanted: Wanted) -> Iterator[Json]:
    """Yield the right to read the one Secret that notifications are sent with, and no other."""
    rule = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [NOTIFICATION_SECRET],
        "verbs": ["get"],
    }
    role, binding = _own(wanted, _RBAC, "Role"), _own(wanted, _RBAC, "RoleBinding")
    for one in (role, binding):
        one["metadata"]["name"] = NOTIFICATION_SECRET
    yield role | {"rules": [rule]}
    yield binding | _bound("Role", NOTIFICATION_SECRET, wanted)


def role_name(part: str) -> str:
    """Return how the role of a part is called."""
    return NAME if part == QUEUEING else f"{NAME}-{part}"


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


def _bound(kind: str, name: str, wanted: Wanted) -> Json:
    return {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": wanted.namespace}],
    }


# Where API servers listen behind the Service `kubernetes`: of hosted clusters, and of kubeadm's.
_API_PORTS = (443, 6443)


def _network(wanted: Wanted) -> Json:
    """Allow scraping in, and the API server and DNS out; nothing else.

    Kubelets come from the node itself, which no policy keeps out. The ports of API servers are
    known, their addresses only to the admin.
    """
    dns = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    names = [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    api: Json = {"ports": [{"port": one, "protocol": "TCP"} for one in _API_PORTS]}
    if wanted.api_servers:
        api = {"to": _blocks(wanted.api_servers), **api}
    return {
        "podSelector": {"matchLabels": _LABELS},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [_from(wanted.scraped_from, _PORT)],
        "egress": [{"to": [dns], "ports": names}, api],
    }


_NAMESPACE_NAME = "kubernetes.io/metadata.name"


def _from(namespace: str, port: int) -> Json:
    source = {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: namespace}}}
    return {"from": [source], "ports": [{"port": port, "protocol": "TCP"}]}


def _blocks(networks: Iterable[str]) -> list[Json]:
    return [{"ipBlock": {"cidr": one}} for one in networks]


def web_policy(wanted: Wanted) -> Json:
    """Return the peers of the web page: its proxy, or any if it speaks TLS itself."""
    made = _own(wanted, "networking.k8s.io/v1", "NetworkPolicy")
    made["metadata"]["name"] = f"{NAME}-web"
    ports: Json = {"ports": [{"port": _WEB_PORT, "protocol": "TCP"}]}
    rule = _from(wanted.web_from, _WEB_PORT) if wanted.web_from else ports
    selector = {"podSelector": {"matchLabels": _LABELS}}
    return made | {"spec": {**selector, "policyTypes": ["Ingress"], "ingress": [rule]}}


def _service() -> Json:
    port = {"name": "metrics", "port": _PORT, "protocol": "TCP", "targetPort": "http"}
    return {"selector": _LABELS, "ports": [port]}


def _web_service(wanted: Wanted) -> Json:
    """Return where people find the page; an Ingress of theirs leads here, or a forwarded port."""
    made = _own(wanted, "v1", "Service")
    made["metadata"]["name"] = f"{NAME}-web"
    number = _TLS_PORT if wanted.web_tls else 80
    port = {"name": "web", "port": number, "protocol": "TCP", "targetPort": "web"}
    return made | {"spec": {"selector": _LABELS, "ports": [port]}}


def _deployment(wanted: Wanted) -> Json:
    # On different machines, and in different zones where there are some; one replica too many on a
    # machine is better than one that runs nowhere.
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": _LABELS},
        }
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]
    pod: Json = {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": spread,
        "containers": [_container(wanted)],
    }
    if wanted.web_tls:
        pod["volumes"] = [_web_volume(wanted.web_tls)]
    return {
        "replicas": wanted.replicas,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }


def _web_volume(secret: str) -> Json:
    """Return the volume with the certificate of the web page, for our group alone."""
    return {"name": "web-tls", "secret": {"secretName": secret, "defaultMode": 0o440}}


# The page is on loopback: `kubectl port-forward` reaches it, and nothing else on the network does.
ARGUMENTS = (
    "controller",
    *("--listen", f"0.0.0.0:{_PORT}"),
    *("--web", f"127.0.0.1:{_WEB_PORT}"),
    *("--operators", "none"),
)
_REACHABLE = ("--web", f"0.0.0.0:{_WEB_PORT}")
BEHIND_PROXY_ARGUMENTS = (*_REACHABLE, "--web-behind-proxy")
WEB_TLS_ARGUMENTS = (
    *_REACHABLE,
    *("--web-tls-cert", "/web-tls/tls.crt"),
    *("--web-tls-key", "/web-tls/tls.key"),
)
_WEB_TLS_MOUNT = {"name": "web-tls", "mountPath": "/web-tls", "readOnly": True}


def part_arguments(part: str) -> tuple[str, ...]:
    """Return what a replica is told about a part of us: which it is to be, besides the others."""
    return ("--operators" if part in OPERATORS else "--machines", part)


def _arguments(wanted: Wanted) -> Iterator[str]:
    yield from ARGUMENTS
    for part in wanted.parts:
        yield from part_arguments(part) if part != QUEUEING else ()
    if wanted.web_tls:
        yield from WEB_TLS_ARGUMENTS
    elif wanted.web_from:
        yield from BEHIND_PROXY_ARGUMENTS
    if wanted.grafana:
        yield from ("--grafana", wanted.grafana)
    for name in wanted.hosts:
        yield from ("--host", name)
    if wanted.visibility:
        yield from VISIBILITY_ARGUMENTS
    if wanted.webhooks:
        yield from WEBHOOK_ARGUMENTS


# What a replica that answers for pending workloads has besides, and one that is a webhook.
VISIBILITY_ARGUMENTS = ("--visibility", f"0.0.0.0:{visibility.PORT}")
VISIBILITY_PORT = {"name": "visibility", "containerPort": visibility.PORT, "protocol": "TCP"}
WEBHOOK_ARGUMENTS = ("--webhook", f"0.0.0.0:{webhook.PORT}")
WEBHOOK_PORT = {"name": "webhook", "containerPort": webhook.PORT, "protocol": "TCP"}


def _container(wanted: Wanted) -> Json:
    return {
        "name": "controller",
        "image": wanted.image,
        "args": [*_arguments(wanted)],
        "ports": [
            {"name": "http", "containerPort": _PORT, "protocol": "TCP"},
            {"name": "web", "containerPort": _WEB_PORT, "protocol": "TCP"},
            *((VISIBILITY_PORT,) if wanted.visibility else ()),
            *((WEBHOOK_PORT,) if wanted.webhooks else ()),
        ],
        "livenessProbe": _probe("/healthz", every=20, failures=3),
        "readinessProbe": _probe("/readyz", every=5, failures=2),
        "resources": {
            "requests": {"cpu": "250m", "memory": "512Mi"},
            # More processor than one loop and its threads can use: it bounds a runaway without
            # ever making a lease late.
            "limits": {"cpu": "4", "memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **({"volumeMounts": [_WEB_TLS_MOUNT]} if wanted.web_tls else {}),
    }


def _probe(path: str, *, every: int, failures: int) -> Mapping[str, Any]:
    page = {"path": path, "port": "http"}
    return {"httpGet": page, "periodSeconds": every, "failureThreshold": failures}
