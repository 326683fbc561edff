"""`unisono sim run`: replay a trace under one or several policies, and compare them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.help_format import Options
from unisono.cli.sim.inputs import (
    POLICY_WORDS,
    TRACES,
    add_reading,
    add_renting,
    policies_of,
    trace_of,
    traces_of,
)
from unisono.cli.sim.show import add_showing, show

if TYPE_CHECKING:
    from unisono.engine.model.node import Node
    from unisono.sim.faults import Faults
    from unisono.sim.outcome import Outcome
    from unisono.sim.provisioning import ProvisioningRules
    from unisono.sim.setup import Rules
    from unisono.sim.trace import Trace


NAME = "run"
HELP = "replay a trace under policies, side by side"
DESCRIPTION = f"""\
Replay a trace in virtual time through the engine that also decides live: quota, nodes and all.

{POLICY_WORDS}
{TRACES}
Without --nodes a trace that says how many processors it ran on gets as many nodes of one CPU.

examples:
  unisono sim run --trace KTH-SP2.swf.gz --policy fifo,easy,conservative --html out.html
  unisono sim run --trace gpu:jobs=2000,gpus=512 --nodes '64x{{gpu=8}}' --policy fifo,easy
  unisono sim run --trace gpu:jobs=500 --nodes 16xp5.48xlarge --pools pools.yaml --html out.html
  unisono sim run --policy list"""

# Charts show jobs on nodes as long as that is not too much to draw.
MOST_DRAWN = 60_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        "--policy",
        default="easy",
        metavar="POLICY,…",
        help="the policies; the first is what the others are compared with; list prints all "
        "(default: easy)",
    )
    add_replaying(parser, seeds=1)


def add_replaying(parser: argparse.ArgumentParser, *, seeds: int) -> None:
    """Add what every verb that replays a trace has in common."""
    add_reading(_add_trace(parser, seeds=seeds))
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument(
        "--nodes",
        "--cluster",
        action="append",
        default=[],
        metavar="WHERE",
        help="a shape (4xg6e.48xlarge, 100x{cpu=1}), an inventory (CSV) or Node manifests",
    )
    add_renting(cluster)
    cluster.add_argument(
        "--faults",
        metavar="HOW",
        help="let nodes fail: mtbf=20h,repair=30m (of every node, at random), or a CSV file of "
        "TIME,NODE,down and TIME,NODE,up",
    )
    cluster.add_argument(
        "--scoring",
        default="",
        metavar="NAME,…",
        help="node scorings instead of those of the policies: spare, fgd, binpack, …",
    )
    _add_jobs(parser.add_argument_group("jobs"))
    output = parser.add_argument_group("output")
    add_showing(output)
    _add_files(output)


def _add_trace(parser: argparse.ArgumentParser, *, seeds: int) -> Options:
    trace = parser.add_argument_group("trace")
    trace.add_argument("--trace", metavar="TRACE", help="a file or a generator, as above")
    trace.add_argument("--jobs", type=int, metavar="N", help="only the first N jobs")
    trace.add_argument(
        "--seeds",
        type=int,
        default=seeds,
        metavar="N",
        help="replay N traces and mark significant differences: a generator's with "
        f"N seeds, a file's with arrivals moved by up to 30 s (default: {seeds})",
    )
    return trace


def _add_jobs(jobs: Options) -> None:
    jobs.add_argument("--perfect", action="store_true", help="time limits are the true run times")
    jobs.add_argument(
        "--overrun",
        choices=("raise", "kill", "allow"),
        default="raise",
        help="what happens to jobs that reach their time limits: raise the limits, end the "
        "jobs, or let them run on (default: raise)",
    )
    jobs.add_argument(
        "--checkpoint",
        type=float,
        default=0.0,
        metavar="S",
        help="preempted jobs resume from a checkpoint every S seconds (default: they start over)",
    )
    jobs.add_argument(
        "--restore",
        type=float,
        default=0.0,
        metavar="S",
        help="seconds that resuming takes (default: 0)",
    )
    jobs.add_argument(
        "--suspend", action="store_true", help="preempted jobs are suspended and keep their work"
    )


def _add_files(output: Options) -> None:
    output.add_argument("--save", metavar="DIR", help="write outcomes for `sim show`")
    output.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        help="record every decision for `unisono replay`; in a folder for each of several runs",
    )
    output.add_argument(
        "--ledger",
        type=Path,
        metavar="FILE",
        help="write a usage ledger, as if the run ended now, for `unisono report --ledger FILE`",
    )
    output.add_argument("--audit", action="store_true", help="have the auditor check every plan")


def run(arguments: argparse.Namespace) -> int:
    """Replay and compare."""
    if arguments.policy == "list":
        from unisono.cli.tables import table
        from unisono.sim.setup import POLICIES

        print(table(["POLICY", "WHAT IT DOES"], [[r.name, r.about] for r in POLICIES.values()]))
        return 0
    names = [name.strip() for name in arguments.policy.split(",") if name.strip()]
    return replay(policies_of(names), arguments)


def replay(chosen: list[Rules], arguments: argparse.Namespace) -> int:
    """Replay the trace under every policy, and show what came of it."""
    from unisono.engine.model.errors import InvalidManifest

    if not arguments.trace:
        raise InvalidManifest("--trace", "is missing; `unisono sim --help` shows examples")
    check_options(arguments)
    chosen = [scored for rules in chosen for scored in _scorings(rules, arguments.scoring)]
    if arguments.ledger is not None and (arguments.seeds > 1 or len(chosen) > 1):
        raise InvalidManifest("--ledger", "is of one run; give one policy, and no --seeds")
    traces = [(seed, _prepared(trace, arguments)) for seed, trace in _traces(arguments)]
    _tell_dropped(traces[0][1], arguments)
    if not len(traces[0][1]):
        raise InvalidManifest("--trace", f"{arguments.trace} has no jobs to replay")
    grounds = _grounds(arguments, traces[0][1])
    nodes = grounds[0].nodes
    is_one = len(chosen) * len(traces) * len(grounds) == 1
    outcomes = [
        _replay(trace, ground, _named(rules, ground), arguments, seed, is_one=is_one)
        for rules in chosen
        for ground in grounds
        for seed, trace in traces
    ]
    if arguments.save:
        _save(outcomes, Path(arguments.save))
    if arguments.ledger is not None:
        from unisono.cli.sim.usage import write_ledger
        from unisono.runtime.clock import seconds_now

        write_ledger(outcomes[0], nodes, arguments.ledger, int(seconds_now()))
    show(outcomes, arguments)
    return 0


def _traces(arguments: argparse.Namespace) -> list[tuple[int, Trace]]:
    capacity = None
    if arguments.fill:  # as many pods as the cluster is large
        from unisono.cli.sim.inputs import cluster_nodes
        from unisono.sim.clusters import capacity_of

        capacity = capacity_of(cluster_nodes(arguments.nodes))
    if arguments.seeds == 1:
        return [(arguments.seed or 0, trace_of(arguments.trace, arguments, capacity))]
    return list(traces_of(arguments.trace, arguments, arguments.seeds, capacity))


def _scorings(rules: Rules, text: str) -> list[Rules]:
    """Return a policy with every scoring that was asked for, under names that tell them apart."""
    from typing import get_args, get_type_hints

    import msgspec

    from unisono.engine.model.errors import InvalidManifest
    from unisono.engine.model.policy import Placement

    names = [name.strip() for name in text.split(",") if name.strip()]
    known = get_args(get_type_hints(Placement)["scoring"])
    for name in names:
        if name not in known:
            message = f'there is no scoring "{name}"; there are {", ".join(known)}'
            raise InvalidManifest("--scoring", message)
    replace, policy = msgspec.structs.replace, rules.policy
    return [
        replace(
            rules,
            name=rules.name if len(names) == 1 else f"{rules.name}/{name}",
            policy=replace(policy, placement=replace(policy.placement, scoring=name)),
        )
        for name in names
    ] or [rules]


def _prepared(trace: Trace, arguments: argparse.Namespace) -> Trace:
    from unisono.sim.setup import with_overrun

    if arguments.jobs is not None:
        trace = trace.take(range(min(arguments.jobs, len(trace))))
    if arguments.perfect:
        trace = trace.perfect()
    return with_overrun(trace, arguments.overrun)


def _tell_dropped(trace: Trace, arguments: argparse.Namespace) -> None:
    dropped = trace.dropped
    if dropped.total and arguments.output == "table":
        print(
            f"{len(trace):,} jobs; {dropped.total:,} left out ({dropped.no_run:,} without run "
            f"time, {dropped.no_size:,} without size, {dropped.too_large:,} too large, "
            f"{dropped.unreadable:,} unreadable)",
            file=sys.stderr,
        )


def _nodes(arguments: argparse.Namespace, trace: Trace) -> tuple[Node, ...]:
    from unisono.cli.sim.inputs import cluster_nodes
    from unisono.engine.model.errors import InvalidManifest

    if arguments.nodes:
        return cluster_nodes(arguments.nodes)
    if trace.processors and not trace.gpus.any():
        return cluster_nodes([f"{trace.processors}x{{cpu=1}}"])
    message = "is missing: this trace does not say what it ran on (try --nodes 64x{gpu=8})"
    raise InvalidManifest("--nodes", message)


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a trace is replayed: nodes that are there, and what can be bought beside them."""

    name: str  # to tell several of them apart
    nodes: tuple[Node, ...]
    provisioning: ProvisioningRules | None = None


