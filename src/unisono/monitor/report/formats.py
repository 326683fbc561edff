"""The report in words and columns: text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from unisono.monitor.ledger.queue_usage import Waits
from unisono.monitor.report.model import (
    Amounts,
    Estimates,
    Headline,
    Job,
    Reconciliation,
    Report,
    Share,
)

Line = tuple[str, ...]
# All of them are in JSON.
_MOST_SHARES = 20
_MOST_QUEUES = 50
_MOST_WAITING = 30
# Less of a period recorded than that is nothing to compare with.
_ENOUGH = 0.9
_NOTHING_BEFORE = "nothing is recorded before"


class Table(msgspec.Struct, frozen=True):
    """A heading, columns and lines; `numbers` are the columns that stand to the right."""

    title: str
    columns: Line
    lines: tuple[Line, ...]
    numbers: frozenset[int] = frozenset()


def day(at: int) -> str:
    """Write a time as people do."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def hours(amount: float) -> str:
    """Write GPU-hours."""
    return f"{amount:,.2f}"


def exact(amount: float) -> str:
    """Write GPU-hours for programs: columns of them add up to the second.

    >>> exact(2.5), exact(15 / 3600)
    ('2.50', '0.00416667')
    """
    short = f"{amount:.2f}"
    return short if abs(float(short) - amount) < 1e-9 else f"{amount:.8f}"


def money(cents: int) -> str:
    """Write money.

    >>> money(123456), money(5)
    ('$1,234.56', '$0.05')
    """
    return f"${cents // 100:,}.{cents % 100:02d}"


def share(part: float | None) -> str:
    """Write a part of a whole; a dash if unknown."""
    return "-" if part is None else f"{part:.0%}"


def lasting(seconds: int | None) -> str:
    """Write how long something took.

    >>> lasting(59), lasting(3700), lasting(90_000), lasting(None)
    ('59s', '1h02m', '1d01h', '-')
    """
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    if seconds < 86_400:
        return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"
    return f"{seconds // 86_400}d{seconds % 86_400 // 3600:02d}h"


def headline_lines(report: Report) -> list[Line]:
    """Return the first figures: name, value, and the change since the period before."""
    before = report.before
    long = report.until - report.since
    if before.recorded_seconds < _ENOUGH * long:
        return _without_before(report)
    return _headline_lines(report)


def _without_before(report: Report) -> list[Line]:
    """Compare with nothing: the period before was not recorded, or too little of it."""
    part = report.before.recorded_seconds / (report.until - report.since)
    why = f"GPUs were known for {share(part)} of the period before" if part else _NOTHING_BEFORE
    lines = _headline_lines(report)
    compared = ("GPU-hours", "Cost of jobs", "Jobs", "Wait")
    return [
        (name, value, why if name.startswith(compared) else more) for name, value, more in lines
    ]


def _recorded(report: Report) -> list[Line]:
    """Say for how much of the period nothing is known: it is not counted as free."""
    gaps = sum(until - since for since, until in report.gaps)
    if not gaps:
        return []
    part = 1 - gaps / (report.until - report.since)
    return [("Recorded", share(part), f"no GPUs known for {lasting(gaps)}: off, or not recorded")]


