"""What Kubernetes' own kinds do beyond their schema, one small file per area.

causes, reach     words for what is wrong; safe steps into unchecked objects
metadata          the rules that hold for every kind
judge             our typed manifests as judges of what is written
pods, jobs, …     one strategy per kind, found here by `group/plural`
known             custom kinds that we know as typed manifests
"""

from __future__ import annotations

from collections.abc import Mapping

from unisono.apiserver.builtin.access import BindingStrategy, RoleStrategy
from unisono.apiserver.builtin.cluster import NamespaceStrategy, NodeStrategy
from unisono.apiserver.builtin.config import ConfigMapStrategy, SecretStrategy
from unisono.apiserver.builtin.crds import CustomResourceDefinitionStrategy
from unisono.apiserver.builtin.cron_jobs import CronJobStrategy
from unisono.apiserver.builtin.disruption import PodDisruptionBudgetStrategy
from unisono.apiserver.builtin.events import EventStrategy
from unisono.apiserver.builtin.jobs import JobStrategy
from unisono.apiserver.builtin.leases import LeaseStrategy
from unisono.apiserver.builtin.limits import AutoscalerStrategy, LimitRangeStrategy
from unisono.apiserver.builtin.plain import UncountedStrategy
from unisono.apiserver.builtin.pods import PodStrategy
from unisono.apiserver.builtin.priority_classes import PriorityClassStrategy
from unisono.apiserver.builtin.services import ServiceStrategy
from unisono.apiserver.builtin.volumes import ClaimStrategy, StorageClassStrategy, VolumeStrategy
from unisono.apiserver.builtin.workloads import WORKLOADS
from unisono.apiserver.strategy import Strategy

_RBAC = "rbac.authorization.k8s.io"
_UNCOUNTED = UncountedStrategy()
_EVENTS = EventStrategy()

STRATEGIES: Mapping[str, Strategy] = {
    "/configmaps": ConfigMapStrategy(),
    "/endpoints": _UNCOUNTED,
    "/events": _EVENTS,
    "/limitranges": LimitRangeStrategy(),
    "/namespaces": NamespaceStrategy(),
    "/nodes": NodeStrategy(),
    "/persistentvolumeclaims": ClaimStrategy(),
    "/persistentvolumes": VolumeStrategy(),
    "/pods": PodStrategy(),
    "/resourcequotas": _UNCOUNTED,
    "/secrets": SecretStrategy(),
    "/serviceaccounts": _UNCOUNTED,
    "/services": ServiceStrategy(),
    **WORKLOADS,
    "apiextensions.k8s.io/customresourcedefinitions": CustomResourceDefinitionStrategy(),
    "apiregistration.k8s.io/apiservices": _UNCOUNTED,
    "autoscaling/horizontalpodautoscalers": AutoscalerStrategy(),
    "batch/cronjobs": CronJobStrategy(),
    "batch/jobs": JobStrategy(),
    "coordination.k8s.io/leases": LeaseStrategy(),
    "events.k8s.io/events": _EVENTS,
    "node.k8s.io/runtimeclasses": _UNCOUNTED,
    "policy/poddisruptionbudgets": PodDisruptionBudgetStrategy(),
    f"{_RBAC}/clusterrolebindings": BindingStrategy(roles=("ClusterRole",)),
    f"{_RBAC}/clusterroles": RoleStrategy(is_for_cluster=True),
    f"{_RBAC}/rolebindings": BindingStrategy(roles=("ClusterRole", "Role")),
    f"{_RBAC}/roles": RoleStrategy(is_for_cluster=False),
    "scheduling.k8s.io/priorityclasses": PriorityClassStrategy(),
    "storage.k8s.io/csinodes": _UNCOUNTED,
    "storage.k8s.io/csidrivers": _UNCOUNTED,
    "storage.k8s.io/storageclasses": StorageClassStrategy(),
}
