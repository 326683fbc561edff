"""The real control plane of the tests answers, and ends with the process that started it."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.real.control_plane import ControlPlane

ROOT = Path(__file__).resolve().parents[2]

_STARTER = """
import pathlib, sys
from tests.real.control_plane import running
with running(pathlib.Path(sys.argv[1]), controllers=()) as plane:
    print(plane.url, plane.etcd_url, flush=True)
    sys.stdin.read()
"""

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_it_answers(control_plane: ControlPlane) -> None:
    request = urllib.request.Request(
        f"{control_plane.url}/version", headers={"Authorization": f"Bearer {control_plane.token}"}
    )
    context = ssl.create_default_context(cafile=str(control_plane.ca_file))
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        assert json.loads(answer.read())["major"] == "1"


def test_the_kubeconfig_is_private_and_works(control_plane: ControlPlane) -> None:
    assert control_plane.kubeconfig.stat().st_mode & 0o077 == 0
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    printed = subprocess.run(
        [kubectl, "--kubeconfig", str(control_plane.kubeconfig), "get", "namespaces", "-o", "name"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert "namespace/default" in printed.splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children of the dead")
def test_it_ends_with_the_process_that_started_it(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _STARTER, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        urls = starter.stdout.readline().split()
        assert len(urls) == 2
        assert all(map(_listens, urls))
        starter.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(map(_listens, urls)):
        assert time.monotonic() < deadline, "a server outlived its starter"
        time.sleep(0.02)


def _listens(url: str) -> bool:
    host, _, port = url.partition("://")[2].partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0
