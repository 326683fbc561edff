"""Objects in all the states that their table shows, for `record`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.apiserver.tables.pod_states import pod
from unisono.apiserver.objects import Json

Ago = Callable[[float], str]  # writes the time that many seconds before now

POD = {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y"}]}
RUN_ONCE = {"spec": {**POD, "restartPolicy": "Never"}}
TEMPLATE = {"metadata": {"labels": {"app": "w"}}, "spec": POD}
SELECTOR = {"matchLabels": {"app": "w"}}
LONG_SELECTOR = {
    **SELECTOR,
    "matchExpressions": [
        {"key": "a", "operator": "NotIn", "values": ["2", "1"]},
        {"key": "zz", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
    ],
}
RBAC = "rbac.authorization.k8s.io"


@dataclass
class Sample:
    """One kind: where it lives, and objects to make of it."""

    group: str
    plural: str
    kind: str
    objects: list[Json] = field(default_factory=list)
    version: str = "v1"
    namespaced: bool = True

    @property
    def root(self) -> str:
        """The address of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def path(self) -> str:
        """The address of the collection."""
        return f"{self.root}/{'namespaces/default/' if self.namespaced else ''}{self.plural}"


def _as(name: str, spec: Json | None = None, status: Json | None = None, **more: Any) -> Json:
    """Return an object; `doomed` ones are deleted and held by a finalizer."""
    meta: Json = {"name": name, **more.pop("metadata", {})}
    if more.get("doomed"):
        meta["finalizers"] = ["example.com/held"]
    made: Json = {"metadata": meta, **more}
    if spec is not None:
        made["spec"] = spec
    if status is not None:
        made["status"] = status
    return made


def _true(ago: Ago, *types: str) -> list[Json]:
    return [
        {"type": name, "status": "True", "reason": "Because", "lastTransitionTime": ago(5)}
        for name in types
    ]


def samples(ago: Ago) -> Iterator[Sample]:
    """Yield every kind with its objects."""
    yield Sample("", "pods", "Pod", [pod(at, random.Random(at), ago) for at in range(60)])
    yield from _work(ago)
    yield from _cluster(ago)
    yield from _network()
    yield from _rest(ago)