def _headline_lines(report: Report) -> list[Line]:
    now, before = report.headline, report.before
    (p50, p95), (p50_before, p95_before) = _waits(now.waits), _waits(before.waits)
    return [
        *_recorded(report),
        ("GPU-hours available", hours(now.capacity), _change(now.capacity, before.capacity)),
        (
            "GPU-hours allocated",
            hours(now.amounts.allocated),
            _change(now.amounts.allocated, before.amounts.allocated),
        ),
        (
            "GPU-hours busy",
            hours(now.amounts.busy),
            _change(now.amounts.busy, before.amounts.busy),
        ),
        ("Efficiency", share(now.amounts.efficiency), f"measured: {share(now.coverage)}"),
        ("Cost of jobs", money(now.amounts.cost_cents), _change(*_costs(now, before))),
        ("of which idle or lost", money(now.amounts.wasted_cents), ""),
        ("Overhead", money(now.overhead_cents), "free, held or down"),
        ("Total", money(now.total_cents), ""),
        ("Jobs", str(now.jobs), _change(now.jobs, before.jobs)),
        ("Wait, median", p50, f"period before: {p50_before}"),
        ("Wait, p95", p95, f"period before: {p95_before}"),
        *_estimate_lines(now.estimates),
        _reconciled(report.reconciliation),
        *([("Price unknown", hours(now.unpriced), "GPU-hours")] if now.unpriced else []),
        *([("Owner unknown", hours(now.unknown_owner), "GPU-hours")] if now.unknown_owner else []),
    ]


def _waits(found: Waits) -> tuple[str, str]:
    """Write the median and the 95th percentile; dashes if nothing started."""
    if not found.count:
        return "-", "-"
    return lasting(found.p50), lasting(found.p95)


def _reconciled(found: Reconciliation) -> Line:
    """Say whether all figures agree."""
    if not found.is_reconciled:
        return ("Reconciled", "NO", "; ".join(found.differences))
    more = "to the second and the cent: jobs, teams, users, queues, days, capacity, times of pods"
    if found.off_node:
        more += f"; {hours(found.off_node)} GPU-hours of pods without a node are not counted"
    return ("Reconciled", "yes", more)


def _estimate_lines(found: Estimates | None) -> list[Line]:
    """Say how true the starts were that jobs were told."""
    if found is None:
        return []
    jobs = f"{found.within_jobs} of {found.jobs} jobs"
    more = "of the wait that was told first"
    if found.half_way_within is not None:
        more += f"; half way: {share(found.half_way_within)}"
    lines: list[Line] = [(f"{jobs} started within", share(found.within), more)]
    if found.reservations:
        kept = f"{found.reservations_kept} of {found.reservations}"
        lines.append(("Reservations kept", kept, "started by the first start reserved"))
    return lines


def _costs(now: Headline, before: Headline) -> tuple[float, float]:
    return now.amounts.cost_cents, before.amounts.cost_cents


def _change(now: float, before: float) -> str:
    return f"{(now - before) / before:+.0%}" if before else ""


_AMOUNTS = (
    *("GPU-HOURS", "BUSY", "IDLE", "UNMEASURED", "STARTING", "LOST", "EFFICIENCY"),
    *("WASTED", "COST"),
)
_RIGHT = frozenset(range(1, 2 + len(_AMOUNTS)))


def _amount_cells(one: Amounts) -> Line:
    parts = (one.allocated, one.busy, one.idle, one.unmeasured, one.starting, one.lost)
    dollars = (money(one.wasted_cents), money(one.cost_cents))
    return (*(hours(part) for part in parts), share(one.efficiency), *dollars)


