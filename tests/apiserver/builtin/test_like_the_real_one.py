"""What our strategies fill in, and what they refuse, against a real kube-apiserver.

The other tests here say what a real server said once; these ask one, so that nothing drifts.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.builtin.test_jobs import cron, job
from tests.apiserver.builtin.test_other_kinds import app, of
from tests.apiserver.builtin.test_pods import pod
from tests.apiserver.surroundings import created, refusals, served_as
from tests.conformance.client import Api
from tests.real.control_plane import ControlPlane
from unisono.apiserver.objects import Json

pytestmark = pytest.mark.real

# Other each time, or none of a strategy's business.
_LEFT_OUT = frozenset(
    {"uid", "creationTimestamp", "resourceVersion", "generation", "managedFields", "message"}
    | {"serviceAccount", "serviceAccountName", "lastTransitionTime", "lastProbeTime"}
    | {
        "namespace",
        "controller-uid",
        "batch.kubernetes.io/controller-uid",
        "clusterIP",
        "clusterIPs",
    }
)


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Iterator[Api]:
    """Return the administrator's way to the real server."""
    made = Api(control_plane.url, control_plane.ca_file, control_plane.token)
    yield made
    made.close()


def asked(api: Api, key: str, obj: Json) -> Any:
    served = served_as(key)
    if not served.namespaced:
        del obj["metadata"]["namespace"]
    home = "default" if served.namespaced else None
    return api.of(served.api_version, served.plural, home).create(obj, dryRun="All")


def bare(value: Any) -> Any:
    """Return a value without what differs each time; null and absent are the same."""
    if isinstance(value, dict):
        return {
            name: bare(one)
            for name, one in value.items()
            if one is not None and name not in _LEFT_OUT
        }
    return [bare(one) for one in value] if isinstance(value, list) else value


VOLUMES = [
    {"name": "e"},
    {"name": "s", "secret": {"secretName": "x"}},
    {"name": "c", "configMap": {"name": "x"}},
    {"name": "h", "hostPath": {"path": "/x"}},
    {
        "name": "d",
        "downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]},
    },
]
SERVICE = {"ports": [{"port": 80}], "selector": {"a": "b"}}


@pytest.mark.parametrize(
    ("key", "obj"),
    [
        ("/pods", pod()),
        ("/pods", pod({"hostNetwork": True}, ports=[{"containerPort": 80}])),
        ("/pods", pod(resources={"limits": {"cpu": "1", "memory": "1Gi"}})),
        ("/pods", pod({"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}})),
        ("/pods", pod({"terminationGracePeriodSeconds": -1})),
        ("/pods", pod({"schedulingGates": [{"name": "a.b/c"}], "volumes": VOLUMES})),
        (
            "/pods",
            pod(
                livenessProbe={"httpGet": {"port": 80}},
                readinessProbe={"grpc": {"port": 80}},
                lifecycle={"preStop": {"httpGet": {"port": 80}}},
            ),
        ),
        ("batch/jobs", job()),
        ("batch/jobs", job({"parallelism": 3}, labels={"a": "b"})),
        (
            "batch/jobs",
            job({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1}),
        ),
        ("batch/cronjobs", cron()),
        ("apps/deployments", of("apps/deployments", **app())),
        ("apps/replicasets", of("apps/replicasets", **app())),
        ("apps/statefulsets", of("apps/statefulsets", **app(serviceName="x"))),
        ("/services", of("/services", spec=deepcopy(SERVICE))),
        ("/services", of("/services", spec={"clusterIP": "None"})),
        ("/namespaces", of("/namespaces")),
        ("/nodes", of("/nodes", status={"capacity": {"cpu": "4"}})),
        ("/secrets", of("/secrets", stringData={"a": "b"}, data={"a": "eA=="})),
        ("policy/poddisruptionbudgets", of("policy/poddisruptionbudgets", spec={})),
        (
            "scheduling.k8s.io/priorityclasses",
            of("scheduling.k8s.io/priorityclasses", value=5),
        ),
    ],
    ids=str,
)
def test_what_is_filled_in(api: Api, key: str, obj: Json) -> None:
    real = asked(api, key, deepcopy(obj)).ok(201)
    assert bare(created(key, deepcopy(obj))) == bare(real)


@pytest.mark.parametrize(
    ("key", "obj"),
    [
        ("/pods", pod({"containers": []})),
        ("/pods", pod(image="", imagePullPolicy="X")),
        ("/pods", pod(volumeMounts=[{"name": "nope", "mountPath": "/x"}])),
        ("/pods", pod(resources={"requests": {"nvidia.com/gpu": "1"}})),
        ("/pods", pod(resources={"limits": {"nvidia.com/gpu": "500m"}})),
        ("/pods", pod({"schedulingGates": [{"name": "x"}], "nodeName": "n"})),
        ("/pods", pod({"restartPolicy": "Sometimes", "dnsPolicy": "Foo"})),
        ("batch/jobs", job(pod={"restartPolicy": None})),
        ("batch/jobs", job({"parallelism": -1, "backoffLimit": -1})),
        ("batch/jobs", job({"selector": {"matchLabels": {"a": "b"}}})),
        ("batch/jobs", job({"managedBy": "foo", "podReplacementPolicy": "X"})),
        ("batch/cronjobs", cron({"schedule": "99 * * * *", "concurrencyPolicy": "X"})),
        (
            "apps/deployments",
            of("apps/deployments", **app(selector={"matchLabels": {"a": "c"}}, replicas=-1)),
        ),
        ("/configmaps", of("/configmaps", data={"a b": "x", "..c": "y"})),
        ("/secrets", of("/secrets", type="kubernetes.io/tls")),
        (
            "policy/poddisruptionbudgets",
            of("policy/poddisruptionbudgets", spec={"minAvailable": -1, "maxUnavailable": "200%"}),
        ),
        (
            "coordination.k8s.io/leases",
            of("coordination.k8s.io/leases", spec={"leaseDurationSeconds": 0}),
        ),
        ("/events", of("/events", involvedObject={"namespace": "other"})),
    ],
    ids=str,
)
def test_what_is_refused(api: Api, key: str, obj: Json) -> None:
    real = asked(api, key, deepcopy(obj)).causes()
    ours = {(f"FieldValue{reason}", field) for reason, field in refusals(key, deepcopy(obj))}
    assert ours == real
