"""The printer of every built-in kind, by the key under which its objects are stored."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.apiserver.tables import core, extensions, network_and_storage, pods, workloads
from unisono.apiserver.tables.printer import Printer

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

PRINTERS: Mapping[str, Printer] = {
    "/configmaps": core.CONFIG_MAPS,
    "/endpoints": network_and_storage.ENDPOINTS,
    "/events": core.EVENTS,
    "/limitranges": core.LIMIT_RANGES,
    "/namespaces": core.NAMESPACES,
    "/nodes": core.NODES,
    "/persistentvolumeclaims": network_and_storage.CLAIMS,
    "/persistentvolumes": network_and_storage.VOLUMES,
    "/pods": pods.PODS,
    "/podtemplates": core.POD_TEMPLATES,
    "/replicationcontrollers": workloads.REPLICATION_CONTROLLERS,
    "/resourcequotas": core.RESOURCE_QUOTAS,
    "/secrets": core.SECRETS,
    "/serviceaccounts": core.SERVICE_ACCOUNTS,
    "/services": network_and_storage.SERVICES,
    "apps/daemonsets": workloads.DAEMON_SETS,
    "apps/deployments": workloads.DEPLOYMENTS,
    "apps/replicasets": workloads.REPLICA_SETS,
    "apps/statefulsets": workloads.STATEFUL_SETS,
    "batch/cronjobs": workloads.CRON_JOBS,
    "batch/jobs": workloads.JOBS,
    "policy/poddisruptionbudgets": core.DISRUPTION_BUDGETS,
    "scheduling.k8s.io/priorityclasses": core.PRIORITY_CLASSES,
    "coordination.k8s.io/leases": core.LEASES,
    "events.k8s.io/events": core.EVENTS,
    "autoscaling/horizontalpodautoscalers": extensions.AUTOSCALERS,
    "networking.k8s.io/ingressclasses": network_and_storage.INGRESS_CLASSES,
    "networking.k8s.io/ingresses": network_and_storage.INGRESSES,
    "networking.k8s.io/networkpolicies": network_and_storage.NETWORK_POLICIES,
    "storage.k8s.io/storageclasses": network_and_storage.STORAGE_CLASSES,
    "node.k8s.io/runtimeclasses": core.RUNTIME_CLASSES,
    f"{_RBAC}/clusterrolebindings": core.BINDINGS,
    f"{_RBAC}/clusterroles": core.ROLES,
    f"{_RBAC}/rolebindings": core.BINDINGS,
    f"{_RBAC}/roles": core.ROLES,
    f"{_ADMISSION}/mutatingadmissionpolicies": extensions.MUTATING_POLICIES,
    f"{_ADMISSION}/mutatingadmissionpolicybindings": extensions.POLICY_BINDINGS,
    f"{_ADMISSION}/mutatingwebhookconfigurations": extensions.WEBHOOKS,
    f"{_ADMISSION}/validatingadmissionpolicies": extensions.VALIDATING_POLICIES,
    f"{_ADMISSION}/validatingadmissionpolicybindings": extensions.POLICY_BINDINGS,
    f"{_ADMISSION}/validatingwebhookconfigurations": extensions.WEBHOOKS,
    "apiextensions.k8s.io/customresourcedefinitions": extensions.DEFINITIONS,
    "apiregistration.k8s.io/apiservices": extensions.API_SERVICES,
    f"{_FLOW}/flowschemas": extensions.FLOW_SCHEMAS,
    f"{_FLOW}/prioritylevelconfigurations": extensions.PRIORITY_LEVELS,
}
