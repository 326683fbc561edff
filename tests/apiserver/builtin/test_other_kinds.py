"""Deployments and their like, budgets, leases, events, roles, volumes, classes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.surroundings import Around, created, refusals, served_as
from unisono.apiserver.builtin import STRATEGIES
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json

RBAC = "rbac.authorization.k8s.io"


def obj(**fields: Any) -> Json:
    return {"metadata": {"name": "it", "namespace": "default"}, **fields}


def of(key: str, **fields: Any) -> Json:
    served = served_as(key)
    return {"apiVersion": served.api_version, "kind": served.kind, **obj(**fields)}


# ---- apps --------------------------------------------------------------------------------------


def app(**spec: Any) -> Json:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    }
    return obj(spec={"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec})


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (
            "apps/deployments",
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
                },
            },
        ),
        ("apps/replicasets", {"replicas": 1}),
        (
            "apps/statefulsets",
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": {
                    "whenDeleted": "Retain",
                    "whenScaled": "Retain",
                },
            },
        ),
        (
            "apps/daemonsets",
            {
                "revisionHistoryLimit": 10,
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
                },
            },
        ),
    ],
)
def test_apps_are_filled_in(key: str, expected: Json) -> None:
    spec = created(key, app())["spec"]
    own = {name: spec[name] for name in spec if name not in ("selector", "template")}
    assert own == expected
    assert spec["template"]["spec"]["restartPolicy"] == "Always"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (app(), []),
        (
            app(strategy={"type": "X"}, replicas=-1, selector={}),
            [
                ("Invalid", "spec.replicas"),
                ("Invalid", "spec.selector"),
                ("NotSupported", "spec.strategy.type"),
            ],
        ),
        (
            app(selector={"matchLabels": {"a": "c"}}),
            [("Invalid", "spec.template.metadata.labels")],
        ),
        (
            app(selector=None),
            [("Required", "spec.selector"), ("Invalid", "spec.template.metadata.labels")],
        ),
    ],
)
def test_a_deployment(made: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals("apps/deployments", made) == expected


def test_the_selector_of_a_deployment_stays() -> None:
    old = created("apps/deployments", app())
    new = deepcopy(old)
    new["spec"]["replicas"] = 0
    assert refusals("apps/deployments", new, old) == []
    new["spec"]["selector"] = {"matchLabels": {"a": "b", "c": "d"}}
    new["spec"]["template"]["metadata"]["labels"]["c"] = "d"
    assert refusals("apps/deployments", new, old) == [("Invalid", "spec.selector")]


def test_annotations_of_a_deployment_count_as_a_generation() -> None:
    old = created("apps/deployments", app())
    new = deepcopy(old)
    new["metadata"]["annotations"] = {"a": "b"}
    assert STRATEGIES["apps/deployments"].generation_moves(new, old)
    assert not STRATEGIES["apps/replicasets"].generation_moves(new, old)


# ---- rules in one table ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "made", "expected"),
    [
        ("policy/poddisruptionbudgets", obj(spec={"minAvailable": "50%"}), []),
        (
            "policy/poddisruptionbudgets",
            obj(spec={"minAvailable": -1, "maxUnavailable": "200%"}),
            [
                ("Invalid", "spec"),
                ("Invalid", "spec.minAvailable"),
                ("Invalid", "spec.maxUnavailable"),
            ],
        ),
        (
            "policy/poddisruptionbudgets",
            obj(spec={"minAvailable": "x", "unhealthyPodEvictionPolicy": "X"}),
            [("Invalid", "spec.minAvailable"), ("NotSupported", "spec.unhealthyPodEvictionPolicy")],
        ),
        (
            "coordination.k8s.io/leases",
            obj(spec={"holderIdentity": "", "leaseDurationSeconds": 0, "leaseTransitions": -1}),
            [("Invalid", "spec.leaseDurationSeconds"), ("Invalid", "spec.leaseTransitions")],
        ),
        ("/events", of("/events", involvedObject={"namespace": "default"}), []),
        ("/events", of("/events", involvedObject={}), []),
        (
            "/events",
            of("/events", involvedObject={"namespace": "other"}),
            [("Invalid", "involvedObject.namespace")],
        ),
        (
            "events.k8s.io/events",
            obj(regarding={"namespace": "default"}),
            [("Required", "eventTime"), ("Invalid", "type")],
        ),
        (
            f"{RBAC}/roles",
            obj(rules=[{"verbs": []}, {"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
            [
                ("Required", "rules[0].verbs"),
                ("Required", "rules[0].apiGroups"),
                ("Required", "rules[0].resources"),
                ("Invalid", "rules[1].nonResourceURLs"),
            ],
        ),
        (f"{RBAC}/clusterroles", obj(rules=[{"verbs": ["*"], "nonResourceURLs": ["*"]}]), []),
        (
            f"{RBAC}/rolebindings",
            obj(
                roleRef={"kind": "X"},
                subjects=[
                    {"kind": "User"},
                    {"kind": "ServiceAccount", "name": "x"},
                    {"kind": "Y", "name": "z"},
                ],
            ),
            [
                ("NotSupported", "roleRef.kind"),
                ("Required", "roleRef.name"),
                ("Required", "subjects[0].name"),
                ("NotSupported", "subjects[2].kind"),
            ],
        ),
        (
            f"{RBAC}/clusterrolebindings",
            obj(
                roleRef={"kind": "ClusterRole", "name": "view"},
                subjects=[{"kind": "ServiceAccount", "name": "x"}],
            ),
            [("Required", "subjects[0].namespace")],
        ),
        (
            "/persistentvolumeclaims",
            obj(spec={"accessModes": ["X"]}),
            [("NotSupported", "spec.accessModes"), ("Required", "spec.resources[storage]")],
        ),
        ("storage.k8s.io/storageclasses", obj(), [("Required", "provisioner")]),
        (
            "scheduling.k8s.io/priorityclasses",
            obj(value=1_000_000_001),
            [("Forbidden", "value")],
        ),
        (
            "scheduling.k8s.io/priorityclasses",
            {"metadata": {"name": "system-x"}, "value": 1},
            [("Forbidden", "metadata.name")],
        ),
        (
            "scheduling.k8s.io/priorityclasses",
            {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000},
            [],
        ),
    ],
)
def test_what_is_refused(key: str, made: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals(key, made) == expected


@pytest.mark.parametrize(
    ("key", "before", "change", "expected"),
    [
        (
            "scheduling.k8s.io/priorityclasses",
            {"value": 1},
            {"value": 2},
            [("Forbidden", "value")],
        ),
        ("scheduling.k8s.io/priorityclasses", {"value": 1}, {"description": "x"}, []),
        (
            f"{RBAC}/rolebindings",
            {"roleRef": {"kind": "Role", "name": "a"}},
            {"roleRef": {"kind": "Role", "name": "b"}},
            [("Invalid", "roleRef")],
        ),
        (
            "/persistentvolumeclaims",
            {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": 1}}}},
            {"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": 1}}}},
            [("Forbidden", "spec")],
        ),
        (
            "storage.k8s.io/storageclasses",
            {"provisioner": "a.b/c"},
            {"provisioner": "a.b/d"},
            [("Forbidden", "provisioner")],
        ),
    ],
)
def test_what_stays(key: str, before: Json, change: Json, expected: list[tuple[str, str]]) -> None:
    old = created(key, obj(**before))
    assert refusals(key, {**deepcopy(old), **change}, old) == expected


# ---- what is filled in -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        (
            "coordination.k8s.io/leases",
            {"spec": {"renewTime": "2026-01-01T01:00:00.5+01:00", "acquireTime": "noon"}},
            {"spec": {"renewTime": "2026-01-01T00:00:00.500000Z", "acquireTime": "noon"}},
        ),
        (
            f"{RBAC}/rolebindings",
            {"roleRef": {"kind": "Role", "name": "a"}, "subjects": [{"kind": "User", "name": "x"}]},
            {
                "roleRef": {"kind": "Role", "name": "a", "apiGroup": RBAC},
                "subjects": [{"kind": "User", "name": "x", "apiGroup": RBAC}],
            },
        ),
        (
            "/limitranges",
            {
                "spec": {
                    "limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}}]
                }
            },
            {
                "spec": {
                    "limits": [
                        {
                            "type": "Container",
                            "max": {"cpu": "2"},
                            "min": {"memory": "1Gi"},
                            "default": {"cpu": "2"},
                            "defaultRequest": {"cpu": "2", "memory": "1Gi"},
                        }
                    ]
                }
            },
        ),
        (
            "/persistentvolumeclaims",
            {"spec": {}},
            {"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}},
        ),
        (
            "scheduling.k8s.io/priorityclasses",
            {"value": 3},
            {"value": 3, "preemptionPolicy": "PreemptLowerPriority"},
        ),
    ],
)
def test_what_is_filled_in(key: str, given: Json, expected: Json) -> None:
    made = created(key, obj(**given))
    assert {name: value for name, value in made.items() if name != "metadata"} == expected


def test_only_one_class_is_the_default() -> None:
    context = Around()
    key = "scheduling.k8s.io/priorityclasses"
    context.add(key, {"metadata": {"name": "a"}, "value": 1, "globalDefault": True})
    with pytest.raises(ApiError) as refused:
        refusals(key, obj(value=2, globalDefault=True), context=context)
    assert refused.value.code == 403


@pytest.mark.parametrize(
    ("key", "counts"),
    [
        ("/pods", True),
        ("batch/jobs", True),
        ("apps/deployments", True),
        ("apiextensions.k8s.io/customresourcedefinitions", True),
        ("scheduling.k8s.io/priorityclasses", True),
        ("policy/poddisruptionbudgets", True),
        ("/nodes", False),
        ("/namespaces", False),
        ("/configmaps", False),
        ("/secrets", False),
        ("/services", False),
        ("/events", False),
        ("coordination.k8s.io/leases", False),
        (f"{RBAC}/roles", False),
    ],
)
def test_which_kinds_count_generations(key: str, *, counts: bool) -> None:
    assert STRATEGIES[key].has_generation is counts
