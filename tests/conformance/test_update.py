"""Replace: optimistic concurrency, what may change, and writes that change nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.client import STRATEGIC_PATCH, Api, changed
from tests.conformance.objects import config_map, container, deployment, job, node, pod


def test_a_replacement_is_the_whole_object(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    made = maps.create(config_map("a", {"k": "v"}, labels={"x": "1"})).ok(201)
    replaced = maps.replace(config_map("a", {"l": "w"})).ok()
    assert replaced["data"] == {"l": "w"}
    assert "labels" not in replaced["metadata"]
    assert replaced["metadata"]["uid"] == made["metadata"]["uid"]
    assert replaced["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert int(replaced["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_a_stale_resource_version_is_a_conflict(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    old = maps.create(config_map("a", {"k": "1"})).ok(201)
    maps.replace(changed(old, data={"k": "2"})).ok()
    status = maps.replace(changed(old, data={"k": "3"})).refused(409, "Conflict")
    assert status["details"] == {"name": "a", "kind": "configmaps"}
    assert maps.read("a").ok()["data"] == {"k": "2"}


def test_of_two_writers_at_one_version_exactly_one_wins(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    seen = maps.create(config_map("a")).ok(201)
    ways = [api.another() for _ in range(8)]

    def write(number: int) -> int:
        mine = ways[number].of("v1", "configmaps", namespace)
        return mine.replace(changed(seen, data={"winner": str(number)})).code

    with ThreadPoolExecutor(max_workers=8) as pool:
        codes = list(pool.map(write, range(8)))
    for way in ways:
        way.close()
    assert sorted(codes) == [200] + [409] * 7
    assert maps.read("a").ok()["data"] == {"winner": str(codes.index(200))}


def test_patches_at_the_same_time_all_land(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    ways = [api.another() for _ in range(4)]

    def write(number: int) -> list[int]:
        mine = ways[number].of("v1", "configmaps", namespace)
        keys = [f"k{number}{turn}" for turn in range(5)]
        return [mine.patch("a", {"data": {key: "v"}}).code for key in keys]

    with ThreadPoolExecutor(max_workers=4) as pool:
        codes = list(pool.map(write, range(4)))
    for way in ways:
        way.close()
    assert codes == [[200] * 5] * 4
    assert len(maps.read("a").ok()["data"]) == 20


def test_without_a_resource_version_the_last_writer_wins(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a", {"k": "1"})).ok(201)
    maps.replace(config_map("a", {"k": "2"})).ok()
    assert maps.read("a").ok()["data"] == {"k": "2"}


def test_another_uid_is_a_conflict(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    maps.replace(config_map("a", uid="12345678-1234-4234-8234-123456789012")).refused(
        409, "Conflict"
    )


def test_what_does_not_exist_is_not_found(api: Api, namespace: str) -> None:
    answer = api.of("batch/v1", "jobs", namespace).replace(job("absent"))
    assert answer.refused(404, "NotFound")["details"] == {
        "name": "absent",
        "group": "batch",
        "kind": "jobs",
    }


def test_the_name_in_the_body_must_be_that_of_the_path(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    api.request("PUT", maps.at("a"), config_map("b")).refused(400, "BadRequest")
    api.request("PUT", maps.at("a"), config_map("a", namespace="default")).refused(
        400, "BadRequest"
    )


def test_identity_cannot_be_changed(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    made = maps.create(config_map("a")).ok(201)
    replaced = maps.replace(
        config_map("a", {"k": "v"}, creationTimestamp="2001-01-01T00:00:00Z", generateName="x")
    ).ok()
    assert replaced["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]


def test_a_write_that_changes_nothing_keeps_the_version(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    made = pods.create(pod("a")).ok(201)
    with pods.watch(resourceVersion=made["metadata"]["resourceVersion"]) as events:
        assert pods.replace(made).ok() == made
        assert pods.patch("a", {"metadata": {"labels": None}}).ok() == made
        assert pods.patch("a", {"spec": {"restartPolicy": "Always"}}).ok() == made
        pods.patch("a", {"metadata": {"labels": {"x": "1"}}}).ok()
        kind, thing = events.next()
    assert (kind, thing["metadata"]["labels"]) == ("MODIFIED", {"x": "1"})


def test_another_spelling_of_a_quantity_is_not_a_change(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    limits: dict[str, object] = {"nvidia.com/gpu": 1, "cpu": "1000m"}
    sent = pod("a", {"containers": [container(resources={"limits": limits})]})
    made = pods.create(sent).ok(201)
    stored = made["spec"]["containers"][0]["resources"]
    assert stored["limits"] == {"nvidia.com/gpu": "1", "cpu": "1"}
    limits["cpu"] = 1
    again = pods.patch("a", sent, kind=STRATEGIC_PATCH).ok()
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_generation_counts_changes_of_the_spec(api: Api, namespace: str) -> None:
    deployments = api.of("apps/v1", "deployments", namespace)

    def generation(patch: dict[str, object], sub: str | None = None) -> int:
        return int(deployments.patch("a", patch, sub=sub).ok()["metadata"]["generation"])

    assert deployments.create(deployment("a")).ok(201)["metadata"]["generation"] == 1
    assert generation({"metadata": {"labels": {"x": "1"}}}) == 1
    assert generation({"spec": {"replicas": 3}}) == 2
    assert generation({"status": {"replicas": 3}}, sub="status") == 2
    assert generation({"spec": {"replicas": 3}}) == 2
    assert generation({"metadata": {"generation": 17}}) == 2


def test_config_maps_have_no_generation(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    assert "generation" not in maps.create(config_map("a")).ok(201)["metadata"]
    assert "generation" not in maps.patch("a", {"data": {"k": "v"}}).ok()["metadata"]


def test_an_immutable_config_map_stays_as_it_is(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(changed(config_map("a", {"k": "v"}), immutable=True)).ok(201)
    assert maps.patch("a", {"data": {"k": "w"}}).causes() == {("FieldValueForbidden", "data")}
    maps.patch("a", {"metadata": {"labels": {"x": "1"}}}).ok()


def test_most_of_a_pod_cannot_change(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    pods.create(pod("a")).ok(201)
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "other"}]
    assert pods.patch("a", image, kind="application/json-patch+json").ok()
    assert ("FieldValueForbidden", "spec") in pods.patch(
        "a", {"spec": {"hostname": "elsewhere"}}
    ).causes()
    assert ("FieldValueForbidden", "spec") in pods.patch("a", {"spec": {"priority": 7}}).causes()


def test_the_pod_template_of_a_job_cannot_change(api: Api, namespace: str) -> None:
    jobs = api.of("batch/v1", "jobs", namespace)
    jobs.create(job("a")).ok(201)
    template = {"spec": {"terminationGracePeriodSeconds": 7}}
    assert jobs.patch("a", {"spec": {"template": template}}).causes() == {
        ("FieldValueInvalid", "spec.template")
    }
    assert jobs.patch("a", {"spec": {"completionMode": "Indexed"}}).code == 422
    assert jobs.patch("a", {"spec": {"parallelism": 4}}).ok()["spec"]["parallelism"] == 4
    assert jobs.patch("a", {"spec": {"suspend": True}}).ok()["spec"]["suspend"] is True


def test_a_suspended_job_may_be_given_other_nodes(api: Api, namespace: str) -> None:
    jobs = api.of("batch/v1", "jobs", namespace)
    jobs.create(job("a", {"suspend": True})).ok(201)
    template = {
        "metadata": {"labels": {"x": "1"}, "annotations": {"y": "2"}},
        "spec": {
            "nodeSelector": {"gpu": "h100"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }
    got = jobs.patch("a", {"spec": {"template": template}}).ok()["spec"]["template"]
    assert got["spec"]["nodeSelector"] == {"gpu": "h100"}
    assert got["metadata"]["labels"]["x"] == "1"


def test_an_indexed_job_grows_and_shrinks_with_its_parallelism(api: Api, namespace: str) -> None:
    jobs = api.of("batch/v1", "jobs", namespace)
    indexed = {"completionMode": "Indexed", "completions": 4, "parallelism": 2}
    jobs.create(job("a", indexed)).ok(201)
    refused = jobs.patch("a", {"spec": {"completions": 3}})
    assert refused.causes() == {("FieldValueInvalid", "spec.completions")}
    # Also if only the completions change, and then are as many as run at once.
    assert jobs.patch("a", {"spec": {"completions": 2}}).ok()["spec"]["completions"] == 2
    both = {"completions": 5, "parallelism": 5}
    assert jobs.patch("a", {"spec": both}).ok()["spec"]["completions"] == 5
    assert jobs.patch("a", {"spec": {"completions": None}}).code == 422


@pytest.mark.parametrize("plural", ["pods", "nodes"])
def test_put_to_a_collection_is_not_allowed(api: Api, plural: str) -> None:
    api.request("PUT", f"/api/v1/{plural}", node("a")).refused(405, "MethodNotAllowed")
