"""Small kinds whose columns are mostly single fields: namespaces, settings, quotas, priorities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from unisono.apiserver.objects import Json
from unisono.apiserver.tables.printer import (
    AGE,
    CREATED_AT,
    NAME,
    NAME_HEADING,
    NONE,
    Cell,
    Content,
    Heading,
    Printer,
    column,
    container_columns,
    count_of,
    inside,
    joined,
    labels_cell,
    of,
    printer,
    wide,
)
from unisono.apiserver.times import UNKNOWN, age, seconds


def _data(settings: Mapping[str, Any], now: float) -> Content:
    return len(settings.get("data") or ()) + len(settings.get("binaryData") or ())


def _used(is_limit: bool) -> Cell:
    """Return a cell with what is used of each amount, limits apart from everything else."""

    def cell(quota: Mapping[str, Any], now: float) -> Content:
        hard, used = inside(quota, "status", "hard") or {}, inside(quota, "status", "used") or {}
        return ", ".join(
            f"{name}: {used.get(name, '0')}/{amount}"
            for name, amount in sorted(hard.items())
            if name.startswith("limits.") == is_limit
        )

    return cell


def _bound(field: str) -> Cell:
    def cell(budget: Mapping[str, Any], now: float) -> Content:
        value = inside(budget, "spec", field)
        return "N/A" if value is None else str(value)

    return cell


NAMESPACES = printer(
    NAME, column("Status", of("status", "phase"), "Active, or Terminating while it empties."), AGE
)

CONFIG_MAPS = printer(NAME, column("Data", _data, "How many keys it has."), AGE)

SECRETS = printer(
    NAME,
    column("Type", of("type"), "What the secret is for."),
    column("Data", count_of("data"), "How many keys it has."),
    AGE,
)

SERVICE_ACCOUNTS = printer(NAME, AGE)

LIMIT_RANGES = printer(NAME, CREATED_AT)

RESOURCE_QUOTAS = printer(
    NAME,
    column("Request", _used(is_limit=False), "What is used of each amount that may be requested."),
    column("Limit", _used(is_limit=True), "What is used of each amount that may be the limit."),
    AGE,
)

POD_TEMPLATES = printer(
    NAME,
    # Here they are no extra: there is nothing else to tell templates apart by.
    *(
        column(shown.heading.name, shown.cell, shown.heading.description)
        for shown in container_columns("template")
    ),
    column("Pod Labels", labels_cell("template", "metadata", "labels"), "The labels of its pods."),
)

PRIORITY_CLASSES = printer(
    NAME,
    column("Value", of("value", absent=0), "How important; more is more.", type="integer"),
    column(
        "Global-Default",
        of("globalDefault", absent=False),
        "Whether pods without a class get this one.",
        type="boolean",
    ),
    AGE,
    column("PreemptionPolicy", of("preemptionPolicy"), "Whether it may push others aside."),
)

LEASES = printer(
    NAME, column("Holder", of("spec", "holderIdentity"), "The holder of the lease."), AGE
)

DISRUPTION_BUDGETS = printer(
    NAME,
    column("Min Available", _bound("minAvailable"), "How many pods must stay."),
    column("Max Unavailable", _bound("maxUnavailable"), "How many pods may be missing."),
    column(
        "Allowed Disruptions",
        of("status", "disruptionsAllowed", absent=0),
        "How many pods may leave right now.",
        type="integer",
    ),
    AGE,
)

RUNTIME_CLASSES = printer(
    NAME, column("Handler", of("handler"), "Which configuration of the runtime it names."), AGE
)


# ---- nodes ---------------------------------------------------------------------------------------


_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _status(node: Mapping[str, Any], now: float) -> Content:
    words = ["Unknown"]
    for condition in inside(node, "status", "conditions") or ():
        if condition.get("type") == "Ready":
            words = ["Ready" if condition.get("status") == "True" else "NotReady"]
    if inside(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Mapping[str, Any], now: float) -> Content:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL, ""))
    return joined(sorted(roles - {""}))


def _address(kind: str) -> Cell:
    def cell(node: Mapping[str, Any], now: float) -> Content:
        for address in inside(node, "status", "addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address", ""))
        return NONE

    return cell


def _kernel(node: Mapping[str, Any], now: float) -> Content:
    about = inside(node, "status", "nodeInfo") or {}
    kernel, architecture = about.get("kernelVersion") or UNKNOWN, about.get("architecture")
    return f"{kernel} ({architecture})" if architecture else kernel


NODES = printer(
    NAME,
    column("Status", _status, "Whether the node is ready, and whether it takes new pods."),
    column("Roles", _roles, "What the node is for, by its role labels."),
    AGE,
    column("Version", of("status", "nodeInfo", "kubeletVersion"), "The version of its agent."),
    wide("Internal-IP", _address("InternalIP"), "Its address inside the cluster."),
    wide("External-IP", _address("ExternalIP"), "Its address outside the cluster."),
    wide("OS-Image", of("status", "nodeInfo", "osImage", absent=UNKNOWN), "Its operating system."),
    wide("Kernel-Version", _kernel, "Its kernel and its processor architecture."),
    wide(
        "Container-Runtime",
        of("status", "nodeInfo", "containerRuntimeVersion", absent=UNKNOWN),
        "What runs its containers.",
    ),
)


# ---- roles and bindings --------------------------------------------------------------------------


def _role(binding: Mapping[str, Any], now: float) -> Content:
    role = binding.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _subjects(kind: str) -> Cell:
    def cell(binding: Mapping[str, Any], now: float) -> Content:
        names = []
        for subject in binding.get("subjects") or ():
            if subject.get("kind") == kind:
                space = subject.get("namespace")
                name = subject.get("name", "")
                names.append(f"{space}/{name}" if kind == "ServiceAccount" and space else name)
        return ", ".join(names)

    return cell


ROLES = printer(NAME, CREATED_AT)

BINDINGS = printer(
    NAME,
    column("Role", _role, "The role that is given."),
    AGE,
    wide("Users", _subjects("User"), "The users who get it."),
    wide("Groups", _subjects("Group"), "The groups that get it."),
    wide("ServiceAccounts", _subjects("ServiceAccount"), "The service accounts that get it."),
)


# ---- events --------------------------------------------------------------------------------------
#
# An event has two faces, `v1` and `events.k8s.io/v1`, with other names for the same facts. Printing
# reads both. Unlike other kinds the rows do not come by name, which says nothing here, but by time,
# so that the newest stands at the end of the page where the reader looks first.


def by_time(events: Iterable[Json]) -> list[Json]:
    """Return events with the one seen last at the end."""
    return sorted(events, key=_moment)


def _moment(event: Mapping[str, Any]) -> tuple[float, str, str]:
    metadata, last = event["metadata"], _last(event)
    seen = seconds(last) if isinstance(last, str) else None
    return seen or 0.0, metadata.get("namespace", ""), metadata.get("name", "")


def _first(event: Mapping[str, Any]) -> Any:
    return (
        event.get("firstTimestamp")
        or event.get("deprecatedFirstTimestamp")
        or event.get("eventTime")
        or ""
    )


def _last(event: Mapping[str, Any]) -> Any:
    series = event.get("series")
    if isinstance(series, dict):
        return series.get("lastObservedTime") or ""
    return event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or _first(event)


def _count(event: Mapping[str, Any]) -> int:
    series = event.get("series")
    if series:
        return int(series.get("count") or 0)
    return event.get("count") or event.get("deprecatedCount") or 1


def _source(event: Mapping[str, Any]) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = (
        source.get("component")
        or event.get("reportingComponent")
        or event.get("reportingController")
        or ""
    )
    instance = source.get("host") or event.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def _cells(event: Mapping[str, Any], now: float) -> list[Content]:
    about = event.get("involvedObject") or event.get("regarding") or {}
    kind, name = about.get("kind", "").lower(), about.get("name", "")
    return [
        age(_last(event), now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath", ""),
        _source(event),
        (event.get("message") or event.get("note") or "").strip(),
        age(_first(event), now),
        _count(event),
        event["metadata"].get("name", ""),
    ]


EVENTS = Printer(
    headings=(
        Heading("Last Seen", "How long ago it happened, or happened again."),
        Heading("Type", "Normal, or Warning."),
        Heading("Reason", "Why, in one word."),
        Heading("Object", "What it is about."),
        Heading("Subobject", "Which part of it, such as a container.", priority=1),
        Heading("Source", "The component that reports it.", priority=1),
        Heading("Message", "What happened, in a sentence."),
        Heading("First Seen", "How long ago it happened first.", priority=1),
        Heading("Count", "How often it happened.", priority=1),
        Heading(NAME_HEADING.name, NAME_HEADING.description, format="name", priority=1),
    ),
    cells=_cells,
)
