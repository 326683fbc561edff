"""`unisono logs`: what the containers of a pod wrote, or of all pods that belong to a job."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unisono.cli.connection import asked, verb_parser
from unisono.cli.targets import read_targets
from unisono.engine.model.errors import InvalidManifest
from unisono.runtime import AnswerIsNo

if TYPE_CHECKING:
    from unisono.kube.client import Client

EXAMPLES = """\
examples:
  unisono logs train-0
  unisono logs job/train -f
  unisono logs trainjob/t5-large -n ml --tail 20
  unisono logs train-0 -c main --previous
  unisono logs -l team=a --timestamps

Lines of several containers are prefixed with [POD CONTAINER].
"""

# Streams that are open at once; each is a connection.
MOST_STREAMS = 64
# A TrainJob owns a JobSet, that owns a Job, that owns pods.
_MOST_GENERATIONS = 6


@dataclass(frozen=True, slots=True)
class Source:
    """One container of one pod."""

    pod: str
    namespace: str
    container: str


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("Print the logs of containers.", EXAMPLES)
    made.add_argument(
        "what", nargs="?", metavar="POD|KIND/NAME", help="a pod, or an owner of pods, such as a job"
    )
    made.add_argument(
        "-l", "--selector", default="", metavar="LABELS", help="pods with these labels"
    )
    made.add_argument(
        "-c", "--container", default="", metavar="NAME", help="a container (default: all)"
    )
    made.add_argument(
        "-f", "--follow", action="store_true", help="keep printing until the containers end"
    )
    made.add_argument("-p", "--previous", action="store_true", help="logs of the previous run")
    made.add_argument("--tail", type=int, metavar="N", help="only the last N lines")
    made.add_argument("--since", type=int, metavar="S", help="only lines of the last S seconds")
    made.add_argument("--timestamps", action="store_true", help="print the time before every line")
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print the logs."""
    if bool(arguments.what) == bool(arguments.selector):
        raise InvalidManifest("", "which logs? Name a pod, KIND/NAME, or -l LABELS")
    return asked(arguments, _logs)


async def _logs(client: Client, arguments: argparse.Namespace) -> int:
    pods = await _pods(client, arguments)
    sources = [source for pod in pods for source in _sources(pod, arguments.container)]
    if not sources:
        raise AnswerIsNo(f"no pods there{_named(arguments)}; nothing has been started yet")
    if len(sources) > MOST_STREAMS and arguments.follow:
        message = f"{len(sources)} containers are too many to follow; at most {MOST_STREAMS}"
        raise InvalidManifest("-f", message)
    if len(sources) == 1:
        await _copy(client, sources[0], arguments, b"")
    elif arguments.follow:
        await _side_by_side(client, sources, arguments)
    else:
        for source in sources:
            await _try(client, source, arguments)
    return 0


def _named(arguments: argparse.Namespace) -> str:
    return f" for {arguments.what}" if arguments.what else f" with labels {arguments.selector}"


async def _side_by_side(
    client: Client, sources: list[Source], arguments: argparse.Namespace
) -> None:
    import asyncio

    try:
        async with asyncio.TaskGroup() as group:
            for source in sources:
                group.create_task(_try(client, source, arguments))
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None  # one reason is enough, and `main` knows it


async def _try(client: Client, source: Source, arguments: argparse.Namespace) -> None:
    """Copy one log of several; that one has none yet does not keep the others back."""
    try:
        await _copy(client, source, arguments, f"[{source.pod} {source.container}] ".encode())
    except AnswerIsNo as error:
        print(f"unisono: {error}", file=sys.stderr)


async def _copy(
    client: Client, source: Source, arguments: argparse.Namespace, before: bytes
) -> None:
    """Copy one log line by line; raises AnswerIsNo if there is none (yet)."""
    from unisono.kube.errors import BadRequest, NotFound
    from unisono.kube.pods import log
    from unisono.kube.transport import Lines

    lines = Lines()
    try:
        async with log(
            client,
            source.pod,
            source.namespace,
            container=source.container,
            follow=arguments.follow,
            previous=arguments.previous,
            tail_lines=arguments.tail,
            since_s=arguments.since,
            timestamps=arguments.timestamps,
        ) as chunks:
            async for chunk in chunks:
                _write([before + line for line in lines.feed(chunk)])
    except (BadRequest, NotFound) as error:
        raise AnswerIsNo(str(error)) from error
    _write([before + line for line in lines.feed(b"\n") if line])  # a last line without an end


def _write(lines: list[bytes]) -> None:
    sys.stdout.buffer.writelines(line + b"\n" for line in lines)
    sys.stdout.buffer.flush()


# ---- pods and owners ----------------------------------------------------------------------------


async def _pods(client: Client, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    from unisono.kube.api_resources import discover
    from unisono.kube.mapping import Kind

    pod = Kind("v1", "Pod")
    namespace = arguments.namespace or client.namespace
    if arguments.selector:
        return (await client.list(pod, namespace, labels=arguments.selector)).items
    if "/" not in arguments.what:
        return [await client.get(pod, arguments.what, namespace)]
    (target,) = read_targets(await discover(client), [arguments.what])
    obj = await client.get(target.spoken.kind, target.name, namespace)
    if target.spoken.kind == pod:
        return [obj]
    everything = (await client.list(pod, namespace)).items
    owners = Owners(client, namespace)
    return [each for each in everything if await owners.leads_to(each, obj["metadata"]["uid"])]


class Owners:
    """Follows objects of one namespace to those they belong to, asking for each only once."""

    def __init__(self, client: Client, namespace: str) -> None:
        """Begin without owners."""
        self._client = client
        self._namespace = namespace
        self._above: dict[str, list[dict[str, Any]]] = {}  # owner references by uid

    async def leads_to(self, obj: dict[str, Any], uid: str) -> bool:
        """Say whether an object belongs to the one with this uid, directly or through others."""
        references = obj["metadata"].get("ownerReferences") or []
        for _ in range(_MOST_GENERATIONS):
            if any(reference["uid"] == uid for reference in references):
                return True
            references = [
                above for reference in references for above in await self._owners_of(reference)
            ]
        return False

    async def _owners_of(self, reference: dict[str, Any]) -> list[dict[str, Any]]:
        from unisono.kube.errors import NotFound, UnknownKind
        from unisono.kube.mapping import Kind

        uid = reference["uid"]
        if uid not in self._above:
            kind = Kind(reference["apiVersion"], reference["kind"])
            try:
                owner = await self._client.get(kind, reference["name"], self._namespace)
                self._above[uid] = owner["metadata"].get("ownerReferences") or []
            except (NotFound, UnknownKind):
                self._above[uid] = []
        return self._above[uid]


def _sources(pod: dict[str, Any], container: str) -> Iterator[Source]:
    metadata, spec = pod["metadata"], pod["spec"]
    names = [one["name"] for one in spec["containers"]]
    if container:
        names = [container]
    for name in names:
        yield Source(metadata["name"], metadata["namespace"], name)
