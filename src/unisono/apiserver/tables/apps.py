"""Deployments and their kin: how many replicas are wanted, there, ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.printer import (
    AGE,
    NAME,
    Cell,
    Content,
    Printed,
    column,
    inside,
    of,
    printer,
    wide,
)
from unisono.apiserver.tables.texts import container_columns, labels_cell, selector_cell


def _replicas(obj: Mapping[str, Any]) -> int:
    wanted = inside(obj, "spec", "replicas")
    return 1 if wanted is None else int(wanted)


def _wanted(obj: Mapping[str, Any], now: float) -> Content:
    return _replicas(obj)


def _ready(obj: Mapping[str, Any], now: float) -> Content:
    return f"{inside(obj, 'status', 'readyReplicas') or 0}/{_replicas(obj)}"


def _number(name: str, field: str, description: str, *, type: str = "integer") -> Printed:
    return column(name, of("status", field, absent=0), description, type=type)


_READY = column("Ready", _ready, "How many replicas are ready, out of how many wanted.")
_DESIRED = column("Desired", _wanted, "How many replicas are wanted.", type="integer")


def _selector(cell: Cell) -> Printed:
    return wide("Selector", cell, "Which pods are its own.")


DEPLOYMENTS = printer(
    NAME,
    _READY,
    # Kubernetes declares these two as text and sends numbers; clients are used to it.
    _number("Up-to-date", "updatedReplicas", "How many run the newest template.", type="string"),
    _number("Available", "availableReplicas", "How many have been ready for long.", type="string"),
    AGE,
    *container_columns("spec", "template"),
    _selector(selector_cell("spec", "selector")),
)

REPLICA_SETS = printer(
    NAME,
    _DESIRED,
    _number("Current", "replicas", "How many replicas there are."),
    _number("Ready", "readyReplicas", "How many of them are ready."),
    AGE,
    *container_columns("spec", "template"),
    _selector(selector_cell("spec", "selector")),
)

REPLICATION_CONTROLLERS = printer(
    NAME,
    _DESIRED,
    _number("Current", "replicas", "How many replicas there are."),
    _number("Ready", "readyReplicas", "How many of them are ready."),
    AGE,
    *container_columns("spec", "template"),
    _selector(labels_cell("spec", "selector")),
)

STATEFUL_SETS = printer(NAME, _READY, AGE, *container_columns("spec", "template"))

DAEMON_SETS = printer(
    NAME,
    _number("Desired", "desiredNumberScheduled", "How many nodes should run a pod."),
    _number("Current", "currentNumberScheduled", "How many nodes run one."),
    _number("Ready", "numberReady", "How many of those pods are ready."),
    _number("Up-to-date", "updatedNumberScheduled", "How many run the newest template."),
    _number("Available", "numberAvailable", "How many have been ready for long."),
    column(
        "Node Selector",
        labels_cell("spec", "template", "spec", "nodeSelector"),
        "On which nodes its pods run.",
    ),
    AGE,
    *container_columns("spec", "template"),
    _selector(selector_cell("spec", "selector")),
)