def _grounds(arguments: argparse.Namespace, trace: Trace) -> list[Ground]:
    """Return the cluster; with pools also, or only, machines that are bought."""
    from unisono.cli.sim.inputs import BOUGHT, cluster_nodes, provisioning_rules_of
    from unisono.engine.model.errors import InvalidManifest

    if arguments.pools is None:
        if arguments.base:
            raise InvalidManifest("--base", "is for machines beside those of --pools")
        return [Ground("", _nodes(arguments, trace))]
    if trace.is_endless:
        raise InvalidManifest("--pools", "--fill is about a cluster that there is")
    if arguments.ledger is not None:
        raise InvalidManifest("--ledger", "is of a cluster that there is; leave out --pools")
    base = cluster_nodes(arguments.base) if arguments.base else ()
    bought = Ground(BOUGHT if arguments.nodes else "", base, provisioning_rules_of(arguments.pools))
    if not arguments.nodes:
        return [bought]
    return [Ground("fixed", _nodes(arguments, trace)), bought]


def _named(rules: Rules, ground: Ground) -> Rules:
    import msgspec

    if not ground.name:
        return rules
    return msgspec.structs.replace(rules, name=f"{rules.name}/{ground.name}")


def _replay(
    trace: Trace,
    ground: Ground,
    rules: Rules,
    arguments: argparse.Namespace,
    seed: int,
    *,
    is_one: bool,
) -> Outcome:
    from unisono.cli.sim.inputs import prices_of
    from unisono.engine.cycle import plan
    from unisono.runtime.clock import RealClock, cpu_seconds
    from unisono.sim.loop import simulate
    from unisono.sim.setup import Restarts

    decides = plan
    if arguments.record is not None:
        from unisono.runtime.recording import recorder

        place = arguments.record if is_one else arguments.record / f"{rules.name}-{seed}"
        decides = recorder(place).plan
    return simulate(
        trace,
        ground.nodes,
        rules,
        restarts=Restarts(arguments.checkpoint, arguments.restore, arguments.suspend),
        spans=arguments.ledger is not None
        or (bool(arguments.html or arguments.save) and int(trace.pods.sum()) <= MOST_DRAWN),
        checked=arguments.audit,
        seed=seed,
        clock=RealClock().monotonic,
        cpu_clock=cpu_seconds,
        progress=progress(rules.name),
        complain=lambda text: print(f"{rules.name}: {text}", file=sys.stderr),
        decides=decides,
        provisioning=ground.provisioning,
        prices=prices_of(ground.nodes),
        faults=faults_of(arguments.faults, ground.nodes, seed),
    )


