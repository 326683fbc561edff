"""Pods: what the server fills in, how they get a node, and how they are evicted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import STRATEGIC_PATCH, Api, Collection, Manifest, eventually
from tests.conformance.objects import container, disruption_budget, pod


@pytest.fixture
def pods(api: Api, namespace: str) -> Collection:
    return api.of("v1", "pods", namespace)


def _condition(thing: Any, kind: str) -> Manifest | None:
    for each in thing["status"].get("conditions", ()):
        if each["type"] == kind:
            assert isinstance(each, dict)
            return each
    return None


class TestDefaults:
    """What stands in a pod that says almost nothing."""

    def test_of_the_pod(self, pods: Collection) -> None:
        spec = pods.create(pod("a")).ok(201)["spec"]
        expected = {
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30,
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "enableServiceLinks": True,
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{state}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for state in ("not-ready", "unreachable")
            ],
        }
        assert {name: spec[name] for name in expected} == expected

    def test_of_a_container(self, pods: Collection) -> None:
        probe = {"httpGet": {"port": 80}}
        one = container(ports=[{"containerPort": 80}], readinessProbe=probe)
        spec = pods.create(pod("a", {"containers": [one]})).ok(201)["spec"]
        assert spec["containers"] == [
            {
                "name": "main",
                "image": "busybox:1.36",
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "readinessProbe": {
                    "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
                    "timeoutSeconds": 1,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                },
            }
        ]

    @pytest.mark.parametrize(
        ("image", "policy"),
        [("a", "Always"), ("a:latest", "Always"), ("a:1", "IfNotPresent"), ("h:5000/a", "Always")],
    )
    def test_of_the_pull_policy(self, pods: Collection, image: str, policy: str) -> None:
        made = pods.create(pod("a", {"containers": [container(image=image)]})).ok(201)
        assert made["spec"]["containers"][0]["imagePullPolicy"] == policy

    def test_requests_are_limits_where_missing(self, pods: Collection) -> None:
        resources = {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}, "requests": {"cpu": "1"}}
        made = pods.create(pod("a", {"containers": [container(resources=resources)]})).ok(201)
        assert made["spec"]["containers"][0]["resources"] == {
            "limits": {"cpu": "2", "nvidia.com/gpu": "1"},
            "requests": {"cpu": "1", "nvidia.com/gpu": "1"},
        }

    @pytest.mark.parametrize(
        ("resources", "quality"),
        [
            ({}, "BestEffort"),
            ({"requests": {"cpu": "1"}}, "Burstable"),
            ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
            ({"limits": {"cpu": "1"}}, "Burstable"),
            ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
        ],
        ids=str,
    )
    def test_of_the_status(self, pods: Collection, resources: Manifest, quality: str) -> None:
        made = pods.create(pod("a", {"containers": [container(resources=resources)]})).ok(201)
        assert made["status"] == {"phase": "Pending", "qosClass": quality}

    def test_of_the_priority(self, api: Api, namespace: str, pods: Collection) -> None:
        name = f"{namespace}-high"
        priority = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": 700,
            "preemptionPolicy": "Never",
        }
        api.of("scheduling.k8s.io/v1", "priorityclasses").create(priority).ok(201)
        spec = pods.create(pod("a", {"priorityClassName": name})).ok(201)["spec"]
        assert (spec["priority"], spec["preemptionPolicy"]) == (700, "Never")
        pods.create(pod("b", {"priorityClassName": "no-such-class"})).refused(403, "Forbidden")

    def test_a_gated_pod_is_not_scheduled(self, pods: Collection) -> None:
        made = pods.create(pod("a", {"schedulingGates": [{"name": "a.b/c"}]})).ok(201)
        condition = _condition(made, "PodScheduled")
        assert condition is not None
        assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"containers": []}, ("FieldValueRequired", "spec.containers")),
        ({"containers": [{"image": "a"}]}, ("FieldValueRequired", "spec.containers[0].name")),
        ({"containers": [{"name": "a"}]}, ("FieldValueRequired", "spec.containers[0].image")),
        (
            {"containers": [container(), container()]},
            ("FieldValueDuplicate", "spec.containers[1].name"),
        ),
        ({"restartPolicy": "Perhaps"}, ("FieldValueNotSupported", "spec.restartPolicy")),
        (
            {"containers": [container(resources={"limits": {"cpu": "-1"}})]},
            ("FieldValueInvalid", "spec.containers[0].resources.limits[cpu]"),
        ),
        (
            {
                "containers": [
                    container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}})
                ]
            },
            ("FieldValueInvalid", "spec.containers[0].resources.requests"),
        ),
        (
            {"containers": [container(resources={"limits": {"nvidia.com/gpu": "500m"}})]},
            ("FieldValueInvalid", "spec.containers[0].resources.limits[nvidia.com/gpu]"),
        ),
        (
            {"containers": [container(volumeMounts=[{"name": "absent", "mountPath": "/x"}])]},
            ("FieldValueNotFound", "spec.containers[0].volumeMounts[0].name"),
        ),
        (
            {"terminationGracePeriodSeconds": -1},
            None,
        ),
    ],
    ids=str,
)
def test_a_pod_is_validated(
    pods: Collection, spec: Manifest, cause: tuple[str, str] | None
) -> None:
    answer = pods.create(pod("a", spec))
    if cause is None:
        answer.ok(201)
    else:
        assert cause in answer.causes()


class TestBinding:
    """A pod gets its node by a binding."""

    def _bind(self, api: Api, pods: Collection, name: str, **fields: Any) -> Any:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            **fields,
        }
        return api.post(pods.at(name, "binding"), binding)

    def test_a_binding_sets_the_node(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a")).ok(201)
        status = self._bind(api, pods, "a").ok(201)
        assert (status["kind"], status["status"]) == ("Status", "Success")
        bound = pods.read("a").ok()
        assert bound["spec"]["nodeName"] == "n1"
        condition = _condition(bound, "PodScheduled")
        assert condition is not None
        assert condition["status"] == "True"

    def test_a_bound_pod_cannot_be_bound_again(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a")).ok(201)
        self._bind(api, pods, "a").ok(201)
        self._bind(api, pods, "a").refused(409, "Conflict")

    def test_a_gated_pod_cannot_be_bound(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a", {"schedulingGates": [{"name": "a.b/c"}]})).ok(201)
        self._bind(api, pods, "a").refused(409, "Conflict")
        opened = pods.patch("a", {"spec": {"schedulingGates": []}}).ok()
        assert "schedulingGates" not in opened["spec"]
        self._bind(api, pods, "a").ok(201)

    def test_a_terminating_pod_cannot_be_bound(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a", finalizers=["a.b/c"])).ok(201)
        pods.delete("a").ok()
        self._bind(api, pods, "a").refused(409, "Conflict")

    def test_a_pod_that_is_not_there(self, api: Api, pods: Collection) -> None:
        self._bind(api, pods, "absent").refused(404, "NotFound")

    def test_a_binding_needs_a_node(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a")).ok(201)
        for target in ({"kind": "Node"}, {"kind": "Pod", "name": "n1"}):
            answer = self._bind(api, pods, "a", target=target)
            assert answer.code in {422, 500}, str(answer)  # the real server blames itself
            assert "target." in answer.json()["message"]
        assert "nodeName" not in pods.read("a").ok()["spec"]

    def test_the_name_must_be_the_pods(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a")).ok(201)
        self._bind(api, pods, "a", metadata={"name": "b"}).refused(400, "BadRequest")

    def test_another_uid_is_a_conflict(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a")).ok(201)
        other = {"name": "a", "uid": "12345678-1234-4234-8234-123456789012"}
        self._bind(api, pods, "a", metadata=other).refused(409, "Conflict")

    def test_annotations_of_the_binding_go_to_the_pod(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a")).ok(201)
        self._bind(api, pods, "a", metadata={"name": "a", "annotations": {"x": "1"}}).ok(201)
        assert pods.read("a").ok()["metadata"]["annotations"]["x"] == "1"

    def test_the_path_of_bindings(self, api: Api, pods: Collection, namespace: str) -> None:
        pods.create(pod("a")).ok(201)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "a"},
            "target": {"kind": "Node", "name": "n1"},
        }
        api.of("v1", "bindings", namespace).create(binding).ok(201)
        assert pods.read("a").ok()["spec"]["nodeName"] == "n1"


class TestEviction:
    """An eviction is a deletion that asks disruption budgets first."""

    def _evict(self, api: Api, pods: Collection, name: str, **fields: Any) -> Any:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name},
            **fields,
        }
        return api.post(pods.at(name, "eviction"), eviction)

    def test_an_evicted_pod_says_why_it_ends(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        status = self._evict(api, pods, "a").ok(201)
        assert (status["kind"], status["status"]) == ("Status", "Success")
        evicted = pods.read("a").ok()
        assert evicted["metadata"]["deletionGracePeriodSeconds"] == 30
        condition = _condition(evicted, "DisruptionTarget")
        assert condition is not None
        assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")

    def test_delete_options_count(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        self._evict(api, pods, "a", deleteOptions={"gracePeriodSeconds": 3}).ok(201)
        assert pods.read("a").ok()["metadata"]["deletionGracePeriodSeconds"] == 3

    def test_an_unbound_pod_is_gone(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a")).ok(201)
        self._evict(api, pods, "a").ok(201)
        pods.read("a").refused(404, "NotFound")

    def test_a_pod_that_is_not_there(self, api: Api, pods: Collection) -> None:
        self._evict(api, pods, "absent").refused(404, "NotFound")

    def test_a_dry_run_evicts_nothing(self, api: Api, pods: Collection) -> None:
        pods.create(pod("a", {"nodeName": "n1"})).ok(201)
        self._evict(api, pods, "a", deleteOptions={"dryRun": ["All"]}).ok(201)
        assert "deletionTimestamp" not in pods.read("a").ok()["metadata"]

    @pytest.mark.controllers
    @pytest.mark.slow
    def test_a_budget_says_no_until_there_are_enough(
        self, api: Api, pods: Collection, namespace: str
    ) -> None:
        ready = {
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
            }
        }

        def start(name: str) -> None:
            pods.create(pod(name, {"nodeName": "n1"}, labels={"app": "x"})).ok(201)
            pods.patch(name, ready, kind=STRATEGIC_PATCH, sub="status").ok()

        start("a")
        start("b")
        budgets = api.of("policy/v1", "poddisruptionbudgets", namespace)
        budgets.create(disruption_budget("x", {"app": "x"}, minimum=2)).ok(201)

        def allowed() -> int:
            status = budgets.read("x").ok()["status"]
            return int(status["disruptionsAllowed"]) if status.get("currentHealthy") else -1

        eventually(lambda: allowed() == 0)
        answer = self._evict(api, pods, "a")
        assert answer.causes(429, "TooManyRequests") == {("DisruptionBudget", "")}
        assert "deletionTimestamp" not in pods.read("a").ok()["metadata"]
        start("c")
        eventually(lambda: allowed() == 1)
        self._evict(api, pods, "a").ok(201)
        self._evict(api, pods, "b").refused(429, "TooManyRequests")


def test_the_log_of_a_pod_without_a_node_is_a_bad_request(api: Api, pods: Collection) -> None:
    pods.create(pod("a")).ok(201)
    answer = api.get(pods.at("a", "log"), container="absent")
    answer.refused(400, "BadRequest")
    api.get(pods.at("absent", "log")).refused(404, "NotFound")
