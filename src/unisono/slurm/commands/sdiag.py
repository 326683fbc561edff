"""`sdiag`: how the scheduler is doing, as far as it is known (spec slurm §7)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unisono.slurm.client import ApiClient, ClientError
from unisono.slurm.commands.context import COMMON, Context, Outcome, parse_arguments
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.jobs import Row
from unisono.slurm.labels import JOBS
from unisono.slurm.listing import decoded, published_priorities
from unisono.slurm.states import STARTED
from unisono.slurm.times import dated

_OPTIONS = options_table(
    Option("all", "a", "nothing"),
    Option("json", "", "nothing"),
    Option("help", "h", "nothing"),
    *COMMON,
)
_LINE = "*" * 55
_NAME = "unisono_cycle_duration_seconds"
_CYCLE = re.compile(_NAME + r'_(sum|count)\{phase="total"\} (\S+)')
_BUCKET = re.compile(_NAME + r'_bucket\{phase="total",le="(\S+)"\} (\S+)')


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """Print it."""
    options = parse_arguments("sdiag", arguments, _OPTIONS).options
    if "help" in options:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("sdiag", _OPTIONS))
    api = context.connect(options)
    published = published_priorities(api)
    cycles = _cycles(api)
    rows = [Row(job, context.now) for job in decoded(api.call("GET", JOBS))]
    jobs = [row for row in rows if not row.array]
    counts = {
        "submitted": len(jobs),
        "started": sum(bool(row.time("startTime")) for row in jobs),
        "completed": sum(row.state == "COMPLETED" for row in jobs),
        "canceled": sum(row.state == "CANCELLED" for row in jobs),
        "failed": sum(row.state in ("FAILED", "TIMEOUT", "OUT_OF_MEMORY") for row in jobs),
        "pending": sum(row.state == "PENDING" for row in jobs),
        "running": sum(row.state in STARTED for row in jobs),
    }
    if "json" in options:
        import json

        statistics = {f"jobs_{name}": count for name, count in counts.items()}
        statistics |= {"schedule_cycle_total": published.get("cycles", 0)}
        statistics |= {"schedule_queue_length": published.get("queue", 0)}
        statistics |= {f"schedule_cycle_{name}": value for name, value in cycles.items()}
        return Outcome(json.dumps({"errors": [], "statistics": statistics}) + "\n")
    at = f"{dated(context.now)} ({int(context.now)})"
    since = (
        f"{dated(published['at'] / 1000)} ({published['at'] // 1000})"
        if published.get("at")
        else "Unknown"
    )
    lines = [
        _LINE,
        f"sdiag output at {at}",
        f"Data since      {since}",
        _LINE,
        "Server thread count:  1",
        "Agent queue size:     0",
        "",
        *(f"Jobs {name + ':':<11}{count}" for name, count in counts.items()),
        "",
        "Main schedule statistics (microseconds):",
        f"\tTotal cycles: {published.get('cycles', 0)}",
        *(f"\t{name.title()} cycle:   {value}" for name, value in cycles.items()),
        f"\tLast queue length: {published.get('queue', counts['pending'])}",
    ]
    return Outcome("\n".join(lines) + "\n")


def _cycles(api: ApiClient) -> dict[str, int]:
    """Return how long cycles take at most (rounded up to a bucket) and on average.

    In microseconds; nothing where the figures of the scheduler are not to be had from the API.
    """
    try:
        text = api.call("GET", "/metrics").decode(errors="replace")
    except ClientError:
        return {}
    found = dict(_CYCLE.findall(text))
    count = float(found.get("count", 0))
    if not count:
        return {}
    most = next(
        (float(bound) for bound, seen in _BUCKET.findall(text) if float(seen) >= count), 0.0
    )
    longest = most if most != float("inf") else float(found.get("sum", 0))
    return {"max": round(longest * 1e6), "mean": round(float(found["sum"]) / count * 1e6)}