def _save(outcomes: list[Outcome], directory: Path) -> None:
    from unisono.sim.archive import save_outcome

    directory.mkdir(parents=True, exist_ok=True)
    is_one = len({outcome.seed for outcome in outcomes}) == 1
    for outcome in outcomes:
        name = outcome.policy if is_one else f"{outcome.policy}-{outcome.seed}"
        save_outcome(outcome, directory / f"{name}.npz")


# ---- options -------------------------------------------------------------------------------------


def faults_of(text: str | None, nodes: tuple[Node, ...], seed: int) -> Faults | None:
    """Return when nodes fail, by settings or by a file."""
    if text is None:
        return None
    from unisono.sim.faults import random_faults, scheduled_faults
    from unisono.sim.traces.files import read_bytes

    names = [node.name for node in nodes]
    if "=" in text and not Path(text).exists():
        return random_faults(text, names, seed)
    lines = read_bytes(Path(text)).decode("utf-8", errors="replace").splitlines()
    return scheduled_faults(lines, names, text)


def check_options(arguments: argparse.Namespace) -> None:
    """Refuse numbers that mean nothing, before anything is read."""
    from unisono.engine.model.errors import InvalidManifest

    least = {"seeds": 1, "jobs": 1, "procs": 0, "checkpoint": 0, "restore": 0}
    for name, value in least.items():
        given = getattr(arguments, name)
        if given is not None and not given >= value:
            raise InvalidManifest(f"--{name}", f"must be at least {value}, and is {given}")
    for name in ("html", "ledger"):  # before minutes of simulation are lost
        path = getattr(arguments, name)
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise InvalidManifest(f"--{name}", f"there is no folder {Path(path).parent}")
    if arguments.restore and not (arguments.checkpoint or arguments.suspend):
        message = "is what going on costs; give --checkpoint or --suspend, too"
        raise InvalidManifest("--restore", message)
    if arguments.faults is not None and (arguments.pools is not None or arguments.fill):
        raise InvalidManifest(
            "--faults", "is of nodes that are there; leave out --pools and --fill"
        )


