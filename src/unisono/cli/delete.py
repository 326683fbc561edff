"""`unisono delete`: delete objects by name, by label or as manifests name them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unisono.cli.connection import (
    ClusterFailed,
    add_filenames,
    asked,
    in_plain_words,
    verb_parser,
    worst,
)
from unisono.cli.targets import WORDS, Target, namespace_of, read_targets
from unisono.engine.model.errors import InvalidManifest, UnisonoError

if TYPE_CHECKING:
    from unisono.kube.client import Client

EXAMPLES = """\
examples:
  unisono delete job train
  unisono delete pod/a pod/b -n team-a --no-wait
  unisono delete pods -l team=a
  unisono delete jobs --all -n team-a
  unisono delete -f jobs/
"""

# As long as a pod may take to stop by itself, and some more.
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Doomed:
    """One object that is to go."""

    target: Target
    namespace: str


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("Delete objects and wait until they are gone.", EXAMPLES)
    made.add_argument("what", nargs="*", metavar="KIND", help=WORDS)
    add_filenames(
        made, "what these manifests name: files, folders, or - for stdin", is_required=False
    )
    made.add_argument(
        "-l",
        "--selector",
        default="",
        metavar="LABELS",
        help="only objects with these labels, such as team=a,!old",
    )
    made.add_argument("--all", action="store_true", help="all objects of the kind in the namespace")
    made.add_argument(
        "--cascade",
        choices=("background", "foreground", "orphan"),
        default="background",
        help="how to delete its dependents (default: background)",
    )
    made.add_argument("--grace-period", type=int, metavar="S", help="seconds that pods get to stop")
    made.add_argument(
        "--ignore-not-found", action="store_true", help="do not fail if an object is gone already"
    )
    made.add_argument(
        "--no-wait", action="store_true", help="do not wait until the objects are gone"
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Delete what is meant, also after something was refused; the exit code is of the worst."""
    if bool(arguments.what) == bool(arguments.filename):
        raise InvalidManifest("", "say what to delete: KIND NAME, KIND -l LABELS, or -f FILE")
    return asked(arguments, _delete)


async def _delete(client: Client, arguments: argparse.Namespace) -> int:
    errors: list[UnisonoError] = []
    for doomed in await _doomed(client, arguments):
        try:
            with in_plain_words():
                await _one(client, doomed, arguments)
        except UnisonoError as error:
            errors.append(error)
    if errors:
        raise worst(errors)
    return 0


async def _doomed(client: Client, arguments: argparse.Namespace) -> list[Doomed]:
    from unisono.kube.api_resources import discover

    lookup = await discover(client)
    if arguments.filename:
        from unisono.runtime.manifest_files import documents_of

        found = []
        for document in documents_of(arguments.filename):
            group, _, _ = document.api_version.rpartition("/")
            spoken = lookup.find(f"{document.kind}.{group}" if group else document.kind)
            metadata = document.raw.get("metadata") or {}
            if not metadata.get("name"):
                raise InvalidManifest(document.file, "metadata.name: is required")
            namespace = metadata.get("namespace") or arguments.namespace
            found.append(Doomed(Target(spoken, metadata["name"]), namespace))
        return found
    targets = read_targets(lookup, arguments.what)
    if all(target.name for target in targets):
        return [Doomed(target, arguments.namespace) for target in targets]
    if not (arguments.selector or arguments.all):
        raise InvalidManifest("", "say which: a name, -l LABELS, or --all")
    found = [
        Doomed(
            Target(target.spoken, each["metadata"]["name"]), each["metadata"].get("namespace", "")
        )
        for target in targets
        for each in (
            await client.list(
                target.spoken.kind,
                namespace_of(client, arguments, target.spoken),
                labels=arguments.selector,
            )
        ).items
    ]
    if not found and any(target.spoken.resource.namespaced for target in targets):
        from unisono.cli.filters import refuse_unknown_namespace

        await refuse_unknown_namespace(client, arguments.namespace)
    return found


async def _one(client: Client, doomed: Doomed, arguments: argparse.Namespace) -> None:
    from unisono.kube.errors import NotFound

    target = doomed.target
    try:
        left = await client.delete(
            target.spoken.kind,
            target.name,
            doomed.namespace,
            grace_s=arguments.grace_period,
            propagation=arguments.cascade.capitalize(),
        )
    except NotFound:
        if arguments.ignore_not_found:
            return
        raise
    if left.get("kind") == "Status" or arguments.no_wait:
        print(f"{target.label} deleted", flush=True)
        return
    await _until_gone(client, doomed, left["metadata"]["uid"])
    print(f"{target.label} deleted", flush=True)


async def _until_gone(client: Client, doomed: Doomed, uid: str) -> None:
    """Wait until an object of this uid is no longer there."""
    import asyncio

    from unisono.kube.errors import NotFound

    target = doomed.target
    there: dict[str, Any] = {"metadata": {"uid": uid}}
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            pause = 0.02
            while True:
                there = await client.get(target.spoken.kind, target.name, doomed.namespace)
                if there["metadata"]["uid"] != uid:
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, 0.5)
    except NotFound:
        return
    except TimeoutError as error:
        finalizers = ", ".join(there["metadata"].get("finalizers") or ()) or "nothing we can see"
        raise ClusterFailed(
            f"{target.label} is being deleted but still there after {_PATIENCE_SECONDS:g} s; "
            f"it waits for: {finalizers}"
        ) from error
