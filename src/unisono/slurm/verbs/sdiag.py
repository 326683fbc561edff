"""`sdiag`: how the scheduler is doing, as far as it is known (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Sequence

from unisono.slurm.getopt import BadOption, Option, parse
from unisono.slurm.getopt import table as options_table
from unisono.slurm.jobs import Row
from unisono.slurm.loading import decoded, turns
from unisono.slurm.moments import shown
from unisono.slurm.states import STARTED
from unisono.slurm.verbs.around import JOBS, Around, Outcome, Refused

_OPTIONS = options_table(
    Option("all", "a", "nothing"),
    Option("json", "", "nothing"),
    Option("help", "h", "nothing"),
    Option("version", "V", "nothing"),
    Option("data-dir"),
    Option("kubeconfig"),
    Option("context"),
)
_LINE = "*" * 55


def run(arguments: Sequence[str], around: Around) -> Outcome:
    """Print it."""
    try:
        options = parse(arguments, _OPTIONS).options
    except BadOption as trouble:
        raise Refused(f'{trouble}\nTry "sdiag --help" for more information') from None
    if "help" in options:
        return Outcome("Usage: sdiag [-a] [--json]\n")
    api = around.connect(options)
    told = turns(api)
    rows = [Row(job, around.now) for job in decoded(api.call("GET", JOBS))]
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
        statistics |= {"schedule_cycle_total": told.get("cycles", 0)}
        statistics |= {"schedule_queue_length": told.get("queue", 0)}
        return Outcome(json.dumps({"errors": [], "statistics": statistics}) + "\n")
    at = f"{shown(around.now)} ({int(around.now)})"
    since = f"{shown(told['at'] / 1000)} ({told['at'] // 1000})" if told.get("at") else "Unknown"
    lines = [
        _LINE,
        f"sdiag output at {at}",
        f"Data since      {since}",
        _LINE,
        *(f"Jobs {name + ':':<11}{count}" for name, count in counts.items()),
        "",
        "Main schedule statistics (microseconds):",
        f"\tTotal cycles: {told.get('cycles', 0)}",
        f"\tLast queue length: {told.get('queue', counts['pending'])}",
    ]
    return Outcome("\n".join(lines) + "\n")
