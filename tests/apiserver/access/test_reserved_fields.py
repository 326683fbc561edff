"""What the right to write an object does not include."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.apiserver.access.cluster import MASTER, Cluster, person, rule, user
from unisono.apiserver.access.reserved_fields import RESERVED, job_kinds, overreach
from unisono.apiserver.objects import Json
from unisono.kinds.shapes.served import Served

ALICE = user("alice")
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "bobs", "uid": "u", "controller": True}


def cluster_with(*rules: Json) -> Cluster:
    cluster = Cluster()
    cluster.role("more", *rules)
    cluster.bind("more", person("alice"), namespace="a")
    cluster.bind("unisono:batch-user", person("alice"), namespace="a")
    cluster.bind("edit", person("alice"), namespace="a")
    return cluster


def pod(**spec: Any) -> Json:
    containers = [{"name": "main", "image": "busybox"}]
    return {"metadata": {"name": "p", "namespace": "a"}, "spec": {"containers": containers, **spec}}


def template(**spec: Any) -> Json:
    """Return a job of a kind with nested templates."""
    inner = {"metadata": {}, "spec": {"template": {"metadata": {}, **pod(**spec)}}}
    inner["spec"]["template"]["metadata"] = {}
    jobs = [{"name": "workers", "replicas": 2, "template": inner}]
    return {"metadata": {"name": "p", "namespace": "a"}, "spec": {"replicatedJobs": jobs}}


def why(
    obj: Json, old: Json | None = None, *rules: Json, caller: Any = ALICE, key: str = ""
) -> str:
    refused = overreach(cluster_with(*rules).authorizer, caller, key or "/pods", obj, old)
    assert refused is None or refused.code == 403
    return refused.message if refused else ""


BINDING = rule("create", "pods/binding")


def test_a_node_is_the_schedulers_choice() -> None:
    assert "spec.nodeName: only users who may create pods/binding" in why(pod(nodeName="n1"))
    nested = "spec.replicatedJobs[0].template.spec.template.spec.nodeName: only users who"
    assert nested in why(template(nodeName="n1"), key="jobset.x-k8s.io/jobsets")
    assert why(pod(nodeName="n1"), None, BINDING) == ""
    assert why(pod(nodeName="n1"), None, caller=MASTER) == ""
    assert why(pod(nodeSelector={"kubernetes.io/hostname": "n1"})) == ""
    # A pod that has a node by now may still get a label.
    bound = pod(nodeName="n1")
    labelled = copy.deepcopy(bound)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert why(labelled, bound) == ""
    assert "nodeName" in why(pod(nodeName="n2"), bound)


@pytest.mark.parametrize("key", sorted(RESERVED))
@pytest.mark.parametrize("part", ["annotations", "labels"])
def test_what_controllers_write_is_theirs(key: str, part: str) -> None:
    forged = pod()
    forged["metadata"][part] = {key: "bobs", "harmless": "x"}
    assert f"metadata.{part}[{key}]: is written by" in why(forged)
    assert why(forged, copy.deepcopy(forged)) == ""
    assert why(forged, None, BINDING) == ""
    changed = copy.deepcopy(forged)
    changed["metadata"][part][key] = "carols"
    assert why(changed, forged)
    inner = template()
    deep = inner["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    deep["metadata"] = {part: {key: "bobs"}}
    assert f"template.metadata.{part}[{key}]" in why(inner, key="jobset.x-k8s.io/jobsets")


def test_a_gate_of_a_queue_is_not_lifted_by_hand() -> None:
    gates = [{"name": "mine"}, {"name": "kueue.x-k8s.io/admission"}]
    gated = pod(schedulingGates=gates)
    assert why(gated) == ""
    assert why(pod(schedulingGates=gates[1:]), gated) == ""
    assert "kueue.x-k8s.io/admission is lifted when" in why(pod(schedulingGates=gates[:1]), gated)
    assert "kueue.x-k8s.io/admission is lifted when" in why(pod(), gated)
    assert why(pod(), gated, BINDING) == ""


def test_a_pod_of_a_user_is_not_made_part_of_another_job() -> None:
    child = pod()
    child["metadata"]["ownerReferences"] = [OWNER]
    assert "only a controller makes an object part of a Job" in why(child)
    assert "part of a Job" in why(child, pod())
    assert why(child, copy.deepcopy(child)) == ""
    assert why(child, None, rule("update", "jobs/finalizers", "batch")) == ""
    plain = pod()
    plain["metadata"]["ownerReferences"] = [{**OWNER, "controller": False}]
    assert why(plain) == ""
    other = pod()
    other["metadata"]["ownerReferences"] = [{**OWNER, "apiVersion": "v1", "kind": "ConfigMap"}]
    assert why(other) == ""


def test_an_owner_is_the_same_in_every_version() -> None:
    older = {**OWNER, "apiVersion": "ray.io/v1alpha1", "kind": "RayCluster"}
    owned = pod()
    owned["metadata"]["ownerReferences"] = [older]
    assert "only a controller makes an object part of a RayCluster" in why(owned)


@pytest.mark.parametrize("served", job_kinds().values(), ids=lambda one: one.resource)
def test_batch_users_submit_every_kind_of_job(served: Served) -> None:
    cluster = Cluster()
    cluster.bind("unisono:batch-user", person("alice"), namespace="a")
    for verb in ("get", "list", "watch", "create", "update", "patch", "delete"):
        assert cluster.authorizer.allows(ALICE, verb, served.group, served.plural, "", "a"), verb
    assert not cluster.authorizer.allows(
        ALICE, "update", served.group, served.plural, "status", "a"
    )


def test_odd_shapes_are_no_trouble() -> None:
    odd: Json = {"metadata": {"annotations": 3, "labels": []}, "spec": [[{"containers": 1}], None]}
    assert why(odd) == ""
    deep: Any = {"containers": [], "nodeName": "n"}
    for _ in range(3000):
        deep = {"spec": deep}
    assert why({"metadata": {}, "spec": deep}) == ""


def test_statuses_are_their_operators() -> None:
    """Users who submit jobs may not say that they were admitted, or have ended."""
    authorizer = cluster_with().authorizer
    for group, plural in (
        ("kueue.x-k8s.io", "workloads"),
        ("kubeflow.org", "pytorchjobs"),
        ("batch", "jobs"),
        ("", "pods"),
    ):
        for verb in ("update", "patch"):
            assert not authorizer.allows(ALICE, verb, group, plural, "status", "a")
    assert authorizer.allows(ALICE, "create", "kubeflow.org", "pytorchjobs", "", "a")
    assert not authorizer.allows(ALICE, "create", "kueue.x-k8s.io", "workloads", "", "a")
