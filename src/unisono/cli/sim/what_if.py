"""`unisono sim what-if`: when a job would start on the running cluster, without sending it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unisono.cli.connection import CLUSTER_OPTIONS, add_cluster_options, add_filenames, asked

if TYPE_CHECKING:
    from unisono.engine.model.names import Instant, WorkloadKey
    from unisono.kinds.snapshot.build import World
    from unisono.kube.client import Client
    from unisono.kube.form import Json
    from unisono.kube.mapping import Kind
    from unisono.sim.what_if import Answer

File = tuple[str, bytes]

NAME = "what-if"
HELP = "say when a job would start on the running cluster"
DESCRIPTION = f"""\
Take the cluster as it is, add a job, and say whether it would start now, on which nodes and with
which victims; or what keeps it pending, and when it would start. Nothing is changed anywhere.

Start times come from simulated runs, in which every job runs for a random part of its time limit,
between 5 % and 100 %; the answer says how many runs there were. With too many jobs ahead for that,
only the scarcest resource is counted.
{CLUSTER_OPTIONS}
examples:
  unisono sim what-if -f job.yaml
  unisono sim what-if -f job.yaml --on cluster.yaml --policy backfill.yaml -o json

Exit code 0: it starts, now or later; 2: never on this cluster (or the manifest is wrong)."""
NEVER = 2
_MOST_NAMED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_filenames(parser, "the job: files, folders, or - for stdin")
    parser.add_argument(
        "--on",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="manifests of a cluster instead of the running one",
    )
    parser.add_argument("--policy", metavar="FILE", help="a policy instead of the cluster's own")
    parser.add_argument(
        "--samples", type=int, default=20, metavar="N", help="simulated runs (default: 20)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=1.0,
        metavar="S",
        help="time limit for all simulated runs, in seconds (default: 1)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="the seed of the random run times (default: 1)"
    )
    parser.add_argument("--now", metavar="TIME", help="with --on: the time to decide at")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "yaml"),
        default="text",
        help="output format (default: text)",
    )
    add_cluster_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer."""
    if not arguments.on:
        return asked(arguments, _living)
    from unisono.cli.decide import instant
    from unisono.runtime import clock

    now = clock.now() if arguments.now is None else instant(arguments.now)
    return _answer(arguments, [file for name in arguments.on for file in _files(name)], now)


async def _living(client: Client, arguments: argparse.Namespace) -> int:

    from unisono.runtime import clock

    files = await _living_files(client, with_policy=arguments.policy is None)
    return _answer(arguments, files, clock.now())


def _files(name: str) -> list[File]:
    from unisono.runtime.manifest_files import files_of

    return files_of(name)


def _answer(arguments: argparse.Namespace, cluster: list[File], now: Instant) -> int:
    from unisono.engine.model.errors import InvalidManifest
    from unisono.runtime.clock import RealClock
    from unisono.runtime.memory import calm_collector
    from unisono.sim.what_if import what_if

    if arguments.samples < 1:
        raise InvalidManifest("--samples", "must be at least 1")
    if not arguments.seconds > 0:
        raise InvalidManifest("--seconds", "must be above 0")
    calm_collector()  # there may be tens of thousands of manifests
    given = [file for name in arguments.filename for file in _files(name)]
    policy = _files(arguments.policy) if arguments.policy else []
    world, keys = _with_job([*cluster, *policy], given, now)
    clock, answers = RealClock(), []
    for key in keys:
        start = clock.monotonic()
        answers.append(
            what_if(
                world.snapshot,
                key,
                samples=arguments.samples,
                seed=arguments.seed,
                elapsed=lambda start=start: clock.monotonic() - start,  # type: ignore[misc]  # bound now
                budget_s=arguments.seconds,
            )
        )
    _print(answers, arguments.output, now, _names(cluster))
    return NEVER if any(answer.verdict == "never" for answer in answers) else 0


def _with_job(
    cluster: list[File], given: list[File], now: Instant
) -> tuple[World, list[WorkloadKey]]:
    """Return the cluster with the jobs added, and the keys of their workloads."""
    from unisono.engine.model.errors import InvalidManifest
    from unisono.kinds.snapshot.build import read_world

    # Read alone they have the same keys; missing queues do not matter yet.
    alone = {one.key for one in read_world(given, now=now).snapshot.waiting}
    world = read_world([*cluster, *given], now=now)
    names = {name for name, _ in given}
    problems = [problem for problem in world.problems if problem.file in names]
    if problems:  # problems of other objects on the cluster are not this command's
        raise InvalidManifest("", "\n".join(problem.line() for problem in problems))
    for warning in world.warnings:
        if warning.file in names:
            print(f"unisono: warning: {warning.line()}", file=sys.stderr)
    keys = [one.key for one in world.snapshot.waiting if one.key in alone]
    if not keys:
        raise InvalidManifest(
            "-f",
            f"{', '.join(sorted(names))}: has no job with a queue name; add one",
        )
    return world, keys


def _names(cluster: list[File]) -> dict[str, str]:
    """Return the jobs behind the Workloads of a running cluster."""
    from unisono.cli.job_names import job_names

    listed = [json.loads(content) for name, content in cluster if name == _of_cluster("Workload")]
    return job_names(one for each in listed for one in each["items"])


