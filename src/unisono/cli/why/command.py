"""`unisono why`: why a job waits and what would change it, or where it runs."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from unisono.cli.connection import asked, verb_parser
from unisono.cli.targets import Target, namespace_of, read_targets

if TYPE_CHECKING:
    from unisono.kube.client import Client

Json = dict[str, Any]

EXAMPLES = """\
examples:
  unisono why trainjob/t5-large
  unisono why vcjob/train -n ml
  unisono why job-train-3f1b2          (the name of a Workload)
  unisono why job/train -o json
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("Say why a job waits and what would change it, or where it runs.", EXAMPLES)
    made.add_argument(
        "what",
        nargs="+",
        metavar="KIND/NAME",
        help="a job of any kind, a pod, or a Workload by its name",
    )
    made.add_argument(
        "-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: text"
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print the answer."""
    return asked(arguments, _why)


async def _why(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.cli.objects import dump
    from unisono.cli.paint import is_colourful, paint_answer
    from unisono.cli.why.text import text
    from unisono.kube.api_resources import discover
    from unisono.runtime.clock import RealClock

    words = arguments.what
    if len(words) == 1 and "/" not in words[0]:
        words = [f"workloads.kueue.x-k8s.io/{words[0]}"]
    targets = read_targets(await discover(client), words)
    answers = [await _answer(client, arguments, target) for target in targets]
    if arguments.output == "text":
        now = RealClock().now()
        is_on = is_colourful()
        sys.stdout.write("\n".join(paint_answer(text(one, now), on=is_on) for one in answers))
    else:
        whole: Any = answers[0] if len(answers) == 1 else answers
        sys.stdout.write(dump(whole, arguments.output))
    return 0


async def _answer(client: Client, arguments: argparse.Namespace, target: Target) -> Json:
    from unisono.cli.why.answer import answer
    from unisono.cli.why.read import gather
    from unisono.kube.errors import NotFound
    from unisono.runtime.errors import AnswerIsNo

    if not target.name:
        from unisono.engine.model.errors import InvalidManifest

        raise InvalidManifest("", f"which one? Say {target.spoken.resource.plural}/NAME")
    namespace = namespace_of(client, arguments, target.spoken)
    try:
        obj = await client.get(target.spoken.kind, target.name, namespace)
    except NotFound as trouble:
        raise AnswerIsNo(await _elsewhere(client, target, str(trouble))) from trouble
    return answer(await gather(client, obj))


async def _elsewhere(client: Client, target: Target, told: str) -> str:
    """Say that there is no such object, and where there is one of that name."""
    from unisono.kube.errors import KubeError

    try:
        found = await client.list(target.spoken.kind, fields=f"metadata.name={target.name}")
    except KubeError:  # not for us to see
        return told
    places = sorted(one["metadata"].get("namespace", "") for one in found.items)
    if not places:
        return f"{told}; `unisono workloads -A` lists what there is"
    return f"{told}; there is one in {', '.join(places)}: add -n {places[0]}"
