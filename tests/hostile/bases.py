"""A right object of every kind that is served: what a hostile one is made from.

Jobs and what configures them are written out below, so that they run in the cluster of
`tests.hostile.stage`. Of all other kinds the schema tells what must be there. A test has the API
accept every one of them: a kind that is new and needs more than its schema says fails there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from tests.control.job_kinds.test_kubeflow import kubeflow_job, replica
from tests.control.training_world import job_set, replicated, train_job
from tests.faults.jobs import JOB_KINDS, Wish
from tests.support.control_objects import job
from unisono.control.job_kinds.kubeflow import JOB_KINDS as KUBEFLOW
from unisono.kinds.shapes.served import Served
from unisono.kinds.shapes.shape import Shape
from unisono.kube.form import Json

NAMESPACE = "noisy"  # of the hostile ones, and the name of their queue
NAME = "hostile"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
SECONDS = 600  # how long a job would run if nothing were wrong with it

_WISH = Wish(
    name=NAME, pods=2, gpus=1, seconds=SECONDS, queue=NAMESPACE, priority="", fails_once=False
)
_CONTAINER: Json = {
    "name": "main",
    "image": "busybox",
    "command": ["sleep", str(SECONDS)],
    "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}},
}
_POD: Json = {"restartPolicy": "Never", "containers": [_CONTAINER]}
_SERVER: Json = {"containers": [_CONTAINER]}
_SELECTOR: Json = {"matchLabels": {"app": NAME}}
_TEMPLATE: Json = {"metadata": {"labels": {"app": NAME}}, "spec": _SERVER}
_DEMAND: Json = {"cpu": "1", "nvidia.com/gpu": "1"}
_RULE: Json = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_HOOK: Json = {
    "name": "a.example.org",
    "clientConfig": {"url": "https://example.org/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "failurePolicy": "Ignore",
}
_MATCHES: Json = {
    "resourceRules": [
        {
            "apiGroups": ["example.org"],
            "apiVersions": ["v1"],
            "resources": ["things"],
            "operations": ["CREATE"],
        }
    ]
}


def base_of(kind: Served) -> Json:
    """Return a right object of a kind, in the hostile namespace and queue where it has one."""
    made = copy.deepcopy(_written(kind) or _least(kind.shape))
    metadata = made.setdefault("metadata", {})
    metadata["name"] = _NAMES.get(kind.kind, NAME)
    metadata.pop("namespace", None)
    if kind.namespaced:
        metadata["namespace"] = NAMESPACE
    if kind.kind in _QUEUED:
        metadata["labels"] = {**metadata.get("labels", {}), QUEUE_LABEL: NAMESPACE}
    return {"apiVersion": kind.api_version, "kind": kind.kind, **made}


def _written(kind: Served) -> Json | None:
    found = _BY_KIND.get((kind.group, kind.kind))
    if found is None:
        return None
    return {key: value for key, value in found().items() if key not in ("apiVersion", "kind")}


def _least(shape: Shape) -> Json:
    """Return an object with what its schema requires, and an empty `spec` if it knows one."""
    found = least_of(shape)
    assert isinstance(found, dict)
    found.pop("apiVersion", None)
    found.pop("kind", None)
    spec = shape.field("spec")
    if spec is not None and spec.names:
        found.setdefault("spec", least_of(spec))
    return found


def least_of(shape: Shape) -> Any:
    """Return the least value that a schema takes."""
    allowed = shape.raw.get("enum")
    if allowed:
        return allowed[0]
    if shape.is_quantity or shape.is_int_or_string:
        return 1
    match shape.type:
        case "object":
            return {
                name: least_of(field)
                for name in shape.raw.get("required", ())
                if (field := shape.field(name)) is not None
            }
        case "array":
            inner = shape.items
            count = int(shape.raw.get("minItems", 0))
            return [least_of(inner) for _ in range(count)] if inner is not None else []
        case "integer" | "number":
            return max(1, shape.raw.get("minimum", 1))
        case "boolean":
            return True
        case "string":
            if shape.raw.get("format") in ("date-time", "micro-time"):
                return "2026-01-01T00:00:00Z"
            return "a" * max(1, int(shape.raw.get("minLength", 1)))
        case _:
            return {}


def _spec(**fields: Any) -> Callable[[], Json]:
    return lambda: {"spec": copy.deepcopy(fields)}


def _parts(**fields: Any) -> Callable[[], Json]:
    return lambda: copy.deepcopy(fields)


def _gang(sort: str) -> Callable[[], Json]:
    return lambda: copy.deepcopy(JOB_KINDS[sort](_WISH).objects[0])


def _ray_cluster() -> Json:
    """Return what a Ray cluster is made of; the older version wants all of it written out."""
    spec: Json = copy.deepcopy(JOB_KINDS["raycluster"](_WISH).objects[0]["spec"])
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        group["rayStartParams"] = {}
    return spec


def _ray_job() -> Json:
    spec = copy.deepcopy(JOB_KINDS["rayjob"](_WISH).objects[0]["spec"])
    return {**spec, "rayClusterSpec": _ray_cluster()}


def _kubeflow(kind: str) -> Callable[[], Json]:
    (sort,) = (one for one in KUBEFLOW if one.kind.kind == kind)
    roles = {"MPIJob": "Launcher", "TFJob": "Chief"}
    return lambda: kubeflow_job(sort, {roles.get(kind, "Worker"): replica(1, gpus=1)})


def _ray_service() -> Json:
    return {"spec": {"serveConfigV2": "applications: []", "rayClusterConfig": _ray_cluster()}}


def _ray_cron_job() -> Json:
    return {"spec": {"schedule": "* * * * *", "jobTemplate": _ray_job()}}


def _runtime() -> Json:
    node = replicated("node", pods=1, gpus=1)
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    node["template"]["metadata"] = {"labels": labels}
    node["template"]["spec"]["template"]["spec"]["containers"][0]["name"] = "node"
    return {
        "metadata": {"labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [node]}},
        },
    }


def _quota(name: str = "nvidia.com/gpu", amount: str = "4") -> Json:
    return {"name": name, "nominalQuota": amount}


_GROUPS: list[Json] = [
    {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": NAMESPACE, "resources": [_quota()]}],
    }
]


def _definition() -> Json:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    return {
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        }
    }


def _node() -> Json:
    amounts = {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "4"}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastTransitionTime": "2023-11-14T00:00:00Z",
    }
    return {
        "metadata": {"labels": {"kubernetes.io/hostname": NAME}},
        "spec": {"providerID": f"unisono:///zone/{NAME}"},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


# Names that a kind insists on.
_NAMES: Mapping[str, str] = {
    "CustomResourceDefinition": "things.example.org",
    "APIService": "v1.example.org",
    "Policy": "default",
}
# Kinds that say on their label in which queue they want to be.
_QUEUED = frozenset(
    (
        "Pod", "Job", "JobSet", "TrainJob", "RayCluster", "RayJob", "RayService", "SlurmJob",
        "PodGroup", *(one.kind.kind for one in KUBEFLOW),
    )
)  # fmt: skip

_BY_KIND: Mapping[tuple[str, str], Callable[[], Json]] = {
    ("", "Pod"): _spec(**_POD),
    ("", "PodTemplate"): _parts(template=_TEMPLATE),
    ("", "ReplicationController"): _spec(replicas=1, selector={"app": NAME}, template=_TEMPLATE),
    ("", "Node"): _node,
    ("", "Binding"): _parts(target={"kind": "Node", "name": "noisy-1"}),
    ("", "Event"): _parts(
        involvedObject={"kind": "Pod", "name": "a", "namespace": NAMESPACE},
        reason="A",
        type="Normal",
    ),
    ("", "Service"): _spec(selector={"app": NAME}, ports=[{"port": 80}]),
    ("", "LimitRange"): _spec(limits=[{"type": "Container", "default": {"cpu": "1"}}]),
    ("", "ResourceQuota"): _spec(hard={"pods": "100"}),
    ("", "PersistentVolume"): _spec(
        capacity={"storage": "1Gi"}, accessModes=["ReadWriteOnce"], hostPath={"path": "/tmp/x"}
    ),
    ("", "PersistentVolumeClaim"): _spec(
        accessModes=["ReadWriteOnce"], resources={"requests": {"storage": "1Gi"}}
    ),
    ("apps", "Deployment"): _spec(replicas=1, selector=_SELECTOR, template=_TEMPLATE),
    ("apps", "ReplicaSet"): _spec(replicas=1, selector=_SELECTOR, template=_TEMPLATE),
    ("apps", "DaemonSet"): _spec(selector=_SELECTOR, template=_TEMPLATE),
    ("apps", "StatefulSet"): _spec(
        replicas=1, selector=_SELECTOR, template=_TEMPLATE, serviceName=NAME
    ),
    ("batch", "Job"): lambda: job(NAME, pods=2, gpus=1, seconds=SECONDS, queue_name=""),
    ("batch", "CronJob"): _spec(
        schedule="* * * * *",
        jobTemplate={
            "metadata": {"labels": {QUEUE_LABEL: NAMESPACE}},
            "spec": {"template": {"spec": _POD}},
        },
    ),
    ("policy", "PodDisruptionBudget"): _spec(minAvailable=1, selector=_SELECTOR),
    ("rbac.authorization.k8s.io", "Role"): _parts(rules=[_RULE]),
    ("rbac.authorization.k8s.io", "ClusterRole"): _parts(rules=[_RULE]),
    ("rbac.authorization.k8s.io", "RoleBinding"): _parts(
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
        subjects=[{"kind": "User", "name": "a", "apiGroup": "rbac.authorization.k8s.io"}],
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _parts(
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"},
        subjects=[{"kind": "User", "name": "a", "apiGroup": "rbac.authorization.k8s.io"}],
    ),
    ("authentication.k8s.io", "TokenReview"): _spec(token="a"),
    ("authorization.k8s.io", "SubjectAccessReview"): _spec(
        user="a", resourceAttributes={"verb": "get", "resource": "pods"}
    ),
    ("authorization.k8s.io", "LocalSubjectAccessReview"): _spec(
        user="a", resourceAttributes={"verb": "get", "resource": "pods", "namespace": NAMESPACE}
    ),
    ("authorization.k8s.io", "SelfSubjectAccessReview"): _spec(
        resourceAttributes={"verb": "get", "resource": "pods"}
    ),
    ("authorization.k8s.io", "SelfSubjectRulesReview"): _spec(namespace=NAMESPACE),
    ("events.k8s.io", "Event"): _parts(
        eventTime="2026-01-01T00:00:00.000000Z",
        reportingController="example.org/x",
        reportingInstance="a",
        action="A",
        reason="A",
        type="Normal",
        regarding={"kind": "Pod", "name": "a", "namespace": NAMESPACE},
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): _spec(
        scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
        minReplicas=1,
        maxReplicas=2,
    ),
    ("networking.k8s.io", "Ingress"): _spec(
        defaultBackend={"service": {"name": "a", "port": {"number": 80}}}
    ),
    ("networking.k8s.io", "NetworkPolicy"): _spec(podSelector={}, policyTypes=["Ingress"]),
    ("storage.k8s.io", "StorageClass"): _parts(provisioner="example.org/x"),
    ("node.k8s.io", "RuntimeClass"): _parts(handler="a"),
    ("resource.k8s.io", "DeviceClass"): _spec(extendedResourceName="example.org/gpu"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _parts(webhooks=[_HOOK]),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _parts(webhooks=[_HOOK]),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _spec(
        matchConstraints=_MATCHES, validations=[{"expression": "true"}], failurePolicy="Ignore"
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _spec(
        policyName="a", validationActions=["Warn"]
    ),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _spec(policyName="a"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apiregistration.k8s.io", "APIService"): _spec(
        group="example.org", version="v1", groupPriorityMinimum=10, versionPriority=10
    ),
    ("scheduling.k8s.io", "PriorityClass"): _parts(value=5),
    ("kueue.x-k8s.io", "ClusterQueue"): _spec(namespaceSelector={}, resourceGroups=_GROUPS),
    ("kueue.x-k8s.io", "LocalQueue"): _spec(clusterQueue=NAMESPACE),
    ("kueue.x-k8s.io", "Cohort"): _spec(resourceGroups=_GROUPS),
    ("kueue.x-k8s.io", "ResourceFlavor"): _spec(nodeLabels={"pool": NAMESPACE}),
    ("kueue.x-k8s.io", "Topology"): _spec(levels=[{"nodeLabel": "kubernetes.io/hostname"}]),
    ("kueue.x-k8s.io", "WorkloadPriorityClass"): _parts(value=5),
    ("kueue.x-k8s.io", "MultiKueueCluster"): _spec(
        clusterSource={"kubeConfig": {"location": "a", "locationType": "Secret"}},
        kubeConfig={"location": "a", "locationType": "Secret"},  # as older versions have it
    ),
    ("kueue.x-k8s.io", "AdmissionCheck"): _spec(controllerName="example.org/x"),
    ("kueue.x-k8s.io", "Workload"): _spec(
        queueName=NAMESPACE, podSets=[{"name": "main", "count": 1, "template": {"spec": _POD}}]
    ),
    ("trainer.kubeflow.org", "TrainJob"): lambda: train_job(NAME, nodes=1, gpus=1, queue=""),
    ("trainer.kubeflow.org", "TrainingRuntime"): _runtime,
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): _runtime,
    **{("kubeflow.org", sort.kind.kind): _kubeflow(sort.kind.kind) for sort in KUBEFLOW},
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _spec(
        replicas=2,
        leaderWorkerTemplate={"size": 2, "workerTemplate": _TEMPLATE},
    ),
    ("jobset.x-k8s.io", "JobSet"): lambda: job_set(replicated("w", pods=2, gpus=1)),
    ("ray.io", "RayCluster"): lambda: {"spec": _ray_cluster()},
    ("ray.io", "RayJob"): lambda: {"spec": _ray_job()},
    ("ray.io", "RayService"): _ray_service,
    ("ray.io", "RayCronJob"): _ray_cron_job,
    ("batch.volcano.sh", "Job"): _gang("vcjob"),
    ("batch.volcano.sh", "CronJob"): lambda: {
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _gang("vcjob")()["spec"]}}
    },
    ("flow.volcano.sh", "JobTemplate"): lambda: {"spec": _gang("vcjob")()["spec"]},
    ("topology.volcano.sh", "HyperNode"): _spec(
        tier=1, members=[{"type": "Node", "selector": {"exactMatch": {"name": "a"}}}]
    ),
    ("bus.volcano.sh", "Command"): _parts(
        action="AbortJob",
        target={
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "a",
            "uid": "a",
            "controller": True,
        },
    ),
    ("scheduling.volcano.sh", "PodGroup"): _spec(minMember=1),
    ("scheduling.volcano.sh", "Queue"): _spec(weight=1, capability=_DEMAND),
    ("scheduling.x-k8s.io", "PodGroup"): _spec(minMember=1),
    ("scheduling.x-k8s.io", "ElasticQuota"): _spec(min=_DEMAND, max=_DEMAND),
    ("unisono.dev", "WorkloadKind"): lambda: {
        "spec": {
            "apiVersion": "example.org/v1",
            "kind": "Thing",
            "podSets": [
                {"template": ".spec.driver", "name": "driver", "count": "1"},
                {"template": ".template", "forEach": ".spec.groups", "name": "each.name"},
            ],
            "suspend": ".spec.suspend",
            "succeeded": "self.status.phase == 'Done'",
            "failed": ".status.failed",
            "message": ".status.message",
        }
    },
    ("unisono.dev", "SlurmJob"): lambda: {
        "spec": {
            "jobId": 1,
            "groups": [{"name": "main", "nodes": 1, "template": {"spec": _POD}}],
        },
    },
}
