"""Small kinds whose columns are mostly single fields: namespaces, settings, quotas, priorities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.printer import (
    AGE,
    CREATED_AT,
    NAME,
    Cell,
    Content,
    column,
    count_of,
    inside,
    of,
    printer,
)
from unisono.apiserver.tables.texts import container_columns, labels_cell


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

LEASES = printer(NAME, column("Holder", of("spec", "holderIdentity"), "Who holds it."), AGE)

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
