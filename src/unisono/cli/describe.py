"""`unisono describe`: everything about an object that a person may want to know, and its events."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from unisono.cli.connection import asked, verb_parser
from unisono.cli.targets import WORDS, Target, namespace_of, read_targets
from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.kube.client import Client

EXAMPLES = """\
examples:
  unisono describe node g6e-48xlarge-1
  unisono describe trainjob/t5-large -n ml
  unisono describe pods -l team=a
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("Tell all about objects, with their events.", EXAMPLES, has_everywhere=True)
    made.add_argument("what", nargs="+", metavar="KIND", help=WORDS)
    made.add_argument("-l", "--selector", default="", metavar="LABELS", help="such as team=a,!old")
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print every object that is meant."""
    return asked(arguments, _describe)


async def _describe(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.kube.api_resources import discover

    targets = read_targets(await discover(client), arguments.what)
    if arguments.everywhere and any(target.name for target in targets):
        raise InvalidManifest("-A", "an object has a name in one namespace; say which with -n")
    texts = []
    for target in targets:
        namespace = namespace_of(client, arguments, target.spoken)
        if target.name:
            texts.append(await _text(client, target, namespace))
            continue
        listing = await client.list(target.spoken.kind, namespace, labels=arguments.selector)
        for each in listing.items:
            one = Target(target.spoken, each["metadata"]["name"])
            texts.append(await _text(client, one, each["metadata"].get("namespace", "")))
    if not texts:
        print("unisono: nothing found", file=sys.stderr)
    sys.stdout.write("\n\n".join(texts))
    return 0


async def _text(client: Client, target: Target, namespace: str) -> str:
    from unisono.cli.sections import described
    from unisono.kube.mapping import EVENT
    from unisono.kube.tables import read_table
    from unisono.runtime.clock import RealClock

    obj = await client.get(target.spoken.kind, target.name, namespace)
    resource = target.spoken.resource
    table = await read_table(client, resource, namespace=namespace, name=target.name)
    fields = {
        "involvedObject.name": target.name,
        "involvedObject.kind": resource.kind,
        "involvedObject.namespace": namespace,
    }
    chosen = ",".join(f"{key}={value}" for key, value in fields.items() if value)
    events = await client.list(EVENT, namespace, fields=chosen)
    # Events of an earlier object of that name are left out; some events have no uid.
    uids = (obj["metadata"].get("uid"), target.name, "", None)
    about = [each for each in events.items if each["involvedObject"].get("uid") in uids]
    return described(obj, table, about, RealClock().now())