def _work(ago: Ago) -> Iterator[Sample]:
    started = {"startTime": ago(9000)}
    yield Sample(
        "batch",
        "jobs",
        "Job",
        [
            _as("plain", {"template": RUN_ONCE}),
            _as("wide", {"template": RUN_ONCE, "parallelism": 3}, {"startTime": ago(100)}),
            _as(
                "suspended",
                {"template": RUN_ONCE, "completions": 4, "suspend": True},
                {"conditions": _true(ago, "Suspended")},
            ),
            _as("doomed", {"template": RUN_ONCE}, started, doomed=True),
            _as(
                "done",
                {"template": RUN_ONCE},
                {
                    **started,
                    "completionTime": ago(1200),
                    "succeeded": 1,
                    "conditions": _true(ago, "SuccessCriteriaMet", "Complete"),
                },
            ),
            _as(
                "failing",
                {"template": RUN_ONCE},
                {**started, "conditions": _true(ago, "FailureTarget")},
            ),
            _as("none", {"template": RUN_ONCE, "parallelism": 0}),
        ],
    )
    yield Sample(
        "batch",
        "cronjobs",
        "CronJob",
        [
            _as(
                "minutely",
                {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": RUN_ONCE}}},
            ),
            _as(
                "daily",
                {
                    "schedule": "@daily",
                    "timeZone": "Asia/Seoul",
                    "suspend": True,
                    "jobTemplate": {"spec": {"template": RUN_ONCE}},
                },
                {"active": [{"name": "x"}], "lastScheduleTime": ago(400)},
            ),
        ],
    )
    spec = {"selector": SELECTOR, "template": TEMPLATE}
    yield Sample(
        "apps",
        "deployments",
        "Deployment",
        [
            _as(
                "three",
                {**spec, "replicas": 3, "selector": LONG_SELECTOR},
                {"replicas": 3, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1},
            ),
            _as("idle", {**spec, "replicas": 0}),
        ],
    )
    yield Sample(
        "apps",
        "replicasets",
        "ReplicaSet",
        [
            _as("one", {**spec, "selector": LONG_SELECTOR}, {"replicas": 1, "readyReplicas": 1}),
            _as("idle", {**spec, "replicas": 0}),
        ],
    )
    yield Sample(
        "apps",
        "statefulsets",
        "StatefulSet",
        [
            _as(
                "four",
                {**spec, "serviceName": "x", "replicas": 4},
                {"replicas": 4, "readyReplicas": 2},
            )
        ],
    )
    on_some = {**TEMPLATE, "spec": {**POD, "nodeSelector": {"z": "1", "b": ""}}}
    counts = {
        "currentNumberScheduled": 1,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 3,
        "numberReady": 2,
        "updatedNumberScheduled": 5,
        "numberAvailable": 6,
    }
    yield Sample(
        "apps", "daemonsets", "DaemonSet", [_as("some", {**spec, "template": on_some}, counts)]
    )


def _cluster(ago: Ago) -> Iterator[Sample]:
    addresses = [
        {"type": "ExternalIP", "address": "1.2.3.4"},
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "InternalIP", "address": "10.0.0.2"},
    ]
    about = {
        "kubeletVersion": "v1.34.0",
        "osImage": "Linux",
        "kernelVersion": "6.1",
        "architecture": "amd64",
        "containerRuntimeVersion": "containerd://2",
    }
    roles = {
        "node-role.kubernetes.io/worker": "",
        "kubernetes.io/role": "gpu",
        "node-role.kubernetes.io/b": "",
    }
    yield Sample(
        "",
        "nodes",
        "Node",
        [
            _as(
                "ready",
                {"unschedulable": True},
                {"conditions": _true(ago, "Ready"), "addresses": addresses, "nodeInfo": about},
                metadata={"labels": roles},
            ),
            _as("bare"),
            _as(
                "lost",
                status={
                    "conditions": [{"type": "Ready", "status": "Unknown", "reason": "x"}],
                    "nodeInfo": {"architecture": "arm64"},
                },
            ),
        ],
        namespaced=False,
    )
    yield Sample("", "namespaces", "Namespace", [_as("held", doomed=True)], namespaced=False)
    yield Sample(
        "",
        "configmaps",
        "ConfigMap",
        [
            _as("two", data={"x": "1", "y": ""}),
            _as("empty"),
            _as("both", data={"z": ""}, binaryData={"k": "AA=="}),
        ],
    )
    yield Sample(
        "", "secrets", "Secret", [_as("one", stringData={"x": "1"}), _as("typed", type="x/y")]
    )
    yield Sample("", "serviceaccounts", "ServiceAccount", [_as("robot")])
    hard = {"cpu": "4", "limits.cpu": "8", "requests.nvidia.com/gpu": "4"}
    yield Sample(
        "",
        "resourcequotas",
        "ResourceQuota",
        [
            _as("used", {"hard": hard}, {"hard": hard, "used": {"cpu": "500m"}}),
            _as("new", {"hard": {"pods": "1"}}),
        ],
    )
    yield Sample("", "limitranges", "LimitRange", [_as("none", {"limits": []})])
    yield Sample("", "podtemplates", "PodTemplate", [_as("one", template=TEMPLATE)])
    yield Sample(
        "",
        "replicationcontrollers",
        "ReplicationController",
        [_as("two", {"replicas": 2, "selector": {"app": "w"}, "template": TEMPLATE})],
    )
    amount = {"resources": {"requests": {"storage": "1Gi"}}}
    once = {"accessModes": ["ReadWriteOnce"], **amount}
    yield Sample(
        "",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        [
            _as("waiting", {**once, "storageClassName": "fast"}),
            _as(
                "bound",
                {**once, "volumeName": "pv1", "volumeMode": "Block"},
                {
                    "phase": "Bound",
                    "capacity": {"storage": "2Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                },
            ),
            _as(
                "doomed",
                once,
                doomed=True,
                metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
            ),
        ],
    )
    yield Sample(
        "",
        "persistentvolumes",
        "PersistentVolume",
        [
            _as(
                "pv1",
                {
                    "capacity": {"storage": "5Gi"},
                    "accessModes": ["ReadOnlyMany", "ReadWriteOnce"],
                    "hostPath": {"path": "/x"},
                    "claimRef": {"namespace": "default", "name": "bound"},
                    "storageClassName": "s",
                },
                {"phase": "Bound", "reason": "why"},
            )
        ],
        namespaced=False,
    )
    about_pod: Json = {
        "involvedObject": {
            "kind": "Pod",
            "name": "p1",
            "namespace": "default",
            "fieldPath": "spec.containers{a}",
        },
        "reason": "Started",
        "message": " hello\n",
        "type": "Normal",
    }
    reporter: Json = {
        "reportingComponent": "example.com/c",
        "reportingInstance": "i",
        "action": "x",
        "eventTime": f"{ago(300)[:-1]}.123456Z",
    }
    series: Json = {"series": {"count": 7, "lastObservedTime": f"{ago(30)[:-1]}.000000Z"}}
    events = [
        _as(
            "old-form",
            **about_pod,
            firstTimestamp=ago(500),
            lastTimestamp=ago(20),
            count=4,
            source={"component": "kubelet", "host": "n1"},
        ),
        _as("new-form", **about_pod, **reporter),
        _as("series", **about_pod, **reporter, **series),
        _as("kind-only", involvedObject={"kind": "Node", "namespace": "default"}),
        _as("nothing", involvedObject={"namespace": "default"}, source={"component": "c"}),
    ]
    yield Sample("", "events", "Event", events)
    yield Sample("events.k8s.io", "events", "Event")


def _network() -> Iterator[Sample]:
    yield Sample(
        "",
        "services",
        "Service",
        [
            _as("plain", {"ports": [{"port": 80}], "selector": {"b": "2", "a": "1"}}),
            _as("headless", {"clusterIP": "None"}),
            _as(
                "on-nodes",
                {
                    "type": "NodePort",
                    "ports": [{"port": 80, "nodePort": 30080}, {"name": "x", "port": 81}][:1],
                    "externalIPs": ["1.1.1.1", "2.2.2.2"],
                },
            ),
            _as("outside", {"type": "ExternalName", "externalName": "db.example.com"}),
            _as("pending", {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30081}]}),
            _as(
                "balanced",
                {
                    "type": "LoadBalancer",
                    "ports": [{"port": 80, "nodePort": 30082}],
                    "externalIPs": ["3.3.3.3"],
                },
                {"loadBalancer": {"ingress": [{"hostname": "h.example.com"}, {"ip": "9.9.9.9"}]}},
            ),
        ],
    )
    three = [{"ip": f"10.1.0.{at}"} for at in (1, 2, 3)]
    http, more = {"port": 80, "name": "a"}, {"port": 81, "name": "b"}
    yield Sample(
        "",
        "endpoints",
        "Endpoints",
        [
            _as("six", subsets=[{"addresses": three, "ports": [http, more]}]),
            _as("three", subsets=[{"addresses": three, "ports": [http]}]),
            _as("portless", subsets=[{"addresses": three[:1]}]),
            _as("empty"),
        ],
    )
    backend = {"service": {"name": "a", "port": {"number": 80}}}

    def rules(*hosts: str) -> list[Json]:
        path = {"path": "/", "pathType": "Prefix", "backend": backend}
        return [{"host": host, "http": {"paths": [path]}} for host in hosts]

    yield Sample(
        "networking.k8s.io",
        "ingresses",
        "Ingress",
        [
            _as(
                "many",
                {
                    "ingressClassName": "fast",
                    "rules": rules(*(f"h{at}.example.com" for at in range(5))),
                    "tls": [{"hosts": ["h1.example.com"]}],
                },
                {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "abc.example.com"}]}},
            ),
            _as("any", {"defaultBackend": backend}),
            _as("two", {"rules": rules("x.example.com", "")}),
            _as("gap", {"rules": rules("x.example.com", "y.example.com", "", "z.example.com")}),
            _as("end", {"rules": rules("x.example.com", "y.example.com", "z.example.com", "")}),
        ],
    )
    parameters = {"apiGroup": "example.com", "kind": "K", "name": "n"}
    yield Sample(
        "networking.k8s.io",
        "ingressclasses",
        "IngressClass",
        [
            _as(
                "usual",
                {"controller": "example.com/y", "parameters": parameters},
                metadata={"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
            ),
            _as("other", {"controller": "example.com/y"}),
        ],
        namespaced=False,
    )
    yield Sample(
        "networking.k8s.io",
        "networkpolicies",
        "NetworkPolicy",
        [_as("all", {"podSelector": {}}), _as("some", {"podSelector": LONG_SELECTOR})],
    )


def _rest(ago: Ago) -> Iterator[Sample]:
    yield Sample(
        "policy",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        [
            _as("two", {"minAvailable": 2, "selector": {}}),
            _as(
                "half",
                {"maxUnavailable": "50%", "selector": {}},
                {
                    "disruptionsAllowed": 1,
                    "currentHealthy": 0,
                    "desiredHealthy": 0,
                    "expectedPods": 0,
                },
            ),
        ],
    )
    yield Sample(
        "scheduling.k8s.io",
        "priorityclasses",
        "PriorityClass",
        [
            _as("low", value=-5),
            _as("usual", value=10, globalDefault=True, preemptionPolicy="Never"),
        ],
        namespaced=False,
    )
    yield Sample(
        "coordination.k8s.io",
        "leases",
        "Lease",
        [_as("held", {"holderIdentity": "me"}), _as("free", {})],
    )
    subjects = [
        {"kind": "User", "name": "u1", "apiGroup": RBAC},
        {"kind": "User", "name": "u2", "apiGroup": RBAC},
        {"kind": "Group", "name": "g", "apiGroup": RBAC},
        {"kind": "ServiceAccount", "name": "s", "namespace": "default"},
    ]
    role = {"apiGroup": RBAC, "kind": "Role", "name": "reader"}
    yield Sample(RBAC, "roles", "Role", [_as("reader", rules=[])])
    yield Sample(
        RBAC, "rolebindings", "RoleBinding", [_as("readers", roleRef=role, subjects=subjects)]
    )
    target = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}

    def measured(kind: str, **details: Any) -> Json:
        return {"type": kind, kind[0].lower() + kind[1:]: details}

    thing = {"kind": "x", "name": "y", "apiVersion": "v1"}
    metric = {"name": "q"}
    share = {"type": "Utilization", "averageUtilization": 80}
    amount = {"type": "AverageValue", "averageValue": "5"}
    yield Sample(
        "autoscaling",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        [
            _as(
                "three",
                {
                    "scaleTargetRef": target,
                    "maxReplicas": 3,
                    "metrics": [
                        measured("Resource", name="cpu", target=share),
                        measured("Resource", name="memory", target=amount),
                        measured("Pods", metric=metric, target=amount),
                    ],
                },
                {
                    "currentReplicas": 2,
                    "desiredReplicas": 2,
                    "currentMetrics": [
                        measured(
                            "Resource",
                            name="cpu",
                            current={"averageUtilization": 55, "averageValue": "1"},
                        )
                    ],
                },
            ),
            _as("usual", {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3}),
            _as(
                "outside",
                {
                    "scaleTargetRef": target,
                    "minReplicas": 2,
                    "maxReplicas": 3,
                    "metrics": [
                        measured("External", metric=metric, target={"type": "Value", "value": "5"}),
                        measured("Object", describedObject=thing, metric=metric, target=amount),
                    ],
                },
            ),
        ],
        version="v2",
    )
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    yield Sample(
        "storage.k8s.io",
        "storageclasses",
        "StorageClass",
        [
            _as("usual", provisioner="x", metadata=default),
            _as(
                "other",
                provisioner="x",
                allowVolumeExpansion=True,
                reclaimPolicy="Retain",
                volumeBindingMode="WaitForFirstConsumer",
            ),
        ],
        namespaced=False,
    )
    yield Sample(
        "node.k8s.io",
        "runtimeclasses",
        "RuntimeClass",
        [_as("nvidia", handler="nvidia")],
        namespaced=False,
    )
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://x/y"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
    }
    admission = "admissionregistration.k8s.io"
    yield Sample(
        admission,
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        [_as("one", webhooks=[hook]), _as("none")],
        namespaced=False,
    )
    matched = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["bindings"],
    }
    yield Sample(
        admission,
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        [
            _as(
                "one",
                {
                    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                    "matchConstraints": {"resourceRules": [matched]},
                    "validations": [{"expression": "true"}],
                },
            )
        ],
        namespaced=False,
    )
    force = {"policyName": "one", "validationActions": ["Warn"]}
    found = {"name": "x", "parameterNotFoundAction": "Allow"}
    yield Sample(
        admission,
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        [
            _as("anywhere", {**force, "paramRef": found}),
            _as("there", {**force, "paramRef": {**found, "namespace": "n"}}),
            _as("without", force),
        ],
        namespaced=False,
    )
    # These are there by themselves.
    yield Sample("apiregistration.k8s.io", "apiservices", "APIService", namespaced=False)
    flow = "flowcontrol.apiserver.k8s.io"
    yield Sample(flow, "flowschemas", "FlowSchema", namespaced=False)
    yield Sample(
        flow, "prioritylevelconfigurations", "PriorityLevelConfiguration", namespaced=False
    )
