"""Namespaces: how they begin and end."""

from __future__ import annotations

import pytest

from tests.conformance.client import Api, eventually
from tests.conformance.objects import config_map, pod


def test_a_namespace_says_its_name_and_phase(api: Api, namespace: str) -> None:
    made = api.of("v1", "namespaces").read(namespace).ok()
    assert made["metadata"]["labels"]["kubernetes.io/metadata.name"] == namespace
    assert made["spec"]["finalizers"] == ["kubernetes"]
    assert made["status"]["phase"] == "Active"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_are_always_there(api: Api, name: str) -> None:
    spaces = api.of("v1", "namespaces")
    assert spaces.read(name).ok()["status"]["phase"] == "Active"
    status = spaces.delete(name).refused(403, "Forbidden")
    assert status["details"]["name"] == name
    assert spaces.read(name).ok()["status"]["phase"] == "Active"


@pytest.mark.controllers
@pytest.mark.slow
def test_a_deleted_namespace_takes_everything_along(api: Api, namespace: str) -> None:
    spaces = api.of("v1", "namespaces")
    maps, pods = api.of("v1", "configmaps", namespace), api.of("v1", "pods", namespace)
    maps.create(config_map("a")).ok(201)
    pods.create(pod("b")).ok(201)
    spaces.delete(namespace).ok()
    eventually(lambda: spaces.read(namespace).code == 404)
    assert maps.names() == pods.names() == []


@pytest.mark.controllers
@pytest.mark.slow
def test_a_finalizer_inside_holds_the_namespace(api: Api, namespace: str) -> None:
    spaces, maps = api.of("v1", "namespaces"), api.of("v1", "configmaps", namespace)
    maps.create(config_map("held", finalizers=["a.b/c"])).ok(201)
    deleted = spaces.delete(namespace).ok()
    assert deleted["status"]["phase"] == "Terminating"
    assert deleted["metadata"]["deletionTimestamp"]

    answer = maps.create(config_map("late"))
    assert ("NamespaceTerminating", "metadata.namespace") in answer.causes(403, "Forbidden")
    eventually(lambda: "deletionTimestamp" in maps.read("held").ok()["metadata"])
    assert spaces.read(namespace).ok()["status"]["phase"] == "Terminating"
    maps.patch("held", {"metadata": {"finalizers": None}}).ok()
    eventually(lambda: spaces.read(namespace).code == 404)
