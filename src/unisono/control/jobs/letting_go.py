"""Whether a job's operator may make pods for it: nobody starts before the queue says so.

A job that a queue has to admit is suspended when it is created. One that was created otherwise (it
names no queue, but runs in a cluster where gangs start whole) is suspended a moment later; in that
moment its operator must not be quicker.
"""

from __future__ import annotations

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import is_true
from unisono.control.jobs.queues import Queues
from unisono.control.jobs.workload import workload_name
from unisono.control.view import View
from unisono.kube.mapping import Kind


def is_let_go(job: Json, kind: Kind, queues: Queues, view: View) -> bool:
    """Say whether a job is admitted, or in no queue at all."""
    if queues.queue_of(job, view) is None:
        return True
    metadata = job["metadata"]
    name = workload_name(kind, metadata["name"], metadata["uid"])
    workload = view.get(names.WORKLOAD, name, metadata["namespace"])
    return workload is not None and is_true(
        (workload.get("status") or {}).get("conditions"), "Admitted"
    )