def tables(report: Report) -> list[Table]:
    """Return everything but the headline, in the order in which it is read."""
    right = frozenset(range(1, 10))
    return [
        _shares("Teams", "TEAM", report.teams),
        Table(
            "Waste",
            ("JOB", "USER", "QUEUE", "GPUS", "WASTED", "RECOMMENDATION"),
            tuple(_waste_line(one) for one in report.waste),
            frozenset({3, 4}),
        ),
        _shares("Users", "USER", report.users),
        _shares("Bill by queue", "QUEUE", report.by_queue),
        Table(
            _first("Queues", len(report.queues), _MOST_QUEUES),
            ("QUEUE", "QUOTA", "USED", "BORROWED", "UNMET", "WAIT P50", "WAIT P95", "WAITING"),
            tuple(
                (
                    f"{one.name} (deleted)" if one.is_deleted else one.name,
                    *(hours(part) for part in (one.nominal, one.used, one.borrowed, one.starved)),
                    *_waits(one.waits),
                    str(one.still_waiting),
                )
                for one in report.queues[:_MOST_QUEUES]
            ),
            right,
        ),
        Table(
            "Capacity",
            ("GPU", "CAPACITY TYPE", "NODES", "ALLOCATED", "HELD", "FREE", "DOWN", "OVERHEAD"),
            tuple(
                (
                    one.model or "?",
                    one.capacity_type,
                    str(one.nodes),
                    *(hours(part) for part in (one.allocated, one.held, one.free, one.down)),
                    money(one.overhead_cents),
                )
                for one in report.capacity
            ),
            frozenset(range(2, 8)),
        ),
        Table(
            "Nodes that never ran a job",
            ("GPU", "CAPACITY TYPE", "NODES", "NODE-SECONDS", "COST"),
            tuple(
                (
                    one.model or "?",
                    one.capacity_type,
                    str(one.unused_nodes),
                    str(one.unused_node_seconds),
                    money(one.unused_cents),
                )
                for one in report.capacity
                if one.unused_nodes
            ),
            frozenset({2, 3, 4}),
        ),
        Table(
            "Fragmentation: free GPUs that pods of a size could not use",
            ("PODS OF", "PART"),
            (
                *((f"{size} GPUs", share(part)) for size, part in report.fragmentation.items()),
                ("the requested sizes", share(report.broken_up)),
            ),
            frozenset({1}),
        ),
        Table(
            "Outcomes of attempts",
            ("OUTCOME", "ATTEMPTS"),
            tuple((name, str(count)) for name, count in report.outcomes.items()),
            frozenset({1}),
        ),
        Table(
            "Broken and slow nodes, and the work lost to them",
            ("NODE", "PROBLEM", "TIMES", "DURATION", "JOBS", "GPU-HOURS LOST", "COST", "USERS"),
            tuple(
                (
                    one.node,
                    one.problem,
                    str(one.times),
                    lasting(one.seconds),
                    str(one.jobs),
                    hours(one.gpu_hours),
                    money(one.cost_cents),
                    ", ".join(f"{name} {hours(amount)}" for name, amount in one.owners.items()),
                )
                for one in report.faults
            ),
            frozenset({2, 3, 4, 5, 6}),
        ),
        Table(
            "Nodes that were down",
            ("NODE", "TIMES", "DURATION"),
            tuple((one.node, str(one.times), lasting(one.seconds)) for one in report.down),
            frozenset({1, 2}),
        ),
        Table(
            _first("Still waiting", len(report.waiting), _MOST_WAITING),
            ("JOB", "USER", "QUEUE", "GPUS", "WAITING"),
            tuple(
                (
                    f"{one.namespace}/{one.name}",
                    one.user,
                    one.queue,
                    str(one.gpus),
                    lasting(one.age_seconds),
                )
                for one in report.waiting[:_MOST_WAITING]
            ),
            frozenset({3, 4}),
        ),
    ]


def _shares(title: str, name: str, shares: tuple[Share, ...]) -> Table:
    shown = [
        (one.name, str(one.jobs), *_amount_cells(one.amounts)) for one in shares[:_MOST_SHARES]
    ]
    title = _first(title, len(shares), _MOST_SHARES)
    return Table(title, (name, "JOBS", *_AMOUNTS), tuple(shown), _RIGHT)


def _first(title: str, there: int, most: int) -> str:
    """Return a heading that says if it is not of all."""
    return f"{title}: the first {most} of {there}" if there > most else title


def _waste_line(one: Job) -> Line:
    advice = "; ".join(one.advice) or "less than a cent for each cause"
    job, gpus = f"{one.namespace}/{one.name}", str(one.gpus)
    return (job, one.user, one.queue, gpus, money(one.amounts.wasted_cents), advice)


