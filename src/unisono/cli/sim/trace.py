"""`unisono sim trace`: what a trace holds; or the trace itself, in our own form."""

from __future__ import annotations

import argparse
import gzip
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.sim.inputs import TRACES, add_reading, trace_of

if TYPE_CHECKING:
    from unisono.sim.measures import Spread
    from unisono.sim.report import Summary
    from unisono.sim.trace import Trace

NAME = "trace"
HELP = "say what a trace holds, or write it in our own form"
DESCRIPTION = f"""\
Read or generate a trace and say what it holds.

{TRACES}

examples:
  unisono sim trace KTH-SP2.swf.gz
  unisono sim trace gpu:jobs=2000,gpus=512 --write jobs.jsonl.gz"""

_SHOWN_QUEUES = 12  # more would push the rest off the screen; -o json has them all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument("trace", metavar="TRACE")
    add_reading(parser.add_argument_group("reading"))
    parser.add_argument(
        "--cluster",
        action="append",
        default=[],
        metavar="SHAPE|FILE",
        help="print how much of this cluster the trace asks for",
    )
    parser.add_argument(
        "--write", metavar="FILE", help="write the jobs as JSON lines; .gz is compressed"
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml"),
        default="table",
        help="output format (default: table)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what the trace holds."""
    from unisono.sim.report import summarise

    capacity = None
    if arguments.cluster:
        from unisono.cli.sim.inputs import cluster_nodes
        from unisono.sim.clusters import capacity_of

        capacity = capacity_of(cluster_nodes(arguments.cluster))
    trace = trace_of(arguments.trace, arguments, capacity)
    if arguments.write:
        _write(trace, Path(arguments.write))
    found = summarise(trace, capacity)
    if arguments.output == "table":
        print(_text(found))
    else:
        from unisono.cli.sim.show import write_value

        write_value(found, arguments.output)
    return 0


def _write(trace: Trace, path: Path) -> None:
    from unisono.sim.traces.journal import write_journal

    content = b"".join(write_journal(trace))
    # No time in the packed file: the same trace gives the same bytes.
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def _text(found: Summary) -> str:
    from unisono.cli.tables import table
    from unisono.sim.formatting import duration, number, percent

    dropped = [f"{count} {_WHY[reason]}" for reason, count in found.dropped.items() if count]
    facts = [
        ("jobs", f"{found.jobs}" + (f" (dropped: {', '.join(dropped)})" if dropped else "")),
        ("submitted over", duration(found.span)),
        *_work(found),
        ("shapes of pods", f"{found.typical_shapes} cover 95 %"),
        ("users, queues", f"{found.users}, {len(found.queues)}"),
        ("ended", ", ".join(f"{n} {word}" for word, n in found.statuses.items() if n)),
    ]
    rows = [
        (found.counts, *map(number, _four(found.size))),
        ("pods", *map(number, _four(found.pods))),
        ("run time", *map(duration, _four(found.run))),
        ("request / run", *map(number, _four(found.request_ratio))),
    ]
    width = max(len(name) for name, _ in facts)
    parts = [
        found.name,
        "\n".join(f"  {name:<{width}}  {fact}" for name, fact in facts),
        table(("", "MEAN", "MEDIAN", "P95", "LARGEST"), rows, right=True),
    ]
    if len(found.queues) > 1:
        shown = found.queues[:_SHOWN_QUEUES]
        lines = [
            (part.name, part.jobs, number(part.work_hours), percent(part.share)) for part in shown
        ]
        parts.append(
            table(("QUEUE", "JOBS", f"{found.counts[:-1]}-HOURS", "SHARE"), lines, right=True)
        )
        if len(found.queues) > len(shown):
            parts.append(f"  and {len(found.queues) - len(shown)} more queues")
    return "\n\n".join(parts)


def _work(found: Summary) -> Iterator[tuple[str, str]]:
    """Yield how much there is to do; of jobs that never end, how much they hold in the end."""
    from unisono.sim.formatting import number, percent

    if math.isnan(found.work_hours):
        share = percent(found.wanted_share)
        yield (
            "wanted in the end",
            f"{number(found.wanted)} {found.counts}, {share} of what there is",
        )
    else:
        yield "work", f"{number(found.work_hours)} {found.counts[:-1]}-hours"
        yield "load", percent(found.load)


_WHY = {
    "noRun": "without run time",
    "noSize": "without size",
    "tooLarge": "larger than the machine",
    "unreadable": "unreadable",
}


def _four(spread: Spread) -> tuple[float, float, float, float]:
    return spread.mean, spread.median, spread.p95, spread.largest
