"""Objects as a Table, or cut down to their metadata: the two short forms of a list.

Rows carry the metadata of their objects, from which clients take namespaces and labels; on request
the whole object (`kubectl get --sort-by`) or nothing. The order is that of the objects, but for
events (see `events`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from unisono.apiserver.objects import Json
from unisono.apiserver.tables import core, extensions, network_and_storage, workloads
from unisono.apiserver.tables.core import EVENTS, by_time
from unisono.apiserver.tables.printer import (
    AGE,
    NAME,
    Cell,
    Content,
    Heading,
    Printed,
    Printer,
    inside,
    printer,
)
from unisono.apiserver.times import INVALID, duration, seconds
from unisono.kinds.expressions.jsonpath import compile_path, plain_names
from unisono.kinds.shapes.served import Column, Served

_META_VERSION = "meta.k8s.io/v1"


def as_table(
    served: Served,
    objects: Iterable[Json],
    *,
    now: float,
    include: str,
    list_metadata: Json,
    with_columns: bool,
) -> Json:
    """Return the Table of some objects of one kind; `include` is Metadata, Object or None.

    A watch sends the columns with its first event only.
    """
    printer = printer_of(served)
    rows = list(rows_of(served, objects, now=now, include=include))
    columns = [heading.as_json() for heading in printer.headings] if with_columns else None
    return {
        "kind": "Table",
        "apiVersion": _META_VERSION,
        "metadata": list_metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }


def rows_of(served: Served, objects: Iterable[Json], *, now: float, include: str) -> Iterator[Json]:
    """Yield the rows of a Table one by one, so that ten thousand objects are never held at once."""
    printer = printer_of(served)
    for obj in by_time(objects) if printer is EVENTS else objects:
        row: Json = {"cells": _cells(printer, obj, now)}
        if include == "Object":
            row["object"] = obj
        elif include != "None":
            row["object"] = _label(obj)
        yield row


def _cells(printer: Printer, obj: Json, now: float) -> list[Content]:
    try:
        return printer.cells(obj, now)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # Schemas keep objects in shape; should one be odd all the same, the others are still shown.
        name = obj["metadata"].get("name", "")
        return [name if heading.format == "name" else INVALID for heading in printer.headings]


def _label(obj: Json) -> Json:
    """Return what a row says about its object: the metadata, as far as it is printed.

    managedFields are more than half of the bytes of a long table, and in no column.
    """
    found = partial(obj)
    if "managedFields" in found["metadata"]:
        found["metadata"] = {**found["metadata"]}
        del found["metadata"]["managedFields"]
    return found


def partial(obj: Json) -> Json:
    """Return an object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _META_VERSION,
        "metadata": obj["metadata"],
    }


# A few hundred kinds at most; kinds are compared by identity, so a new definition starts afresh.
@lru_cache(maxsize=1024)
def printer_of(served: Served) -> Printer:
    """Return what prints a kind: built in, or made of the columns that it declares."""
    return PRINTERS.get(served.key) or custom_printer(served)


# ---- custom columns ------------------------------------------------------------------------------
#
# A path may find several values; like Kubernetes we show the first. Text columns print whatever
# that is, structures as JSON. Numbers and booleans are shown if that is what is found. Dates are
# shown as an age. What is not there is None, which kubectl leaves blank.


Find = Callable[[Any], Any]  # the first value, or None


def custom_printer(served: Served) -> Printer:
    """Return the printer of a kind that has none built in."""
    if not served.columns:
        return printer(NAME, AGE)
    return printer(NAME, *(_printed(column) for column in served.columns))


def _printed(column: Column) -> Printed:
    heading = Heading(column.name, column.description, column.type, column.format, column.priority)
    return Printed(heading, _cell(column))


def _cell(column: Column) -> Cell:
    find = _finder(column.json_path)
    if column.type == "date":
        return lambda obj, now: _age(find(obj), now)
    show = _SHOW.get(column.type, _text)
    return lambda obj, now: show(find(obj))


def _finder(path: str) -> Find:
    names = plain_names(path)
    if names is not None:  # nearly all columns
        return lambda obj: inside(obj, *names)
    try:
        find = compile_path(path)
    except ValueError:
        # The author of such a definition was told; its column stays empty.
        return lambda obj: None
    return lambda obj: next(iter(find(obj)), None)


def _text(value: Any) -> Content:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _integer(value: Any) -> Content:
    number = _number(value)
    return None if number is None else int(number)


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Any) -> Content:
    return value if isinstance(value, bool) else None


def _age(value: Any, now: float) -> Content:
    if not isinstance(value, str):
        return None
    moment = seconds(value)
    return INVALID if moment is None else duration(now - moment)


_SHOW: dict[str, Callable[[Any], Content]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
}


# ---- the printer of every built-in kind ----------------------------------------------------------


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
    "/pods": workloads.PODS,
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
