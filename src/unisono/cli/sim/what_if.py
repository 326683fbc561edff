"""`unisono sim what-if`: when a job would start on the running cluster, without sending it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from unisono.cli.connection import CLUSTER_OPTIONS, add_cluster_options, add_filenames, asked

if TYPE_CHECKING:
    from unisono.engine.model.names import Instant, WorkloadKey
    from unisono.engine.model.provisioning import Offerings
    from unisono.kinds.snapshot.build import World
    from unisono.kube.client import Client
    from unisono.kube.form import Json
    from unisono.sim.what_if import Answer

T = TypeVar("T")
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
    cluster = [file for name in arguments.on for file in _files(name)]
    return _answer(arguments, cluster, _given(arguments), now)


async def _living(client: Client, arguments: argparse.Namespace) -> int:
    import json

    from unisono.cli.plan.cluster import read_cluster
    from unisono.runtime import clock

    there = await read_cluster(client)
    whole = json.loads(there.file[1])
    if arguments.policy is not None:
        whole["items"] = [one for one in whole["items"] if one["kind"] != "Policy"]
    given = _given(arguments)
    since = _without_pending(whole, given)
    cluster = [(there.file[0], json.dumps(whole).encode())]
    names = _names(whole["items"])
    return _answer(arguments, cluster, given, clock.now(), there.offerings, since, names)


def _given(arguments: argparse.Namespace) -> list[File]:
    return [file for name in arguments.filename for file in _files(name)]


def _without_pending(cluster: Json, given: Sequence[File]) -> dict[str, Instant]:
    """Take pending Workloads of the given jobs out of the cluster; return since when they wait.

    The files say what is asked about, so they replace what was submitted, at its place in the
    queue. What runs already is refused.
    """
    from unisono.engine.model.errors import InvalidManifest
    from unisono.engine.model.names import Instant
    from unisono.kinds.documents import read_documents
    from unisono.kinds.scalar import instant_ms

    jobs = {
        (one.kind, str(about.get("namespace") or "default"), str(about.get("name")))
        for name, content in given
        for one in read_documents(name, content).documents
        if isinstance(about := one.raw.get("metadata"), dict)
    }
    since: dict[str, Instant] = {}
    kept = []
    for one in cluster["items"]:
        owner = _job_of(one) if one["kind"] == "Workload" else None
        if owner not in jobs or owner is None:
            kept.append(one)
            continue
        kind, namespace, name = owner
        status = one.get("status") or {}
        if any(each["type"] == "Finished" for each in status.get("conditions") or ()):
            continue
        if status.get("admission"):
            raise InvalidManifest(
                "-f",
                f"{kind} {namespace}/{name} is admitted already (unisono why "
                f"{kind.lower()}/{name} -n {namespace}); to ask about another one like it, change "
                "metadata.name",
            )
        since[name] = Instant(instant_ms(one["metadata"]["creationTimestamp"]))
        print(
            f"unisono: {kind} {namespace}/{name} waits in the cluster already; it is answered for "
            "as the file says, at its place in the queue",
            file=sys.stderr,
        )
    cluster["items"] = kept
    return since


def _job_of(workload: Json) -> tuple[str, str, str] | None:
    """Return kind, namespace and name of the job that a Workload stands for."""
    about = workload["metadata"]
    for one in about.get("ownerReferences") or ():
        if one.get("controller"):
            return one["kind"], about["namespace"], one["name"]
    return None


def _files(name: str) -> list[File]:
    from unisono.runtime.manifest_files import files_of

    return files_of(name)


def _answer(
    arguments: argparse.Namespace,
    cluster: list[File],
    given: list[File],
    now: Instant,
    offerings: Offerings | None = None,
    since: Mapping[str, Instant] | None = None,
    names: Mapping[str, str] | None = None,
) -> int:
    from unisono.engine.model.errors import InvalidManifest
    from unisono.provision.catalog.offers import with_offerings
    from unisono.runtime.clock import RealClock
    from unisono.runtime.memory import calm_collector
    from unisono.sim.what_if import what_if

    if arguments.samples < 1:
        raise InvalidManifest("--samples", "must be at least 1")
    if not arguments.seconds > 0:
        raise InvalidManifest("--seconds", "must be above 0")
    calm_collector()  # there may be tens of thousands of manifests
    policy = _files(arguments.policy) if arguments.policy else []
    world, keys = _with_job([*cluster, *policy], given, now, since or {})
    snapshot = with_offerings(world.snapshot, world.pools, world.overlays)
    if offerings is not None:
        snapshot = _replace(snapshot, offerings=offerings)
    clock, answers = RealClock(), []
    for key in keys:
        start = clock.monotonic()
        answers.append(
            what_if(
                snapshot,
                key,
                samples=arguments.samples,
                seed=arguments.seed,
                elapsed=lambda start=start: clock.monotonic() - start,  # type: ignore[misc]  # bound now
                budget_s=arguments.seconds,
            )
        )
    _print(answers, arguments.output, now, names or {})
    return NEVER if any(answer.verdict == "never" for answer in answers) else 0


def _with_job(
    cluster: list[File],
    given: list[File],
    now: Instant,
    since: Mapping[str, Instant] | None = None,
) -> tuple[World, list[WorkloadKey]]:
    """Return the cluster with the jobs added, and the keys of their workloads.

    `since` has the instants at which some of these jobs were submitted, by name.
    """
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
    if since:
        waiting = tuple(
            _replace(one, created_at=submitted)
            if one.key in alone and (submitted := _submitted(one.key, since)) is not None
            else one
            for one in world.snapshot.waiting
        )
        world = _replace(world, snapshot=_replace(world.snapshot, waiting=waiting))
    return world, keys


def _submitted(key: WorkloadKey, since: Mapping[str, Instant]) -> Instant | None:
    """Return since when a job waits: its workload is called KIND-NAME."""
    return since.get(key.partition("/")[2].partition("-")[2])


def _replace(of: T, **changes: object) -> T:
    import msgspec

    made: T = msgspec.structs.replace(of, **changes)  # type: ignore[type-var]  # all are structs
    return made


def _names(items: Sequence[Json]) -> dict[str, str]:
    """Return the jobs behind the Workloads of a running cluster."""
    from unisono.cli.job_names import job_names

    return job_names(one for one in items if one["kind"] == "Workload")


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
    for key in ("startP50", "startP95", "startByLimits", "notBefore", "machinesReady"):
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

    if answer.machines_ready is not None:
        at = when(answer.machines_ready)
        lines = [
            f"{answer.workload} would start when its machines are ready, at {at}",
            f"  buys    {answer.buys}",
        ]
    elif answer.verdict == "now":
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
        lines.append(f"  {label:8}{local_times(answer.constraint.message, now / 1000)}")
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

    if answer.not_before is not None:
        return f"not before {when(answer.not_before)}"
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
