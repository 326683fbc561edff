"""Pods: defaults, status, priority, what is refused and what may change.

Reasons and fields are those that a kube-apiserver 1.36 gave for the same objects.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.surroundings import Around, created, refusals
from unisono.apiserver.builtin import STRATEGIES
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json


def pod(spec: Json | None = None, **container: Any) -> Json:
    first = {"name": "a", "image": "busybox", **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [first], **(spec or {})},
    }


# ---- defaults ----------------------------------------------------------------------------------


def test_a_plain_pod_is_filled_in() -> None:
    made = created("/pods", pod())
    spec = made["spec"]
    assert {name: spec[name] for name in spec if name not in ("containers", "tolerations")} == {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "enableServiceLinks": True,
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert spec["containers"][0] == {
        "name": "a",
        "image": "busybox",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always",
    }
    assert [one["key"] for one in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_filling_in_twice_changes_nothing() -> None:
    volumes = [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}]
    made = created("/pods", pod({"volumes": volumes}, resources={"limits": {"cpu": "1"}}))
    again = deepcopy(made)
    STRATEGIES["/pods"].default(again)
    assert again == made


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1", "IfNotPresent"),
        ("host:5000/busybox", "Always"),
        ("host:5000/busybox@sha256:abc", "IfNotPresent"),
        ("busybox:latest@sha256:abc", "Always"),
    ],
)
def test_images_that_can_change_are_pulled_each_time(image: str, policy: str) -> None:
    made = created("/pods", pod(image=image))
    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_probes_ports_and_sources_are_filled_in() -> None:
    made = created(
        "/pods",
        pod(
            {"hostNetwork": True},
            ports=[{"containerPort": 80}],
            livenessProbe={"httpGet": {"port": 80}},
            readinessProbe={"grpc": {"port": 80}},
            lifecycle={"preStop": {"httpGet": {"port": 80}}},
            env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        ),
    )
    first = made["spec"]["containers"][0]
    assert first["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    seconds = {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    web = {"port": 80, "path": "/", "scheme": "HTTP"}
    assert first["livenessProbe"] == {"httpGet": web, **seconds}
    assert first["readinessProbe"] == {"grpc": {"port": 80, "service": ""}, **seconds}
    assert first["lifecycle"]["preStop"]["httpGet"] == web
    assert first["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"


def test_volumes_are_filled_in() -> None:
    volumes = [
        {"name": "e"},
        {"name": "s", "secret": {"secretName": "x"}},
        {"name": "c", "configMap": {"name": "x"}},
        {"name": "h", "hostPath": {"path": "/x"}},
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]
    made = created("/pods", pod({"volumes": volumes}))["spec"]["volumes"]
    assert made[0] == {"name": "e", "emptyDir": {}}
    assert made[1]["secret"]["defaultMode"] == made[2]["configMap"]["defaultMode"] == 420
    assert made[3]["hostPath"]["type"] == ""
    assert made[4]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    claim = made[5]["ephemeral"]["volumeClaimTemplate"]
    assert claim == {"metadata": {}, "spec": {"volumeMode": "Filesystem"}}


def test_limits_are_requests_where_there_are_none() -> None:
    made = created(
        "/pods", pod(resources={"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}})
    )
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_a_pod_that_tolerates_everything_gets_no_more_tolerations() -> None:
    everything = [{"operator": "Exists"}]
    made = created("/pods", pod({"tolerations": everything}))
    assert made["spec"]["tolerations"] == everything


@pytest.mark.parametrize("bad", ["text", 5, ["list"], {"containers": "x"}, {"containers": [1]}])
def test_what_has_the_wrong_type_is_left_to_the_schema(bad: object) -> None:
    obj = {"metadata": {}, "spec": bad}
    STRATEGIES["/pods"].default(obj)
    assert obj["spec"] == bad or isinstance(bad, dict)


# ---- status and priority -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_quality_of_service(resources: Json, expected: str) -> None:
    assert created("/pods", pod(resources=resources))["status"]["qosClass"] == expected


def test_gates_show_in_the_status() -> None:
    made = created("/pods", pod({"schedulingGates": [{"name": "a.b/c"}]}))
    [condition] = made["status"]["conditions"]
    assert condition["type"] == "PodScheduled"
    assert condition["status"] == "False"
    assert condition["reason"] == "SchedulingGated"


def test_a_status_that_comes_along_does_not_count() -> None:
    given = pod()
    given["status"] = {"phase": "Running", "qosClass": "Guaranteed"}
    assert created("/pods", given)["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def priority_class(name: str, value: int, **fields: Any) -> Json:
    return {"metadata": {"name": name}, "value": value, **fields}


def test_the_priority_comes_from_the_class() -> None:
    context = Around()
    context.add(
        "scheduling.k8s.io/priorityclasses",
        priority_class("high", 100, preemptionPolicy="Never"),
    )
    spec = created("/pods", pod({"priorityClassName": "high"}), context)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (100, "Never")
    spec = created("/pods", pod({"priorityClassName": "system-node-critical"}), context)["spec"]
    assert spec["priority"] == 2_000_001_000


def test_pods_without_a_class_get_the_default_one() -> None:
    context = Around()
    context.add("scheduling.k8s.io/priorityclasses", priority_class("b", 7, globalDefault=True))
    context.add("scheduling.k8s.io/priorityclasses", priority_class("a", 9, globalDefault=True))
    spec = created("/pods", pod(), context)["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (7, "b")


@pytest.mark.parametrize("spec", [{"priorityClassName": "nope"}, {"priority": 5}])
def test_a_priority_without_its_class_is_forbidden(spec: Json) -> None:
    with pytest.raises(ApiError) as refused:
        created("/pods", pod(spec))
    assert refused.value.code == 403


# ---- what is refused ---------------------------------------------------------------------------

FIRST = "spec.containers[0]"
TERMS = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)


def source(kind: str, **fields: str) -> Json:
    return {"name": "V", "valueFrom": {kind: fields}}


def needs(*keys: str) -> Json:
    clauses = [{"key": key, "operator": "Exists"} for key in keys]
    return {"matchExpressions": clauses}


def affinity(*terms: Json) -> Json:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (pod({"containers": []}), [("Required", "spec.containers")]),
        (pod(image=""), [("Required", f"{FIRST}.image")]),
        (pod(name="A_b"), [("Invalid", f"{FIRST}.name")]),
        (
            pod({"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]}),
            [("Duplicate", "spec.containers[1].name")],
        ),
        (
            pod(volumeMounts=[{"name": "nope", "mountPath": "/x"}]),
            [("NotFound", f"{FIRST}.volumeMounts[0].name")],
        ),
        (
            pod(resources={"requests": {"nvidia.com/gpu": "1"}}),
            [("Required", f"{FIRST}.resources.limits")],
        ),
        (
            pod(resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}),
            [("Invalid", f"{FIRST}.resources.requests")],
        ),
        (
            pod(resources={"limits": {"nvidia.com/gpu": "500m"}}),
            [
                ("Invalid", f"{FIRST}.resources.limits[nvidia.com/gpu]"),
                ("Invalid", f"{FIRST}.resources.requests[nvidia.com/gpu]"),
            ],
        ),
        (
            pod(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            [("Invalid", f"{FIRST}.resources.requests")],
        ),
        (
            pod(resources={"requests": {"cpu": "-2"}}),
            [("Invalid", f"{FIRST}.resources.requests[cpu]")],
        ),
        (
            pod(resources={"claims": [{"name": "x"}]}),
            [("NotFound", f"{FIRST}.resources.claims[0]")],
        ),
        (
            pod({"schedulingGates": [{"name": "x"}], "nodeName": "n"}),
            [("Forbidden", "spec.nodeName")],
        ),
        (
            pod({"schedulingGates": [{"name": "x"}, {"name": "x"}]}),
            [("Duplicate", "spec.schedulingGates[1]")],
        ),
        (pod({"restartPolicy": "Sometimes"}), [("NotSupported", "spec.restartPolicy")]),
        (pod({"dnsPolicy": "Foo"}), [("NotSupported", "spec.dnsPolicy")]),
        (
            pod({"nodeSelector": {"a b": "c", "x": "y z"}}),
            [("Invalid", "spec.nodeSelector"), ("Invalid", "spec.nodeSelector")],
        ),
        (
            pod({"tolerations": [{"operator": "Exists"}, {"key": "", "value": "x"}]}),
            [("Invalid", "spec.tolerations[1].operator")],
        ),
        (
            pod(ports=[{"containerPort": 0}, {"containerPort": 70000, "protocol": "X"}]),
            [
                ("Required", f"{FIRST}.ports[0].containerPort"),
                ("Invalid", f"{FIRST}.ports[1].containerPort"),
                ("NotSupported", f"{FIRST}.ports[1].protocol"),
            ],
        ),
        (
            pod(
                env=[
                    {"name": ""},
                    {"name": "a=b"},
                    {**source("fieldRef", fieldPath="metadata.name"), "value": "x"},
                    {"name": "d", "valueFrom": {}},
                ]
            ),
            [
                ("Required", f"{FIRST}.env[0].name"),
                ("Invalid", f"{FIRST}.env[1].name"),
                ("Invalid", f"{FIRST}.env[2].valueFrom"),
                ("Invalid", f"{FIRST}.env[3].valueFrom"),
            ],
        ),
        (pod({"activeDeadlineSeconds": 0}), [("Invalid", "spec.activeDeadlineSeconds")]),
        (
            pod({"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}]}),
            [("Forbidden", "spec.volumes[0].hostPath")],
        ),
        (
            pod({"hostname": "A_", "subdomain": "a.b"}),
            [("Invalid", "spec.hostname"), ("Invalid", "spec.subdomain")],
        ),
        (pod(imagePullPolicy="X"), [("NotSupported", f"{FIRST}.imagePullPolicy")]),
        (
            pod(resources={"limits": {"bad": "1"}, "requests": {"bad": "1"}}),
            [
                ("Invalid", f"{FIRST}.resources.limits[bad]"),
                ("Invalid", f"{FIRST}.resources.requests[bad]"),
            ],
        ),
        (
            pod(resources={"limits": {"hugepages-2Mi": "2Mi"}}),
            [("Forbidden", f"{FIRST}.resources")],
        ),
        (
            pod(
                env=[
                    source("configMapKeyRef", name="x", key=""),
                    source("fieldRef", fieldPath="metadata.foo"),
                    source("fieldRef", fieldPath="status.phase"),
                    source("fieldRef", fieldPath="metadata.labels['a']"),
                    source("resourceFieldRef", resource="limits.foo"),
                ],
                envFrom=[{}, {"configMapRef": {"name": ""}}],
            ),
            [
                ("Required", f"{FIRST}.env[0].valueFrom.configMapKeyRef.key"),
                ("Invalid", f"{FIRST}.env[1].valueFrom.fieldRef.fieldPath"),
                ("NotSupported", f"{FIRST}.env[2].valueFrom.fieldRef.fieldPath"),
                ("NotSupported", f"{FIRST}.env[4].valueFrom.resourceFieldRef.resource"),
                ("Invalid", f"{FIRST}.envFrom"),
                ("Required", f"{FIRST}.envFrom[1].configMapRef.name"),
            ],
        ),
        (
            pod(
                ports=[
                    {"containerPort": 1, "name": "A", "hostPort": 9},
                    {"containerPort": 2, "name": "a" * 16, "hostPort": 9},
                ]
            ),
            [
                ("Invalid", f"{FIRST}.ports[0].name"),
                ("Invalid", f"{FIRST}.ports[1].name"),
                ("Duplicate", f"{FIRST}.ports[1].hostPort"),
            ],
        ),
        (
            pod(
                livenessProbe={},
                readinessProbe={"exec": {"command": []}, "periodSeconds": -1},
                startupProbe={"httpGet": {"port": 0}, "successThreshold": 2},
                lifecycle={"preStop": {"sleep": {"seconds": 100}}, "postStart": {}},
            ),
            [
                ("Required", f"{FIRST}.livenessProbe"),
                ("Required", f"{FIRST}.readinessProbe.exec.command"),
                ("Invalid", f"{FIRST}.readinessProbe.periodSeconds"),
                ("Invalid", f"{FIRST}.startupProbe.httpGet.port"),
                ("Invalid", f"{FIRST}.startupProbe.successThreshold"),
                ("Required", f"{FIRST}.lifecycle.postStart"),
                ("Invalid", f"{FIRST}.lifecycle.preStop.sleep"),
            ],
        ),
        (
            pod(
                {
                    "initContainers": [
                        {"name": "i", "image": "x", "lifecycle": {}},
                        {"name": "s", "image": "x", "restartPolicy": "Always", "lifecycle": {}},
                    ]
                }
            ),
            [("Forbidden", "spec.initContainers[0].lifecycle")],
        ),
        (
            pod(
                {
                    "volumes": [
                        {"name": "a", "hostPath": {"path": ""}},
                        {"name": "b", "secret": {"secretName": "x", "defaultMode": 4096}},
                        {"name": "c", "emptyDir": {"sizeLimit": "-1"}},
                        {"name": "d", "configMap": {"name": "x", "items": [{"key": "k"}]}},
                    ]
                }
            ),
            [
                ("Required", "spec.volumes[0].hostPath.path"),
                ("Invalid", "spec.volumes[1].secret.defaultMode"),
                ("Forbidden", "spec.volumes[2].emptyDir.sizeLimit"),
                ("Required", "spec.volumes[3].configMap.items[0].path"),
            ],
        ),
        (
            pod(
                {
                    "tolerations": [
                        {"operator": "Exists"},
                        {"key": "a b", "operator": "Exists"},
                        {"key": "a", "operator": "In"},
                        {"key": "a", "operator": "Exists", "effect": "Bad"},
                        {"key": "a", "operator": "Exists", "tolerationSeconds": 5},
                    ]
                }
            ),
            [
                ("Invalid", "spec.tolerations[1].key"),
                ("NotSupported", "spec.tolerations[2].operator"),
                ("NotSupported", "spec.tolerations[3].effect"),
                ("Invalid", "spec.tolerations[4].effect"),
            ],
        ),
        (
            pod(
                {
                    "topologySpreadConstraints": [
                        {"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "DoNotSchedule"},
                        {
                            "maxSkew": 0,
                            "topologyKey": "a",
                            "whenUnsatisfiable": "X",
                            "minDomains": 0,
                        },
                    ]
                }
            ),
            [
                ("Required", "spec.topologySpreadConstraints[0].topologyKey"),
                ("Invalid", "spec.topologySpreadConstraints[1].maxSkew"),
                ("NotSupported", "spec.topologySpreadConstraints[1].whenUnsatisfiable"),
                ("Invalid", "spec.topologySpreadConstraints[1].minDomains"),
            ],
        ),
        (
            pod({"affinity": affinity({"matchExpressions": [{"key": "a", "operator": "Bad"}]})}),
            [("Invalid", f"{TERMS}[0].matchExpressions[0].operator")],
        ),
        (
            pod({"dnsPolicy": "None", "hostAliases": [{"ip": "x", "hostnames": ["a b"]}]}),
            [
                ("Required", "spec.dnsConfig"),
                ("Invalid", "spec.hostAliases[0].ip"),
                ("Invalid", "spec.hostAliases[0].hostnames[0]"),
            ],
        ),
        (
            pod({"securityContext": {"runAsUser": -1}}, securityContext={"runAsGroup": -1}),
            [
                ("Invalid", f"{FIRST}.securityContext.runAsGroup"),
                ("Invalid", "spec.securityContext.runAsUser"),
            ],
        ),
        (pod(), []),
    ],
)
def test_a_new_pod(made: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals("/pods", made) == expected


# ---- what may change ---------------------------------------------------------------------------


GATED = {"schedulingGates": [{"name": "a"}]}


@pytest.mark.parametrize(
    ("before", "change", "expected"),
    [
        ({}, {"activeDeadlineSeconds": 5}, []),
        ({"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 5}, []),
        (
            {"activeDeadlineSeconds": 9},
            {"activeDeadlineSeconds": 15},
            [("Invalid", "spec.activeDeadlineSeconds")],
        ),
        (
            {"activeDeadlineSeconds": 9},
            {"activeDeadlineSeconds": None},
            [("Invalid", "spec.activeDeadlineSeconds")],
        ),
        ({}, {"tolerations": []}, []),  # the server's own come back by themselves
        (
            {"tolerations": [{"key": "x", "operator": "Exists"}]},
            {"tolerations": []},
            [("Forbidden", "spec.tolerations")],
        ),
        (GATED, {"schedulingGates": None}, []),
        (
            GATED,
            {"schedulingGates": [{"name": "a"}, {"name": "c"}]},
            [("Forbidden", "spec.schedulingGates[1].name")],
        ),
        (
            {},
            {"schedulingGates": [{"name": "c"}]},
            [("Forbidden", "spec.schedulingGates[0].name")],
        ),
        (GATED, {"nodeSelector": {"a": "b"}}, []),
        (GATED, {"nodeSelector": {"a": "b"}, "schedulingGates": None}, []),
        (
            {**GATED, "nodeSelector": {"a": "c"}},
            {"nodeSelector": {"a": "b"}},
            [("Invalid", "spec.nodeSelector")],
        ),
        ({}, {"nodeSelector": {"a": "b"}}, [("Forbidden", "spec")]),
        (GATED, {"affinity": affinity(needs("a"))}, []),
        ({**GATED, "affinity": affinity(needs("a"))}, {"affinity": affinity(needs("a", "b"))}, []),
        (
            {**GATED, "affinity": affinity(needs("a"))},
            {"affinity": affinity(needs("a"), needs("b"))},
            [("Invalid", TERMS)],
        ),
        (
            {**GATED, "affinity": affinity(needs("a"))},
            {"affinity": affinity(needs("b"))},
            [("Invalid", f"{TERMS}[0]")],
        ),
        ({}, {"nodeName": "x"}, [("Forbidden", "spec")]),
        ({}, {"terminationGracePeriodSeconds": 5}, [("Forbidden", "spec")]),
        ({}, {"priority": 5}, [("Forbidden", "spec")]),
    ],
)
def test_an_old_pod(before: Json, change: Json, expected: list[tuple[str, str]]) -> None:
    old = created("/pods", pod(before))
    new = deepcopy(old)
    new["spec"].update(change)
    assert refusals("/pods", new, old) == expected


def test_images_may_change_and_commands_may_not() -> None:
    old = created("/pods", pod())
    new = deepcopy(old)
    new["spec"]["containers"][0]["image"] = "other"
    assert refusals("/pods", new, old) == []
    new["spec"]["containers"][0]["command"] = ["x"]
    assert refusals("/pods", new, old) == [("Forbidden", "spec")]
    new["spec"]["containers"].append({"name": "b", "image": "x"})
    assert ("Forbidden", "spec.containers") in refusals("/pods", new, old)
