"""A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager.

Ready in seconds, on free ports, with everything it writes in one directory, and gone with the
process that started it. There is no kubelet: pods never run, and a test that needs a pod's status
to change patches it. There is no scheduler either, unless asked for: tests bind.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.real import binaries
from tests.real.certificates import FRONT_PROXY, write_certificates, write_key
from tests.real.line import Line

TOKEN = "admin-token-of-one-test-run"
GUEST_TOKEN = "guest-token-of-one-test-run"

# What a conformance test can see the effect of, and nothing that would act on a test's pods, jobs
# and nodes by itself.
CONTROLLERS = (
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
)

# An API server as before 1.36 in this: it has policies that refuse, and none that change.
_MUTATING = "admissionregistration.k8s.io/v1/mutatingadmissionpolic"
_WITHOUT_MUTATING_POLICIES = (
    f"--runtime-config={_MUTATING}ies=false,{_MUTATING}ybindings=false",
    "--disable-admission-plugins=ServiceAccount,MutatingAdmissionPolicy",
)

# A third of what these servers work is collecting garbage; there is memory enough not to. The limit
# is for clusters of tests: one that holds more collects garbage all the time, and does little else.
THRIFT = {"GOGC": "400", "GOMEMLIMIT": "700MiB"}

# Ready after 5 to 8 seconds on two busy cores; the rest is for machines that swap.
_SECONDS_TO_READY = 90
_SECONDS_TO_STOP = 10

# Where servers of tests listen: Linux gives clients ports from 32768 on.
_FIRST_PORT = 12_000
_PORTS = 2_000
_SHARES = 10


class DidNotStart(Exception):
    """A server ended or was not ready in time; the text has the end of its log."""


@dataclass(frozen=True)
class ControlPlane:
    """Where it listens and how to log in."""

    url: str
    ca_file: Path
    token: str
    guest_token: str  # a user who is authenticated and may do nothing
    kubeconfig: Path
    etcd_url: str
    has_controllers: bool
    servers: Servers | None = None  # the processes, for tests that kill one


@contextmanager
def running(
    directory: Path,
    *,
    controllers: Sequence[str] = CONTROLLERS,
    has_scheduler: bool = False,
    has_mutating_policies: bool = True,
    begins_with: Path | None = None,
    memory: Mapping[str, str] = THRIFT,
) -> Iterator[ControlPlane]:
    """Start a control plane in an empty directory and stop it at the end.

    `begins_with` is the directory of an etcd that has been stopped: everything in it is there.
    `memory` is what Go's garbage collector is told; nothing is what every cluster has.
    """
    programs = binaries.find()
    if begins_with is not None:
        shutil.copytree(begins_with, directory / "etcd")
    write_certificates(directory)
    write_key(directory / "service-account.key")
    (directory / "tokens.csv").write_text(
        f'{TOKEN},admin,admin,"system:masters"\n{GUEST_TOKEN},guest,guest,""\n'
    )
    client_port, peer_port, secure_port = free_ports(3)
    etcd_url = f"http://127.0.0.1:{client_port}"
    url = f"https://127.0.0.1:{secure_port}"
    plane = ControlPlane(
        url=url,
        ca_file=directory / "ca.crt",
        token=TOKEN,
        guest_token=GUEST_TOKEN,
        kubeconfig=directory / "kubeconfig",
        etcd_url=etcd_url,
        has_controllers=bool(controllers)
        and os.access(programs / "kube-controller-manager", os.X_OK),
    )
    _write_kubeconfig(plane)
    with Servers(plane, directory, programs, memory) as servers:
        servers.start("etcd", *_etcd_flags(plane, directory, peer_port))
        flags = _api_flags(plane, directory, secure_port)
        older = () if has_mutating_policies else _WITHOUT_MUTATING_POLICIES
        servers.start("kube-apiserver", *flags, *older)
        if plane.has_controllers:
            servers.start(
                "kube-controller-manager",
                f"--kubeconfig={plane.kubeconfig}",
                f"--controllers={','.join(controllers)}",
                f"--service-account-private-key-file={directory / 'service-account.key'}",
                f"--root-ca-file={plane.ca_file}",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=300",
                "--kube-api-burst=500",
            )
        if has_scheduler:
            servers.start(
                "kube-scheduler",
                f"--kubeconfig={plane.kubeconfig}",
                "--leader-elect=false",
                "--secure-port=0",
            )
        yield replace(plane, servers=servers)


def _etcd_flags(plane: ControlPlane, directory: Path, peer_port: int) -> list[str]:
    return [
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={plane.etcd_url}",
        f"--advertise-client-urls={plane.etcd_url}",
        f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
        "--unsafe-no-fsync",  # nothing here outlives the test run
        "--log-level=warn",
    ]


def _api_flags(plane: ControlPlane, directory: Path, secure_port: int) -> list[str]:
    return [
        f"--etcd-servers={plane.etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={secure_port}",
        f"--tls-cert-file={directory / 'server.crt'}",
        f"--tls-private-key-file={directory / 'server.key'}",
        f"--client-ca-file={directory / 'ca.crt'}",
        f"--token-auth-file={directory / 'tokens.csv'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={directory / 'service-account.key'}",
        f"--service-account-signing-key-file={directory / 'service-account.key'}",
        "--service-cluster-ip-range=10.0.0.0/16",  # tests create thousands of services
        "--authorization-mode=RBAC",
        "--anonymous-auth=false",
        f"--requestheader-client-ca-file={directory / 'front-proxy-ca.crt'}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-uid-headers=X-Remote-Uid",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={directory / 'front-proxy.crt'}",
        f"--proxy-client-key-file={directory / 'front-proxy.key'}",
        "--endpoint-reconciler-type=none",
        # No controller makes service accounts here, and pods must not wait for one.
        "--disable-admission-plugins=ServiceAccount",
        # Else old versions are answered from memory long after etcd forgot them, and no
        # test could see how a list of a forgotten version is refused.
        "--feature-gates=ListFromCacheSnapshot=false",
    ]


class Servers:
    """The processes of one control plane; they end with the block, or with this process."""

    def __init__(
        self, plane: ControlPlane, directory: Path, programs: Path, memory: Mapping[str, str]
    ) -> None:
        """Prepare; nothing runs yet."""
        self._plane = plane
        self._directory = directory
        self._programs = programs
        self._memory = memory
        self._flags: dict[str, tuple[str, ...]] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lines: dict[str, Line] = {}

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self._lines.values():
            line.close()
        for name in reversed(self._processes):
            self.kill(name)

    def start(self, name: str, *flags: str) -> None:
        """Run a program with its log in the directory, and wait until it answers."""
        self._flags[name] = flags
        program = self._programs / name
        starter = str(Path(__file__).with_name("tether.py"))
        tether = [sys.executable, "-S", starter, str(os.getpid())]
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*tether, str(program), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._directory,
                env={**os.environ, **self._memory},
            )
        self._until_ready(name)

    def pid(self, name: str) -> int:
        """Return the process of a server, to see what it uses."""
        return self._processes[name].pid

    def line(self, kubeconfig: Path) -> Line:
        """Return a client with an account's rights; it lives as long as the servers."""
        account = kubeconfig.read_text()
        if account not in self._lines:
            self._lines[account] = Line(kubeconfig)
        return self._lines[account]

    def kill(self, name: str) -> None:
        """End one at once: nothing here is worth an orderly end."""
        process = self._processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=_SECONDS_TO_STOP)

    def again(self, name: str) -> None:
        """Start one again that was killed, on the same port with the same files."""
        self.start(name, *self._flags[name])

    def _until_ready(self, name: str) -> None:
        plane, log = self._plane, self._log(name)
        process = self._processes[name]
        if name == "etcd":
            _wait_until_ready(process, log, plane.etcd_url, "/readyz", context=None)
        elif name == "kube-apiserver":
            context = ssl.create_default_context(cafile=str(plane.ca_file))
            _wait_until_ready(process, log, plane.url, "/readyz", context=context)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"