def _print(answers: list[Answer], form: str, now: Instant, names: Mapping[str, str]) -> None:
    from unisono.cli.job_names import by_jobs
    from unisono.cli.objects import dump

    if form == "text":
        print("\n\n".join(by_jobs(text(answer, now), names) for answer in answers))
        return
    listed = [as_json(answer) for answer in answers]
    whole: Any = listed[0] if len(listed) == 1 else listed
    sys.stdout.write(dump(whole, form))


def as_json(answer: Answer) -> Json:
    """Return an answer for programs."""
    import msgspec

    from unisono.engine.explain.formatting import format_instant

    made: Json = msgspec.to_builtins(answer)
    for key in ("startP50", "startP95", "startByLimits"):
        made[key] = format_instant(made[key]) if made[key] is not None else None
    return made


def text(answer: Answer, now: Instant) -> str:
    """Return an answer for people.

    >>> from unisono.sim.what_if import Answer
    >>> print(text(Answer(workload="ml/a", verdict="now", nodes={"n1": 2}), 0))
    ml/a would start now
      on      n1 (2 pods)
    """
    from unisono.cli.times import ahead, local_times

    def when(start: Instant) -> str:
        return ahead(start / 1000, now / 1000)

    if answer.verdict == "now":
        lines = [f"{answer.workload} would start now"]
        if answer.nodes:
            each = (f"{node} ({pods} pod{'s'[: pods != 1]})" for node, pods in answer.nodes.items())
            lines.append("  on      " + ", ".join(each))
    elif answer.verdict == "never":
        lines = [f"{answer.workload} would never start in this cluster as it is"]
    else:
        lines = [f"{answer.workload} would wait"]
    if answer.root_cause:
        lines.append(f"  why     {local_times(answer.root_cause, now / 1000)}")
    if len(answer.ways) > 1 or (answer.ways and answer.verdict == "never"):
        labels = ("tried", *("" for _ in answer.ways))
        lines += [f"  {label:8}{way}" for label, way in zip(labels, answer.ways, strict=False)]
    elif answer.constraint is not None and not (answer.root_cause and answer.verdict == "never"):
        label = "now" if answer.root_cause else "why"
        lines.append(f"  {label:8}{answer.constraint.message}")
    if answer.preempts:
        lines.append("  evicts  " + ", ".join(answer.preempts))
    if answer.verdict == "later":
        lines.append(f"  when    {_starts(answer, when)}")
    if answer.start_by_limits is not None:
        lines.append(f"  limits  {when(answer.start_by_limits)}, if all jobs run to their limits")
    return "\n".join(lines)


def _starts(answer: Answer, when: Callable[[Instant], str]) -> str:
    """Say when it starts in simulated runs, and what they are based on, in one sentence."""
    from unisono.engine.model.resources import is_gpu

    if answer.without_runs:
        return f"unknown: {answer.without_runs}"
    if not answer.samples:
        return "unknown: too many jobs are ahead for the time (see --seconds)"
    counted = "GPU" if is_gpu(answer.by_amounts_of) else answer.by_amounts_of
    only = f", {counted} counts only" if counted else ""
    basis = f"(run times drawn within the time limits{only})"
    runs = f"{answer.samples} simulated run{'s'[: answer.samples != 1]}"
    if not answer.started and answer.endless:
        have = "has" if len(answer.endless) == 1 else "have"
        return f"unknown: {', '.join(answer.endless[:_MOST_NAMED])} {have} no time limit"
    if not answer.started:
        return f"not within 60 days in any of {runs} {basis}"
    if answer.start_p50 is None:
        return f"{answer.started} of {runs} start it within 60 days {basis}"
    half = f"half of {runs} start it by {when(answer.start_p50)}"
    if answer.start_p95 is None:
        return f"{half}, {answer.samples - answer.started} not within 60 days {basis}"
    return f"{half}; 95 % by {when(answer.start_p95)} {basis}"


# ---- the running cluster as manifests ------------------------------------------------------------


def _kinds() -> Sequence[Kind]:
    from unisono.control import names

    return (
        names.NAMESPACE,
        names.NODE,
        names.POD,
        names.LIMIT_RANGE,
        names.PRIORITY_CLASS,
        names.RUNTIME_CLASS,
        names.FLAVOR,
        names.TOPOLOGY,
        names.ADMISSION_CHECK,
        names.COHORT,
        names.CLUSTER_QUEUE,
        names.LOCAL_QUEUE,
        names.WORKLOAD_PRIORITY_CLASS,
        names.VOLCANO_QUEUE,
        names.HYPER_NODE,
        names.WORKLOAD,
    )


async def _living_files(client: Client, *, with_policy: bool) -> list[tuple[str, bytes]]:
    """Return everything that decisions are made from; kinds that are not served are left out."""
    from unisono.control import names
    from unisono.kube.errors import NotFound, UnknownKind

    files = []
    for kind in (*_kinds(), *((names.POLICY,) if with_policy else ())):
        try:
            found = (await client.list(kind)).items
        except (NotFound, UnknownKind):
            continue
        items = [_whole(one, kind) for one in found if _matters(one, kind)]
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        files.append((_of_cluster(kind.kind), json.dumps(listed).encode()))
    return files


def _of_cluster(kind: str) -> str:
    return f"<{kind} of the cluster>"


def _whole(obj: Json, kind: Kind) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def _matters(obj: Json, kind: Kind) -> bool:
    """Leave out pods without a node: their Workloads stand for them."""
    from unisono.control import names

    if kind != names.POD:
        return True
    over = (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return bool(obj["spec"].get("nodeName")) and not over
