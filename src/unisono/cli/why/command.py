"""`unisono why`: why a job waits and what would change it, or where it runs."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from unisono.cli.connection import asked, verb_parser
from unisono.cli.targets import kind_words, namespace_of, read_targets

if TYPE_CHECKING:
    from unisono.cli.targets import Target
    from unisono.kube.api_resources import ApiResource, ApiResources
    from unisono.kube.client import Client
    from unisono.kube.form import Json

EXAMPLES = """\
examples:
  unisono why trainjob/t5-large
  unisono why vcjob/train -n ml
  unisono why train                    (a job, a pod or a Workload of that name)
  unisono why job/train -o json
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("Say why a job waits and what would change it, or where it runs.", EXAMPLES)
    made.add_argument(
        "what",
        nargs="+",
        metavar="KIND/NAME",
        help="a job of any kind, a Deployment or its like, a pod or a Workload; without a kind,"
        " jobs, pods and Workloads are searched",
    )
    made.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "yaml"),
        default="text",
        help="output format (default: text)",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print the answer."""
    return asked(arguments, _why)


async def _why(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.cli.objects import dump
    from unisono.cli.tables import is_colourful, paint_answer
    from unisono.cli.why.lookup import kinds_of_jobs
    from unisono.cli.why.text import text
    from unisono.kube.api_resources import discover
    from unisono.runtime.clock import RealClock

    lookup = await discover(client)
    if len(arguments.what) == 1 and "/" not in arguments.what[0]:
        targets = [(kinds_of_jobs(lookup), arguments.what[0])]
    else:
        targets = [
            (lookup.namesakes(kind) + _groups_of_pods(lookup, kind, one), one.name)
            for kind, one in zip(
                kind_words(arguments.what), read_targets(lookup, arguments.what), strict=True
            )
        ]
    answers = [await _answer(client, arguments, kinds, name) for kinds, name in targets]
    if arguments.output == "text":
        now = RealClock().now()
        is_on = is_colourful()
        sys.stdout.write("\n".join(paint_answer(text(one, now), on=is_on) for one in answers))
    else:
        whole: Any = answers[0] if len(answers) == 1 else answers
        sys.stdout.write(dump(whole, arguments.output))
    return 0


def _groups_of_pods(lookup: ApiResources, kind: str, target: Target) -> list[ApiResource]:
    """Return Workloads if PodGroups are meant: a group of Kueue's is nothing but its Workload."""
    if target.spoken.resource.kind != "PodGroup" or "." in kind:
        return []
    return lookup.find_all("workloads.kueue.x-k8s.io")


async def _answer(
    client: Client, arguments: argparse.Namespace, kinds: list[ApiResource], name: str
) -> Json:
    from unisono.cli.why.answer import answer
    from unisono.cli.why.diagnosed import with_root_cause
    from unisono.cli.why.lookup import find
    from unisono.cli.why.read import gather

    if not name:
        from unisono.engine.model.errors import InvalidManifest

        raise InvalidManifest("", f"which one? Say {kinds[0].resource.plural}/NAME")
    namespace = namespace_of(client, arguments, kinds[0])
    found = await gather(client, await find(client, kinds, name, namespace))
    return await with_root_cause(client, found, answer(found))
