"""What it costs to keep a cache of pods: processor time and memory of a client process.

The server is another process that has its answers ready and only sends them, over TLS as always, so
nothing but the client is measured. Every way to fill the cache runs in a process of its own,
because memory is counted there: what the system says that the process holds (its resident set).

    sync    from nothing to a full cache: by one stream (WatchList), or by pages of 500
    watch   so many events after that, each a changed pod
    holds   what the process holds at the end, interpreter and libraries included
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import uvloop

from bench.harness import Finding, Note, Scale, figures, row, target
from unisono.kube import Access, Delta, Dicts, Informer, Kind, Meta, Structs, connected
from unisono.runtime.clock import RealClock
from unisono.runtime.memory import calm_collector

SIZES: dict[Scale, tuple[int, ...]] = {"full": (1_000, 10_000), "quick": (1_000,), "tiny": (20,)}
SAMPLES: dict[Scale, int] = {"full": 5, "quick": 1, "tiny": 1}
PAGE = 500

# The prototype that the specification measured (kube-api.md, 4.1) needed 0.21 s and 52 MB for
# 10,000 pods, with less in every pod than is kept here.
MOST_SYNC_S = 0.4
MOST_BYTES = 75_000_000

WAYS = ("structs by stream", "structs by pages", "dictionaries by stream", "dictionaries by pages")
_IMPORT = (
    "import time; from pathlib import Path; start = time.process_time(); "
    "import unisono.kube.http_transport; "
    "print(time.process_time() - start, Path('/proc/self/statm').read_text().split()[1])"
)


class Taken(msgspec.Struct, frozen=True):
    """What one client process found about itself, in processor seconds and bytes."""

    sync_s: float
    watch_s: float
    held_bytes: int


def measure(scale: Scale) -> Iterator[Finding]:
    """Fill caches of growing size in every way."""
    yield from _imports(SAMPLES[scale])
    for pods in SIZES[scale]:
        with _server(pods) as address:
            for way in WAYS:
                taken = [_client(address, pods, way) for _ in range(SAMPLES[scale])]
                synced = row(f"sync, {way}", pods, "pods", [each.sync_s for each in taken], "s")
                held_bytes = [each.held_bytes for each in taken]
                held = figures(f"holds, {way}", pods, "pods", held_bytes, "B")
                yield synced
                yield row(f"watch, {way}", pods, "events", [each.watch_s for each in taken], "s")
                yield held
                if way == WAYS[0] and pods == max(SIZES[scale]):
                    yield target(synced.what, synced, MOST_SYNC_S, better="below")
                    yield target(held.what, held, MOST_BYTES, better="below")
    yield Note("times are processor time of the client alone, whatever clock was chosen")


def _imports(samples: int) -> Iterator[Finding]:
    seconds, sizes = [], []
    for _ in range(samples + 1):  # the first may have to compile modules
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT], stdout=subprocess.PIPE, text=True, check=True
        )
        took, pages = done.stdout.split()
        seconds.append(float(took))
        sizes.append(int(pages) * os.sysconf("SC_PAGE_SIZE"))
    yield row("import", 1, "process", seconds[1:], "s")
    yield figures("holds, imported", 1, "process", sizes[1:], "B")


# --- processes ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Address:
    url: str
    authority: Path


@contextmanager
def _server(pods: int) -> Iterator[_Address]:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "bench.informers", "serve", directory, str(pods)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            port, authority = process.stdout.readline().split()
            yield _Address(f"https://127.0.0.1:{port}", Path(authority))
        finally:
            process.kill()
            process.communicate()


def _client(address: _Address, pods: int, way: str) -> Taken:
    command = [sys.executable, "-m", "bench.informers", "follow"]
    command += [address.url, str(address.authority), str(pods), way]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Taken)


def main() -> None:
    """Play one of the parts: the server, or a client of any server that has so many pods."""
    parser = argparse.ArgumentParser(prog="bench.informers")
    parts = parser.add_subparsers(dest="part", required=True)
    server = parts.add_parser("serve")
    server.add_argument("directory", type=Path)
    server.add_argument("pods", type=int)
    client = parts.add_parser("follow")
    client.add_argument("url")
    client.add_argument("authority", type=Path)
    client.add_argument("pods", type=int)
    client.add_argument("way", choices=WAYS)
    given = parser.parse_args()
    if given.part == "serve":
        asyncio.run(_serve(given.directory, given.pods))
    else:
        access = Access(server=given.url, authority=given.authority)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as `unisono up` does
            taken = runner.run(_follow(access, given.pods, given.way))
        print(msgspec.json.encode(taken).decode())


# --- the client -----------------------------------------------------------------------------------


class PodOwner(msgspec.Struct, frozen=True, gc=False):
    """The owner of a pod."""

    kind: str
    name: str
    uid: str
    controller: bool = False


class PodMeta(Meta, frozen=True, kw_only=True, rename="camel"):
    """What a scheduler wants to know about a pod's name and place."""

    labels: dict[str, str] = {}  # noqa: RUF012  # msgspec copies it
    owner_references: tuple[PodOwner, ...] = ()
    deletion_timestamp: str | None = None


class Resources(msgspec.Struct, frozen=True):
    """What a container takes."""

    requests: dict[str, str] = {}  # msgspec copies it


