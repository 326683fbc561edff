"""`unisono slurm watch`: the queue, the pods and the nodes of both sides, on one screen."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from unisono.cli.slurm.sides import add_sides, both, programs_of
from unisono.cli.tables import table

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.slurm.bridge.cluster_view import ClusterView, Pod
    from unisono.slurm.bridge.slurm_view import SlurmJob, SlurmView

NAME = "watch"
HELP = "show queue, pods and nodes of both sides on one screen"
DESCRIPTION = """\
Show Slurm's queue, the pods of its jobs, and what is used of every node on both sides; what differs
is marked. Ctrl-C ends it.

examples:
  unisono slurm watch
  unisono slurm watch --every 1
  unisono slurm watch --once
"""
# What a terminal shows of a queue without scrolling; the rest is counted.
_MOST_ROWS = 20
_LETTERS = {
    "PENDING": "PD",
    "CONFIGURING": "CF",
    "RUNNING": "R",
    "COMPLETING": "CG",
    "SUSPENDED": "S",
}
_CLEAR = "\x1b[H\x1b[2J"


def add_arguments(one: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_sides(one)
    one.add_argument(
        "--every", type=float, default=2.0, metavar="S", help="seconds between screens (default: 2)"
    )
    one.add_argument("--once", action="store_true", help="print one screen and exit")


def run(arguments: argparse.Namespace) -> int:
    """Show it until interrupted."""
    from unisono.cli.connection import asked

    return asked(arguments, _show)


async def _show(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.runtime.clock import RealClock

    programs, clock = programs_of(arguments), RealClock()
    while True:
        slurm_view, cluster_view, _ = await both(client, arguments, programs)
        text = "\n".join(screen(slurm_view, cluster_view, clock.now()))
        clears = sys.stdout.isatty() and not arguments.once
        print(f"{_CLEAR if clears else ''}{text}", flush=True)
        if arguments.once:
            return 0
        await asyncio.sleep(arguments.every)


def screen(slurm_view: SlurmView, cluster_view: ClusterView, now: float) -> Iterator[str]:
    """Yield the lines of a screen."""
    jobs = sorted(
        (one for one in slurm_view.jobs.values() if not one.is_over),
        key=lambda one: (one.state == "PENDING", one.number, one.key),
    )
    yield f"Slurm queue ({len(jobs)})"
    rows = [_job(one, now) for one in jobs[:_MOST_ROWS]]
    yield table(("JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "WHERE"), rows)
    if len(jobs) > _MOST_ROWS:
        yield f"  and {len(jobs) - _MOST_ROWS} more"
    pods = [one for one in cluster_view.pods if one.job]
    yield f"\nPods of Slurm jobs ({len(pods)})"
    yield table(
        ("POD", "JOB", "NODE", "GPUS", "STATE"),
        [
            (
                f"{one.namespace}/{one.name}",
                one.job,
                one.node,
                one.gpus,
                _pod_state(one),
            )
            for one in pods[:_MOST_ROWS]
        ],
    )
    if len(pods) > _MOST_ROWS:
        yield f"  and {len(pods) - _MOST_ROWS} more"
    yield "\nNodes, in Slurm and in Kubernetes"
    yield table(
        ("NODE", "SLURM", "CPUS", "MEM", "GPUS", "KUBERNETES", "CPUS", "MEM", "GPUS", ""),
        [
            _node(name, slurm_view, cluster_view)
            for name in sorted({*slurm_view.nodes, *cluster_view.nodes})
        ],
    )


def _pod_state(pod: Pod) -> str:
    if pod.leaves:
        return "leaving"
    if pod.is_ended:
        return "ended"
    return "on its node" if pod.node else "waits for a node"


def _job(job: SlurmJob, now: float) -> tuple[object, ...]:
    took = max(0, int(now - job.started)) if job.is_holding else 0
    hours, rest = divmod(took, 3600)
    time = f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
    where = ",".join(job.on) if job.on else f"({job.reason})"
    letters = _LETTERS.get(job.state, job.state[:2])
    name = "".join(letter if letter.isprintable() else "?" for letter in job.name)[:20]
    return (job.key, job.partition, name, job.user, letters, time, job.nodes, where[:60])


def _node(name: str, slurm_view: SlurmView, cluster_view: ClusterView) -> tuple[object, ...]:
    """Return what both sides say is used of a node."""
    ours, theirs = slurm_view.nodes.get(name), cluster_view.nodes.get(name)
    slurm: tuple[str, ...] = ("none", "", "", "")
    kubernetes = slurm
    if ours is not None:
        slurm = (
            "+".join(sorted(ours.states)).lower(),
            f"{ours.cpus_used}/{ours.cpus}",
            f"{ours.memory_used_mib >> 10}/{ours.memory_mib >> 10}Gi",
            f"{ours.gpus_used}/{ours.gpus}",
        )
    if theirs is not None:
        kubernetes = (
            "ready" if theirs.is_open else "cordoned" if theirs.is_cordoned else "not ready",
            f"{theirs.cpu_milli_used / 1000:g}/{theirs.cpu_milli / 1000:g}",
            f"{theirs.memory_mib_used >> 10}/{theirs.memory_mib >> 10}Gi",
            f"{theirs.gpus_used}/{theirs.gpus}",
        )
    return (name, *slurm, *kubernetes, _difference(slurm[3], kubernetes[3]))


def _difference(slurm: str, kubernetes: str) -> str:
    """Say what of a node's GPUs differs: how many are used, or how many there are.

    >>> _difference("8/8", "0/4"), _difference("1/8", "1/8"), _difference("0/8", "")
    ('differs in use and in size', '', 'only in Slurm')
    """
    if not slurm or not kubernetes:
        return "only in Slurm" if slurm else "only in Kubernetes"
    pairs = zip(("in use", "in size"), slurm.split("/"), kubernetes.split("/"), strict=True)
    found = [what for what, ours, theirs in pairs if ours != theirs]
    return f"differs {' and '.join(found)}" if found else ""
