"""A real Prometheus on loopback, for tests; and promtool."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.control_plane import free_ports

MISSING = "prometheus and promtool are not installed (Debian: prometheus)"


def needs_prometheus() -> None:
    """Skip, and say so, where there is none."""
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        pytest.skip(MISSING)


def promtool(*arguments: str, folder: Path) -> str:
    """Run promtool; fail with what it says."""
    done = subprocess.run(
        ["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Prometheus:
    """One that runs."""

    def __init__(self, url: str) -> None:
        """Take where it is."""
        self.url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an expression now."""
        asked = urllib.parse.urlencode({"query": expression})
        found: list[dict[str, Any]] = self._get(f"/api/v1/query?{asked}")["result"]
        return found

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        alerts = self._get("/api/v1/alerts")["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def is_ready(self) -> bool:
        """Say whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.load(answer)["data"]


@contextlib.contextmanager
def running(config: Path) -> Iterator[Prometheus]:
    """Run one with a configuration while the block lasts."""
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={config.parent / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--storage.tsdb.retention.time=2h",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        made = Prometheus(f"http://127.0.0.1:{port}")
        eventually("Prometheus is ready", made.is_ready)
        yield made
    finally:
        process.terminate()
        process.wait(timeout=10)


def eventually(what: str, holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"not so after {seconds:g} s: {what}"
        time.sleep(0.25)