class Container(msgspec.Struct, frozen=True):
    """One of a pod's containers."""

    resources: Resources


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a pod wants."""

    containers: tuple[Container, ...]
    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    node_selector: dict[str, str] = {}  # msgspec copies it


class PodStatus(msgspec.Struct, frozen=True, gc=False):
    """How a pod is."""

    phase: str = ""


class Pod(msgspec.Struct, frozen=True):
    """A pod as a scheduler keeps it."""

    metadata: PodMeta
    spec: PodSpec
    status: PodStatus


async def _follow(access: Access, pods: int, way: str) -> Taken:
    """Fill a cache, and follow until every pod has changed once."""
    calm_collector()
    clock, random_source = RealClock(), random.Random(1)
    form: Any = Structs(Pod) if way.startswith("structs") else Dicts("v1", "Pod")
    all_changed = asyncio.Event()
    changes = 0

    def on_change(_: Delta[Any]) -> None:
        nonlocal changes
        changes += 1
        if changes == 2 * pods:
            all_changed.set()

    async with connected(access, clock=clock, random_source=random_source) as client:
        informer: Informer[Any] = Informer(
            client,
            Kind("v1", "Pod"),
            form,
            clock=clock,
            random_source=random_source,
            watch_list=way.endswith("stream"),
        )
        informer.on_change(on_change)
        start = time.process_time()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(informer.run())
            await informer.synced()
            synced = time.process_time()
            await all_changed.wait()
            watched = time.process_time()
            task.cancel()
        assert (len(informer.store), informer.errors) == (pods, 0), informer.last_error
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return Taken(synced - start, watched - synced, pages * os.sysconf("SC_PAGE_SIZE"))


# --- the server -----------------------------------------------------------------------------------


def pod(number: int, version: int) -> dict[str, Any]:
    """Make a pod of a training job as an API server has it: about 2.2 KB, as pods usually are."""
    name = f"train-{number // 8}-worker-{number % 8}"
    uid = f"{number:08x}-7e1f-4c33-9c1b-6f3f2f0b1a2d"
    requests = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    managed = {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {}}}
    now = "2026-01-01T12:00:00Z"
    mount = {
        "name": "kube-api-access-x7k2p",
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "generateName": f"train-{number // 8}-worker-",
            "namespace": f"team-{number % 20}",
            "uid": uid,
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": now,
            "labels": {
                "app": "train",
                "batch.kubernetes.io/job-name": f"train-{number // 8}",
                "batch.kubernetes.io/job-completion-index": str(number % 8),
                "kueue.x-k8s.io/queue-name": f"queue-{number % 20}",
            },
            "annotations": {"kueue.x-k8s.io/workload": f"job-train-{number // 8}-c3d4f"},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": f"train-{number // 8}",
                    "uid": uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {
                    "manager": "kube-controller-manager",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": now,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": managed,
                }
            ],
        },
        "spec": {
            "containers": [
                {
                    "name": "worker",
                    "image": "registry.example.com/team/train:2026-01-01",
                    "command": ["torchrun", "--nnodes=8", "--nproc-per-node=8", "train.py"],
                    "resources": {"limits": requests, "requests": requests},
                    "volumeMounts": [mount],
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "securityContext": {},
            "nodeName": f"gpu-node-{number // 8}",
            "nodeSelector": {"node.kubernetes.io/instance-type": "g6e.48xlarge"},
            "schedulerName": "unisono",
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
            ],
            "priority": 1000,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": name, "status": "True", "lastTransitionTime": now}
                for name in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": "10.0.0.7",
            "podIP": "10.1.0.7",
            "startTime": now,
            "qosClass": "Guaranteed",
        },
    }


async def _serve(directory: Path, pods: int) -> None:
    """Send prepared answers to any client, until killed."""
    # Only here: a client must not be weighed with what makes certificates.
    from unisono.apiserver.access.tls import ensure_certificates

    certificates = ensure_certificates(directory, now=time.time(), hosts=("127.0.0.1",))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.chain, certificates.key)
    encode = msgspec.json.encode
    now = [encode(pod(number, number + 1)) for number in range(pods)]
    later = [encode(pod(number, pods + number + 1)) for number in range(pods)]
    initial = [b'{"type":"ADDED","object":%b}\n' % each for each in now]
    end = {"resourceVersion": str(pods), "annotations": {"k8s.io/initial-events-end": "true"}}
    mark = {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": end}}
    initial.append(encode(mark) + b"\n")
    changes = [b'{"type":"MODIFIED","object":%b}\n' % each for each in later]
    answer = partial(_answer, now, initial, changes)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], certificates.authority, flush=True)
    await server.serve_forever()


async def _answer(
    now: list[bytes],
    initial: list[bytes],
    changes: list[bytes],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    while request := await reader.readuntil(b"\r\n\r\n"):
        query = parse_qs(urlsplit(request.split()[1].decode()).query)
        if "watch" not in query:
            body = _page(now, int(query.get("continue", ["0"])[0]))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
            continue
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        if "sendInitialEvents" in query:
            await _send(writer, initial)
            await asyncio.sleep(0.5)  # so that the client sees where the one ends
        await _send(writer, changes)
        await reader.read(1)  # until it hangs up
        return


def _page(now: list[bytes], start: int) -> bytes:
    more = str(start + PAGE) if start + PAGE < len(now) else ""
    metadata = msgspec.json.encode({"resourceVersion": str(len(now)), "continue": more})
    items = b",".join(now[start : start + PAGE])
    return b'{"kind":"PodList","metadata":%b,"items":[%b]}' % (metadata, items)


async def _send(writer: asyncio.StreamWriter, events: list[bytes]) -> None:
    """Send as an API server does: one HTTP chunk for each event, many of them in a row."""
    for at in range(0, len(events), 20):
        chunks = [b"%x\r\n%b\r\n" % (len(each), each) for each in events[at : at + 20]]
        writer.write(b"".join(chunks))
        await writer.drain()


if __name__ == "__main__":
    main()
