"""The manifests of an installation, and how they compare with a cluster."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import redirect_stdout
from typing import Any

import pytest
import yaml

from unisono.cli.install.compare import Found, Item, _definition, has_conditions
from unisono.cli.install.manifests import (
    ALL_ADMISSION,
    Wanted,
    admission,
    definitions,
    flows,
    objects,
)
from unisono.cli.main import main
from unisono.control.assembly import OPERATORS
from unisono.control.rbac import MACHINES, PARTS, QUEUEING, READ, WEB, rights
from unisono.kube.form import Json
from unisono.runtime import AnswerIsNo
from unisono.runtime.cluster.preconditions import Upstream


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


def test_the_lease_waits_behind_no_other_request() -> None:
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
        "workloadpriorityclasses",
        "hypernodes",
        "priorityclasses",
        "namespaces",
        "persistentvolumes",
    ],
)
def test_what_only_people_write_may_only_be_read(resource: str) -> None:
    needed = [
        one for part in PARTS for one in rights(part) if one.resource.partition("/")[0] == resource
    ]
    assert [(one.resource, one.verbs) for one in needed] == [(resource, READ)]


def test_a_topology_gets_a_finalizer_and_is_not_written_otherwise() -> None:
    """A flavor that names it keeps it: only metadata is patched, and nothing made or deleted."""
    needed = [one for part in PARTS for one in rights(part) if one.resource == "topologies"]
    assert {verb for one in needed for verb in one.verbs} == {*READ, "patch"}


def granted(role: Json) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role.get("rules") or ()  # of an aggregated one the API server writes them
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("operators", [(), ("jobset",), ("jobset", "trainer"), OPERATORS])
@pytest.mark.parametrize("machines", ["none", *MACHINES])
def test_roles_are_bound_for_what_was_chosen_and_have_exactly_the_rights(
    operators: tuple[str, ...], machines: str
) -> None:
    found = made(operators=operators, machines=machines)
    bound = {
        one["roleRef"]["name"] for one in found.values() if one["kind"] == "ClusterRoleBinding"
    }
    chosen = [part for part in PARTS if part in (*operators, machines)]
    assert bound == {
        "unisono",
        "unisono-workload-kinds",
        *(f"unisono-{part}" for part in chosen),
    }
    for part in (QUEUEING, *chosen):
        name = "unisono" if part == QUEUEING else f"unisono-{part}"
        wanted = (*rights(part), *(WEB if part == QUEUEING else ()))
        assert granted(found[f"ClusterRole {name}"]) == {
            (one.group, one.resource, verb) for one in wanted for verb in one.verbs
        }
    told = found["Deployment unisono"]["spec"]["template"]["spec"]["containers"][0]["args"]
    pairs = [*zip(told[1::2], told[2::2], strict=True)]
    assert [value for option, value in pairs if option == "--operators"] == ["none", *operators]
    assert [value for option, value in pairs if option == "--machines"] == [
        one for one in (machines,) if one != "none"
    ]


def test_no_role_of_an_installation_has_stars_or_secrets_in_all_namespaces() -> None:
    for name, one in made(machines="karpenter").items():
        if one["kind"] == "ClusterRole":
            stars = [right for right in granted(one) if "*" in right]
            assert not stars, name
            secrets = {right for right in granted(one) if right[1].startswith("secrets")}
            # The role for keys is bound by hand, namespace by namespace.
            assert not secrets or name == "ClusterRole unisono-job-keys"


def test_nothing_gets_in_or_out_but_what_is_named() -> None:
    policy = made(scraped_from="prom")["NetworkPolicy unisono"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (scraping,) = policy["ingress"]
    (source,) = scraping["from"]
    labels = source["namespaceSelector"]["matchLabels"]
    assert labels == {"kubernetes.io/metadata.name": "prom"}
    assert [one["port"] for one in scraping["ports"]] == [8080]
    names, api = policy["egress"]
    assert {one["port"] for one in names["ports"]} == {53}
    assert {one["port"] for one in api["ports"]} == {443, 6443}
    assert "to" not in api
    narrow = made(api_servers=("10.0.0.0/28",), webhooks=frozenset({"mutating"}))
    blocks = [{"ipBlock": {"cidr": "10.0.0.0/28"}}]
    assert narrow["NetworkPolicy unisono"]["spec"]["egress"][1]["to"] == blocks
    assert narrow["NetworkPolicy unisono-webhook"]["spec"]["ingress"][0]["from"] == blocks


def test_the_page_is_on_loopback_unless_there_is_tls_before_it() -> None:
    def served(**chosen: Any) -> tuple[str, dict[str, Json]]:
        found = made(**chosen)
        pod = found["Deployment unisono"]["spec"]["template"]["spec"]
        return " ".join(pod["containers"][0]["args"]), found

    told, plain = served()
    assert "--web 127.0.0.1:8081" in told
    assert "0.0.0.0:8081" not in told
    assert "NetworkPolicy unisono-web" not in plain
    told, proxied = served(web_from="ingress", hosts=("gpu.example",))
    assert told.endswith("--web 0.0.0.0:8081 --web-behind-proxy --host gpu.example")
    (rule,) = proxied["NetworkPolicy unisono-web"]["spec"]["ingress"]
    assert rule["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
    ]
    assert "--grafana" not in told
    assert served(grafana="https://g.example")[0].endswith("--grafana https://g.example")
    told, secured = served(web_tls="cert")
    assert "--web-tls-cert /web-tls/tls.crt --web-tls-key /web-tls/tls.key" in told
    pod = secured["Deployment unisono"]["spec"]["template"]["spec"]
    assert pod["volumes"][0]["secret"] == {"secretName": "cert", "defaultMode": 0o440}
    assert secured["Service unisono-web"]["spec"]["ports"][0]["port"] == 443


def test_pods_of_ours_fit_the_restricted_standard_and_bring_no_token_they_do_not_need() -> None:
    found = {
        one["metadata"]["name"]: one
        for one in objects(Wanted(namespace="unisono-system"))
        if one["kind"] in ("Namespace", "Deployment", "ServiceAccount")
    }
    namespace = next(iter(objects(Wanted(namespace="unisono-system"))))
    labels = namespace["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    # A namespace of the user's own may have other pods.
    assert (
        "pod-security.kubernetes.io/enforce" not in made()["Namespace home"]["metadata"]["labels"]
    )
    assert made()["ServiceAccount unisono"]["automountServiceAccountToken"] is False
    deployment = found["unisono"]
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["replicas"] == 2
    assert pod["automountServiceAccountToken"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {one["topologyKey"] for one in pod["topologySpreadConstraints"]} == {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    }
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {*container["resources"]["limits"]} == {"cpu", "memory"}
    assert not [one for one in pod if one.startswith("host")]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--operators", "kuberay"), "there is no operator 'kuberay'"),
        (("--api-server", "10.0.0.1/8"), "has host bits set"),
        (("--web-from", "a", "--web-tls-secret", "b"), "exclude each other"),
    ],
)
def test_choices_that_make_no_sense_are_refused(
    options: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["install", "--print", *options])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert problem in capsys.readouterr().err


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
    assert found.why.startswith("installed by others; it serves v1, not v2beta1")


def test_kinds_without_a_controller_are_not_installed() -> None:
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


@pytest.mark.parametrize(
    ("minor", "is_told"), [("36", True), ("28+", True), ("27", False), ("", False)]
)
def test_a_server_that_evaluates_no_conditions_is_known_by_its_version(
    minor: str, *, is_told: bool
) -> None:
    class Server:
        async def read(self, path: str) -> bytes:
            assert path == "/version"
            return json.dumps({"major": "1", "minor": minor}).encode()

    server: Any = Server()
    assert asyncio.run(has_conditions(server, {"validating"})) is is_told
    assert asyncio.run(has_conditions(server, {"mutating"})) is True
