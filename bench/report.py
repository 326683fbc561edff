"""The report of a month: from a ledger of many jobs to a page, as `unisono report` makes it.

The ledger is made of a number and a seed: nodes of eight GPUs that run one gang after the other,
some of two nodes, of five teams with fifty people; one in twenty fails or has to leave.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.harness import Finding, Note, Scale, repeated, row, seconds, target
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, Row, WorkloadRow
from unisono.monitor.ledger.store import LedgerStore
from unisono.monitor.report.formats import as_csv, as_json
from unisono.monitor.report.html import html
from unisono.runtime.usage_reports import read

SIZES: dict[Scale, tuple[int, ...]] = {
    "full": (1_000, 10_000, 100_000),
    "quick": (300, 3_000),
    "tiny": (40,),
}
LIMIT_S = 10.0
LIMIT_BYTES = 1_000_000
MONTH_S = 30 * 86_400
NOW = 1_767_571_200
JOBS_A_NODE = 100
TEAMS = 5
PEOPLE = 50


def measure(scale: Scale) -> Iterator[Finding]:
    """Tell of more and more jobs."""
    period = Period(NOW - MONTH_S, NOW)
    for jobs in SIZES[scale]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.db"
            write(path, jobs)
            page = partial(_page, path, period)
            size = len(page().encode())
            taken = repeated(partial(seconds, page), samples=3, budget_s=30)
            measured = row("ledger to page", jobs, "jobs", taken, "s")
            yield measured
            made = read(path, period)
            assert made.headline.jobs >= 0.9 * jobs, "the month has them all"
            yield row("data as CSV", jobs, "jobs", [seconds(partial(as_csv, made))], "s")
            yield row("data as JSON", jobs, "jobs", [seconds(partial(as_json, made))], "s")
            yield Note(f"{jobs:,} jobs: the page has {size:,} bytes; {LIMIT_BYTES:,} are promised")
            if jobs == SIZES[scale][-1]:
                yield target("report of a month", measured, LIMIT_S, better="below")


def _page(path: Path, period: Period) -> str:
    return html(read(path, period))


def write(path: Path, jobs: int) -> None:
    """Write a ledger of so many jobs in a month."""
    store = LedgerStore(path)
    store.write(list(_rows(jobs, random.Random(7))), NOW)
    store.close()


def _rows(jobs: int, dice: random.Random) -> Iterator[Row]:
    nodes = max(2, jobs // JOBS_A_NODE)
    start = NOW - MONTH_S
    for team in range(TEAMS):
        yield QueueRow(
            queue=f"team-{team}", flavor="h100", cohort="all", gpus=8 * nodes // TEAMS, since=start
        )
    for number in range(nodes):
        yield NodeRow(
            uid=f"n{number}",
            since=start,
            name=f"n{number}",
            gpus=8,
            model="NVIDIA H100 80GB HBM3",
            instance_type="p5.48xlarge",
            capacity_type="on-demand",
            pool="",
            micro_usd_hour=55_040_000,
            is_up=True,
        )
    each = MONTH_S // max(1, jobs // nodes)
    for job in range(jobs):
        node, turn = job % nodes, job // nodes
        yield from _job(job, node, start + turn * each, each, dice)


def _job(job: int, node: int, at: int, each: int, dice: random.Random) -> Iterator[Row]:
    bound = at + dice.randrange(each // 4)
    ended = bound + dice.randrange(each // 10, each // 2)
    person, gpus = dice.randrange(PEOPLE), dice.choice((1, 2, 4, 8))
    bad = dice.random()
    outcome = "Finished" if bad > 0.05 else "Preempted" if bad > 0.02 else "Failed"
    pods = 1 + (dice.random() < 0.1)
    yield WorkloadRow(
        uid=f"w{job}",
        attempt=1,
        namespace=f"team-{person % TEAMS}",
        name=f"job-train-{job}",
        kind="Job",
        owner=f"train-{job}",
        queue=f"team-{person % TEAMS}",
        local_queue="q",
        user=f"user-{person}",
        team=f"team-{person % TEAMS}",
        priority_class="",
        flavor="h100",
        gpus=gpus,
        pods=pods,
        since=at,
        reserved=bound - 2,
        admitted=bound - 2,
        ready=bound + 20,
        ended=ended,
        outcome=outcome,
        limit=each,
    )
    share = max(1, gpus // pods)
    for rank in range(pods):
        seen = share * (ended - bound - 20)
        yield PodRow(
            uid=f"p{job}-{rank}",
            namespace=f"team-{person % TEAMS}",
            name=f"train-{job}-{rank}",
            workload=f"w{job}",
            node=f"n{node}",
            gpus=share,
            bound=bound,
            started=bound + 20,
            ended=ended,
            outcome="Succeeded" if outcome == "Finished" else "Gone",
            busy=seen * dice.random(),
            tensor=0.3 * seen,
            covered=float(seen),
            peak_mib=dice.randrange(1_000, 80_000),
        )
