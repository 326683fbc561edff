"""Versions of one object, field by field."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from unisono.apiserver.objects import Json
from unisono.apiserver.rest.versions import convert

KUEUE = "kueue.x-k8s.io"


def converted(plural: str, version: str, to: str, **body: Any) -> Json:
    obj = {"apiVersion": f"{KUEUE}/{version}", "kind": "X", "metadata": {"name": "x"}, **body}
    return convert(f"{KUEUE}/{plural}", obj, to)


@pytest.mark.parametrize(
    ("plural", "old", "new"),
    [
        ("clusterqueues", {"spec": {"cohort": "a"}}, {"spec": {"cohortName": "a"}}),
        ("localqueues", {"status": {"flavorUsage": []}}, {"status": {"flavorsUsage": []}}),
        (
            "workloads",
            {
                "spec": {
                    "priorityClassName": "high",
                    "priorityClassSource": "scheduling.k8s.io/priorityclass",
                },
                "status": {"accumulatedPastExexcutionTimeSeconds": 5},
            },
            {
                "spec": {
                    "priorityClassRef": {
                        "group": "scheduling.k8s.io",
                        "kind": "PriorityClass",
                        "name": "high",
                    }
                },
                "status": {"accumulatedPastExecutionTimeSeconds": 5},
            },
        ),
        (
            "multikueueclusters",
            {"spec": {"kubeConfig": {"location": "a"}}},
            {"spec": {"clusterSource": {"kubeConfig": {"location": "a"}}}},
        ),
    ],
)
def test_fields_with_other_names(plural: str, old: Json, new: Json) -> None:
    up = converted(plural, "v1beta1", "v1beta2", **deepcopy(old))
    assert {name: up[name] for name in new} == new
    assert up["metadata"] == {"name": "x"}, "nothing had to be kept aside"
    down = converted(plural, "v1beta2", "v1beta1", **deepcopy(new))
    assert {name: down[name] for name in old} == old


def test_words_with_another_meaning() -> None:
    old = {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}}
    up = converted("clusterqueues", "v1beta1", "v1beta2", spec=old)
    assert up["spec"]["flavorFungibility"] == {
        "whenCanBorrow": "MayStopSearch",
        "whenCanPreempt": "MayStopSearch",
    }
    back = convert(f"{KUEUE}/clusterqueues", up, "v1beta1")
    assert back["spec"] == old
    assert "annotations" not in back["metadata"]


def test_a_list_of_checks_becomes_a_strategy_and_comes_back() -> None:
    up = converted("clusterqueues", "v1beta1", "v1beta2", spec={"admissionChecks": ["a", "b"]})
    rules = [{"name": "a"}, {"name": "b"}]
    assert up["spec"] == {"admissionChecksStrategy": {"admissionChecks": rules}}
    back = convert(f"{KUEUE}/clusterqueues", up, "v1beta1")
    assert back["spec"] == {"admissionChecks": ["a", "b"]}


def test_what_was_changed_in_the_meantime_is_not_put_back() -> None:
    up = converted("clusterqueues", "v1beta1", "v1beta2", spec={"admissionChecks": ["a"]})
    up["spec"]["admissionChecksStrategy"]["admissionChecks"].append({"name": "b"})
    back = convert(f"{KUEUE}/clusterqueues", up, "v1beta1")
    checks = back["spec"]["admissionChecksStrategy"]["admissionChecks"]
    assert checks == [{"name": "a"}, {"name": "b"}]


def test_what_a_version_does_not_know_is_kept_aside() -> None:
    up = converted("admissionchecks", "v1beta1", "v1beta2", spec={"retryDelayMinutes": 5})
    assert up["spec"] == {}
    [name] = up["metadata"]["annotations"]
    assert name == "unisono.dev/kept-for-kueue.x-k8s.io-v1beta1"
    back = convert(f"{KUEUE}/admissionchecks", up, "v1beta1")
    assert back["spec"] == {"retryDelayMinutes": 5}
    assert "annotations" not in back["metadata"]


@pytest.mark.parametrize("text", ["", "nonsense", "[1]", "[[[],[],[]]]", '[[["spec"],[1],[2]]]'])
def test_an_annotation_that_is_not_ours_does_no_harm(text: str) -> None:
    name = "unisono.dev/kept-for-kueue.x-k8s.io-v1beta1"
    obj = {
        "apiVersion": f"{KUEUE}/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": "x", "annotations": {name: text}},
        "spec": {"controllerName": "c"},
    }
    back = convert(f"{KUEUE}/admissionchecks", obj, "v1beta1")
    assert back["spec"] == {"controllerName": "c"}


def test_the_topology_of_an_assignment() -> None:
    domains = [{"values": ["b1", "n1"], "count": 2}, {"values": ["b1", "n2"], "count": 2}]
    old = {"name": "main", "topologyAssignment": {"levels": ["b", "h"], "domains": domains}}
    status = {"admission": {"podSetAssignments": [old]}}
    up = converted("workloads", "v1beta1", "v1beta2", status=deepcopy(status))
    made = up["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]
    assert "slices" in made
    assert convert(f"{KUEUE}/workloads", up, "v1beta1")["status"] == status


def test_a_cohort_of_the_first_version() -> None:
    up = converted("cohorts", "v1alpha1", "v1beta2", spec={"parent": "root"})
    assert up["spec"] == {"parentName": "root"}
    assert convert(f"{KUEUE}/cohorts", up, "v1alpha1")["spec"] == {"parent": "root"}


def test_both_faces_of_an_event() -> None:
    core = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"name": "x"},
        "message": "m",
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "c"},
        "reason": "R",
    }
    new = convert("events.k8s.io/events", core, "v1")
    assert new == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": core["metadata"],
        "regarding": {"name": "x"},
        "note": "m",
        "deprecatedCount": 3,
        "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedSource": {"component": "c"},
        "reason": "R",
    }
    assert convert("/events", new, "v1") == core


def test_a_pod_group_of_an_older_version() -> None:
    old = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {
            "disruptionMode": "PodGroup",
            "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
        },
    }
    up = convert("scheduling.k8s.io/podgroups", old, "v1beta1")
    assert up["spec"] == {
        "disruptionMode": {"all": {}},
        "workloadRef": {"workloadName": "w", "templateName": "t"},
    }
    assert convert("scheduling.k8s.io/podgroups", up, "v1alpha2") == old


def test_kinds_that_do_not_differ_only_change_their_version() -> None:
    obj = {"apiVersion": "ray.io/v1alpha1", "kind": "RayCluster", "metadata": {}, "spec": {"a": 1}}
    assert convert("ray.io/rayclusters", obj, "v1") == {**obj, "apiVersion": "ray.io/v1"}
    assert convert("ray.io/rayclusters", obj, "v1alpha1") == obj


def test_an_autoscaler_goes_by_the_cpu() -> None:
    old = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
    }
    new = convert("autoscaling/horizontalpodautoscalers", old, "v2")
    target = {"type": "Utilization", "averageUtilization": 50}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    assert new["spec"] == {"maxReplicas": 3, "metrics": [metric]}
    assert convert("autoscaling/horizontalpodautoscalers", new, "v1") == old
    new["spec"]["metrics"].append({"type": "Resource", "resource": {"name": "memory"}})
    down = convert("autoscaling/horizontalpodautoscalers", new, "v1")
    assert down["spec"] == old["spec"]
    assert convert("autoscaling/horizontalpodautoscalers", down, "v2") == new
