"""`sbatch` and `squeue` on a long queue, as a script feels them: a process from start to exit.

Beside the time on the clock stands what the program itself computes: the rest is the server's
answer, and whatever else the machine does.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter

import orjson

from bench.api import CLIENTS, Server, close, start
from bench.harness import Finding, Scale, figures, target
from bench.plain_http import PlainClient

JOBS: dict[Scale, int] = {"full": 10_000, "quick": 300, "tiny": 4}
CALLS: dict[Scale, int] = {"full": 20, "quick": 3, "tiny": 1}
LIMITS_MS = {"sbatch": 100, "squeue": 500}
_SCRIPT = "#!/bin/sh\n#SBATCH -N 1 --gres=gpu:1 -t 10\nsleep 600\n"
# As the installed `unisono` and `unisono slurm links` start.
_ENTRY = ("-P", "-c", "from unisono.cli.main import main; raise SystemExit(main())")
_PATH = "/apis/unisono.dev/v1/namespaces/default/slurmjobs"


def measure(scale: Scale) -> Iterator[Finding]:
    """Fill a queue, and call the programs."""
    count = JOBS[scale]
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "job.sh").write_text(_SCRIPT, encoding="utf-8")
        server = start(folder / "data", "1x{gpu=1,cpu=4,memory=16Gi}")
        try:
            asyncio.run(_fill(server, count))
            for name, words in (("sbatch", (str(folder / "job.sh"),)), ("squeue", ())):
                call = partial(_call, (name, *words), _environment(folder))
                call()  # the first one compiles the modules
                taken = [call() for _ in range(CALLS[scale])]
                wall = figures(name, count, "jobs wait", [1e3 * one[0] for one in taken], "ms")
                own = [1e3 * one[1] for one in taken]
                yield wall
                yield target(name, wall, LIMITS_MS[name], better="below")
                yield figures(f"{name}, its own processor time", count, "jobs wait", own, "ms")
        finally:
            server.process.terminate()
            server.process.wait()
            close(server)


def _environment(folder: Path) -> Mapping[str, str]:
    """Return the environment of an installed program: its modules are compiled once."""
    own = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    compiled = str(folder / "compiled")
    return {**own, "UNISONO_DATA_DIR": str(folder / "data"), "PYTHONPYCACHEPREFIX": compiled}


def _call(words: tuple[str, ...], environment: Mapping[str, str]) -> tuple[float, float]:
    """Return the seconds that a program took, and those that it computed."""
    before, began = _children(), perf_counter()
    subprocess.run(
        [sys.executable, *_ENTRY, *words],
        stdout=subprocess.DEVNULL,
        env=environment,
        check=True,
    )
    return perf_counter() - began, _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _fill(server: Server, count: int) -> None:
    clients = [await PlainClient.connect(server.url, server.token) for _ in range(CLIENTS)]

    async def work(client: PlainClient, first: int) -> None:
        for number in range(first, count, CLIENTS):
            code, answer = await client.ask("POST", _PATH, orjson.dumps(_job(1_000_000 + number)))
            assert code == 201, answer

    await asyncio.gather(*(work(client, first) for first, client in enumerate(clients)))
    for client in clients:
        client.close()


def _job(number: int) -> dict[str, object]:
    """Return a job as `sbatch` stores it."""
    amounts = {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "batch", "image": "slurm/batch", "resources": amounts}],
    }
    labels = {"unisono.dev/slurm-job": str(number)}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "unisono.dev/v1",
        "kind": "SlurmJob",
        "metadata": {
            "name": f"job-{number}",
            "labels": labels,
            "annotations": {"unisono.dev/user": "bench", "unisono.dev/time-limit": "10"},
        },
        "spec": {
            "jobId": number,
            "jobName": "job",
            "user": "bench",
            "userId": 1000,
            "groupId": 1000,
            "command": "job.sh",
            "workDir": "/tmp",
            "script": f"job-{number}",
            "options": {"nodes": "1", "gres": "gpu:1", "time": "10"},
            "tasks": 1,
            "cpusPerTask": 1,
            "groups": [{"name": "batch", "nodes": 1, "tasks": 1, "template": template}],
        },
    }
