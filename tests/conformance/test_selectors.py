"""Selectors by label and by field."""

from __future__ import annotations

import pytest

from tests.conformance.client import Api, Collection
from tests.conformance.objects import config_map, job, node, pod, secret, service


@pytest.fixture
def maps(api: Api, namespace: str) -> Collection:
    maps = api.of("v1", "configmaps", namespace)
    for name, labels in {
        "one": {"team": "a", "size": "1"},
        "two": {"team": "b", "size": "2"},
        "ten": {"team": "c", "size": "10", "a.b/gpu": ""},
        "none": None,
    }.items():
        maps.create(config_map(name, **({"labels": labels} if labels else {}))).ok(201)
    return maps


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("", "none one ten two"),
        ("team=a", "one"),
        ("team==a", "one"),
        ("team!=a", "none ten two"),
        ("team in (a,c)", "one ten"),
        ("team in (a)", "one"),
        ("team notin (a,c)", "none two"),
        ("team", "one ten two"),
        ("!team", "none"),
        ("size>1", "ten two"),
        ("size<2", "one"),
        ("team,size>2", "ten"),
        ("team=a,team=b", ""),
        ("team=a, size = 1", "one"),
        ("a.b/gpu", "ten"),
        ("a.b/gpu=", "ten"),
        ("team in (a,)", "one"),
        ("absent", ""),
    ],
)
def test_labels(maps: Collection, selector: str, names: str) -> None:
    assert maps.names(labelSelector=selector) == names.split()


@pytest.mark.parametrize(
    "selector",
    ["team in", "team in a", "=a", "team=a=b", "team in (a", "a b", "size>x", "(team)", "team=a b"],
)
def test_labels_that_cannot_be_read(maps: Collection, selector: str) -> None:
    maps.list(labelSelector=selector).refused(400, "BadRequest")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=one", "one"),
        ("metadata.name==one", "one"),
        ("metadata.name!=one", "none ten two"),
        ("metadata.name=one,metadata.name=two", ""),
        ("metadata.name=absent", ""),
    ],
)
def test_fields(maps: Collection, selector: str, names: str) -> None:
    assert maps.names(fieldSelector=selector) == names.split()


def test_the_namespace_is_a_field(api: Api, maps: Collection, namespace: str) -> None:
    everywhere = api.of("v1", "configmaps")
    assert len(everywhere.names(fieldSelector=f"metadata.namespace={namespace}")) == 4
    assert everywhere.names(fieldSelector="metadata.namespace=nowhere") == []


@pytest.mark.parametrize(
    "selector", ["data.k=v", "metadata.uid=x", "spec.nodeName=a", "metadata.name"]
)
def test_fields_that_cannot_be_selected(maps: Collection, selector: str) -> None:
    maps.list(fieldSelector=selector).refused(400, "BadRequest")


def test_both_must_match(maps: Collection) -> None:
    assert maps.names(labelSelector="team", fieldSelector="metadata.name!=one") == ["ten", "two"]


def test_fields_of_pods(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    pods.create(pod("free")).ok(201)
    bound = {"nodeName": "n1", "restartPolicy": "Never", "schedulerName": "x"}
    pods.create(pod("bound", {**bound, "serviceAccountName": "robot"})).ok(201)
    pods.patch("bound", {"status": {"phase": "Running", "podIP": "10.0.0.7"}}, sub="status").ok()
    for selector, names in {
        "spec.nodeName=n1": "bound",
        "spec.nodeName=": "free",
        "spec.nodeName!=": "bound",
        "spec.restartPolicy=Never": "bound",
        "spec.schedulerName=default-scheduler": "free",
        "spec.serviceAccountName=robot": "bound",
        "spec.hostNetwork=false": "bound free",
        "status.phase=Running": "bound",
        "status.phase!=Running": "free",
        "status.podIP=10.0.0.7": "bound",
        "status.nominatedNodeName=": "bound free",
        "spec.nodeName=n1,status.phase=Running": "bound",
    }.items():
        assert pods.names(fieldSelector=selector) == names.split(), selector


def test_fields_of_other_kinds(api: Api, namespace: str) -> None:
    secrets = api.of("v1", "secrets", namespace)
    secrets.create(secret("s")).ok(201)
    assert secrets.names(fieldSelector="type=Opaque") == ["s"]
    assert secrets.names(fieldSelector="type=other") == []
    jobs = api.of("batch/v1", "jobs", namespace)
    jobs.create(job("j")).ok(201)
    assert jobs.names(fieldSelector="status.successful=0") == ["j"]
    services = api.of("v1", "services", namespace)
    services.create(service("svc")).ok(201)
    assert services.names(fieldSelector="spec.type=ClusterIP") == ["svc"]
    nodes = api.of("v1", "nodes")
    nodes.create({**node("cordoned"), "spec": {"unschedulable": True}}).ok(201)
    assert nodes.names(fieldSelector="spec.unschedulable=true") == ["cordoned"]
    spaces = api.of("v1", "namespaces")
    assert spaces.names(fieldSelector=f"status.phase=Active,metadata.name={namespace}") == [
        namespace
    ]


def test_delete_collection_with_a_selector(maps: Collection) -> None:
    maps.delete_all(labelSelector="team in (a,b)").ok()
    assert maps.names() == ["none", "ten"]
    maps.delete_all(fieldSelector="metadata.name=ten").ok()
    assert maps.names() == ["none"]
    maps.delete_all().ok()
    assert maps.names() == []
