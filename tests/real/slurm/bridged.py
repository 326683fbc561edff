"""A real Slurm and an embedded cluster of the same nodes, with or without a bridge between them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.real.cluster import kubelets
from tests.real.control_plane import ControlPlane
from tests.real.line import Line
from tests.real.slurm.daemons import (
    Shape,
    Slurm,
    directory_for,
    end,
    start_daemons,
    start_munge,
    write_configuration,
)
from tests.real.slurm.packages import find
from tests.real.stage import staged
from unisono.control import names
from unisono.kube.client import Client
from unisono.kube.form import Json

_SECONDS = 120.0
_KINDS = {
    "pods": names.POD,
    "jobs": names.JOB,
    "workloads": names.WORKLOAD,
    "nodes": names.NODE,
}
T = TypeVar("T")


@dataclass
class Both:
    """Both sides, and what runs between them."""

    slurm: Slurm
    data: Path
    log: Path
    bridge: subprocess.Popen[bytes] | None = None
    flags: Sequence[str] = field(default_factory=tuple)
    is_real: bool = False  # the cluster is not one of `unisono up`
    line: Line | None = None

    @property
    def socket(self) -> Path:
        """Return where the bridge listens."""
        return self.slurm.directory / "b.sock"

    def unisono(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours that ends by itself."""
        return subprocess.run(
            [sys.executable, "-m", "unisono", *command],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def slurm_verb(self, verb: str, *flags: str) -> subprocess.CompletedProcess[str]:
        """Run `unisono slurm VERB` on these two."""
        return self.unisono("slurm", verb, *self._sides(), *flags)

    def asked(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Do something with a client of the cluster."""
        if self.line is None:
            self.line = Line(self.data / "kubeconfig")
        return self.line.ask(work)

    def hang_up(self) -> None:
        """Let go of that client."""
        if self.line is not None:
            self.line.close()

    def objects(self, kind: str) -> list[Json]:
        """Return objects of a kind, in all namespaces."""

        async def work(client: Client) -> list[Json]:
            return (await client.list(_KINDS[kind])).items

        return self.asked(work)

    def apply(self, *objects: Json) -> None:
        """Make objects."""

        async def work(client: Client) -> None:
            for one in objects:
                await client.apply(one)

        self.asked(work)

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object."""

        async def work(client: Client) -> None:
            await client.delete(_KINDS[kind], name, namespace)

        self.asked(work)

    def patch(
        self, kind: str, name: str, namespace: str, changes: Json, status: bool = False
    ) -> None:
        """Change an object."""

        async def work(client: Client) -> None:
            part = "status" if status else ""
            await client.patch(_KINDS[kind], name, namespace, changes, subresource=part)

        self.asked(work)

    def pods(self, job: int | str) -> dict[str, str]:
        """Return the nodes of a job's pods that stay, by pod."""
        return {
            one["metadata"]["name"]: one["spec"].get("nodeName", "")
            for one in self.objects("pods")
            if one["metadata"].get("labels", {}).get("unisono.dev/bridged-job") == str(job)
            and "deletionTimestamp" not in one["metadata"]
        }

    # ---- the bridge --------------------------------------------------------------------------

    def start_bridge(self, *flags: str) -> None:
        """Start it and wait until it listens."""
        self.flags = flags or self.flags
        with self.log.open("ab") as out:
            self.bridge = subprocess.Popen(
                [
                    *(sys.executable, "-m", "unisono", "slurm", "bridge", *self._sides()),
                    *("--socket", str(self.socket), *self.flags),
                ],
                stdout=out,
                stderr=out,
                env=self._environment(),
            )
        self.until("the bridge listens", lambda: bool(self.told("listening to hooks")))

    def kill_bridge(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it."""
        if self.bridge is not None:
            self.bridge.send_signal(number)
            self.bridge.wait(timeout=20)
            self.bridge = None
            self.log.rename(self.log.with_suffix(f".{time.monotonic_ns()}"))

    def told(self, event: str) -> list[Json]:
        """Return what it logged of an event."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [one for one in found if one["event"] == event]

    def figure(self, name: str) -> float:
        """Return one of its metrics."""
        address = self.told("starting")[-1]["address"]
        with urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        found = next(line for line in text.splitlines() if line.startswith(f"{name} "))
        return float(found.split()[1])

    def until(self, what: str, is_so: Callable[[], bool], seconds: float = _SECONDS) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                told = self.log.read_text()[-3000:] if self.log.exists() else ""
                raise AssertionError(f"not so after {seconds:g} s: {what}\n{told}")
            time.sleep(0.1)

    def _sides(self) -> list[str]:
        cluster = ["--data-dir", str(self.data)]
        if self.is_real:
            cluster = ["--kubeconfig", str(self.data / "kubeconfig")]
        return ["--conf", str(self.slurm.conf), *cluster]

    def _environment(self) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("SLURM")}
        return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@contextmanager
def both(
    shape: Shape,
    *,
    mode: str = "",
    lines: Sequence[str] = (),
    flags: Sequence[str] = (),
    prolog: str = "",
    plane: ControlPlane | None = None,
) -> Iterator[Both]:
    """Run a Slurm and a cluster with the same nodes; with a mode also a bridge.

    `prolog` is the text of the site's own PrologSlurmctld. The cluster is an embedded one, or
    a real control plane to which our manifests were applied.
    """
    find()
    with directory_for() as directory:
        slurm = Slurm(directory, shape)
        sides = Both(slurm, directory / "cluster", directory / "bridge.log")
        try:
            start_munge(slurm)
            if prolog:
                script = directory / "prolog"
                script.write_text(prolog.format(directory=directory))
                script.chmod(0o755)
                lines = (*lines, f"PrologSlurmctld={script}")
            write_configuration(slurm, lines)
            if mode:
                installed = sides.unisono(
                    *("slurm", "install", "--conf", str(slurm.conf), "--mode", mode),
                    *("--socket", str(sides.socket)),
                )
                assert installed.returncode == 0, installed.stdout + installed.stderr
            with _real_cluster(sides, shape, plane) if plane else _cluster(sides, shape):
                start_daemons(slurm)
                if mode:
                    sides.start_bridge(*flags)
                yield sides
        finally:
            sides.kill_bridge()
            sides.hang_up()
            end(slurm)


@contextmanager
def _cluster(sides: Both, shape: Shape) -> Iterator[None]:
    sides.data.mkdir(mode=0o700)
    command = [
        *(sys.executable, "-m", "unisono", "up", "--data-dir", str(sides.data)),
        *("--nodes", _nodes(shape)),
    ]
    with (sides.slurm.directory / "up.log").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=sides._environment())
    try:
        log = sides.slurm.directory / "up.log"
        sides.until(
            "the cluster is ready", lambda: "ready" in log.read_text() or process.poll() is not None
        )
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)


@contextmanager
def _real_cluster(sides: Both, shape: Shape, plane: ControlPlane) -> Iterator[None]:
    sides.data.mkdir(mode=0o700)
    kubeconfig = sides.data / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_bytes(plane.kubeconfig.read_bytes())
    sides.is_real = True
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "slurm"}}
    sides.apply(namespace)
    with (
        kubelets(plane, _nodes(shape), speed=1),
        staged(plane, "beside-slurm", sides.slurm.directory) as stage,
    ):
        stage.replica().until_told("leading")
        yield


def _nodes(shape: Shape) -> str:
    name = shape.prefix.rstrip("-")
    room = f"gpu={shape.gpus},cpu={shape.cpus},memory={shape.memory_mib}Mi,name={name}"
    return f"{shape.nodes}x{{{room}}}"
