"""Roles and bindings, evaluated."""

from __future__ import annotations

import pytest

from tests.apiserver.access.cluster import MASTER, Cluster, person, rule, team, user
from unisono.apiserver.access.authorize import Rule
from unisono.apiserver.access.roles import CLUSTER_ROLES
from unisono.kinds.shapes.served import served_kinds

ALICE = user("alice", "research")


def may(cluster: Cluster, text: str, *, caller: object = ALICE) -> bool:
    """Ask as kubectl does: `create jobs.batch in ns`, `get pods/log in ns name x`."""
    words = text.split()
    verb, what = words[:2]
    rest = dict(zip(words[2::2], words[3::2], strict=True))
    whole, _, group = what.partition(".")
    resource, _, subresource = whole.partition("/")
    return cluster.authorizer.allows(
        caller,  # type: ignore[arg-type]  # a user
        verb,
        group,
        resource,
        subresource,
        rest.get("in", ""),
        rest.get("name", ""),
    )


def test_nothing_is_allowed_by_itself() -> None:
    cluster = Cluster()
    assert not may(cluster, "get pods in default")
    assert not cluster.authorizer.allows_path(ALICE, "get", "/metrics")


def test_all_users_may_read_discovery_and_review_themselves() -> None:
    cluster = Cluster()
    for path in ("/api", "/apis", "/apis/batch/v1", "/openapi/v3", "/version", "/healthz"):
        assert cluster.authorizer.allows_path(ALICE, "get", path), path
    assert may(cluster, "create selfsubjectaccessreviews.authorization.k8s.io")
    assert not may(cluster, "create subjectaccessreviews.authorization.k8s.io")
    stranger = user("x").__class__(name="system:anonymous", groups=("system:unauthenticated",))
    assert not cluster.authorizer.allows_path(stranger, "get", "/api")


def test_masters_may_do_everything() -> None:
    cluster = Cluster()
    assert may(cluster, "delete nodes name n", caller=MASTER)
    assert cluster.authorizer.allows_path(MASTER, "post", "/anything")


def test_a_role_holds_in_its_namespace() -> None:
    cluster = Cluster()
    cluster.role("pods", rule("get list", "pods pods/log"), namespace="a")
    cluster.bind("pods", person("alice"), namespace="a", kind="Role")
    assert may(cluster, "get pods in a name p")
    assert may(cluster, "get pods/log in a name p")
    assert not may(cluster, "get pods in b")
    assert not may(cluster, "list pods")
    assert not may(cluster, "delete pods in a")
    assert not may(cluster, "get pods/exec in a")
    assert not may(cluster, "get pods.metrics.k8s.io in a")
    assert not may(cluster, "get pods in a", caller=user("bob"))


def test_a_cluster_role_bound_in_a_namespace_holds_there_only() -> None:
    cluster = Cluster()
    cluster.role("pods", rule("*", "*", "*"))
    cluster.bind("pods", team("research"), namespace="a")
    assert may(cluster, "delete jobs.batch in a")
    assert not may(cluster, "delete jobs.batch in b")
    assert not may(cluster, "get nodes")


def test_a_cluster_binding_holds_everywhere() -> None:
    cluster = Cluster()
    cluster.role("nodes", rule("get", "nodes pods"))
    cluster.bind("nodes", team("research"))
    assert may(cluster, "get nodes name n")
    assert may(cluster, "get pods in anywhere")


def test_a_role_in_another_namespace_is_not_meant() -> None:
    cluster = Cluster()
    cluster.role("x", rule("get", "pods"), namespace="a")
    cluster.bind("x", person("alice"), namespace="b", kind="Role")
    cluster.bind("x", person("alice"), kind="Role")
    cluster.bind("missing", person("alice"))
    assert not may(cluster, "get pods in a")
    assert not may(cluster, "get pods in b")


def test_names_and_stars() -> None:
    cluster = Cluster()
    cluster.role(
        "some",
        rule("get update", "configmaps", resourceNames=["settings"]),
        rule("patch", "*/scale", "apps"),
        rule("*", "jobs", "batch"),
        rule("get", "*", "kueue.x-k8s.io"),
    )
    cluster.bind("some", person("alice"))
    assert may(cluster, "get configmaps in a name settings")
    assert not may(cluster, "get configmaps in a name other")
    assert not may(cluster, "list configmaps in a")
    assert may(cluster, "patch deployments/scale.apps in a")
    assert not may(cluster, "patch deployments.apps in a")
    assert may(cluster, "frobnicate jobs.batch in a")
    assert may(cluster, "get workloads/status.kueue.x-k8s.io in a")


def test_paths() -> None:
    cluster = Cluster()
    cluster.role("paths", {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]})
    cluster.bind("paths", person("alice"))
    allows = cluster.authorizer.allows_path
    assert allows(ALICE, "get", "/metrics")
    assert allows(ALICE, "get", "/debug/x/y")
    assert not allows(ALICE, "post", "/metrics")
    assert not allows(ALICE, "get", "/metrics/x")


