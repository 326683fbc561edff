"""The roles that every instance has, and their bindings from the start.

They hold even where none is stored; a stored role or binding of the same name wins.

    cluster-admin        everything
    admin, edit, view    a namespace, as in Kubernetes, our kinds included
    unisono:batch-user   submit and watch jobs in a namespace
    unisono:reader       look at what all namespaces share: queues, flavors, runtimes, nodes

A role for people in a namespace never lets them write what decides about other namespaces: a
Workload (its priority, its admission), a status, a ClusterQueue, a flavor, a priority class. All
kinds are named one by one: a star would also stand for their status, and for kinds to come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from unisono.apiserver.objects import Json

GROUP = "rbac.authorization.k8s.io"
_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete", "deletecollection")
_ALL = (*_READ, *_WRITE)

# Kinds in a namespace that run something, by group.
_JOBS: Mapping[str, tuple[str, ...]] = {
    "batch": ("jobs", "cronjobs"),
    "trainer.kubeflow.org": ("trainjobs",),
    # By name: `*` would bring their statuses along, which are their operators' to write.
    "kubeflow.org": ("jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"),
    "jobset.x-k8s.io": ("jobsets",),
    "leaderworkerset.x-k8s.io": ("leaderworkersets",),
    "ray.io": ("rayclusters", "rayjobs", "rayservices", "raycronjobs"),
    "batch.volcano.sh": ("jobs", "cronjobs"),
    "flow.volcano.sh": ("jobflows", "jobtemplates"),
    "scheduling.volcano.sh": ("podgroups",),
    "scheduling.x-k8s.io": ("podgroups",),
    "unisono.dev": ("slurmjobs",),
}
_CORE = (
    "pods",
    "services",
    "configmaps",
    "persistentvolumeclaims",
    "endpoints",
    "replicationcontrollers",
)
_MORE: Mapping[str, tuple[str, ...]] = {
    "apps": ("deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
    "policy": ("poddisruptionbudgets",),
    "autoscaling": ("horizontalpodautoscalers",),
    "trainer.kubeflow.org": ("trainingruntimes",),
}
# What all namespaces share.
_SHARED: Mapping[str, tuple[str, ...]] = {
    "": ("nodes", "namespaces", "persistentvolumes"),
    "kueue.x-k8s.io": (
        "clusterqueues",
        "cohorts",
        "resourceflavors",
        "topologies",
        "workloadpriorityclasses",
        "admissionchecks",
    ),
    "trainer.kubeflow.org": ("clustertrainingruntimes",),
    "scheduling.volcano.sh": ("queues",),
    "topology.volcano.sh": ("hypernodes",),
    "scheduling.k8s.io": ("priorityclasses",),
    "karpenter.sh": ("nodepools", "nodeclaims", "nodeoverlays"),
    "metrics.k8s.io": ("nodes",),
}


def _rule(verbs: Iterable[str], group: str, resources: Iterable[str]) -> Json:
    return {"verbs": list(verbs), "apiGroups": [group], "resources": list(resources)}


def _rules(verbs: Iterable[str], kinds: Mapping[str, tuple[str, ...]]) -> list[Json]:
    return [_rule(verbs, group, resources) for group, resources in kinds.items()]


_VIEW = [
    *_rules(_READ, _JOBS),
    *_rules(_READ, _MORE),
    _rule(_READ, "", (*_CORE, "events", "serviceaccounts", "resourcequotas", "limitranges")),
    _rule(_READ, "", ("pods/log", "pods/status", "namespaces")),
    _rule(_READ, "events.k8s.io", ("events",)),
    _rule(_READ, "kueue.x-k8s.io", ("localqueues", "workloads")),
    _rule(_READ, "metrics.k8s.io", ("pods",)),
    # The first for users that may view every namespace: it names workloads of all of them.
    _rule(
        _READ,
        "visibility.kueue.x-k8s.io",
        ("clusterqueues/pendingworkloads", "localqueues/pendingworkloads"),
    ),
]
_EDIT = [
    *_VIEW,
    *_rules(_WRITE, _JOBS),
    *_rules(_WRITE, _MORE),
    _rule(_WRITE, "", (*_CORE, "serviceaccounts", "events")),
    _rule(_ALL, "", ("secrets",)),
    _rule(("create",), "", ("pods/eviction", "pods/exec", "pods/attach", "pods/portforward")),
    _rule(
        ("get", "update", "patch"),
        "apps",
        ("deployments/scale", "replicasets/scale", "statefulsets/scale"),
    ),
    # Deleted, a Workload is made again and goes to the end of its queue. Written to, it could name
    # any priority and have all other workloads preempted.
    _rule(("delete",), "kueue.x-k8s.io", ("workloads",)),
]
_ADMIN = [
    *_EDIT,
    _rule(_ALL, GROUP, ("roles", "rolebindings")),
    _rule(("create",), "authorization.k8s.io", ("localsubjectaccessreviews",)),
    # A LocalQueue leads to any ClusterQueue whose namespaceSelector takes its namespace: that
    # selector, which only administrators of the cluster write, says which namespace has which
    # quota.
    _rule(_WRITE, "kueue.x-k8s.io", ("localqueues",)),
    _rule(_WRITE, "", ("resourcequotas", "limitranges")),
]
_BATCH_USER = [
    *_rules(_ALL, _JOBS),
    _rule(_READ, "kueue.x-k8s.io", ("localqueues", "workloads")),
    _rule(_READ, "trainer.kubeflow.org", ("trainingruntimes",)),
    _rule((*_READ, "delete"), "", ("pods",)),
    _rule(_READ, "", ("pods/log", "events", "services", "configmaps", "persistentvolumeclaims")),
    _rule(("create", "update", "patch", "delete"), "", ("configmaps",)),
    _rule(_READ, "events.k8s.io", ("events",)),
    _rule(_READ, "metrics.k8s.io", ("pods",)),
    _rule(_READ, "visibility.kueue.x-k8s.io", ("localqueues/pendingworkloads",)),
]
_DISCOVERY = [
    {
        "verbs": ["get"],
        "nonResourceURLs": [
            *("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version"),
            *("/version/", "/healthz", "/livez", "/readyz"),
        ],
    }
]
_BASIC = [
    _rule(
        ("create",),
        "authorization.k8s.io",
        ("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
    ),
    _rule(("create",), "authentication.k8s.io", ("selfsubjectreviews",)),
]
_EVERYTHING = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]


def _role(name: str, rules: list[Json]) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "rules": rules,
    }


def _binding(name: str, group: str) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": group}],
    }


# What we bring to real clusters, too; no binding is made for it.
USER_ROLES: Mapping[str, list[Json]] = {
    "unisono:batch-user": _BATCH_USER,
    "unisono:reader": _rules(_READ, _SHARED),
}
CLUSTER_ROLES: tuple[Json, ...] = (
    _role("cluster-admin", _EVERYTHING),
    _role("admin", _ADMIN),
    _role("edit", _EDIT),
    _role("view", _VIEW),
    *(_role(name, rules) for name, rules in USER_ROLES.items()),
    _role("system:basic-user", _BASIC),
    _role("system:discovery", _DISCOVERY),
)
CLUSTER_ROLE_BINDINGS: tuple[Json, ...] = (
    _binding("cluster-admin", "system:masters"),
    _binding("system:basic-user", "system:authenticated"),
    _binding("system:discovery", "system:authenticated"),
)