# ---- progress ------------------------------------------------------------------------------------

WIDTH = 24
# Before so much is done, the remaining time cannot be estimated.
LEAST_PERCENT = 3


def progress(policy: str) -> Callable[[int, int], None] | None:
    """Return a function that redraws one line of progress, if stderr is a terminal."""
    from unisono.runtime.clock import RealClock

    if not sys.stderr.isatty():
        return None
    clock = RealClock()
    began = clock.monotonic()
    is_plain = not (sys.stderr.encoding or "").lower().startswith("utf")
    shown = -1

    def tell(done: int, count: int) -> None:
        nonlocal shown
        percent = done * 100 // max(1, count)
        if percent == shown:
            return
        shown = percent
        text = line(policy, done, count, clock.monotonic() - began, is_plain=is_plain)
        # To the end of the line: what stood there before may have been longer.
        end = "\033[K\n" if done == count else "\033[K"
        print(f"\r{text}", end=end, file=sys.stderr, flush=True)

    return tell


def line(policy: str, done: int, count: int, seconds: float, *, is_plain: bool = False) -> str:
    """Say how far a simulation is, and how long it still takes if it goes on like that.

    >>> line("easy", 250, 1000, 3.0, is_plain=True)
    'easy          ######------------------  25 % of 1,000 jobs, 9s left'
    >>> line("fifo", 1000, 1000, 62.0, is_plain=True)
    'fifo          ######################## 100 % of 1,000 jobs in 1m2s'
    """
    from unisono.engine.explain.formatting import format_duration

    percent = done * 100 // max(1, count)
    full = WIDTH * done // max(1, count)
    some, none = ("#", "-") if is_plain else ("━", "─")
    bar = f"{policy:13} {some * full}{none * (WIDTH - full)} {percent:3} % of {count:,} jobs"
    if done == count:
        return f"{bar} in {format_duration(round(seconds) * 1000)}"
    if percent < LEAST_PERCENT:
        return bar
    left = seconds * (count - done) / done
    return f"{bar}, {format_duration(round(left) * 1000)} left"
