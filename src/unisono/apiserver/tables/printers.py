"""The printer of every built-in kind, by the key under which its objects are stored."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.apiserver.tables import (
    access,
    apps,
    autoscaling,
    core,
    events,
    extension,
    jobs,
    network,
    nodes,
    pods,
    storage,
)
from unisono.apiserver.tables.printer import Printer

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

PRINTERS: Mapping[str, Printer] = {
    "/configmaps": core.CONFIG_MAPS,
    "/endpoints": network.ENDPOINTS,
    "/events": events.EVENTS,
    "/limitranges": core.LIMIT_RANGES,
    "/namespaces": core.NAMESPACES,
    "/nodes": nodes.NODES,
    "/persistentvolumeclaims": storage.CLAIMS,
    "/persistentvolumes": storage.VOLUMES,
    "/pods": pods.PODS,
    "/podtemplates": core.POD_TEMPLATES,
    "/replicationcontrollers": apps.REPLICATION_CONTROLLERS,
    "/resourcequotas": core.RESOURCE_QUOTAS,
    "/secrets": core.SECRETS,
    "/serviceaccounts": core.SERVICE_ACCOUNTS,
    "/services": network.SERVICES,
    "apps/daemonsets": apps.DAEMON_SETS,
    "apps/deployments": apps.DEPLOYMENTS,
    "apps/replicasets": apps.REPLICA_SETS,
    "apps/statefulsets": apps.STATEFUL_SETS,
    "batch/cronjobs": jobs.CRON_JOBS,
    "batch/jobs": jobs.JOBS,
    "policy/poddisruptionbudgets": core.DISRUPTION_BUDGETS,
    "scheduling.k8s.io/priorityclasses": core.PRIORITY_CLASSES,
    "coordination.k8s.io/leases": core.LEASES,
    "events.k8s.io/events": events.EVENTS,
    "autoscaling/horizontalpodautoscalers": autoscaling.AUTOSCALERS,
    "networking.k8s.io/ingressclasses": network.INGRESS_CLASSES,
    "networking.k8s.io/ingresses": network.INGRESSES,
    "networking.k8s.io/networkpolicies": network.NETWORK_POLICIES,
    "storage.k8s.io/storageclasses": storage.STORAGE_CLASSES,
    "node.k8s.io/runtimeclasses": core.RUNTIME_CLASSES,
    f"{_RBAC}/clusterrolebindings": access.BINDINGS,
    f"{_RBAC}/clusterroles": access.ROLES,
    f"{_RBAC}/rolebindings": access.BINDINGS,
    f"{_RBAC}/roles": access.ROLES,
    f"{_ADMISSION}/mutatingadmissionpolicies": extension.MUTATING_POLICIES,
    f"{_ADMISSION}/mutatingadmissionpolicybindings": extension.POLICY_BINDINGS,
    f"{_ADMISSION}/mutatingwebhookconfigurations": extension.WEBHOOKS,
    f"{_ADMISSION}/validatingadmissionpolicies": extension.VALIDATING_POLICIES,
    f"{_ADMISSION}/validatingadmissionpolicybindings": extension.POLICY_BINDINGS,
    f"{_ADMISSION}/validatingwebhookconfigurations": extension.WEBHOOKS,
    "apiextensions.k8s.io/customresourcedefinitions": extension.DEFINITIONS,
    "apiregistration.k8s.io/apiservices": extension.API_SERVICES,
    f"{_FLOW}/flowschemas": extension.FLOW_SCHEMAS,
    f"{_FLOW}/prioritylevelconfigurations": extension.PRIORITY_LEVELS,
}