def test_service_accounts() -> None:
    cluster = Cluster()
    cluster.role("view", rule("get", "pods"))
    cluster.bind("view", {"kind": "ServiceAccount", "name": "robot"}, namespace="a")
    robot = user("system:serviceaccount:a:robot")
    assert may(cluster, "get pods in a", caller=robot)
    assert not may(cluster, "get pods in a", caller=user("robot"))


def test_roles_may_gather_the_rules_of_others() -> None:
    cluster = Cluster()
    cluster.role("part", rule("get", "widgets", "x.io"), metadata={"labels": {"to": "all"}})
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}, {}]}
    cluster.role("all", aggregationRule=selectors)
    cluster.bind("all", person("alice"))
    assert may(cluster, "get widgets.x.io in a")
    assert not may(cluster, "get pods in a")


def test_roles_are_read_again_only_when_something_changed() -> None:
    cluster = Cluster()
    may(cluster, "get pods in a")
    reads = cluster.reads
    may(cluster, "get pods in a")
    assert cluster.reads == reads
    cluster.role("r", rule("get", "pods"))
    cluster.bind("r", person("alice"))
    assert may(cluster, "get pods in a")
    assert cluster.reads > reads


def test_a_stored_role_wins_over_a_built_in_one() -> None:
    cluster = Cluster()
    cluster.role("view", rule("get", "widgets"))
    cluster.bind("view", person("alice"), namespace="a")
    assert may(cluster, "get widgets in a")
    assert not may(cluster, "get pods in a")


@pytest.mark.parametrize(
    ("role", "yes", "no"),
    [
        (
            "unisono:batch-user",
            "create jobs.batch|create trainjobs.trainer.kubeflow.org|delete rayclusters.ray.io"
            "|get workloads.kueue.x-k8s.io|list localqueues.kueue.x-k8s.io|get pods/log"
            "|create pytorchjobs.kubeflow.org|create jobs.batch.volcano.sh",
            "get secrets|create localqueues.kueue.x-k8s.io|create pods|create pods/exec"
            "|create workloads.kueue.x-k8s.io|delete workloads.kueue.x-k8s.io"
            "|patch workloads.kueue.x-k8s.io|patch workloads/status.kueue.x-k8s.io"
            "|patch jobs/status.batch|patch pytorchjobs/status.kubeflow.org|patch pods"
            "|patch clusterqueues.kueue.x-k8s.io|create clusterqueues.kueue.x-k8s.io"
            "|create resourceflavors.kueue.x-k8s.io|patch nodes|create pods/binding"
            "|create workloadpriorityclasses.kueue.x-k8s.io|patch priorityclasses.scheduling.k8s.io"
            "|create policies.unisono.dev|create rolebindings.rbac.authorization.k8s.io",
        ),
        (
            "view",
            "get pods|list jobs.batch|get pods/log",
            "get secrets|create pods|delete jobs.batch",
        ),
        (
            "edit",
            "get secrets|create pods|delete jobs.batch|create pods/eviction"
            "|delete workloads.kueue.x-k8s.io|patch deployments/scale.apps",
            "create roles.rbac.authorization.k8s.io|create localqueues.kueue.x-k8s.io"
            "|patch workloads.kueue.x-k8s.io|patch workloads/status.kueue.x-k8s.io"
            "|patch pytorchjobs/status.kubeflow.org|create pods/binding",
        ),
        (
            "admin",
            "create rolebindings.rbac.authorization.k8s.io|create localqueues.kueue.x-k8s.io",
            "create clusterqueues.kueue.x-k8s.io|delete nodes|patch workloads.kueue.x-k8s.io"
            "|create workloads.kueue.x-k8s.io|patch localqueues/status.kueue.x-k8s.io"
            "|escalate roles.rbac.authorization.k8s.io",
        ),
        ("cluster-admin", "delete nodes|escalate roles.rbac.authorization.k8s.io", ""),
    ],
)
def test_built_in_roles(role: str, yes: str, no: str) -> None:
    cluster = Cluster()
    cluster.bind(role, team("research"), namespace="a")
    for question in filter(None, yes.split("|")):
        assert may(cluster, f"{question} in a"), question
        assert not may(cluster, f"{question} in b"), question
    for question in filter(None, no.split("|")):
        assert not may(cluster, f"{question} in a"), question


def test_no_role_but_that_of_administrators_has_stars() -> None:
    for role in CLUSTER_ROLES:
        named = [
            word
            for one in role["rules"]
            for field in ("verbs", "apiGroups", "resources")
            for word in one.get(field, ())
        ]
        assert ("*" in "".join(named)) == (role["metadata"]["name"] == "cluster-admin")


def test_built_in_roles_name_only_kinds_that_are_served() -> None:
    served = {(each.group, each.plural) for each in served_kinds()}
    for role in CLUSTER_ROLES:
        for each in role["rules"]:
            rule_ = Rule.of(each)
            for group in rule_.groups - {"*"}:
                for resource in rule_.resources:
                    plain = resource.partition("/")[0]
                    assert plain == "*" or (group, plain) in served, (role["metadata"], resource)
