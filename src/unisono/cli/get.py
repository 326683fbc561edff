"""`unisono get`: list objects as a table, as JSON or as YAML."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from unisono.cli.connection import asked, verb_parser
from unisono.cli.targets import WORDS, Target, namespace_of, read_targets
from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.kube.tables import Table

EXAMPLES = """\
examples:
  unisono get nodes
  unisono get pods,jobs -A
  unisono get cq team-a -o yaml
  unisono get trainjobs -n ml -l team=a -w
  unisono get jobs.batch.volcano.sh -o name
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("List objects of a cluster.", EXAMPLES, has_everywhere=True)
    made.add_argument("what", nargs="+", metavar="KIND", help=WORDS)
    made.add_argument(
        "-l",
        "--selector",
        default="",
        metavar="LABELS",
        help="only objects with these labels, such as team=a,!old",
    )
    made.add_argument(
        "--field-selector",
        default="",
        metavar="FIELDS",
        help="only objects with these fields, such as spec.nodeName=n1",
    )
    made.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml", "name"),
        default="table",
        help="output format (default: table); wide adds columns",
    )
    made.add_argument("-w", "--watch", action="store_true", help="keep printing what changes")
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print what there is."""
    return asked(arguments, _get)


async def _get(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.kube.api_resources import discover

    targets = read_targets(await discover(client), arguments.what)
    _check(targets, arguments)
    if arguments.output in ("table", "wide"):
        await _print_tables(client, targets, arguments)
    else:
        await _print_objects(client, targets, arguments)
    return 0


def _check(targets: list[Target], arguments: argparse.Namespace) -> None:
    is_named = any(target.name for target in targets)
    if is_named and arguments.everywhere:
        raise InvalidManifest("-A", "an object has a name in one namespace; say which with -n")
    if is_named and (arguments.selector or arguments.field_selector):
        raise InvalidManifest("-l", "choose by name or by selector, not by both")
    if arguments.watch and (len(targets) > 1 or arguments.output not in ("table", "wide")):
        raise InvalidManifest("-w", "one kind can be watched at a time, as a table")


# ---- tables --------------------------------------------------------------------------------------


async def _print_tables(
    client: Client, targets: list[Target], arguments: argparse.Namespace
) -> None:
    from unisono.cli.tables import Columns
    from unisono.kube.tables import read_table

    is_mixed = len({target.spoken.full_name for target in targets}) > 1
    printed = False
    for target in targets:
        namespace = namespace_of(client, arguments, target.spoken)
        table = await read_table(
            client,
            target.spoken.resource,
            namespace=namespace,
            name=target.name,
            labels=arguments.selector,
            fields=arguments.field_selector,
        )
        columns = Columns(
            table.columns,
            is_wide=arguments.output == "wide",
            has_namespace=target.spoken.resource.namespaced and arguments.everywhere,
            prefix=target.label.partition("/")[0] + "/" if is_mixed else "",
        )
        if table.rows or arguments.watch:
            if printed and is_mixed:
                print()
            is_first = not printed or is_mixed
            print(columns.text(table.rows, with_head=is_first), flush=arguments.watch)
            printed = True
        if arguments.watch:
            await _follow(client, target, arguments, table, columns)
    if not printed:
        if any(target.spoken.resource.namespaced for target in targets):
            from unisono.cli.filters import refuse_unknown_namespace

            await refuse_unknown_namespace(client, arguments.namespace)
        place = "" if arguments.everywhere else f" in {arguments.namespace or client.namespace}"
        is_namespaced = any(target.spoken.resource.namespaced for target in targets)
        print(f"unisono: nothing found{place if is_namespaced else ''}", file=sys.stderr)


async def _follow(
    client: Client, target: Target, arguments: argparse.Namespace, table: Table, columns: Any
) -> None:
    from unisono.kube.tables import watch_table

    fields = f"metadata.name={target.name}" if target.name else arguments.field_selector
    async with watch_table(
        client,
        target.spoken.resource,
        namespace=namespace_of(client, arguments, target.spoken),
        labels=arguments.selector,
        fields=fields,
        resource_version=table.resource_version,
    ) as events:
        async for kind, rows in events:
            if kind != "BOOKMARK" and rows:
                print(columns.text(rows, with_head=False), flush=True)


# ---- objects -------------------------------------------------------------------------------------


async def _print_objects(
    client: Client, targets: list[Target], arguments: argparse.Namespace
) -> None:
    from unisono.cli.filters import refuse_unknown_namespace
    from unisono.cli.objects import dump

    found: list[tuple[Target, dict[str, Any]]] = []
    is_namespaced = any(target.spoken.resource.namespaced for target in targets)
    for target in targets:
        namespace = namespace_of(client, arguments, target.spoken)
        if target.name:
            found.append((target, await client.get(target.spoken.kind, target.name, namespace)))
            continue
        listing = await client.list(
            target.spoken.kind,
            namespace,
            labels=arguments.selector,
            fields=arguments.field_selector,
        )
        found += ((Target(target.spoken, each["metadata"]["name"]), each) for each in listing.items)
    if not found and is_namespaced:
        await refuse_unknown_namespace(client, arguments.namespace)
    if arguments.output == "name":
        sys.stdout.write("".join(f"{target.label}\n" for target, _ in found))
        return
    for _, each in found:
        each["metadata"].pop("managedFields", None)
    is_one = len(targets) == 1 and bool(targets[0].name)
    items = [each for _, each in found]
    whole = items[0] if is_one else {"apiVersion": "v1", "kind": "List", "items": items}
    sys.stdout.write(dump(whole, arguments.output))
