"""Deletion: at once, by finalizers, under conditions; pods gracefully."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tests.conformance.client import Api, Collection, Manifest
from tests.conformance.objects import config_map, deployment, job, pod


@pytest.fixture
def maps(api: Api, namespace: str) -> Collection:
    return api.of("v1", "configmaps", namespace)


def test_a_deleted_object_is_gone(maps: Collection) -> None:
    made = maps.create(config_map("a")).ok(201)
    status = maps.delete("a").ok()
    assert (status["kind"], status["status"]) == ("Status", "Success")
    assert status["details"] == {
        "name": "a",
        "kind": "configmaps",
        "uid": made["metadata"]["uid"],
    }
    maps.read("a").refused(404, "NotFound")
    maps.delete("a").refused(404, "NotFound")


def test_the_name_is_free_again(maps: Collection) -> None:
    first = maps.create(config_map("a")).ok(201)
    maps.delete("a").ok()
    second = maps.create(config_map("a")).ok(201)
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_options_may_name_their_kind(maps: Collection) -> None:
    for version in ("v1", "meta.k8s.io/v1"):
        maps.create(config_map("a")).ok(201)
        maps.delete("a", {"kind": "DeleteOptions", "apiVersion": version}).ok()


@pytest.mark.parametrize(
    "options",
    [{"preconditions": {"uid": "other"}}, {"preconditions": {"resourceVersion": "1"}}],
    ids=str,
)
def test_preconditions_that_fail_are_a_conflict(maps: Collection, options: Manifest) -> None:
    maps.create(config_map("a")).ok(201)
    maps.delete("a", options).refused(409, "Conflict")
    maps.read("a").ok()


def test_preconditions_that_hold(maps: Collection) -> None:
    metadata = maps.create(config_map("a")).ok(201)["metadata"]
    held = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    maps.delete("a", {"preconditions": held}).ok()


def test_an_unknown_propagation_policy_is_invalid(maps: Collection) -> None:
    maps.create(config_map("a")).ok(201)
    answer = maps.delete("a", {"propagationPolicy": "Sideways"})
    assert {field for _, field in answer.causes()} == {"propagationPolicy"}
    maps.read("a").ok()


def test_delete_collection_returns_what_went(maps: Collection) -> None:
    for name in ("a", "b"):
        maps.create(config_map(name)).ok(201)
    listed = maps.delete_all().ok()
    assert listed["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    assert maps.names() == []


class TestFinalizers:
    """An object with finalizers stays until they are gone."""

    def test_the_object_stays_and_says_since_when(self, maps: Collection) -> None:
        made = maps.create(config_map("a", finalizers=["a.b/c"])).ok(201)
        deleted = maps.delete("a").ok()
        assert deleted["kind"] == "ConfigMap"
        assert deleted["metadata"]["deletionTimestamp"]
        assert deleted["metadata"]["deletionGracePeriodSeconds"] == 0
        assert int(deleted["metadata"]["resourceVersion"]) > int(
            made["metadata"]["resourceVersion"]
        )
        assert maps.read("a").ok() == deleted

    def test_a_second_delete_changes_nothing(self, maps: Collection) -> None:
        maps.create(config_map("a", finalizers=["a.b/c"])).ok(201)
        first = maps.delete("a").ok()
        assert maps.delete("a").ok() == first

    def test_no_finalizer_can_be_added_any_more(self, maps: Collection) -> None:
        maps.create(config_map("a", finalizers=["a.b/c"])).ok(201)
        maps.delete("a").ok()
        answer = maps.patch("a", {"metadata": {"finalizers": ["a.b/c", "a.b/d"]}})
        assert answer.causes() == {("FieldValueForbidden", "metadata.finalizers")}

    def test_the_rest_can_still_change(self, maps: Collection) -> None:
        maps.create(config_map("a", finalizers=["a.b/c"])).ok(201)
        maps.delete("a").ok()
        patched = maps.patch("a", {"data": {"k": "v"}, "metadata": {"labels": {"x": "1"}}}).ok()
        assert patched["data"] == {"k": "v"}

    def test_a_deletion_cannot_be_undone(self, maps: Collection) -> None:
        maps.create(config_map("a", finalizers=["a.b/c"])).ok(201)
        deleted = maps.delete("a").ok()
        patched = maps.patch("a", {"metadata": {"deletionTimestamp": None}}).ok()
        assert patched["metadata"]["deletionTimestamp"] == deleted["metadata"]["deletionTimestamp"]

    def test_without_the_last_finalizer_it_is_gone(self, maps: Collection) -> None:
        made = maps.create(config_map("a", finalizers=["a.b/c", "a.b/d"])).ok(201)
        with maps.watch(resourceVersion=made["metadata"]["resourceVersion"]) as events:
            maps.delete("a").ok()
            maps.patch("a", {"metadata": {"finalizers": ["a.b/d"]}}).ok()
            last = maps.patch("a", {"metadata": {"finalizers": None}}).ok()
            assert last["metadata"]["name"] == "a"
            maps.read("a").refused(404, "NotFound")
            seen = [events.next() for _ in range(3)]
        assert [kind for kind, _ in seen] == ["MODIFIED", "MODIFIED", "DELETED"]
        versions = [int(thing["metadata"]["resourceVersion"]) for _, thing in seen]
        assert versions == sorted(set(versions))

    def test_the_name_is_taken_until_then(self, maps: Collection) -> None:
        maps.create(config_map("a", finalizers=["a.b/c"])).ok(201)
        maps.delete("a").ok()
        status = maps.create(config_map("a")).refused(409, "AlreadyExists")
        assert status["message"].startswith("object is being deleted")

    def test_a_graceful_deletion_counts_as_a_generation(self, api: Api, namespace: str) -> None:
        deployments = api.of("apps/v1", "deployments", namespace)
        deployments.create(deployment("a", finalizers=["a.b/c"])).ok(201)
        assert deployments.delete("a").ok()["metadata"]["generation"] == 2

    @pytest.mark.parametrize("finalizer", ["unqualified", "a b/c", "a.b/c/d"])
    def test_finalizers_are_qualified_names(self, maps: Collection, finalizer: str) -> None:
        answer = maps.create(config_map("a", finalizers=[finalizer]))
        assert answer.code == 422, str(answer)
        assert "metadata.finalizers" in {field.partition("[")[0] for _, field in answer.causes()}


def _seconds_left(thing: Any, since: datetime.datetime) -> float:
    when = datetime.datetime.fromisoformat(thing["metadata"]["deletionTimestamp"])
    return (when - since).total_seconds()


class TestPods:
    """A pod on a node is given time to stop."""

    def test_a_bound_pod_has_its_grace_period(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        now = datetime.datetime.now(datetime.UTC)
        deleted = pods.delete("a").ok()
        assert deleted["kind"] == "Pod"
        assert deleted["metadata"]["deletionGracePeriodSeconds"] == 30
        assert 27 <= _seconds_left(deleted, now) <= 33
        assert pods.read("a").ok()["metadata"] == deleted["metadata"]

    def test_the_pod_says_how_long(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a", {"nodeName": "n1", "terminationGracePeriodSeconds": 7})).ok(201)
        assert pods.delete("a").ok()["metadata"]["deletionGracePeriodSeconds"] == 7

    def test_it_can_be_shortened_and_not_lengthened(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        pods.delete("a").ok()
        shorter = pods.delete("a", {"gracePeriodSeconds": 5}).ok()
        assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
        longer = pods.delete("a", {"gracePeriodSeconds": 60}).ok()
        assert longer["metadata"]["deletionGracePeriodSeconds"] == 5
        assert pods.read("a").ok()["metadata"] == shorter["metadata"]

    def test_grace_zero_removes_it(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        pods.delete("a").ok()
        assert pods.delete("a", {"gracePeriodSeconds": 0}).ok()["kind"] == "Pod"
        pods.read("a").refused(404, "NotFound")

    def test_the_query_can_say_how_long(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        pods.delete("a", gracePeriodSeconds=0).ok()
        pods.read("a").refused(404, "NotFound")

    def test_a_negative_grace_period_is_one_second(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        deleted = pods.delete("a", {"gracePeriodSeconds": -7}).ok()
        assert deleted["metadata"]["deletionGracePeriodSeconds"] == 1

    def test_an_unbound_pod_is_gone_at_once(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a")).ok(201)
        assert pods.delete("a").ok()["kind"] == "Pod"
        pods.read("a").refused(404, "NotFound")

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_a_finished_pod_is_gone_at_once(self, api: Api, namespace: str, phase: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        pods.patch("a", {"status": {"phase": phase}}, sub="status").ok()
        pods.delete("a").ok()
        pods.read("a").refused(404, "NotFound")

    def test_a_terminating_pod_counts_a_generation(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        made = pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        assert made["metadata"]["generation"] == 1
        assert pods.delete("a").ok()["metadata"]["generation"] == 2

    def test_a_finalizer_holds_a_pod_after_its_grace(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        pods.create(pod("a", {"nodeName": "n1"}, finalizers=["a.b/c"])).ok(201)
        pods.delete("a", {"gracePeriodSeconds": 0}).ok()
        assert pods.read("a").ok()["metadata"]["deletionGracePeriodSeconds"] == 0
        pods.patch("a", {"metadata": {"finalizers": None}}).ok()
        pods.read("a").refused(404, "NotFound")


def test_a_job_deleted_without_a_policy_warns_that_its_pods_stay(api: Api, namespace: str) -> None:
    jobs = api.of("batch/v1", "jobs", namespace)
    jobs.create(job("a")).ok(201)
    answer = jobs.delete("a")
    assert answer.code == 200
    assert any("pods" in warning for warning in answer.warnings)
    jobs.create(job("b")).ok(201)
    assert jobs.delete("b", {"propagationPolicy": "Background"}).warnings == []