def text(report: Report, say: Callable[[str], str] = str, width: Callable[[str], int] = len) -> str:
    """Write it for a terminal; `say` translates what is no name, `width` measures a text."""
    title = say(f"GPU usage from {day(report.since)} to {day(report.until)} UTC")
    headline = [(say(name), say(value), say(more)) for name, value, more in headline_lines(report)]
    parts = [f"{title}\n", aligned(headline, frozenset({1}), width)]
    for table in tables(report):
        if table.lines:
            lines = [tuple(map(say, table.columns)), *table.lines]
            parts.append(f"\n{say(table.title)}\n{aligned(lines, table.numbers, width)}")
    return "".join(parts)


def markdown(report: Report) -> str:
    """Write it as Markdown."""
    parts = [f"# GPU usage from {day(report.since)} to {day(report.until)} UTC\n\n"]
    first = Table("", ("", "", ""), tuple(headline_lines(report)), frozenset({1}))
    parts.append(_markdown_table(first))
    for table in tables(report):
        if table.lines:
            parts.append(f"\n## {table.title}\n\n{_markdown_table(table)}")
    return "".join(parts)


def _markdown_table(table: Table) -> str:
    rule = ["--:" if at in table.numbers else "---" for at in range(len(table.columns))]
    lines = (table.columns, rule, *table.lines)
    return "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines
    )


def aligned(
    lines: Sequence[Line], numbers: frozenset[int], width: Callable[[str], int] = len
) -> str:
    """Write columns below each other; those of numbers stand to the right."""
    widths = [max(width(line[at]) for line in lines) for at in range(len(lines[0]))]
    written = []
    for line in lines:
        cells = []
        for at, cell in enumerate(line):
            gap = " " * (widths[at] - width(cell))
            cells.append(f"{gap}{cell}" if at in numbers else f"{cell}{gap}")
        written.append("  ".join(cells).rstrip())
    return "\n".join(written) + "\n"


def as_json(report: Report) -> str:
    """Write it for programs."""
    made = {name: getattr(report, name) for name in report.__struct_fields__}
    for name, one in (("headline", report.headline), ("before", report.before)):
        made[name] = {
            **msgspec.to_builtins(one),
            "efficiency": one.amounts.efficiency,
            "totalCents": one.total_cents,
        }
    names = dict(zip(report.__struct_fields__, report.__struct_encode_fields__, strict=True))
    encoded = msgspec.json.encode({names[name]: value for name, value in made.items()})
    return msgspec.json.format(encoded, indent=1).decode() + "\n"


_JOB_COLUMNS = (
    *("namespace", "name", "kind", "queue", "team", "user", "gpus", "model", "capacity_type"),
    *("outcome", "wait_seconds", "gpu_hours", "busy", "idle", "unmeasured", "starting", "lost"),
    *("cost_usd", "wasted_usd", "advice"),
)


def as_csv(report: Report) -> str:
    """Write the jobs, one on each line, and those that wait; columns add up to the totals."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_JOB_COLUMNS)
    for one in report.jobs:
        amounts = one.amounts
        writer.writerow(
            (
                *(one.namespace, one.name, one.kind, one.queue, one.team, one.user, one.gpus),
                *(one.model, one.capacity_type, one.outcome),
                "" if one.wait_seconds is None else one.wait_seconds,
                *(exact(part) for part in (amounts.allocated, amounts.busy, amounts.idle)),
                *(exact(p) for p in (amounts.unmeasured, amounts.starting, amounts.lost)),
                *(f"{part / 100:.2f}" for part in (amounts.cost_cents, amounts.wasted_cents)),
                "; ".join(one.advice),
            )
        )
    nothing = ("0.00",) * 8
    for waits in report.waiting:
        about = (waits.namespace, waits.name, waits.kind, waits.queue, waits.team, waits.user)
        writer.writerow((*about, waits.gpus, "", "", "waiting", waits.age_seconds, *nothing, ""))
    return out.getvalue()
