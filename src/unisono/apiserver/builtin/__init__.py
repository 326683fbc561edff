"""What Kubernetes' own kinds do beyond their schema, one file per API group or kind.

field_errors           the wording of field errors
metadata               the rules for metadata, which hold for every kind
typed_validation       validation by our typed manifests, of custom kinds too
pods/, jobs, …         one strategy per kind, found here by `group/plural`
"""

from __future__ import annotations

from collections.abc import Mapping

from unisono.apiserver.builtin.apps import WORKLOADS
from unisono.apiserver.builtin.core import (
    ConfigMapStrategy,
    EventStrategy,
    LeaseStrategy,
    NamespaceStrategy,
    NodeStrategy,
    SecretStrategy,
)
from unisono.apiserver.builtin.custom_resource_definitions import CustomResourceDefinitionStrategy
from unisono.apiserver.builtin.jobs import CronJobStrategy, CustomCronStrategy, JobStrategy
from unisono.apiserver.builtin.network_and_storage import (
    ClaimStrategy,
    ServiceStrategy,
    StorageClassStrategy,
    VolumeStrategy,
)
from unisono.apiserver.builtin.pods.strategy import PodStrategy
from unisono.apiserver.builtin.policy import (
    AutoscalerStrategy,
    LimitRangeStrategy,
    PodDisruptionBudgetStrategy,
    UncountedStrategy,
)
from unisono.apiserver.builtin.priority_classes import PriorityClassStrategy
from unisono.apiserver.builtin.rbac import BindingStrategy, RoleStrategy
from unisono.apiserver.builtin.volcano import VOLCANO
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
    "batch.volcano.sh/cronjobs": CustomCronStrategy(),
    "coordination.k8s.io/leases": LeaseStrategy(),
    "events.k8s.io/events": _EVENTS,
    "node.k8s.io/runtimeclasses": _UNCOUNTED,
    "policy/poddisruptionbudgets": PodDisruptionBudgetStrategy(),
    f"{_RBAC}/clusterrolebindings": BindingStrategy(roles=("ClusterRole",)),
    f"{_RBAC}/clusterroles": RoleStrategy(is_for_cluster=True),
    f"{_RBAC}/rolebindings": BindingStrategy(roles=("ClusterRole", "Role")),
    f"{_RBAC}/roles": RoleStrategy(is_for_cluster=False),
    "ray.io/raycronjobs": CustomCronStrategy(),
    "scheduling.k8s.io/priorityclasses": PriorityClassStrategy(),
    "storage.k8s.io/csinodes": _UNCOUNTED,
    "storage.k8s.io/csidrivers": _UNCOUNTED,
    "storage.k8s.io/storageclasses": StorageClassStrategy(),
    **VOLCANO,
}
