"""Users cannot grant rights that they do not have."""

from __future__ import annotations

from typing import Any

from tests.apiserver.access.cluster import MASTER, Cluster, person, rule, user
from unisono.apiserver.access.authorize import escalation
from unisono.apiserver.access.roles import GROUP
from unisono.apiserver.objects import Json

ALICE = user("alice")


def alice_with(*rules: Json) -> Cluster:
    cluster = Cluster()
    cluster.role("hers", *rules)
    cluster.bind("hers", person("alice"), namespace="a")
    return cluster


def role(*rules: Json, **more: Any) -> Json:
    return {"metadata": {"name": "new", "namespace": "a"}, "rules": list(rules), **more}


def why(cluster: Cluster, key: str, obj: Json, old: Json | None = None) -> str:
    refused = escalation(cluster.authorizer, ALICE, f"{GROUP}/{key}", obj, old)
    assert refused is None or refused.code == 403
    return refused.message if refused else ""


def test_what_one_has_can_be_given() -> None:
    cluster = alice_with(rule("get list", "pods pods/log"), rule("*", "jobs", "batch"))
    assert why(cluster, "roles", role(rule("get", "pods"), rule("delete", "jobs", "batch"))) == ""
    assert why(cluster, "roles", role(rule("get", "pods", resourceNames=["x"]))) == ""


def test_what_one_lacks_cannot() -> None:
    cluster = alice_with(rule("get list", "pods", resourceNames=["x"]), rule("get", "*", "batch"))
    for given, lacking in (
        (rule("get delete", "pods", resourceNames=["x"]), 'delete pods "x"'),
        (rule("get", "pods"), "get pods"),
        (rule("*", "jobs", "batch"), "* jobs.batch"),
        (rule("get", "jobs", "*"), "get jobs.*"),
        (rule("get", "secrets"), "get secrets"),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, "get /metrics"),
    ):
        assert lacking in why(cluster, "roles", role(given))


def test_all_that_is_lacking_is_counted() -> None:
    message = why(alice_with(), "roles", role(rule("a b c d e f g", "pods")))
    assert message.endswith("a pods, b pods, c pods, d pods, e pods and 2 more")


def test_rights_elsewhere_do_not_count() -> None:
    cluster = alice_with(rule("*", "*", "*"))
    elsewhere = role(rule("get", "pods"))
    elsewhere["metadata"]["namespace"] = "b"
    assert why(cluster, "roles", elsewhere)
    everywhere = {"metadata": {"name": "new"}, "rules": [rule("get", "pods")]}
    assert why(cluster, "clusterroles", everywhere)
    assert why(cluster, "roles", role(rule("*", "*", "*"))) == ""


def test_gathering_roles_may_gather_anything() -> None:
    cluster = alice_with(rule("get", "pods"))
    assert why(cluster, "clusterroles", role(aggregationRule={"clusterRoleSelectors": [{}]}))


def test_an_update_that_gives_nothing_passes() -> None:
    cluster = alice_with()
    old = role(rule("*", "*", "*"))
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert why(cluster, "roles", labelled, old) == ""
    assert why(cluster, "roles", role(rule("*", "*", "*"), rule("get", "pods")), old)


def test_the_verb_escalate_lifts_it() -> None:
    cluster = alice_with(rule("escalate", "roles", GROUP))
    assert why(cluster, "roles", role(rule("*", "*", "*"))) == ""


def binding(kind: str = "ClusterRole", name: str = "strong", **more: Any) -> Json:
    return {
        "metadata": {"name": "new", "namespace": "a"},
        "roleRef": {"kind": kind, "name": name},
        "subjects": [person("bob")],
        **more,
    }


def test_a_binding_gives_what_its_role_has() -> None:
    cluster = alice_with(rule("get", "pods"))
    cluster.role("weak", rule("get", "pods"))
    cluster.role("strong", rule("get", "secrets"))
    cluster.role("local", rule("get", "pods"), namespace="a")
    assert why(cluster, "rolebindings", binding(name="weak")) == ""
    assert why(cluster, "rolebindings", binding("Role", "local")) == ""
    assert "get secrets" in why(cluster, "rolebindings", binding(name="strong"))
    assert "does not exist" in why(cluster, "rolebindings", binding(name="later"))
    old = binding(name="strong")
    assert why(cluster, "rolebindings", {**old, "metadata": {"namespace": "a", "x": 1}}, old) == ""
    assert why(cluster, "rolebindings", binding(name="strong", subjects=[]), old)


def test_the_verb_bind_lifts_it() -> None:
    cluster = alice_with(rule("bind", "clusterroles", GROUP, resourceNames=["strong"]))
    cluster.role("strong", rule("*", "*", "*"))
    assert why(cluster, "rolebindings", binding(name="strong")) == ""
    assert why(cluster, "rolebindings", binding(name="cluster-admin"))


def test_other_kinds_and_masters_are_free() -> None:
    cluster = Cluster()
    assert escalation(cluster.authorizer, ALICE, "/pods", {}, None) is None
    everything = role(rule("*", "*", "*"), {"verbs": ["*"], "nonResourceURLs": ["*"]})
    assert escalation(cluster.authorizer, MASTER, f"{GROUP}/roles", everything, None) is None


def test_paths_with_a_star_are_covered_by_wider_stars_only() -> None:
    cluster = Cluster()
    cluster.role("hers", {"verbs": ["get"], "nonResourceURLs": ["/debug/*"]})
    cluster.bind("hers", person("alice"))
    for path, fine in (("/debug/x", True), ("/debug/x/*", True), ("/*", False), ("*", False)):
        given = {
            "metadata": {"name": "n"},
            "rules": [{"verbs": ["get"], "nonResourceURLs": [path]}],
        }
        assert (why(cluster, "clusterroles", given) == "") is fine, path
