"""Every manifest of a folder on one cluster, beside an innocent job; and each of them alone.

    python -m tests.hostile.corpus FOLDER

The objects of each file go to a namespace of their own, so that two files with a job of one name
are two jobs; there they find queues of the names that the files use, with room for all. What is of
no namespace is shared: the last file that has it wins, as with `kubectl apply`. What runs on a
cluster of its own must run among all the others, too.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import yaml

from tests.control.stories import namespace
from tests.hostile.cases import body_of, path_of
from tests.hostile.stage import QUIET, Answer, Send, Stage, gang, queue
from tests.hostile.trial import MOST_CYCLES, is_live
from tests.runner.simulated_world import node
from tests.support.control_objects import KUEUE
from unisono.cli.why.answer import answer as answer_why
from unisono.cli.why.read import gather
from unisono.kinds.shapes.served import Served, served_kinds
from unisono.kube.form import Json

# Names of queues that the files ask for without bringing them along.
_QUEUES = ("user-queue", "tas-user-queue", "lq-a", "lq-b", "training-queue", "team-a-queue")
_ALL = "corpus"
_NODES = 60  # each with more than most of the files ask for in all
_AMOUNTS = {"cpu": "1000", "memory": "4000Gi", "pods": "1000", "nvidia.com/gpu": "64"}
_A_WHILE = 60.0
_SERVED = {(one.api_version, one.kind): one for one in served_kinds()}


@dataclass(slots=True)
class Seen:
    """What became of the files."""

    runs: dict[str, str] = field(default_factory=dict)  # by file and object: its state
    broken: list[str] = field(default_factory=list)
    files: int = 0
    stored: int = 0
    refused: int = 0


def main(folder: Path) -> int:
    """Apply all files together and each alone; say what differs, and return the exit code."""
    files = sorted(folder.rglob("*.yaml"))
    loop = asyncio.new_event_loop()
    stage, stack = Stage(), AsyncExitStack()
    loop.run_until_complete(stack.enter_async_context(stage.running()))
    loop.run_until_complete(_set_up(stage))
    together = _forked(loop, stage, files, folder)
    broken = list(together.broken)
    alone_count = 0
    for file in files:
        alone = _forked(loop, stage, [file], folder)
        broken += [f"alone: {one}" for one in alone.broken]
        for name, state in alone.runs.items():
            if state == "runs":
                alone_count += 1
                if together.runs.get(name) != "runs":
                    now = together.runs.get(name, "nowhere")
                    broken.append(f"{name} runs alone; among all the others it is {now}")
    for line in broken:
        print(f"BROKEN: {line}")
    print(
        f"{together.files} files together, {together.stored} objects stored, "
        f"{together.refused} refused; {alone_count} run alone; {len(broken)} broken"
    )
    return 1 if broken else 0


def _forked(
    loop: asyncio.AbstractEventLoop, stage: Stage, files: Sequence[Path], root: Path
) -> Seen:
    """Apply files on the cluster as it is now, in a process of their own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            seen = loop.run_until_complete(_apply(stage, files, root))
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(seen, pipe)
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    if not told:
        return Seen(broken=[f"the process with {files[0].name} died"])
    found = pickle.loads(told)
    assert isinstance(found, Seen)
    return found


async def _set_up(stage: Stage) -> None:
    await stage.set_up()
    nodes = [node(f"big-{number}", **_AMOUNTS) for number in range(_NODES)]
    for one in nodes:
        one["metadata"]["labels"]["pool"] = _ALL
    await stage.create(*nodes, *_queue())
    await stage.settle()


def _queue() -> list[Json]:
    """Return a queue with room for all; its flavor is any of the large nodes."""
    flavor, cluster_queue, _ = queue(_ALL)
    (group,) = cluster_queue["spec"]["resourceGroups"]
    group["coveredResources"] = ["cpu", "memory", "nvidia.com/gpu"]
    group["flavors"][0]["resources"] = [
        {"name": name, "nominalQuota": "1000000Gi"} for name in group["coveredResources"]
    ]
    return [flavor, cluster_queue]


async def _apply(stage: Stage, files: Sequence[Path], root: Path) -> Seen:
    seen = Seen(files=len(files))
    stored: list[tuple[str, Served, str, str]] = []
    for file in files:
        told = str(file.relative_to(root))
        space = f"f{abs(hash_of(told)) % 10**8}"
        await stage.create(namespace(space), *(_local(name, space) for name in _QUEUES))
        for obj in _documents(file):
            kind = _SERVED.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
            if kind is None:
                seen.refused += 1  # a kind that is not served here
                continue
            answer = await _applied(stage, kind, obj, space)
            if answer.code >= 500:
                seen.broken.append(f"{told}: the API answered {answer.code}")
            if answer.code >= 300:
                seen.refused += 1
                continue
            seen.stored += 1
            name = _name(orjson.loads(answer.body))
            stored.append((f"{told} {kind.kind}/{_name(obj)}", kind, name, space))
    await stage.settle(most=1_000_000)
    await stage.pass_time(_A_WHILE)
    cycles = stage.assembly.scheduler.cycles
    await stage.create(gang("innocent", QUIET))
    await stage.settle(most=1_000_000)
    took = stage.admitted_in.get("innocent", stage.assembly.scheduler.cycles) - cycles
    if await _state(stage, _SERVED["batch/v1", "Job"], "innocent", QUIET) != "runs":
        seen.broken.append(f"the innocent does not run after {took} cycles")
    if took > MOST_CYCLES:
        seen.broken.append(f"the innocent takes {took} cycles")
    seen.broken += [f"{one.task} crashes: {one.error} at {one.place}" for one in stage.crashes]
    seen.broken += stage.mistakes
    for told, kind, name, space in stored:
        if is_live(kind):
            seen.runs[told] = await _state(stage, kind, name, space)
    return seen


def hash_of(text: str) -> int:
    """Return a number that is always the same for a text."""
    return int.from_bytes(text.encode(), "big") % (2**61 - 1)


def _documents(file: Path) -> Iterator[Json]:
    for one in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        if isinstance(one, dict) and isinstance(one.get("metadata"), dict):
            yield one


def _name(obj: Json) -> str:
    return str(obj["metadata"].get("name", ""))


def _local(name: str, space: str) -> Json:
    return {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": space},
        "spec": {"clusterQueue": _ALL},
    }


async def _applied(stage: Stage, kind: Served, obj: Json, space: str) -> Answer:
    """Create an object, or replace the one that is there."""
    if kind.namespaced:
        obj = {**obj, "metadata": {**obj["metadata"], "namespace": space}}
    body = body_of(obj)
    answer = await stage.send(Send("POST", path_of(kind, namespace=space), body))
    if answer.code == 409 and _name(obj):
        where = path_of(kind, _name(obj), namespace=space)
        media = "application/merge-patch+json"
        answer = await stage.send(Send("PATCH", where, body, media))
    return answer


async def _state(stage: Stage, kind: Served, name: str, space: str) -> str:
    """Return whether an object runs, or ran to its end; else how it stands."""
    answer = await stage.send(Send("GET", path_of(kind, name, namespace=space)))
    if answer.code != 200:
        return "gone"
    why = answer_why(await gather(stage.client, orjson.loads(answer.body)))
    pods = why.get("pods") or {}
    if pods.get("Running") or pods.get("Succeeded") or why["state"] == "finished":
        return "runs"
    return f"{why['state']}: {why.get('message', '')}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
