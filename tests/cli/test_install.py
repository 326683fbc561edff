"""The manifests of an installation, and how they compare with a cluster."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import pytest
import yaml

from unisono.cli.errors import AnswerIsNo
from unisono.cli.installing import Found, Item, _definition
from unisono.cli.main import main
from unisono.cli.manifests import ALL_ADMISSION, Wanted, admission, definitions, flows, objects
from unisono.control.rights import MACHINES, READ, REQUESTS, WEB, rights
from unisono.control.upstream import Upstream

Json = dict[str, Any]


def made(**chosen: Any) -> dict[str, Json]:
    wanted = Wanted(namespace="home", **chosen)
    return {f"{one['kind']} {one['metadata']['name']}": one for one in objects(wanted)}


def definition(name: str, version: str, manager: str) -> Json:
    return {
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": manager}},
        "spec": {"versions": [{"name": version, "served": True, "storage": True}]},
    }


def test_printed_manifests_are_what_is_applied() -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        code = main(["install", "--print", "--without-crds", "--image", "here/it:1"])
    assert code == 0
    wanted = Wanted(namespace="unisono-system", image="here/it:1")
    expected = [*objects(wanted), *flows(wanted), *admission(ALL_ADMISSION)]
    assert list(yaml.safe_load_all(out.getvalue())) == expected


def test_the_lease_waits_behind_nobody() -> None:
    lease, rest = flows(Wanted(namespace="home"))
    (rule,) = lease["spec"]["rules"]
    assert rule["resourceRules"][0]["namespaces"] == ["home"]
    assert rule["subjects"][0]["serviceAccount"] == {"name": "unisono", "namespace": "home"}
    assert lease["spec"]["priorityLevelConfiguration"] == {"name": "leader-election"}
    assert lease["spec"]["matchingPrecedence"] < rest["spec"]["matchingPrecedence"]


@pytest.mark.parametrize(
    "resource",
    [
        "policies",
        "topologies",
        "workloadpriorityclasses",
        "hypernodes",
        "priorityclasses",
        "namespaces",
        "persistentvolumes",
    ],
)
def test_what_only_people_write_may_only_be_read(resource: str) -> None:
    needed = [one for one in rights() if one.resource.partition("/")[0] == resource]
    assert [(one.resource, one.verbs) for one in needed] == [(resource, READ)]


def test_the_role_has_exactly_the_rights_that_are_needed() -> None:
    rules = made()["ClusterRole unisono"]["rules"]
    granted = {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    wanted = (*rights(), *WEB, *MACHINES, *REQUESTS)
    assert granted == {(one.group, one.resource, verb) for one in wanted for verb in one.verbs}
    assert not [one for one in granted if "*" in one]


def test_everything_of_a_namespace_is_in_ours_and_finds_each_other() -> None:
    found = made(replicas=3)
    assert {one["metadata"].get("namespace", "home") for one in found.values()} == {"home"}
    deployment = found["Deployment unisono"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["replicas"] == 3
    assert deployment["selector"]["matchLabels"] == labels
    assert found["Service unisono"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget unisono"]["spec"]["selector"]["matchLabels"] == labels
    assert found["NetworkPolicy unisono"]["spec"]["podSelector"]["matchLabels"] == labels


@pytest.mark.parametrize(
    ("there", "state"),
    [
        ({}, "missing"),
        ({"version": "v1beta2", "manager": "unisono"}, "there"),
        ({"version": "v1beta2", "manager": "kueue"}, "kept"),
        ({"version": "v1beta1", "manager": "kueue"}, "conflict"),
    ],
)
def test_definitions_of_others_are_kept_or_in_the_way(there: dict[str, str], state: str) -> None:
    name = "workloads.kueue.x-k8s.io"
    ours = next(one for one in definitions() if one["metadata"]["name"] == name)
    theirs = {name: definition(name, **there)} if there else {}
    assert _definition(ours, theirs).state == state


def test_what_is_stored_in_a_version_of_ours_is_never_dropped() -> None:
    name = "topologies.kueue.x-k8s.io"
    ours = next(one for one in definitions() if one["metadata"]["name"] == name)
    theirs = definition(name, "v1alpha1", "unisono")
    theirs["status"] = {"storedVersions": ["v1alpha1", "v1beta2"]}
    assert _definition(ours, {name: theirs}).state == "there"
    theirs["status"]["storedVersions"].append("v2")
    found = _definition(ours, {name: theirs})
    assert found.state == "conflict"
    assert found.why == "objects may be stored as v2, which this version does not know"


def test_kinds_that_nothing_depends_on_are_left_to_others_in_any_version() -> None:
    name = "mpijobs.kubeflow.org"
    ours = next(one for one in definitions() if one["metadata"]["name"] == name)
    found = _definition(ours, {name: definition(name, "v1", "training-operator")})
    assert found.state == "kept"
    assert found.why.startswith("somebody else's; it serves v1, not v2beta1")


def test_nobody_brings_kinds_that_nobody_runs() -> None:
    found = {one["metadata"]["name"] for one in definitions()}
    assert {"workloads.kueue.x-k8s.io", "rayjobs.ray.io", "mpijobs.kubeflow.org"} <= found
    assert "rayservices.ray.io" not in found


def test_older_servers_get_the_rules_that_they_know() -> None:
    assert list(admission({})) == []
    beta = list(admission({"MutatingAdmissionPolicy": "admissionregistration.k8s.io/v1beta1"}))
    assert {one["apiVersion"] for one in beta} == {"admissionregistration.k8s.io/v1beta1"}
    assert {one["kind"] for one in beta} == {
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }


def test_conflicts_are_refused_and_told() -> None:
    item = Item({"kind": "Namespace", "metadata": {"name": "home"}}, "there")
    found = Found([item], [Upstream("jobset", "a/b")])
    found.refuse_conflicts()
    assert found.is_complete
    assert list(found.lines()) == [
        "there     Namespace home",
        "respected jobset runs (a/b); ours steps aside, and queues what it runs",
    ]
    beside_kueue = Found([item], [Upstream("kueue", "c/d")])
    assert not beside_kueue.is_complete
    with pytest.raises(AnswerIsNo, match="Kueue runs"):
        beside_kueue.refuse_conflicts()
