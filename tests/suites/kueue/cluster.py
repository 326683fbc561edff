"""The cluster and the manager that specs ask for over HTTP on loopback.

    begin      an empty cluster; answers with the path of its kubeconfig
    start      a manager with the Configuration in the body
    stop       no manager
    metrics    the page of its metrics
    end        nothing of that is left

`unisono up` is API and manager in one process: it starts again with another configuration, on the
same files and port, and `stop` leaves it at work. On a real API server the manager is `unisono
controller`, and both are as the specs mean them.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from typing_extensions import override

from tests.real.cluster import Replica, unisono
from tests.real.control_plane import CONTROLLERS, free_ports, running

ROOT = Path(__file__).resolve().parents[3]
_SECONDS = 120.0


class Cluster(Protocol):
    """What a suite runs against."""

    def begin(self) -> str:
        """Have an empty cluster; return the path of its kubeconfig."""

    def start(self, configuration: dict[str, Any]) -> None:
        """Have a manager at work with a configuration."""

    def stop(self) -> None:
        """Have no manager."""

    def metrics(self) -> str:
        """Return the metrics of the manager."""

    def end(self) -> None:
        """End everything."""


class Embedded:
    """`unisono up`."""

    def __init__(self, directory: Path, nodes: str = "0", *, strict: bool = False) -> None:
        """Keep everything below a directory; `nodes` are those of `unisono up --nodes`."""
        self._directory = directory
        self._strict = strict
        self._nodes = nodes
        self._process: subprocess.Popen[bytes] | None = None
        self._policy = ""
        self._count = 0
        self._port, self._metrics = 0, 0

    def begin(self) -> str:
        """Have an empty cluster with the usual policy."""
        self._count += 1
        # A metrics port has two neighbours.
        self._port, self._metrics = free_ports(1)[0], free_ports(1)[0]
        self._run(_policy({}, strict=self._strict))
        return str(self._data / "kubeconfig")

    def start(self, configuration: dict[str, Any]) -> None:
        """Start again if the configuration is another."""
        policy = _policy(configuration, strict=self._strict)
        if policy != self._policy:
            self._run(policy)

    def stop(self) -> None:
        """Go on: the API would be gone, too."""

    def metrics(self) -> str:
        """Return the page."""
        return _read(f"http://127.0.0.1:{self._metrics}/metrics")

    @property
    def metrics_address(self) -> str:
        """Where Prometheus finds it."""
        return f"127.0.0.1:{self._metrics}"

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=20)
            self._process.kill()
            self._process.wait()
        self._process = None

    @property
    def _data(self) -> Path:
        return self._directory / f"up-{self._count}"

    def _run(self, policy: str) -> None:
        self.end()
        file = self._directory / "policy.yaml"
        file.write_text(policy)
        log = self._directory / "up.log"
        flags = (
            *("--data-dir", str(self._data), "--nodes", self._nodes, "--fast-commit"),
            *("--port", str(self._port), "--metrics-port", str(self._metrics)),
            *("--policy", str(file)),
        )
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                _tethered("up", *flags), cwd=ROOT, stdout=out, stderr=out
            )
        self._policy = policy
        _until(lambda: "unisono_build_info" in self.metrics(), log)


class Real:
    """A real API server, and `unisono controller`."""

    def __init__(self, directory: Path, *, strict: bool = False) -> None:
        """Keep everything below a directory."""
        self._directory = directory
        self._strict = strict
        self._stack = contextlib.ExitStack()
        self._replica: Replica | None = None
        self._count = 0
        self._port = 0

    def begin(self) -> str:
        """Have a control plane with our kinds and policies."""
        self.end()
        self._count += 1
        directory = self._directory / f"real-{self._count}"
        directory.mkdir()
        self._plane = self._stack.enter_context(running(directory, controllers=CONTROLLERS))
        installed = unisono(self._plane, "install")
        if installed.returncode:
            raise RuntimeError(installed.stderr)
        return str(self._plane.kubeconfig)

    def start(self, configuration: dict[str, Any]) -> None:
        """Start a replica."""
        self.stop()
        file = self._directory / "policy.yaml"
        file.write_text(_policy(configuration, strict=self._strict))
        (self._port,) = free_ports(1)
        log = self._directory / "controller.log"
        flags = ("--policy", str(file), "--listen", f"127.0.0.1:{self._port}")
        self._replica = Replica(self._plane, log, *flags)
        self._replica.until_told("leading")
        _until(lambda: bool(self.metrics()), log)

    def stop(self) -> None:
        """End the replica, which gives its lease back."""
        if self._replica is not None and self._replica.process.poll() is None:
            self._replica.end(signal.SIGTERM)
        self._replica = None

    def metrics(self) -> str:
        """Return the page."""
        return _read(f"http://127.0.0.1:{self._port}/metrics")

    def end(self) -> None:
        """End everything."""
        self.stop()
        self._stack.close()
        self._stack = contextlib.ExitStack()


SERVERS: dict[str, type[Embedded] | type[Real]] = {"up": Embedded, "real": Real}
_SWITCHES = ("fairSharing", "admissionFairSharing")
_HEAD = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
_STRICT = {
    "apiVersion": "unisono.dev/v1",
    "kind": "Policy",
    "metadata": {"name": "strict"},
    "compat": {"strict": True},
}


def _policy(configuration: dict[str, Any], *, strict: bool) -> str:
    # A section that is there switches something on, even if it is empty; most are just Go's zeros.
    given = {
        key: value
        for key, value in configuration.items()
        if value not in (None, {}, []) or (key in _SWITCHES and value is not None)
    }
    documents = [{**given, **_HEAD}, *([_STRICT] if strict else ())]
    return "\n---\n".join(json.dumps(one, indent=1) for one in documents)


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as response:
        return str(response.read().decode())


def _until(is_so: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, urllib.error.URLError):
            if is_so():
                return
        time.sleep(0.1)
    raise RuntimeError(f"it does not answer; the end of {log}:\n{log.read_text()[-2000:]}")


def _tethered(*arguments: str) -> list[str]:
    tether = str(ROOT / "tests/real/tether.py")
    started = [sys.executable, "-S", tether, str(os.getpid())]
    return [*started, sys.executable, "-m", "unisono", *arguments]


@contextlib.contextmanager
def served(server: str, *, strict: bool = False) -> Iterator[str]:
    """Answer what specs ask for while the block lasts; yield the address.

    `strict` switches off what we do otherwise than Kueue on purpose.
    """
    with tempfile.TemporaryDirectory(prefix="unisono-suite-") as folder:
        cluster: Cluster = SERVERS[server](Path(folder), strict=strict)

        class Answers(http.server.BaseHTTPRequestHandler):
            """One question each."""

            def do_POST(self) -> None:
                """Do what is asked."""
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    code, said = 200, _asked(cluster, self.path.strip("/"), body)
                except Exception as error:  # noqa: BLE001 (the spec shows it)
                    code, said = 500, repr(error)
                self.send_response(code)
                self.end_headers()
                self.wfile.write(said.encode())

            @override
            def log_message(self, *_: object) -> None:
                """Say nothing."""

        listener = http.server.HTTPServer(("127.0.0.1", 0), Answers)
        # The processes die with the thread that started them (tether.py), so that is this one.
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.server_address[1]}"
        finally:
            listener.shutdown()
            thread.join()
            listener.server_close()
            cluster.end()


def _asked(cluster: Cluster, what: str, body: bytes) -> str:
    match what:
        case "begin":
            return cluster.begin()
        case "start":
            cluster.start(json.loads(body))
        case "stop":
            cluster.stop()
        case "metrics":
            return cluster.metrics()
        case "end":
            cluster.end()
        case _:
            raise ValueError(what)
    return ""
