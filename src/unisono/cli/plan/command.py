"""`unisono plan`: the pending workloads in order, and when each starts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from unisono.cli.connection import add_filenames, asked, verb_parser
from unisono.cli.language import say
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.names import Instant
from unisono.engine.model.provisioning import Purchase

if TYPE_CHECKING:
    from unisono.engine.model.snapshot import Snapshot
    from unisono.kube.client import Client
    from unisono.kube.form import Json

_PAUSE_SECONDS = 1.0  # between two looks while watching

EXAMPLES = """\
examples:
  unisono plan
  unisono plan -A -q research
  unisono plan -o wide
  unisono plan -A -w
  unisono plan -f cluster.yaml -f jobs.yaml --policy backfill.yaml
  unisono plan -f job.yaml --on-cluster

START is a reservation: the workload starts by then if running jobs keep their time limits; with ~,
it is an estimate without a reservation; with ≤, what is in its way is over by then at the latest.
WHY is the root cause, or the reason while it is not known. Times are local. Without -f, the
running cluster is asked.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser(
        "List the pending workloads in order, and when each starts.", EXAMPLES, has_everywhere=True
    )
    made.add_argument(
        "-q", "--queue", default="", metavar="QUEUE", help="only this LocalQueue or ClusterQueue"
    )
    add_filenames(
        made,
        "plan what these manifests describe instead; files, folders, or - for stdin",
        is_required=False,
    )
    made.add_argument(
        "--on-cluster",
        action="store_true",
        help="with -f: plan these manifests on the running cluster",
    )
    made.add_argument("--policy", metavar="FILE", help="with -f: a Policy or a Kueue Configuration")
    made.add_argument("--now", metavar="TIME", help="with -f: the time to plan at")
    made.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml"),
        default="table",
        help="output format (default: table)",
    )
    made.add_argument(
        "-w", "--watch", action="store_true", help="print the list again whenever it changes"
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    if arguments.watch and (arguments.filename or arguments.output not in ("table", "wide")):
        raise InvalidManifest("-w", "is for tables of the running cluster")
    if arguments.on_cluster and not arguments.filename:
        raise InvalidManifest("--on-cluster", "needs -f: the manifests to plan there")
    if arguments.on_cluster:
        return asked(arguments, _on_cluster)
    if arguments.filename:
        return _offline(arguments)
    return asked(arguments, _living)


def _offline(arguments: argparse.Namespace) -> int:
    from unisono.cli.decide import instant
    from unisono.cli.scripts import with_scripts
    from unisono.kinds.snapshot.build import read_world
    from unisono.provision.catalog.offers import with_offerings
    from unisono.runtime import clock
    from unisono.runtime.manifest_files import files_of

    now = clock.now() if arguments.now is None else instant(arguments.now)
    names = [*arguments.filename, *([arguments.policy] if arguments.policy else [])]
    files = [file for name in names for file in files_of(name, takes_scripts=True)]
    world = read_world(with_scripts(files, now), now=now)
    if world.problems:
        raise InvalidManifest("", "\n".join(problem.line() for problem in world.problems))
    for warning in world.warnings:
        print(f"unisono: warning: {warning.line()}", file=sys.stderr)
    snapshot = with_offerings(world.snapshot, world.pools, world.overlays)
    _print_rehearsed(snapshot, arguments, now, arguments.everywhere or not arguments.namespace)
    return 0


def _print_rehearsed(
    snapshot: Snapshot,
    arguments: argparse.Namespace,
    now: Instant,
    everywhere: bool,
    *,
    known: Collection[str] = (),
) -> None:
    """Admit what fits, and print what is pending and what is bought, without `known` workloads."""
    from unisono.cli.filters import refuse_unknown_queue
    from unisono.cli.plan.rows import bought_by, rehearsed_rows
    from unisono.engine.cluster import restore

    place = "" if everywhere else arguments.namespace
    refuse_unknown_queue(
        arguments.queue,
        place,
        [_namespaced(one.key) for one in snapshot.local_queues],
        [one.name for one in snapshot.queues],
    )
    rows, plans = rehearsed_rows(restore(snapshot), now)
    new = [row for row in rows if f"{row['namespace']}/{row['workload']}" not in known]
    shown = [row for row in new if everywhere or row["namespace"] == arguments.namespace]
    bought = [one for one in bought_by(plans) if one.workload not in known]
    if new:
        _print(shown, arguments, now / 1000, bought)
    else:
        _print(shown, arguments, now / 1000, bought, nothing="all of these workloads start now")


def _namespaced(key: str) -> tuple[str, str]:
    namespace, _, name = key.partition("/")
    return namespace, name


async def _on_cluster(client: Client, arguments: argparse.Namespace) -> int:
    """Plan manifests as if they were applied to the running cluster now."""
    from unisono.cli.plan.cluster import read_cluster
    from unisono.kinds.snapshot.build import read_world
    from unisono.runtime import clock
    from unisono.runtime.manifest_files import files_of

    there = await read_cluster(client)
    now = clock.now()
    files = [file for name in arguments.filename for file in files_of(name)]
    world = read_world([there.file, *files], now=now)
    if world.problems:
        raise InvalidManifest("", "\n".join(problem.line() for problem in world.problems))
    snapshot = msgspec.structs.replace(world.snapshot, offerings=there.offerings)
    _print_rehearsed(snapshot, arguments, now, everywhere=True, known=there.workloads)
    return 0


async def _living(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.runtime.clock import RealClock

    clock = RealClock()
    before: list[Json] | None = None
    while True:
        rows = await _living_rows(client, arguments)
        if rows != before:
            if before is not None:
                print()
            _print(rows, arguments, clock.now())
            sys.stdout.flush()
        if not arguments.watch:
            return 0
        before = rows
        await clock.sleep(_PAUSE_SECONDS)


async def _living_rows(client: Client, arguments: argparse.Namespace) -> list[Json]:
    from unisono.cli.filters import refuse_unknown_namespace, refuse_unknown_queue
    from unisono.cli.plan.rows import living_rows
    from unisono.control.names import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD
    from unisono.kinds.kueue.status_shape import readable
    from unisono.kube.errors import Forbidden

    place = "" if arguments.everywhere else arguments.namespace or client.namespace
    try:  # positions depend on other namespaces, too
        workloads = [*map(readable, (await client.list(WORKLOAD)).items)]
        local_queues = (await client.list(LOCAL_QUEUE)).items
        queues = (await client.list(CLUSTER_QUEUE)).items
    except Forbidden:
        workloads = [*map(readable, (await client.list(WORKLOAD, place)).items)]
        local_queues = (await client.list(LOCAL_QUEUE, place)).items
        queues = []
    rows = living_rows(
        workloads,
        {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in local_queues},
        {one["metadata"]["name"]: one for one in queues},
    )
    mine = [row for row in rows if place in ("", row["namespace"])]
    refuse_unknown_queue(
        arguments.queue,
        place,
        [
            *((one["metadata"]["namespace"], one["metadata"]["name"]) for one in local_queues),
            *((row["namespace"], row["queue"]) for row in mine),  # of a queue to come
        ],
        [
            *(one["metadata"]["name"] for one in queues),
            *(one["spec"]["clusterQueue"] for one in local_queues),
        ],
    )
    if not mine:
        await refuse_unknown_namespace(client, arguments.namespace)
    return mine


def _print(
    rows: list[Json],
    arguments: argparse.Namespace,
    now: float,
    bought: Sequence[Purchase] = (),
    *,
    nothing: str = "no pending workloads",
) -> None:
    from unisono.cli.objects import dump
    from unisono.cli.plan.rows import purchase_json, purchases_text
    from unisono.cli.tables import screen_width, table
    from unisono.cli.times import local_times

    found = [row for row in rows if arguments.queue in ("", row["queue"], row["clusterQueue"])]
    if arguments.output in ("json", "yaml"):
        purchases = {"purchases": [purchase_json(one) for one in bought]} if bought else {}
        sys.stdout.write(dump({"plan": found, **purchases}, arguments.output))
        return
    if bought:
        print(purchases_text(bought, Instant(round(now * 1000))) + ("\n" if found else ""))
    if not found and bought:
        return
    if not found:
        print(say(f"unisono: {nothing}"), file=sys.stderr)
        return
    headings = ["POS", "NAME", "QUEUE", "PRIO", "PODS", "START", "IN", "LIMIT", "WHY"]
    cells = [_cells(row, now) for row in found]
    if arguments.everywhere:
        headings.insert(1, "NAMESPACE")
        cells = [
            [one[0], row["namespace"], *one[1:]] for one, row in zip(cells, found, strict=True)
        ]
    if arguments.output == "wide":
        headings += ["LIMIT FROM", "BEHIND", "WORKLOAD", "MESSAGE"]
        for one, row in zip(cells, found, strict=True):
            one += [(row["limit"] or {}).get("from"), row["behind"], row["workload"]]
            one.append(say(local_times(row["message"], now)))
    most = 0 if arguments.output == "wide" else screen_width()
    print(table([say(one) for one in headings], cells, indent="", most=most))


def _cells(row: Json, now: float) -> list[object]:
    from unisono.cli.start_times import short_cause
    from unisono.cli.times import clock_time, local_times
    from unisono.cli.workload_state import NO_QUEUE
    from unisono.engine.explain.formatting import format_duration
    from unisono.kinds.scalar import instant_ms

    start, left = "", ""
    if row["start"] is not None:
        at = instant_ms(row["start"])
        ahead = at - round(now * 1000)
        left = format_duration(ahead) if ahead > 0 else say("overdue")
        start = ("" if row["promised"] else "~") + clock_time(at / 1000, now)
    elif row["startsBy"] is not None:
        start = "≤" + clock_time(instant_ms(row["startsBy"]) / 1000, now)
    elif row["verdict"] == "never":
        start = say("never")
    limit = format_duration(row["limit"]["seconds"] * 1000) if row["limit"] else ""
    queue = "" if row["queue"] == NO_QUEUE else row["queue"]
    why = short_cause(local_times(row["cause"], now), row["namespace"]) or row["reason"]
    rest = (row["priority"], row["pods"], start, left, limit, say(why))
    return [row["position"], row["name"], queue, *rest]
