"""Measure the engine: `python -m bench`, or `make bench ARGS=...`.

Prints a table for every benchmark, the growth exponent of every series, and at the end what we
promise beside what was measured. Figures are about this machine at this moment; nothing fails
because of them unless `--strict` asks for it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import (
    admitted,
    api,
    backfill,
    backlog,
    decide,
    drain,
    event,
    fair,
    idle_cycle,
    informers,
    live,
    memory,
    openb,
    place,
    pod_by_pod,
    preempt,
    priority_order,
    provision,
    quality,
    queues,
    replay,
    report,
    scrape,
    servers,
    sim,
    slurm,
    start,
    web,
)
from bench.compare import NotAReport, changes_text, read_report
from bench.harness import Clock, Family, Result, Scale, run, use_clock
from bench.output import Report, as_json, as_text, heading, now, say, targets_table, this_host
from bench.plot import NoMatplotlib, check_matplotlib, draw
from bench.traces import LISTS

FAMILIES = (
    Family("drain", "admit every workload where there is room for all", drain.measure, ("E1",)),
    Family("event", "tell the engine of a submit or a finish", event.measure, ("E2",)),
    Family("idle-cycle", "a cycle that can admit nothing", idle_cycle.measure),
    Family("queues", "one cycle against the number of queues", queues.measure),
    Family("admitted", "cycles and events against the number of admitted", admitted.measure),
    Family("preempt", "one head looks for victims among many candidates", preempt.measure, ("E5",)),
    Family("fair", "a fair-sharing cycle with many heads in one cohort", fair.measure),
    Family("memory", "what a workload weighs in the engine", memory.measure, ("M1",)),
    Family("start", "how long the program takes to start", start.measure, ("C1",)),
    Family("decide", "manifests in, decision out, as a process", decide.measure),
    Family("place", "find nodes for one gang", place.measure, ("E4",)),
    Family("backlog", "decide a backlog of gangs, quota and nodes", backlog.measure, ("E4",)),
    Family("pod-by-pod", "the same gangs, one pod at a time", pod_by_pod.measure),
    Family(
        "openb", "a real cluster filled with real pods, by all scorings", openb.measure, ("S3",)
    ),
    Family("backfill", "one backfilling pass over a long queue", backfill.measure, ("E6",)),
    Family(
        "priority-order",
        "order all pending workloads by multifactor priority",
        priority_order.measure,
        ("E7",),
    ),
    Family("provision", "which machines to buy for one gang", provision.measure, ("E8",)),
    Family("sim", "simulated jobs per processor second, beside others", sim.measure, ("S1", "S2")),
    Family("replay", "clusters of GPUs simulated, under every policy", replay.measure, ("S4",)),
    Family("quality", "what backfilling makes of real logs, as published", quality.measure),
    Family("informers", "keep a cache of 10,000 pods", informers.measure),
    Family("api", "the embedded API over HTTPS", api.measure, ("A3",)),
    Family("scrape", "pages of metrics, as Prometheus asks for them", scrape.measure),
    Family("report", "the usage report of a month", report.measure),
    Family("slurm", "sbatch and squeue on a long queue, as processes", slurm.measure),
    Family("live", "from a submitted job to pods that run", live.measure, ("A4",)),
    Family("web", "the web page: paint, updates, weight, serving", web.measure),
    Family("servers", "admissions on a real API server, beside Kueue", servers.measure, ("A2",)),
)

DONE = 0
INPUT_IS_WRONG = 2
BELOW_BAR = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were asked for."""
    arguments = _parser().parse_args(argv)
    if arguments.list:
        width = max(len(family.name) for family in FAMILIES)
        print("\n".join(f"{family.name:<{width}}  {family.about}" for family in FAMILIES))
        return DONE
    names = [family.name for family in FAMILIES]
    unknown = [name for name in arguments.name if name not in names]
    if unknown:
        say(f"bench: there is no benchmark {unknown[0]!r}; there are {', '.join(names)}")
        return INPUT_IS_WRONG
    old: Report | None = None
    try:
        if arguments.plot is not None:
            check_matplotlib()
        if arguments.compare is not None:
            old = read_report(arguments.compare)
        servers.choose(arguments.peer)
    except (NoMatplotlib, NotAReport, servers.NoSuchPeer) as error:
        say(f"bench: {error}")
        return INPUT_IS_WRONG
    quality.choose(long_logs=arguments.full)
    openb.choose(seeds=arguments.seeds, pods=arguments.pods)
    chosen = [family for family in FAMILIES if family.name in (arguments.name or names)]
    as_table = arguments.output == "table"
    made = measure(
        chosen,
        scale_of(arguments),
        clock="cpu" if arguments.cpu_time else "wall",
        as_table=as_table,
    )
    if as_table:
        print(targets_table(made.results))
    else:
        print(as_json(made))
    if old is not None:
        # Beside JSON on stdout it is a remark; as a table it belongs to the results.
        (print if as_table else say)(f"\n{changes_text(old, made)}")
    if arguments.json is not None:
        arguments.json.write_text(as_json(made) + "\n", encoding="utf-8")
        say(f"bench: wrote {arguments.json}")
    if arguments.plot is not None:
        panels = draw(made.results, arguments.plot)
        say(f"bench: wrote {arguments.plot} with {panels} panels")
    return BELOW_BAR if arguments.strict and below_bar(made) else DONE


def scale_of(arguments: argparse.Namespace) -> Scale:
    """Return the sizes: full ones for benchmarks that were named, else a quick overview of all."""
    if arguments.quick or not (arguments.name or arguments.full):
        return "quick"
    return "full"


def below_bar(report: Report) -> bool:
    """Say whether anything that was run is not as good as promised."""
    return any(each.verdict == "below bar" for result in report.results for each in result.targets)


def measure(families: Sequence[Family], scale: Scale, *, clock: Clock, as_table: bool) -> Report:
    """Measure families one after the other, telling results (or progress) as they come."""
    host, when = this_host(), now()
    use_clock(clock)
    results: list[Result] = []
    if as_table:
        print(heading(host, scale, clock), end="\n\n", flush=True)
    for family in families:
        if not as_table:
            say(f"bench: {family.name}")
        results.append(run(family, scale))
        if as_table:
            print(as_text(results[-1]), end="\n\n", flush=True)
    return Report(when=when, scale=scale, clock=clock, host=host, results=tuple(results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Measure the engine. Without names, all benchmarks run, at small sizes.",
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help="a benchmark, see --list")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and exit")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="smaller sizes, about a minute: without names anyway"
    )
    size.add_argument(
        "--full", action="store_true", help="promised sizes, long logs, real servers: an hour"
    )
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="count processor time, not wall time: for a machine that others use too",
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="openb: so many orders of arrival (3)"
    )
    parser.add_argument(
        "--pods", choices=LISTS, default="default", help="openb: another list of pods"
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="what to print"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="OLD.json", help="name what has changed since --json wrote"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 if a result is below its bar"
    )
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="servers: run Kueue beside us (kueue=./minimalkueue)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write JSON to a file")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="also draw every series (needs matplotlib)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
