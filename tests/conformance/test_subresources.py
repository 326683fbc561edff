"""Status and scale: parts of an object with a path of their own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import MERGE_PATCH, STRATEGIC_PATCH, Api, Collection, changed
from tests.conformance.objects import deployment, job, node, pod
from tests.conformance.widgets import gadget, widget


class TestStatus:
    """The main path writes everything but the status, the status path nothing else."""

    def test_create_drops_the_status(self, api: Api, namespace: str) -> None:
        made = {**deployment("a"), "status": {"replicas": 7}}
        got = api.of("apps/v1", "deployments", namespace).create(made).ok(201)
        assert got["status"] == {}

    def test_the_main_path_leaves_the_status(self, api: Api, namespace: str) -> None:
        deployments = api.of("apps/v1", "deployments", namespace)
        made = deployments.create(deployment("a")).ok(201)
        patched = deployments.patch("a", {"status": {"replicas": 7}}).ok()
        assert patched["status"] == {}
        assert patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    @pytest.mark.parametrize("kind", [MERGE_PATCH, STRATEGIC_PATCH])
    def test_the_status_path_leaves_the_spec(self, api: Api, namespace: str, kind: str) -> None:
        deployments = api.of("apps/v1", "deployments", namespace)
        deployments.create(deployment("a")).ok(201)
        patch = {"spec": {"replicas": 5}, "status": {"replicas": 7}}
        patched = deployments.patch("a", patch, kind=kind, sub="status").ok()
        assert patched["spec"]["replicas"] == 1
        assert patched["status"]["replicas"] == 7
        assert patched["metadata"]["generation"] == 1

    def test_the_status_can_be_replaced(self, api: Api, namespace: str) -> None:
        jobs = api.of("batch/v1", "jobs", namespace)
        made = jobs.create(job("a")).ok(201)
        replaced = jobs.replace(changed(made, status={"active": 1}), sub="status").ok()
        assert replaced["status"] == {"active": 1}
        jobs.replace(changed(made, status={"active": 2}), sub="status").refused(409, "Conflict")
        assert jobs.read("a", sub="status").ok() == replaced

    def test_the_status_can_be_applied(self, api: Api, namespace: str) -> None:
        nodes = api.of("v1", "nodes")
        name = f"{namespace}-node"
        nodes.create(node(name)).ok(201)
        wish = {**node(name), "status": {"capacity": {"nvidia.com/gpu": "8"}}}
        applied = nodes.apply(wish, manager="agent", sub="status").ok()
        assert applied["status"]["capacity"] == {"nvidia.com/gpu": "8"}
        entry = applied["metadata"]["managedFields"][-1]
        assert (entry["manager"], entry["subresource"]) == ("agent", "status")
        assert entry["fieldsV1"] == {"f:status": {"f:capacity": {"f:nvidia.com/gpu": {}}}}

    def test_a_status_of_nothing_is_not_found(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.patch("absent", {"status": {}}, sub="status").refused(404, "NotFound")

    def test_custom_objects(self, widgets: Collection) -> None:
        made = widgets.create({**widget("a"), "status": {"phase": "Ready"}}).ok(201)
        assert "status" not in made
        same = widgets.patch("a", {"status": {"phase": "Ready"}}).ok()
        assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        patch = {
            "metadata": {"labels": {"x": "1"}},
            "spec": {"size": 9},
            "status": {"phase": "Ready"},
        }
        patched = widgets.patch("a", patch, sub="status").ok()
        assert patched["status"] == {"phase": "Ready"}
        assert patched["spec"]["size"] == 1
        assert "labels" not in patched["metadata"]
        assert patched["metadata"]["generation"] == 1
        assert widgets.patch("a", {"spec": {"size": 2}}).ok()["metadata"]["generation"] == 2

    def test_without_the_subresource_status_is_a_field_like_others(
        self, api: Api, custom_kinds: None
    ) -> None:
        gadgets = api.of(gadget("x")["apiVersion"], "gadgets")
        made = gadgets.create(gadget("plain", status={"phase": "New"})).ok(201)
        assert made["status"] == {"phase": "New"}
        patched = gadgets.patch("plain", {"status": {"phase": "Old"}}).ok()
        assert patched["status"] == {"phase": "Old"}
        assert patched["metadata"]["generation"] == 2
        assert gadgets.patch("plain", {"status": {}}, sub="status").code == 404


class TestScale:
    """One face for everything that has replicas."""

    def _assert_scale(self, scale: Any, name: str, *, replicas: int) -> None:
        assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
        assert scale["metadata"]["name"] == name
        assert scale["spec"] == {"replicas": replicas}

    def test_a_deployment(self, api: Api, namespace: str) -> None:
        deployments = api.of("apps/v1", "deployments", namespace)
        made = deployments.create(deployment("a", replicas=2)).ok(201)
        scale = deployments.read("a", sub="scale").ok()
        self._assert_scale(scale, "a", replicas=2)
        assert scale["status"] == {"replicas": 0, "selector": "app=a"}
        assert scale["metadata"]["uid"] == made["metadata"]["uid"]
        patched = deployments.patch("a", {"spec": {"replicas": 3}}, sub="scale").ok()
        self._assert_scale(patched, "a", replicas=3)
        scale = deployments.read("a", sub="scale").ok()
        scale["spec"]["replicas"] = 0
        deployments.replace(scale, sub="scale").ok()
        stored = deployments.read("a").ok()
        assert stored["spec"]["replicas"] == 0
        assert stored["metadata"]["generation"] == 3

    def test_a_stale_scale_is_a_conflict(self, api: Api, namespace: str) -> None:
        deployments = api.of("apps/v1", "deployments", namespace)
        deployments.create(deployment("a")).ok(201)
        scale = deployments.read("a", sub="scale").ok()
        deployments.patch("a", {"spec": {"replicas": 3}}).ok()
        deployments.replace(changed(scale, spec={"replicas": 4}), sub="scale").refused(
            409, "Conflict"
        )

    def test_a_negative_number_is_invalid(self, api: Api, namespace: str) -> None:
        deployments = api.of("apps/v1", "deployments", namespace)
        deployments.create(deployment("a")).ok(201)
        answer = deployments.patch("a", {"spec": {"replicas": -1}}, sub="scale")
        assert answer.causes() == {("FieldValueInvalid", "spec.replicas")}

    def test_a_custom_object(self, widgets: Collection) -> None:
        widgets.create(widget("a", {"replicas": 2})).ok(201)
        status = {"status": {"replicas": 1, "selector": "app=a"}}
        widgets.patch("a", status, sub="status").ok()
        scale = widgets.read("a", sub="scale").ok()
        self._assert_scale(scale, "a", replicas=2)
        assert scale["status"] == {"replicas": 1, "selector": "app=a"}
        widgets.patch("a", {"spec": {"replicas": 5}}, sub="scale").ok()
        assert widgets.read("a").ok()["spec"] == {"size": 1, "replicas": 5, "colour": "red"}

    def test_what_has_no_replicas_has_no_scale(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a")).ok(201)
        assert pods.read("a", sub="scale").code == 404
