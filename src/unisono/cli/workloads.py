"""`unisono workloads`: what runs and what waits, in the order of its queue."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from unisono.cli.connection import asked, verb_parser
from unisono.cli.listing import Sheet, add_form, show
from unisono.cli.workload_state import (
    NO_QUEUE,
    condition,
    gpus_of,
    in_line,
    job_of,
    pods_of,
    since,
    state_of,
)

if TYPE_CHECKING:
    from unisono.kube.client import Client

Json = dict[str, Any]

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
_LAST = 1 << 30  # behind everybody who has a number


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("List what runs and what waits.", EXAMPLES, has_everywhere=True)
    made.add_argument(
        "-q", "--queue", default="", metavar="QUEUE", help="only of this LocalQueue or ClusterQueue"
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
    from unisono.apiserver.tables.age import age
    from unisono.control.names import LOCAL_QUEUE, WORKLOAD
    from unisono.kinds.kueue.status_shape import readable
    from unisono.kube.trouble import Forbidden
    from unisono.runtime.clock import RealClock

    place = "" if arguments.everywhere else arguments.namespace or client.namespace
    try:  # positions need those of other namespaces, too
        workloads = [*map(readable, (await client.list(WORKLOAD)).items)]
        doors = (await client.list(LOCAL_QUEUE)).items
    except Forbidden:
        workloads = [*map(readable, (await client.list(WORKLOAD, place)).items)]
        doors = (await client.list(LOCAL_QUEUE, place)).items
    found = [
        one
        for one in listed(workloads, doors)
        if (not place or one["namespace"] == place)
        and arguments.queue in ("", one["queue"], one["clusterQueue"])
    ]
    now = RealClock().now()
    headings = ["NAME", "QUEUE", "PRIO", "PODS", "STATE", "POS", "FOR", "DETAIL"]
    rows = [_cells(one, age(one["since"], now)) for one in found]
    if arguments.everywhere:
        headings.insert(0, "NAMESPACE")
        rows = [[one["namespace"], *row] for one, row in zip(found, rows, strict=True)]
    more = {
        "CLUSTERQUEUE": [one["clusterQueue"] for one in found],
        "GPUS": [one["gpus"] for one in found],
        "WORKLOAD": [one["workload"] for one in found],
        "MESSAGE": [one["message"] for one in found],
    }
    return [Sheet("workloads", headings, rows, found, more)]


def _cells(one: Json, waits: str) -> list[object]:
    position = one.get("position", "")
    queue = "" if one["queue"] == NO_QUEUE else one["queue"]
    told = (one["priority"], one["pods"], one["state"], position, waits, one["detail"])
    return [one["name"], queue, *told]


def listed(workloads: list[Json], doors: list[Json]) -> list[Json]:
    """Return workloads as rows: who runs first, then who waits in queue order, then the rest."""
    behind = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"]["clusterQueue"]
        for one in doors
    }
    lines: dict[str, list[Json]] = {}
    for one in workloads:
        lines.setdefault(_queue(one, behind), []).append(one)
    positions = {
        one["metadata"]["uid"]: place
        for line in lines.values()
        for place, one in enumerate(_standing_in(line), start=1)
    }
    rows = [_row(one, _queue(one, behind), positions) for one in workloads]
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


def _standing_in(line: list[Json]) -> list[Json]:
    """Return those who wait their turn; who is held, or not to begin yet, stands in no line."""
    from unisono.cli.why.surroundings import is_aside

    return [one for one in in_line(line) if not is_aside(one)]


def _queue(workload: Json, behind: dict[tuple[str, str], str]) -> str:
    """Return the ClusterQueue that a workload holds quota of or waits for; empty if none."""
    admission = (workload.get("status") or {}).get("admission") or {}
    door = (workload["metadata"]["namespace"], workload["spec"].get("queueName", ""))
    return str(admission.get("clusterQueue") or behind.get(door, ""))


def _row(workload: Json, queue: str, positions: dict[str, int]) -> Json:
    metadata = workload["metadata"]
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
        "gpus": gpus_of(workload),
        "message": str(
            (condition(workload, _TOLD.get(state_of(workload), "")) or _NOTHING)["message"]
        ),
    }
    if metadata["uid"] in positions:
        made["position"] = positions[metadata["uid"]]
    return made


def _detail(workload: Json) -> str:
    """Say the one thing that matters most in its state: why it waits, where it is, how it ended."""
    from unisono.kinds.kueue.topology_assignment import pods_per_host

    state = state_of(workload)
    told = condition(workload, _TOLD.get(state, ""))
    if told is not None:
        return str(told.get("reason", ""))
    admission = (workload.get("status") or {}).get("admission") or {}
    nodes = [
        host
        for one in admission.get("podSetAssignments") or ()
        for host, _ in pods_per_host(one.get("topologyAssignment"))
    ]
    nodes = list(dict.fromkeys(nodes))
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    return ",".join(nodes[:_MOST_NODES]) + more
