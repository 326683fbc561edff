"""The built-in kinds that are served, and what schemas do not say of them.

Short names, categories and field selectors are not published in OpenAPI documents; plural names,
scope and subresources would be, but only some of the subresources are ours to offer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """One built-in kind."""

    group: str
    kind: str
    plural: str
    singular: str | None = None  # the kind in lower case
    versions: tuple[str, ...] = ("v1",)  # the preferred one first; the first is stored
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: tuple[str, ...] = ()
    selectable: tuple[str, ...] = ()


_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)
_SCALED = ("status", "scale")

BUILT_IN = (
    BuiltIn(
        group="",
        kind="Pod",
        plural="pods",
        short=("po",),
        categories=_ALL,
        subresources=("status", "log", "binding", "eviction", "exec"),
        selectable=(
            ".spec.nodeName",
            ".spec.restartPolicy",
            ".spec.schedulerName",
            ".spec.serviceAccountName",
            ".spec.hostNetwork",
            ".status.phase",
            ".status.podIP",
            ".status.podIPs",
            ".status.nominatedNodeName",
        ),
    ),
    BuiltIn(
        group="",
        kind="Node",
        plural="nodes",
        short=("no",),
        namespaced=False,
        subresources=("status",),
        selectable=(".spec.unschedulable",),
    ),
    BuiltIn(
        group="",
        kind="Namespace",
        plural="namespaces",
        short=("ns",),
        namespaced=False,
        subresources=("status", "finalize"),
        selectable=(".status.phase",),
    ),
    BuiltIn(
        group="",
        kind="Service",
        plural="services",
        short=("svc",),
        categories=_ALL,
        subresources=("status",),
        selectable=(".spec.clusterIP", ".spec.type"),
    ),
    BuiltIn(group="", kind="ConfigMap", plural="configmaps", short=("cm",)),
    BuiltIn(group="", kind="Secret", plural="secrets", selectable=(".type",)),
    BuiltIn(group="", kind="ServiceAccount", plural="serviceaccounts", short=("sa",)),
    BuiltIn(
        group="",
        kind="Event",
        plural="events",
        short=("ev",),
        selectable=(
            ".involvedObject.kind",
            ".involvedObject.namespace",
            ".involvedObject.name",
            ".involvedObject.uid",
            ".involvedObject.apiVersion",
            ".involvedObject.resourceVersion",
            ".involvedObject.fieldPath",
            ".reason",
            ".reportingComponent",
            ".source",
            ".type",
        ),
    ),
    BuiltIn(
        group="",
        kind="PersistentVolumeClaim",
        plural="persistentvolumeclaims",
        short=("pvc",),
        subresources=("status",),
    ),
    BuiltIn(
        group="",
        kind="PersistentVolume",
        plural="persistentvolumes",
        short=("pv",),
        namespaced=False,
        subresources=("status",),
    ),
    BuiltIn(
        group="",
        kind="ResourceQuota",
        plural="resourcequotas",
        short=("quota",),
        subresources=("status",),
    ),
    BuiltIn(group="", kind="LimitRange", plural="limitranges", short=("limits",)),
    BuiltIn(
        group="",
        kind="ReplicationController",
        plural="replicationcontrollers",
        short=("rc",),
        categories=_ALL,
        subresources=_SCALED,
        selectable=(".status.replicas",),
    ),
    BuiltIn(group="", kind="Endpoints", plural="endpoints", short=("ep",)),
    BuiltIn(group="", kind="PodTemplate", plural="podtemplates"),
    BuiltIn(group="", kind="Binding", plural="bindings"),
    BuiltIn(
        group="apps",
        kind="Deployment",
        plural="deployments",
        short=("deploy",),
        categories=_ALL,
        subresources=_SCALED,
    ),
    BuiltIn(
        group="apps",
        kind="ReplicaSet",
        plural="replicasets",
        short=("rs",),
        categories=_ALL,
        subresources=_SCALED,
        selectable=(".status.replicas",),
    ),
    BuiltIn(
        group="apps",
        kind="StatefulSet",
        plural="statefulsets",
        short=("sts",),
        categories=_ALL,
        subresources=_SCALED,
    ),
    BuiltIn(
        group="apps",
        kind="DaemonSet",
        plural="daemonsets",
        short=("ds",),
        categories=_ALL,
        subresources=("status",),
    ),
    BuiltIn(group="apps", kind="ControllerRevision", plural="controllerrevisions"),
    BuiltIn(
        group="batch",
        kind="Job",
        plural="jobs",
        categories=_ALL,
        subresources=("status",),
        selectable=(".status.successful",),
    ),
    BuiltIn(
        group="batch",
        kind="CronJob",
        plural="cronjobs",
        short=("cj",),
        categories=_ALL,
        subresources=("status",),
    ),
    BuiltIn(
        group="policy",
        kind="PodDisruptionBudget",
        plural="poddisruptionbudgets",
        short=("pdb",),
        subresources=("status",),
    ),
    BuiltIn(
        group="scheduling.k8s.io",
        kind="PriorityClass",
        plural="priorityclasses",
        short=("pc",),
        namespaced=False,
    ),
    BuiltIn(
        group="scheduling.k8s.io",
        kind="Workload",
        plural="workloads",
        versions=("v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"),
    ),
    BuiltIn(
        group="scheduling.k8s.io",
        kind="PodGroup",
        plural="podgroups",
        versions=("v1beta1", "v1alpha3", "v1alpha2"),
        subresources=("status",),
    ),
    BuiltIn(
        group="scheduling.k8s.io",
        kind="CompositePodGroup",
        plural="compositepodgroups",
        versions=("v1alpha3",),
        subresources=("status",),
    ),
    BuiltIn(group="coordination.k8s.io", kind="Lease", plural="leases"),
    BuiltIn(
        group="events.k8s.io",
        kind="Event",
        plural="events",
        short=("ev",),
        selectable=(
            ".regarding.kind",
            ".regarding.namespace",
            ".regarding.name",
            ".regarding.uid",
            ".regarding.apiVersion",
            ".regarding.resourceVersion",
            ".regarding.fieldPath",
            ".reason",
            ".reportingController",
            ".type",
        ),
    ),
    BuiltIn(group="rbac.authorization.k8s.io", kind="Role", plural="roles"),
    BuiltIn(group="rbac.authorization.k8s.io", kind="RoleBinding", plural="rolebindings"),
    BuiltIn(
        group="rbac.authorization.k8s.io",
        kind="ClusterRole",
        plural="clusterroles",
        namespaced=False,
    ),
    BuiltIn(
        group="rbac.authorization.k8s.io",
        kind="ClusterRoleBinding",
        plural="clusterrolebindings",
        namespaced=False,
    ),
    BuiltIn(
        group="authentication.k8s.io", kind="TokenReview", plural="tokenreviews", namespaced=False
    ),
    BuiltIn(
        group="authentication.k8s.io",
        kind="SelfSubjectReview",
        plural="selfsubjectreviews",
        namespaced=False,
    ),
    BuiltIn(
        group="authorization.k8s.io",
        kind="SubjectAccessReview",
        plural="subjectaccessreviews",
        namespaced=False,
    ),
    BuiltIn(
        group="authorization.k8s.io",
        kind="SelfSubjectAccessReview",
        plural="selfsubjectaccessreviews",
        namespaced=False,
    ),
    BuiltIn(
        group="authorization.k8s.io",
        kind="SelfSubjectRulesReview",
        plural="selfsubjectrulesreviews",
        namespaced=False,
    ),
    BuiltIn(
        group="authorization.k8s.io",
        kind="LocalSubjectAccessReview",
        plural="localsubjectaccessreviews",
    ),
    BuiltIn(
        group="autoscaling",
        kind="HorizontalPodAutoscaler",
        plural="horizontalpodautoscalers",
        versions=("v2",),
        short=("hpa",),
        categories=_ALL,
        subresources=("status",),
    ),
    BuiltIn(
        group="networking.k8s.io",
        kind="Ingress",
        plural="ingresses",
        short=("ing",),
        subresources=("status",),
    ),
    BuiltIn(
        group="networking.k8s.io",
        kind="NetworkPolicy",
        plural="networkpolicies",
        short=("netpol",),
    ),
    BuiltIn(
        group="networking.k8s.io", kind="IngressClass", plural="ingressclasses", namespaced=False
    ),
    BuiltIn(
        group="storage.k8s.io",
        kind="StorageClass",
        plural="storageclasses",
        short=("sc",),
        namespaced=False,
    ),
    BuiltIn(group="node.k8s.io", kind="RuntimeClass", plural="runtimeclasses", namespaced=False),
    BuiltIn(group="resource.k8s.io", kind="DeviceClass", plural="deviceclasses", namespaced=False),
    *(
        BuiltIn(
            group="admissionregistration.k8s.io",
            kind=kind,
            plural=kind.lower() + "s" if not kind.endswith("y") else kind.lower()[:-1] + "ies",
            categories=_EXTENSIONS,
            namespaced=False,
            subresources=("status",) if kind == "ValidatingAdmissionPolicy" else (),
        )
        for kind in (
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        )
    ),
    BuiltIn(
        group="apiextensions.k8s.io",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        short=("crd", "crds"),
        categories=_EXTENSIONS,
        namespaced=False,
        subresources=("status",),
    ),
    BuiltIn(
        group="apiregistration.k8s.io",
        kind="APIService",
        plural="apiservices",
        categories=_EXTENSIONS,
        namespaced=False,
        subresources=("status",),
    ),
    BuiltIn(
        group="flowcontrol.apiserver.k8s.io",
        kind="FlowSchema",
        plural="flowschemas",
        namespaced=False,
        subresources=("status",),
    ),
    BuiltIn(
        group="flowcontrol.apiserver.k8s.io",
        kind="PriorityLevelConfiguration",
        plural="prioritylevelconfigurations",
        namespaced=False,
        subresources=("status",),
    ),
    # Without a singular name, as upstream: `kubectl get node` means the real thing.
    BuiltIn(
        group="metrics.k8s.io",
        kind="NodeMetrics",
        plural="nodes",
        singular="",
        versions=("v1beta1",),
        namespaced=False,
    ),
    BuiltIn(
        group="metrics.k8s.io",
        kind="PodMetrics",
        plural="pods",
        singular="",
        versions=("v1beta1",),
    ),
)

# Bodies of subresources and requests: no kinds of their own, but their fields are checked too.
BODIES = (
    "autoscaling.v1.Scale",
    "policy.v1.Eviction",
    "authentication.v1.TokenRequest",
    "meta.v1.DeleteOptions",
)


def prefix_of(group: str) -> str:
    """Return how the names of a built-in group's definitions begin.

    >>> prefix_of(""), prefix_of("rbac.authorization.k8s.io")
    ('core', 'rbac')
    """
    return group.partition(".")[0] or "core"
