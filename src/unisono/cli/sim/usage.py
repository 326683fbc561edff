"""A simulated run as a ledger, so that `unisono report` can tell of it.

The run is moved so that the last job is submitted now: what ran longer still runs, and what started
later still waits. How busy devices were no trace says; each job is given one of
the profiles of simulated GPUs, by its number, and the report then has something to advise about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.engine.model.node import Node
    from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, Row, WorkloadRow
    from unisono.sim.outcome import Outcome
    from unisono.sim.trace import Trace

_BATCH = 20_000
# Jobs take turns; most of them train.
_PROFILES = ("training", "training", "finetune", "training", "dataloader-bound", "idle", "training")
_NO_MODEL = "GPU"


def write_ledger(
    outcome: Outcome, nodes: tuple[Node, ...], path: Path, now: int, *, ends: bool = False
) -> None:
    """Write the ledger of a run until now; with `ends`, jobs that would still run end now."""
    from unisono.monitor.ledger.store import LedgerStore

    if path.exists():
        raise InvalidManifest("--ledger", f"{path} is there already; name another file")
    store = LedgerStore(path)
    try:
        batch: list[Row] = []
        for row in _rows(outcome, nodes, now, ends):
            batch.append(row)
            if len(batch) == _BATCH:
                store.write(batch, now)
                batch = []
        store.write(batch, now)
    finally:
        store.close()


def _rows(outcome: Outcome, nodes: tuple[Node, ...], now: int, ends: bool) -> Iterator[Row]:
    submits = outcome.trace.submit.tolist()
    base = now - math.ceil(max(submits, default=0.0))
    first = base + math.floor(min(submits, default=0.0))
    yield from _node_rows(nodes, first)
    yield from _queue_rows(outcome, nodes, first)
    ran = _segments(outcome, base, now, ends)
    yield from _workload_rows(outcome, ran, base, ends)
    yield from _pod_rows(outcome, base, now, ends)


def _node_rows(nodes: tuple[Node, ...], since: int) -> Iterator[NodeRow]:
    from unisono.monitor.ledger.rows import NodeRow
    from unisono.provision.catalog.instance_types import machine_types

    for node in nodes:
        gpus = _gpus(node)
        labels = dict(node.labels)
        kind = labels.get("node.kubernetes.io/instance-type", "")
        machine = machine_types().get(kind)
        sold = machine.price.values() if machine is not None else ()
        prices = [one.on_demand for one in sold if one.on_demand]
        if gpus:
            yield NodeRow(
                uid=node.name,
                since=since,
                name=node.name,
                gpus=gpus,
                model=labels.get("nvidia.com/gpu.product", _NO_MODEL).replace("-", " "),
                instance_type=kind,
                capacity_type=labels.get("karpenter.sh/capacity-type", "on-demand"),
                pool="",
                micro_usd_hour=round(min(prices, default=0.0) * 1e6),
                is_up=True,
            )


def _gpus(node: Node) -> int:
    from unisono.engine.model.resources import is_gpu

    return sum(amount for name, amount in node.allocatable if is_gpu(name))


def _queue_rows(outcome: Outcome, nodes: tuple[Node, ...], since: int) -> Iterator[QueueRow]:
    from unisono.monitor.ledger.rows import QueueRow

    gpus = sum(_gpus(one) for one in nodes)
    parts = outcome.entitlement.tolist()
    for name, part in zip(outcome.trace.queues, parts, strict=True):
        share = round(gpus * part / sum(parts)) if sum(parts) else 0
        yield QueueRow(queue=name or "all", flavor="gpu", cohort="", gpus=share, since=since)


def _workload_rows(
    outcome: Outcome, ran: dict[int, list[tuple[int, int]]], base: int, ends: bool
) -> Iterator[WorkloadRow]:
    """Yield one row for each stretch of a job, and one for a job that still waits."""
    from unisono.monitor.ledger.rows import WorkloadRow

    trace = outcome.trace
    gpus = (trace.job_gpu_milli // 1000).tolist()
    for row in range(len(trace)):
        if ends and row not in ran:
            continue  # it would still wait
        since = base + int(trace.submit[row])
        run_intervals = ran.get(row, [(0, 0)])
        for number, (start, end) in enumerate(run_intervals, 1):
            outcome_word = "Finished" if number == len(run_intervals) else "Preempted"
            yield WorkloadRow(
                uid=str(row),
                attempt=number,
                namespace=_team(trace, row),
                name=trace.name_of(row),
                kind="Job",
                owner=trace.name_of(row),
                queue=trace.queues[trace.queue[row]] or "all",
                local_queue="",
                user=trace.users[trace.user[row]] or "unknown",
                team=_team(trace, row),
                priority_class="",
                flavor="gpu",
                gpus=gpus[row],
                pods=int(trace.pods[row]),
                since=since,
                reserved=start,
                admitted=start,
                ready=start,
                ended=end,
                outcome=outcome_word if end else "",
                limit=int(trace.request[row]),
            )
            since = end


def _team(trace: Trace, row: int) -> str:
    return trace.groups[trace.group[row]] or trace.queues[trace.queue[row]] or "all"


def _segments(
    outcome: Outcome, base: int, now: int, ends: bool
) -> dict[int, list[tuple[int, int]]]:
    """Return when each job ran until now; 0 is the end of what still runs."""
    found: dict[int, list[tuple[int, int]]] = {}
    ran = outcome.run_intervals
    for row, start, end in zip(ran.job.tolist(), ran.start.tolist(), ran.end.tolist(), strict=True):
        began, ended = base + int(start), base + max(int(start), int(end))
        if began <= now:
            found.setdefault(row, []).append((began, ended if ended <= now else now * ends))
    for run_intervals in found.values():
        run_intervals.sort()
    return found


def _pod_rows(outcome: Outcome, base: int, now: int, ends: bool) -> Iterator[PodRow]:
    """Yield one row for the pods of a job on a node."""
    from unisono.monitor.dcgm.devices import PROFILES
    from unisono.monitor.ledger.rows import PodRow

    spans, trace = outcome.spans, outcome.trace
    assert spans is not None, "a ledger needs jobs by node"
    each = (trace.gpus * trace.gpu_milli).tolist()
    columns = (spans.job, spans.node, spans.start, spans.end, spans.pods)
    for at, (job, node, start, end, pods) in enumerate(
        zip(*(one.tolist() for one in columns), strict=True)
    ):
        gpus = pods * each[job] // 1000
        began, ended = base + int(start), base + max(int(start), int(end))
        if not gpus or began > now:
            continue
        has_succeeded = int(end) == int(outcome.end[job])
        ended = min(ended, now) if ends else ended
        lasted = gpus * (min(ended, now) - began)
        profile = PROFILES[_PROFILES[job % len(_PROFILES)]]
        yield PodRow(
            uid=f"{job}/{at}",
            namespace=_team(trace, job),
            name=f"{trace.name_of(job)}-{at}",
            workload=str(job),
            node=spans.names[node],
            gpus=gpus,
            bound=began,
            started=began,
            ended=ended if ended <= now else 0,
            outcome="" if ended > now else "Succeeded" if has_succeeded else "Gone",
            busy=profile.busy * lasted,
            tensor=profile.tensor * lasted,
            covered=float(lasted),
            idle_devices=gpus if profile.busy < 0.05 else 0,
        )
