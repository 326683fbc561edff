"""`unisono slurm doctor`: where a real Slurm and Kubernetes disagree, and the repair."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from unisono.cli.slurm.sides import add_sides, both, programs_of
from unisono.cli.tables import paragraph

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.slurm.bridge.apply import ActionExecutor
    from unisono.slurm.bridge.mismatch import Mismatch

NAME = "doctor"
HELP = "name where Slurm and Kubernetes disagree; --fix repairs it"
DESCRIPTION = """\
Compare the views of Slurm and Kubernetes, and name what differs:

  deadlock      a job holds nodes in Slurm for pods that cannot start, and blocks other jobs
  phantom       a job has nodes in Slurm, but not all of its pods have one
  double        jobs have more GPUs of a node than there are
  over-belief   Slurm counts more GPUs free than there are
  state         one of them would use a node, the other would not
  orphan        pods of a job that Slurm does not run

Exit code 1 if something differs and is not fixed.

examples:
  unisono slurm doctor
  unisono slurm doctor --fix
  unisono slurm doctor -o json
"""


def add_arguments(one: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add_sides(one)
    one.add_argument("--fix", action="store_true", help="repair what differs")
    one.add_argument(
        "--bind-timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="how long a job may have nodes without its pods (default: 60)",
    )
    one.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="output format (default: text)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare, and repair with --fix."""
    from unisono.cli.connection import asked

    return asked(arguments, _examine)


async def _examine(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.runtime.clock import RealClock
    from unisono.slurm.bridge.apply import ActionExecutor
    from unisono.slurm.bridge.decide import Timeouts
    from unisono.slurm.bridge.mismatch import mismatches, remedies

    programs, clock = programs_of(arguments), RealClock()
    slurm_view, cluster_view, settings = await both(client, arguments, programs)
    timeouts = Timeouts(bind_s=arguments.bind_timeout)
    found = mismatches(slurm_view, cluster_view, bind_s=timeouts.bind_s, now=clock.now())
    executor = ActionExecutor(programs, client, settings, clock.now)
    done: list[list[str]] = [[] for _ in found]
    treated: set[str] = set()
    for place, one in enumerate(found if arguments.fix else ()):
        if one.jobs and one.jobs[0] in treated:
            done[place] = ["see above"]
            continue
        treated.update(one.jobs[:1])
        for action in remedies(one, slurm_view, cluster_view, timeouts, clock.now()):
            done[place].append(await _tried(executor, action, slurm_view))
    _show(found, done, arguments.output)
    is_well = all(words and not any(_is_failure(word) for word in words) for words in done)
    return 0 if not found or (arguments.fix and is_well) else 1


async def _tried(executor: ActionExecutor, action: Any, slurm_view: Any) -> str:
    from unisono.kube.errors import KubeError
    from unisono.slurm.bridge.slurm_commands import SlurmRefused, SlurmUnreachable

    name = type(action).__name__
    words = {
        "RevokeNodes": "the job is requeued and held, or cancelled",
        "Deactivate": "its gang is deactivated, and queues again later",
        "DeletePod": "a pod is deleted",
        "DropGang": "its gang is deleted",
        "SubmitPlaceholder": "a placeholder job occupies the GPUs in Slurm",
        "Drain": "the node is drained",
        "Resume": "the node is resumed",
    }
    try:
        await executor.do(action, slurm_view)
    except (SlurmRefused, SlurmUnreachable, KubeError) as error:
        return f"failed: {error}"
    return words.get(name, name)


def _is_failure(word: str) -> bool:
    return word.startswith("failed: ")


def _show(found: list[Mismatch], done: list[list[str]], output: str) -> None:
    if output == "json":
        rows = [
            {
                "class": one.kind,
                "node": one.node,
                "jobs": list(one.jobs),
                "pods": list(one.pods),
                "slurm": one.slurm,
                "kubernetes": one.kubernetes,
                "message": one.text,
                "done": words,
            }
            for one, words in zip(found, done, strict=True)
        ]
        print(json.dumps({"mismatches": rows}, indent=2, sort_keys=True))
        return
    if not found:
        print("Slurm and Kubernetes agree.")
    for one, words in zip(found, done, strict=True):
        print(f"{one.kind}")
        print(paragraph(one.text))
        for word in dict.fromkeys(words):
            print(paragraph(f"→ {word}"))
