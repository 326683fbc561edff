"""A real Alertmanager on loopback, and a receiver of its notifications."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.real.control_plane import free_ports
from tests.real.prometheus import eventually
from unisono.kinds.overriding import override

MISSING = "Alertmanager is not installed (Debian: prometheus-alertmanager)"
_NAMES = ("prometheus-alertmanager", "alertmanager")


def program() -> str:
    """Return its name; skip, and say so, where there is none."""
    found = next((one for one in _NAMES if shutil.which(one)), None)
    if found is None:
        pytest.skip(MISSING)
    return found


class Receiver(ThreadingHTTPServer):
    """Takes notifications and remembers the state of every alert."""

    def __init__(self) -> None:
        """Listen on loopback."""
        super().__init__(("127.0.0.1", 0), _Takes)
        self.told: dict[str, list[str]] = {}  # by name of the alert: firing, resolved

    @property
    def url(self) -> str:
        """Where to send to."""
        return f"http://127.0.0.1:{self.server_port}/"

    def take(self, message: dict[str, object]) -> None:
        """Remember a notification."""
        alerts = message["alerts"]
        assert message["version"] == "4"
        assert isinstance(alerts, list)
        for one in alerts:
            self.told.setdefault(one["labels"]["alertname"], []).append(one["status"])


class _Takes(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.server.take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    @override
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """Take notifications while the block lasts."""
    with Receiver() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()


@contextlib.contextmanager
def alerting(config: Path) -> Iterator[str]:
    """Run one with a configuration while the block lasts; yields host and port."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    process = subprocess.Popen(
        [
            program(),
            f"--config.file={config}",
            f"--storage.path={config.parent / 'alertmanager'}",
            f"--web.listen-address={address}",
            "--cluster.listen-address=",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually("Alertmanager is ready", lambda: _is_ready(address))
        yield address
    finally:
        process.terminate()
        process.wait(timeout=10)


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
