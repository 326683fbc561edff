"""`unisono queues`: pending and admitted workloads, and quota in use, queue by queue."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from unisono.cli.connection import asked, verb_parser
from unisono.cli.listing import Sheet, add_form, show

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.kube.form import Json

EXAMPLES = """\
examples:
  unisono queues
  unisono queues -A -w
  unisono queues -o json
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser(
        "List ClusterQueues, and the LocalQueues of a namespace.", EXAMPLES, has_everywhere=True
    )
    add_form(made)
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print them."""

    async def work(client: Client, given: argparse.Namespace) -> int:
        return await show(client, given, read)

    return asked(arguments, work)


async def read(client: Client, arguments: argparse.Namespace) -> list[Sheet]:
    """Return a sheet of each kind of queue."""
    from unisono.cli.filters import refuse_unknown_namespace
    from unisono.control.names import CLUSTER_QUEUE, LOCAL_QUEUE

    place = "" if arguments.everywhere else arguments.namespace or client.namespace
    cluster = [cluster_queue(one) for one in (await client.list(CLUSTER_QUEUE)).items]
    local = [local_queue(one) for one in (await client.list(LOCAL_QUEUE, place)).items]
    if not local:
        await refuse_unknown_namespace(client, arguments.namespace)
    return [
        Sheet(
            "clusterQueues",
            ("CLUSTERQUEUE", "COHORT", "PENDING", "ADMITTED", "USED", "STATE"),
            [
                (one["name"], one["cohort"], *_counts(one), _used(one["resources"]), one["state"])
                for one in cluster
            ],
            cluster,
            {
                "BORROWED": [_beyond(one["resources"]) for one in cluster],
                "STRATEGY": [one["strategy"] for one in cluster],
                "MESSAGE": [one.get("message", "") for one in cluster],
            },
        ),
        Sheet(
            "localQueues",
            ("NAMESPACE", "LOCALQUEUE", "CLUSTERQUEUE", "PENDING", "ADMITTED", "STATE"),
            [
                (one["namespace"], one["name"], one["clusterQueue"], *_counts(one), one["state"])
                for one in local
            ],
            local,
            {"MESSAGE": [one.get("message", "") for one in local]},
        ),
    ]


def cluster_queue(obj: Json) -> Json:
    """Return what a person wants to know of a ClusterQueue."""
    spec = obj.get("spec") or {}
    return {
        "name": obj["metadata"]["name"],
        "cohort": cohort_of(obj),
        "strategy": spec.get("queueingStrategy", "BestEffortFIFO"),
        **_status(obj),
        "resources": _resources(obj),
    }


def cohort_of(queue: Json) -> str:
    """Return the cohort of a ClusterQueue, which v1beta1 called `cohort`.

    A real API server stores a queue as it was applied in v1beta1: it has no converter
    (`kinds.shapes.crds`). Not through a view: one malformed queue must not hide the others.
    """
    spec = queue.get("spec") or {}
    return str(spec.get("cohortName") or spec.get("cohort") or "")


def local_queue(obj: Json) -> Json:
    """Return what a person wants to know of a LocalQueue."""
    return {
        "namespace": obj["metadata"]["namespace"],
        "name": obj["metadata"]["name"],
        "clusterQueue": obj["spec"]["clusterQueue"],
        **_status(obj),
    }


def _status(obj: Json) -> Json:
    from unisono.cli.workload_state import condition

    status = obj.get("status") or {}
    active = condition(obj, "Active")
    made: Json = {
        "pending": status.get("pendingWorkloads", 0),
        "reserving": status.get("reservingWorkloads", 0),
        "admitted": status.get("admittedWorkloads", 0),
        "state": active["reason"] if active is not None else "Unknown",
    }
    if active is not None and active["status"] != "True":
        made["message"] = active.get("message", "")
    return made


def _counts(one: Json) -> tuple[int, int]:
    return one["pending"], one["admitted"]


def _resources(obj: Json) -> Json:
    """Return what is used and what is owned of each resource, over all flavors."""
    from unisono.kinds.quantity import Quantity, format_amount

    used: dict[str, int] = {}
    owned: dict[str, int] = {}
    for group in (obj.get("spec") or {}).get("resourceGroups") or ():
        quotas = list(group.get("resources") or ())
        for flavor in group.get("flavors") or ():
            quotas += (flavor.get("resources") or ()) if isinstance(flavor, dict) else ()
        for quota in quotas:
            name = quota["name"]
            amount = Quantity.from_raw(quota["nominalQuota"]).amount(name)
            owned[name] = owned.get(name, 0) + amount
    for flavor in (obj.get("status") or {}).get("flavorsReservation") or ():
        for one in flavor.get("resources") or ():
            name = one["name"]
            amount = Quantity.from_raw(one.get("total", "0")).amount(name)
            used[name] = used.get(name, 0) + amount
    return {
        name: {
            "used": format_amount(used.get(name, 0), name),
            "nominal": format_amount(owned.get(name, 0), name),
        }
        for name in {**owned, **used}
    }


def _beyond(resources: Mapping[str, Json]) -> str:
    """Write what is used beyond what the queue owns, for a cell."""
    from unisono.kinds.quantity import Quantity, format_amount

    found = []
    for name, one in resources.items():
        used, owned = (Quantity.from_raw(one[key]).amount(name) for key in ("used", "nominal"))
        if used > owned:
            found.append(f"{name.rpartition('/')[2]} {format_amount(used - owned, name)}")
    return " ".join(found)


def _used(resources: Mapping[str, Json]) -> str:
    """Write usage for a cell: GPUs first, names without their domain."""
    order = sorted(resources, key=lambda name: ("/" not in name, name))
    return " ".join(
        f"{name.rpartition('/')[2]} {resources[name]['used']}/{resources[name]['nominal']}"
        for name in order
    )
