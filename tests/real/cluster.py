"""Parts of a real cluster for tests: accounts, nodes, replicas of our controllers, objects."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tests.real.control_plane import ControlPlane
from unisono.control.names import NODE
from unisono.kube.client import Client
from unisono.kube.mapping import Kind

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")
_SECONDS = 120.0


def asked(plane: ControlPlane, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """Do something with a client of the cluster, which stays connected while that runs."""
    assert plane.servers is not None
    return plane.servers.line(plane.kubeconfig).ask(work)


def account(plane: ControlPlane, namespace: str, name: str, kubeconfig: Path) -> ControlPlane:
    """Return the cluster as a service account sees it, with its rights and no others."""

    async def work(client: Client) -> str:
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        kind = Kind("v1", "ServiceAccount")
        answer = await client.submit(kind, name, namespace, "token", request)
        return str(answer["status"]["token"])

    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": asked(plane, work)}
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(json.dumps(config))
    return replace(plane, kubeconfig=kubeconfig)


def put(plane: ControlPlane, *objects: dict[str, Any]) -> None:
    """Apply objects."""

    async def work(client: Client) -> None:
        for one in objects:
            await client.apply(one)

    asked(plane, work)


def there(plane: ControlPlane, kind: Kind, namespace: str = "") -> list[dict[str, Any]]:
    """Return all objects of a kind."""

    async def work(client: Client) -> list[dict[str, Any]]:
        return (await client.list(kind, namespace)).items

    return asked(plane, work)


def until(
    what: str,
    is_so: Callable[[], bool],
    seconds: float = _SECONDS,
    instead: Callable[[], object] | None = None,
) -> None:
    """Wait until something is so; if it is not in time, say what is so instead."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            found = "" if instead is None else f"\n{instead()}"
            raise AssertionError(f"not so after {seconds:g} s: {what}{found}")
        time.sleep(0.3)


def kubectl(plane: ControlPlane, *arguments: str) -> str:
    """Run kubectl as the administrator and return what it said; it must succeed."""
    done = subprocess.run(
        ["kubectl", "--kubeconfig", str(plane.kubeconfig), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def kubelets(plane: ControlPlane, shape: str, speed: float) -> Iterator[None]:
    """Have nodes whose pods live as their scripts say; they go with the block."""
    command = ("-m", "tests.real.kubelets", str(plane.kubeconfig), shape, str(speed))
    with subprocess.Popen(
        _tethered(*command),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()
            asked(plane, _remove_nodes)


async def _remove_nodes(client: Client) -> None:
    for node in (await client.list(NODE)).items:
        await client.delete(NODE, node["metadata"]["name"])


class Replica:
    """One `unisono controller`."""

    def __init__(self, plane: ControlPlane, log: Path, *flags: str) -> None:
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                _tethered("-m", "unisono", "controller", *_to(plane), *flags),
                stdout=out,
                stderr=out,
                env=_environment(),
            )

    def told(self, event: str) -> dict[str, Any] | None:
        """Return what it logged of an event, if it did."""
        for line in self._log.read_text().splitlines():
            if line.startswith("{") and (found := json.loads(line))["event"] == event:
                return dict(found)
        return None

    def until_told(self, event: str) -> dict[str, Any]:
        """Wait for an event in its log."""
        until(event, lambda: self.told(event) is not None, instead=self._log.read_text)
        found = self.told(event)
        assert found is not None
        return found

    def end(self, number: signal.Signals) -> int:
        """Send a signal and return how it ended."""
        self.process.send_signal(number)
        return self.process.wait(timeout=40)


@contextmanager
def replica(plane: ControlPlane, log: Path, *flags: str) -> Iterator[Replica]:
    """Run one until the block ends."""
    made = Replica(plane, log, *flags)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.end(signal.SIGKILL)


def unisono(plane: ControlPlane, command: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run a command that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "unisono", command, *_to(plane), *flags],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=_environment(),
    )


def _tethered(*arguments: str) -> list[str]:
    """Return the command of a Python that dies with this process."""
    tether = str(Path(__file__).with_name("tether.py"))
    return [sys.executable, "-S", tether, str(os.getpid()), sys.executable, *arguments]


def _to(plane: ControlPlane) -> tuple[str, str]:
    return "--kubeconfig", str(plane.kubeconfig)


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name != "KUBECONFIG"}
