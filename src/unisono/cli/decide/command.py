"""`unisono decide`: manifests in, decision out. Nothing is changed anywhere.

Reads files, hands their bytes to `kinds`, rehearses on the engine, prints the answer.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path

import msgspec

from unisono.cli.connection import add_filenames
from unisono.cli.decide.decision import Decision, decision
from unisono.cli.decide.text import render
from unisono.cli.scripts import with_scripts
from unisono.engine.cluster import restore
from unisono.engine.cycle import Decides, plan
from unisono.engine.dry_run import MOST_CYCLES, dry_run, one_cycle
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.names import Instant
from unisono.kinds.notes import Finding
from unisono.kinds.snapshot.build import World, read_world
from unisono.provision.catalog.offers import with_market
from unisono.runtime import clock
from unisono.runtime.manifest_files import files_of
from unisono.runtime.memory import calm_collector
from unisono.runtime.recording import recorder

EPILOG = """\
examples:
  unisono decide -f queues.yaml -f job.yaml       one cycle: what starts, is evicted, stays pending
  unisono decide -f cluster/ --until-stable       repeat until nothing changes any more
  unisono decide -f all.yaml -o json              for scripts; the fields are documented
  kubectl get cq,lq,rf,wl,jobs -A -o yaml | unisono decide -f -

Workloads with status.admission (or running jobs) count as running. Without Node manifests quota
alone decides. Exit code 0: decided; 2: a manifest is wrong, each problem on one line of stderr.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        prog="unisono decide",
        description="Say what would be admitted and evicted, and why the rest stays pending.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_filenames(made)
    made.add_argument(
        "--until-stable",
        action="store_true",
        help="repeat cycles until one changes nothing; evicted workloads leave and queue again",
    )
    made.add_argument("--policy", metavar="FILE", help="a Policy or a Kueue Configuration")
    made.add_argument(
        "--now", metavar="TIME", help="decide as of this instant, like 2026-01-01T12:00:00Z"
    )
    made.add_argument(
        "--record", type=Path, metavar="DIR", help="record the decisions for `unisono replay`"
    )
    made.add_argument(
        "-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: text"
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Decide and print."""
    now = clock.now() if arguments.now is None else instant(arguments.now)
    files = [file for name in arguments.filename for file in files_of(name, takes_scripts=True)]
    if arguments.policy is not None:
        files.extend(files_of(arguments.policy))
    world = read_world(with_scripts(files, now), now=now)
    if world.problems:
        raise InvalidManifest("", "\n".join(problem.line() for problem in world.problems))
    decides = plan if arguments.record is None else recorder(arguments.record).plan
    answer = decide(world, now, until_stable=arguments.until_stable, decides=decides)
    sys.stdout.write(_show(answer, arguments.output))
    return 0


def decide(world: World, now: Instant, *, until_stable: bool, decides: Decides = plan) -> Decision:
    """Rehearse one cycle, or all until nothing changes, on what the manifests describe."""
    state = restore(with_market(world.snapshot, world.pools, world.overlays))
    calm_collector()
    if until_stable:
        plans = dry_run(state, now, decides=decides)
    else:
        plans = [one_cycle(state, now, decides=decides)[0]]
    warnings = list(world.warnings)
    if len(plans) >= MOST_CYCLES:
        message = f"workloads still displace each other after {MOST_CYCLES} cycles; stopped there"
        warnings.append(Finding(file="", document=0, path="--until-stable", message=message))
    return decision(state, plans, warnings, now=now)


def instant(text: str) -> Instant:
    """Read a point in time as Kubernetes writes it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as trouble:
        raise InvalidManifest("--now", f"{text!r} is not a time like 2026-01-01T12:00:00Z") from (
            trouble
        )
    if moment.tzinfo is None:
        raise InvalidManifest("--now", f"{text!r} has no time zone; end it in Z for UTC")
    return Instant(round(moment.timestamp() * 1000))


def _show(answer: Decision, form: str) -> str:
    if form == "text":
        return render(answer)
    plain = msgspec.to_builtins(answer)
    if form == "yaml":
        import yaml  # only this form needs it here, and it is slow to import

        return str(yaml.safe_dump(plain, sort_keys=True, allow_unicode=True))
    return msgspec.json.format(msgspec.json.encode(plain, order="sorted"), indent=2).decode() + "\n"
