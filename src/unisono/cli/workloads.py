"""`unisono workloads`: what runs and what waits, in the order of its queue."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from unisono.cli.connection import asked, verb_parser
from unisono.cli.job_names import by_jobs, job_names
from unisono.cli.language import say
from unisono.cli.listing import Sheet, add_form, show
from unisono.cli.workload_state import (
    NO_QUEUE,
    condition,
    gpus_of,
    job_of,
    pods_of,
    since,
    state_of,
)

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.kube.form import Json

EXAMPLES = """\
examples:
  unisono workloads
  unisono workloads -A -q team-a
  unisono workloads -n ml -w
"""

_ORDER = (
    "leaving",
    "running",
    "repairing",
    "starting",
    "checked",
    "buying",
    "waiting",
    "deactivated",
    "finished",
)
_MOST_NODES = 3
# Where a workload says why it is in a state.
_TOLD = {"waiting": "QuotaReserved", "leaving": "Evicted", "finished": "Finished"}
_NOTHING = {"message": ""}
_LAST = 1 << 30  # behind every workload that has a position


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser(
        "List running and pending workloads, in order.", EXAMPLES, has_everywhere=True
    )
    made.add_argument(
        "-q", "--queue", default="", metavar="QUEUE", help="only this LocalQueue or ClusterQueue"
    )
    add_form(made)
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print them."""

    async def work(client: Client, given: argparse.Namespace) -> int:
        return await show(client, given, read)

    return asked(arguments, work)


async def read(client: Client, arguments: argparse.Namespace) -> list[Sheet]:
    """Return the sheet."""
    from unisono.apiserver.times import age
    from unisono.cli.filters import refuse_unknown_namespace, refuse_unknown_queue
    from unisono.cli.times import local_times
    from unisono.control.names import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD
    from unisono.kinds.kueue.status_shape import readable
    from unisono.kube.errors import Forbidden
    from unisono.runtime.clock import RealClock

    place = "" if arguments.everywhere else arguments.namespace or client.namespace
    queues: list[Json] = []
    try:  # positions need the workloads of other namespaces, too
        workloads = [*map(readable, (await client.list(WORKLOAD)).items)]
        local_queues = (await client.list(LOCAL_QUEUE)).items
    except Forbidden:
        workloads = [*map(readable, (await client.list(WORKLOAD, place)).items)]
        local_queues = (await client.list(LOCAL_QUEUE, place)).items
    with contextlib.suppress(Forbidden):  # without them, a published order is unknown
        queues = (await client.list(CLUSTER_QUEUE)).items
    found = [
        one
        for one in listed(workloads, local_queues, {one["metadata"]["name"]: one for one in queues})
        if (not place or one["namespace"] == place)
        and arguments.queue in ("", one["queue"], one["clusterQueue"])
    ]
    refuse_unknown_queue(
        arguments.queue,
        place,
        [
            *((one["metadata"]["namespace"], one["metadata"]["name"]) for one in local_queues),
            *((one["namespace"], one["queue"]) for one in found),  # of a queue to come
        ],
        [
            *(one["metadata"]["name"] for one in queues),
            *(one["spec"]["clusterQueue"] for one in local_queues),
        ],
    )
    if not found:
        await refuse_unknown_namespace(client, arguments.namespace)
    now = RealClock().now()
    headings = ["NAME", "QUEUE", "PRIO", "PODS", "STATE", "POS", "FOR", "DETAIL"]
    rows = [_cells(one, age(one["since"], now), now) for one in found]
    if arguments.everywhere:
        headings.insert(0, "NAMESPACE")
        rows = [[one["namespace"], *row] for one, row in zip(found, rows, strict=True)]
    more = {
        "CLUSTERQUEUE": [one["clusterQueue"] for one in found],
        "GPUS": [one["gpus"] for one in found],
        "WORKLOAD": [one["workload"] for one in found],
        "MESSAGE": [say(local_times(one["message"], now)) for one in found],
    }
    return [Sheet("workloads", headings, rows, found, more)]


def _cells(one: Json, waits: str, now: float) -> list[object]:
    from unisono.cli.start_times import short_cause
    from unisono.cli.times import local_times

    position = one.get("position", "")
    queue = "" if one["queue"] == NO_QUEUE else one["queue"]
    detail = short_cause(local_times(one["cause"], now), one["namespace"]) or one["detail"]
    cells = (one["priority"], one["pods"], say(one["state"]), position, waits, say(detail))
    return [one["name"], queue, *cells]


def listed(
    workloads: list[Json], local_queues: list[Json], queues: Mapping[str, Json] | None = None
) -> list[Json]:
    """Return workloads as rows: running first, then pending in queue order, then the rest."""
    from unisono.kinds.kueue.queue_order import positions

    behind = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"]["clusterQueue"]
        for one in local_queues
    }
    places = positions(workloads, lambda one: _queue(one, behind), queues)
    names = job_names(workloads)
    rows = [_row(one, _queue(one, behind), places, names) for one in workloads]
    return sorted(
        rows,
        key=lambda row: (
            _ORDER.index(row["state"]),
            row["clusterQueue"],
            row.get("position", _LAST),
            row["namespace"],
            row["workload"],
        ),
    )


def _queue(workload: Json, behind: dict[tuple[str, str], str]) -> str:
    """Return the ClusterQueue that a workload holds quota of or waits for; empty if none."""
    admission = (workload.get("status") or {}).get("admission") or {}
    lq = (workload["metadata"]["namespace"], workload["spec"].get("queueName", ""))
    return str(admission.get("clusterQueue") or behind.get(lq, ""))


def _row(workload: Json, queue: str, places: dict[str, int], names: Mapping[str, str]) -> Json:
    from unisono.cli.start_times import cause_of

    metadata = workload["metadata"]
    is_waiting = state_of(workload) == "waiting"
    made: Json = {
        "namespace": metadata["namespace"],
        "name": job_of(workload),
        "workload": metadata["name"],
        "queue": workload["spec"].get("queueName", ""),
        "clusterQueue": queue,
        "priority": workload["spec"].get("priority", 0),
        "pods": pods_of(workload),
        "state": state_of(workload),
        "since": since(workload),
        "detail": _detail(workload),
        "cause": by_jobs(cause_of(workload), names) if is_waiting else "",
        "gpus": gpus_of(workload),
        "message": _message(workload),
    }
    if metadata["uid"] in places:
        made["position"] = places[metadata["uid"]]
    return made


def _message(workload: Json) -> str:
    """Return what a workload says about its state."""
    from unisono.kinds.kueue.waiting import waiting_message
    from unisono.kinds.views.workloads import Workload

    state = state_of(workload)
    if state == "waiting":
        return waiting_message(Workload(workload).conditions)
    return str((condition(workload, _TOLD.get(state, "")) or _NOTHING)["message"])


def _detail(workload: Json) -> str:
    """Say the one thing that matters most in its state: why it waits, where it is, how it ended."""
    from unisono.kinds.kueue.topology_assignment import pods_per_host

    state = state_of(workload)
    found = condition(workload, _TOLD.get(state, ""))
    if found is not None:
        return str(found.get("reason", ""))
    admission = (workload.get("status") or {}).get("admission") or {}
    nodes = [
        host
        for one in admission.get("podSetAssignments") or ()
        for host, _ in pods_per_host(one.get("topologyAssignment"))
    ]
    nodes = list(dict.fromkeys(nodes))
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    return ",".join(nodes[:_MOST_NODES]) + more
