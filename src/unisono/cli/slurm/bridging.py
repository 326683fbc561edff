"""`unisono slurm bridge`: gang reservations in Kubernetes for the jobs of a real Slurm."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.slurm.sides import add_sides, programs_of, settings_of

if TYPE_CHECKING:  # loading the client takes longer than answering --help
    from unisono.kube.kubeconfig import Access
    from unisono.monitor.exposition import Family
    from unisono.runtime.clock import RealClock
    from unisono.runtime.log import Journal
    from unisono.slurm.bridge.daemon import BridgeCounters
    from unisono.slurm.bridge.slurm_commands import SlurmCommands

SOCKET = Path("/run/unisono/slurm.sock")

NAME = "bridge"
HELP = "reserve whole gangs in Kubernetes before a real Slurm starts them"
DESCRIPTION = """\
Reserve the nodes of every Slurm job in Kubernetes, as a whole gang, before Slurm starts it, and
give them back when it ends. Run it beside slurmctld, as SlurmUser or root; `unisono slurm install`
writes what Slurm needs for that.

examples:
  unisono slurm bridge --kubeconfig ~/.kube/config
  unisono slurm bridge --data-dir /tmp/try --listen 127.0.0.1:9321 --log text
  unisono slurm bridge --placeholders --features        Slurm orders jobs by itself (stage, check)
"""


def add_arguments(one: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    from unisono.cli.controller import address

    add_sides(one)
    slurm = one.add_argument_group("jobs and nodes of Slurm")
    addresses = one.add_argument_group("addresses and logs")
    addresses.add_argument(
        "--socket",
        type=Path,
        default=SOCKET,
        metavar="PATH",
        help=f"the socket that Slurm's hooks connect to (default: {SOCKET})",
    )
    slurm.add_argument(
        "--bind-timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds until a job with nodes must have its pods (default: 60)",
    )
    slurm.add_argument(
        "--start-timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds until a released job must have its nodes (default: 60)",
    )
    slurm.add_argument(
        "--check-timeout",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds that PrologSlurmctld waits for nodes that Slurm chose (default: 10)",
    )
    slurm.add_argument(
        "--no-node-sync",
        action="store_true",
        help="do not drain and resume Slurm's nodes as the nodes of Kubernetes come and go",
    )
    slurm.add_argument(
        "--features", action="store_true", help="keep a feature gpu_avail:N on every Slurm node"
    )
    slurm.add_argument(
        "--placeholders",
        action="store_true",
        help="occupy GPUs in Slurm that other pods use (where Slurm orders the jobs)",
    )
    addresses.add_argument(
        "--listen",
        type=address,
        default=("127.0.0.1", 0),
        metavar="HOST:PORT",
        help="the address of /healthz and /metrics (default: 127.0.0.1 and any free port)",
    )
    addresses.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name that Prometheus uses for it; may be repeated",
    )
    addresses.add_argument(
        "--log", choices=("json", "text"), default="json", help="log format (default: json)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run until told to stop."""
    from unisono.cli.connection import access_of, in_plain_words
    from unisono.runtime.clock import RealClock
    from unisono.runtime.log import Journal

    with in_plain_words():
        clock = RealClock()
        journal = Journal(sys.stderr, clock.now, arguments.log)
        asyncio.run(_bridge(arguments, access_of(arguments), clock, journal))
    return 0


class _Stopped(Exception):
    """The process was asked to end."""


async def _bridge(
    arguments: argparse.Namespace, access: Access, clock: RealClock, journal: Journal
) -> None:
    from unisono.kube.clock import guarded
    from unisono.kube.connect import connected
    from unisono.monitor.exposition import negotiated
    from unisono.runtime.ids import new_uid, random_source
    from unisono.runtime.probes import Asked, Page, Pages, probes
    from unisono.slurm.bridge.daemon import Bridge, BridgeOptions
    from unisono.slurm.bridge.decide import Timeouts

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    programs = programs_of(arguments)
    options = BridgeOptions(
        settings=await settings_of(arguments, programs),
        socket=arguments.socket,
        timeouts=Timeouts(bind_s=arguments.bind_timeout, start_s=arguments.start_timeout),
        check_s=arguments.check_timeout,
        syncs_nodes=not arguments.no_node_sync,
        has_features=arguments.features,
        has_placeholders=arguments.placeholders,
        owner=await _slurm_user(programs),
    )
    async with connected(access, clock=clock, random_source=random_source(), ids=new_uid) as client:
        bridge = Bridge(
            programs,
            client,
            options,
            clock=clock,
            random_source=random_source(),
            log_event=journal.info,
        )

        def metrics(asked: Asked) -> Page:
            content_type, text = negotiated(families_of(bridge.counters), asked.accept)
            return Page(200, text, content_type)

        pages: Pages = {"/healthz": lambda asked: Page(200, "ok\n"), "/metrics": metrics}
        host, port = arguments.listen
        async with probes(host, port, pages, names=arguments.host) as address:
            journal.info("starting", cluster=options.settings.cluster, address=address)
            with contextlib.suppress(_Stopped):
                await guarded(_end_on(stop), bridge.run())
    journal.info("stopped")


async def _slurm_user(programs: SlurmCommands) -> int | None:
    """Return the number of SlurmUser, which Slurm prints as `slurm(64030)`."""
    from unisono.slurm.bridge.slurm_view import read_config

    found = re.search(r"\((\d+)\)", (await read_config(programs)).get("SlurmUser", ""))
    return int(found[1]) if found is not None else None


async def _end_on(stop: asyncio.Event) -> None:
    await stop.wait()
    raise _Stopped


# ---- metrics -------------------------------------------------------------------------------------


def families_of(counters: BridgeCounters) -> Iterator[Family]:
    """Yield the bridge's counters as Prometheus metrics."""
    from unisono.monitor.exposition import Family, Sample, single
    from unisono.runtime.cluster.health import process_families

    prefix = "unisono_slurm"
    yield single(f"{prefix}_up", "gauge", "1 while Slurm answers.", int(counters.is_slurm_there))
    yield single(f"{prefix}_gangs", "gauge", "Slurm jobs with a gang.", counters.gangs)
    reserved = "Gangs with a node for every pod."
    yield single(f"{prefix}_gangs_reserved", "gauge", reserved, counters.whole)
    for name, text, value in (
        ("looks_total", "Reconciliations of Slurm and Kubernetes.", counters.cycles),
        ("jobs_started_total", "Jobs released to their nodes.", counters.started),
        ("jobs_taken_back_total", "Jobs whose nodes were revoked.", counters.taken_back),
        ("hooks_refused_total", "Hooks that were refused.", counters.refused),
        ("actions_failed_total", "Actions to be tried again.", counters.failures),
        (
            "deadlocks_resolved_total",
            "Jobs that held nodes for a gang that could not start.",
            counters.deadlocks_resolved,
        ),
    ):
        yield single(f"{prefix}_{name}", "counter", text, value)
    yield Family(
        f"{prefix}_mismatches",
        "gauge",
        "Where Slurm and Kubernetes disagree, by class.",
        [Sample({"class": sort}, count) for sort, count in counters.mismatches.items()],
    )
    yield from process_families()
