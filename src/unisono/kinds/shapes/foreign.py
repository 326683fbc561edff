"""Kinds of other projects whose controllers do not run here: stored as written, and told about.

Manifests of a field come in bundles: a job beside a monitor of its pods, a certificate, a queue of
another scheduler. An embedded cluster takes all of it, as the cluster would that it was written
for, and says of each of these that nothing acts on it. Their fields are not checked: the schema is
their project's. A CustomResourceDefinition of the same kind replaces the entry here, and a kind
that we come to act upon belongs into `data`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from unisono.kinds.shapes.served import Served, read_served

_OPEN: Mapping[str, object] = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    },
}
_CLUSTER = "cluster"

_ARGO = "Argo Workflows makes its pods, where it runs; with a queue label they queue there"
_TEKTON = "Tekton makes its pods, where it runs; with a queue label they queue there"
_SPARK = "the Spark operator makes its pods, where it runs; with a queue label they queue there"
_WRAPPER = "its own controller makes its components, where it runs; apply them by themselves here"
_NOTEBOOK = "Kubeflow's notebook controller makes its pod, where it runs"
_KATIB = "Katib makes its trials, where it runs; their jobs queue there"
_KEPT = ""  # acted upon: a queue or a group of ours stands for it (`control.foreign_queues`)
_KAI_BINDS = "pods are bound by us"
_KAI_TOPOLOGY = "a Topology of kueue.x-k8s.io says how nodes are arranged"
_KAI_OWN = "it configures KAI's own programs"
_DOMAIN = "NVIDIA's driver for multi-node memory makes it, where it runs"
_LWS = "its LeaderWorkerSets are made by a controller of its own, where it runs"
_NETWORK = "costs between applications do not count here"
_NUMA = "the sockets of a node do not count here"
_SECCOMP = "system calls are not filtered here"
_METRICS = "a Prometheus operator reads it, where it runs"
_CERTIFICATES = "cert-manager issues certificates, where it runs"
_GATEWAY = "traffic is not routed here"
_SCALING = "KEDA scales by it, where it runs"
_SERVING = "a serving platform makes its pods, where it runs; with a queue label they queue there"
_CLOUD = "a cloud provider reads it"
_DEVICES = "devices are not allocated by dynamic resource allocation"


class _Foreign(NamedTuple):
    """One kind, and what would act on it."""

    group: str
    versions: str  # the newest first
    kind: str
    plural: str
    why: str
    scope: str = ""
    spec: Mapping[str, object] | None = None  # the schema of its spec, where we read it


# What we read has its type: placeholders of a manual are refused, as with its own definition.
_OBJECT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_KAI_QUEUE = {
    **_OBJECT,
    "properties": {
        "parentQueue": {"type": "string"},
        "resources": {"type": "object", "additionalProperties": _OBJECT},
    },
}

_KINDS = (
    _Foreign("argoproj.io", "v1alpha1", "Workflow", "workflows", _ARGO),
    _Foreign("argoproj.io", "v1alpha1", "WorkflowTemplate", "workflowtemplates", _ARGO),
    _Foreign("argoproj.io", "v1alpha1", "CronWorkflow", "cronworkflows", _ARGO),
    _Foreign(
        "argoproj.io",
        "v1alpha1",
        "ClusterWorkflowTemplate",
        "clusterworkflowtemplates",
        _ARGO,
        _CLUSTER,
    ),
    _Foreign("tekton.dev", "v1 v1beta1", "Task", "tasks", _TEKTON),
    _Foreign("tekton.dev", "v1 v1beta1", "TaskRun", "taskruns", _TEKTON),
    _Foreign("tekton.dev", "v1 v1beta1", "Pipeline", "pipelines", _TEKTON),
    _Foreign("tekton.dev", "v1 v1beta1", "PipelineRun", "pipelineruns", _TEKTON),
    _Foreign(
        "sparkoperator.k8s.io", "v1beta2 v1beta1", "SparkApplication", "sparkapplications", _SPARK
    ),
    _Foreign(
        "sparkoperator.k8s.io",
        "v1beta2 v1beta1",
        "ScheduledSparkApplication",
        "scheduledsparkapplications",
        _SPARK,
    ),
    _Foreign("workload.codeflare.dev", "v1beta2", "AppWrapper", "appwrappers", _WRAPPER),
    _Foreign("kubeflow.org", "v1 v1beta1", "Notebook", "notebooks", _NOTEBOOK),
    _Foreign("kubeflow.org", "v1beta1", "Experiment", "experiments", _KATIB),
    _Foreign("scheduling.run.ai", "v2", "Queue", "queues", _KEPT, _CLUSTER, _KAI_QUEUE),
    _Foreign("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups", _KEPT),
    _Foreign("scheduling.run.ai", "v1alpha2", "BindRequest", "bindrequests", _KAI_BINDS),
    _Foreign("kai.scheduler", "v1alpha1", "Topology", "topologies", _KAI_TOPOLOGY, _CLUSTER),
    _Foreign("kai.scheduler", "v1", "Config", "configs", _KAI_OWN, _CLUSTER),
    _Foreign("kai.scheduler", "v1", "SchedulingShard", "schedulingshards", _KAI_OWN, _CLUSTER),
    _Foreign("resource.nvidia.com", "v1beta1", "ComputeDomain", "computedomains", _DOMAIN),
    _Foreign("disaggregatedset.x-k8s.io", "v1", "DisaggregatedSet", "disaggregatedsets", _LWS),
    _Foreign("appgroup.diktyo.x-k8s.io", "v1alpha1", "AppGroup", "appgroups", _NETWORK),
    _Foreign(
        "networktopology.diktyo.x-k8s.io",
        "v1alpha1",
        "NetworkTopology",
        "networktopologies",
        _NETWORK,
    ),
    _Foreign(
        "topology.node.k8s.io",
        "v1alpha2 v1alpha1",
        "NodeResourceTopology",
        "noderesourcetopologies",
        _NUMA,
        _CLUSTER,
    ),
    _Foreign("nodeinfo.volcano.sh", "v1alpha1", "Numatopology", "numatopologies", _NUMA, _CLUSTER),
    _Foreign(
        "security-profiles-operator.x-k8s.io",
        "v1beta1",
        "SeccompProfile",
        "seccompprofiles",
        _SECCOMP,
    ),
    _Foreign("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors", _METRICS),
    _Foreign("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors", _METRICS),
    _Foreign("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules", _METRICS),
    _Foreign("cert-manager.io", "v1", "Issuer", "issuers", _CERTIFICATES),
    _Foreign("cert-manager.io", "v1", "ClusterIssuer", "clusterissuers", _CERTIFICATES, _CLUSTER),
    _Foreign("cert-manager.io", "v1", "Certificate", "certificates", _CERTIFICATES),
    _Foreign(
        "gateway.networking.k8s.io",
        "v1 v1beta1",
        "GatewayClass",
        "gatewayclasses",
        _GATEWAY,
        _CLUSTER,
    ),
    _Foreign("gateway.networking.k8s.io", "v1 v1beta1", "Gateway", "gateways", _GATEWAY),
    _Foreign("gateway.networking.k8s.io", "v1 v1beta1", "HTTPRoute", "httproutes", _GATEWAY),
    _Foreign("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects", _SCALING),
    _Foreign("keda.sh", "v1alpha1", "ScaledJob", "scaledjobs", _SCALING),
    _Foreign("serving.kserve.io", "v1beta1", "InferenceService", "inferenceservices", _SERVING),
    _Foreign("grove.io", "v1alpha1", "PodCliqueSet", "podcliquesets", _SERVING),
    _Foreign("nvidia.com", "v1alpha1", "DynamoGraphDeployment", "dynamographdeployments", _SERVING),
    _Foreign("cloud.google.com", "v1", "ComputeClass", "computeclasses", _CLOUD, _CLUSTER),
    _Foreign("networking.gke.io", "v1", "Network", "networks", _CLOUD, _CLUSTER),
    _Foreign(
        "networking.gke.io", "v1", "GKENetworkParamSet", "gkenetworkparamsets", _CLOUD, _CLUSTER
    ),
    _Foreign("resource.k8s.io", "v1 v1beta2 v1beta1", "ResourceClaim", "resourceclaims", _DEVICES),
    _Foreign(
        "resource.k8s.io",
        "v1 v1beta2 v1beta1",
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        _DEVICES,
    ),
    _Foreign(
        "resource.k8s.io",
        "v1 v1beta2 v1beta1",
        "ResourceSlice",
        "resourceslices",
        _DEVICES,
        _CLUSTER,
    ),
    _Foreign("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile", "clusterprofiles", _CLOUD),
)


@cache
def foreign_kinds() -> Mapping[str, tuple[Served, ...]]:
    """Return the versions of every such kind by its key, the preferred one first."""
    return {f"{one.group}/{one.plural}": tuple(_served(one)) for one in _KINDS}


def acted_upon_by(key: str) -> str:
    """Return what acts on a kind where it does; empty of any other kind.

    >>> acted_upon_by("cert-manager.io/issuers")
    'cert-manager issues certificates, where it runs'
    """
    return _WHY.get(key, "")


_WHY = {f"{one.group}/{one.plural}": one.why for one in _KINDS}


def _served(one: _Foreign) -> Iterator[Served]:
    first, *others = one.versions.split()
    schema = _OPEN
    if one.spec is not None:
        properties = _OPEN["properties"]
        assert isinstance(properties, dict)
        schema = {**_OPEN, "properties": {**properties, "spec": one.spec}}
    entry = {
        "kind": one.kind,
        "plural": one.plural,
        "singular": one.kind.lower(),
        "namespaced": one.scope != _CLUSTER,
        "versions": [
            {"name": name, "storage": name == first, "subresources": ["status"], "schema": schema}
            for name in (first, *others)
        ],
    }
    return read_served(entry, one.group)
