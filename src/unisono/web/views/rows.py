"""Rows that several pages show."""

from __future__ import annotations

from unisono.kube.form import Json
from unisono.monitor.metrics.queues import state_of
from unisono.monitor.records import WorkloadRecord
from unisono.web.dashboard import Dashboard
from unisono.web.gpus import Gpus


def key_of(one: WorkloadRecord) -> str:
    """Return the name of a workload, as pages link to it."""
    return f"{one.namespace}/{one.name}"


def state(one: WorkloadRecord) -> str:
    """Say how far a workload is, in one word."""
    if one.finished:
        return "over"
    if one.is_waiting:
        return "waits"
    return "runs" if state_of(one) == "running" else "starts"


def workload_row(dashboard: Dashboard, one: WorkloadRecord, gpus: Gpus | None = None) -> Json:
    """Return a workload as lists show it; with what its GPUs do, where that is known."""
    return {
        "key": key_of(one),
        "job": f"{one.owner_kind.lower()}/{one.owner_name}",
        "state": state(one),
        "queue": dashboard.queue_of(one),
        "user": one.user,
        "gpus": one.gpus,
        "pods": one.pods,
        "priority": one.priority,
        "place": dashboard.position(one),
        "stage": one.waits.stage,
        "says": dashboard.by_jobs(one.waits.says),
        "start": one.waits.start,
        "promised": one.waits.is_promised,
        "since": since(one),
        **(gpus.row(one) if gpus is not None else {}),
    }


def since(one: WorkloadRecord) -> float:
    """Return since when a workload is as it is."""
    return one.finished or one.ready or one.admitted or one.reserved or one.created