def _wait_until_ready(
    process: subprocess.Popen[bytes],
    log: Path,
    url: str,
    path: str,
    *,
    context: ssl.SSLContext | None,
) -> None:
    host = url.partition("://")[2]
    deadline = time.monotonic() + _SECONDS_TO_READY
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DidNotStart(f"{log.stem} ended with code {process.returncode}: {_end_of(log)}")
        if _answers_ok(host, path, context):
            return
        time.sleep(0.05)
    raise DidNotStart(f"{log.stem} was not ready after {_SECONDS_TO_READY} s: {_end_of(log)}")


def _answers_ok(host: str, path: str, context: ssl.SSLContext | None) -> bool:
    connection = (
        http.client.HTTPConnection(host, timeout=5)
        if context is None
        else http.client.HTTPSConnection(host, timeout=5, context=context)
    )
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:].strip() or "its log is empty"


def free_ports(count: int) -> list[int]:
    """Return free ports that no client is given by chance before a server has it.

    They are below those that the kernel hands out, and each of several test processes has its own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = _FIRST_PORT + worker % _SHARES * _PORTS
    found: list[int] = []
    while len(found) < count:
        port = first + secrets.randbelow(_PORTS)
        if port not in found and _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _write_kubeconfig(plane: ControlPlane) -> None:
    authority = base64.b64encode(plane.ca_file.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "real",
                "cluster": {"server": plane.url, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": "admin", "user": {"token": plane.token}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        "current-context": "real",
    }
    plane.kubeconfig.touch(mode=0o600)
    plane.kubeconfig.write_text(json.dumps(config, indent=1))  # JSON is YAML
