"""A real cluster to measure on, one of our controllers there, and what the processes use."""

from __future__ import annotations

import asyncio
import math
import os
import re
import signal
import ssl
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.real.cluster import Replica, account, unisono
from tests.real.control_plane import CONTROLLERS, ControlPlane, running
from unisono.kube.client import Client
from unisono.kube.connect import connected
from unisono.kube.kubeconfig import find_access
from unisono.kube.priority_lanes import Lanes
from unisono.runtime.clock import RealClock
from unisono.runtime.ids import new_uid, random_source

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_WRITES = re.compile(r'unisono_api_writes_total\{method="(\w+)",resource="([^"]+)"\} (\d+)')
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_CHANGING = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_UNCOUNTED = ("leases", "selfsubjectrulesreviews", "tokenreviews", "subjectaccessreviews")
# An idle API server uses a tenth of a core.
_QUIET = 0.2
_LOOK_S = 3.0
_MOST_LOOKS = 40


@dataclass
class Ground:
    """One cluster with an installation, and a directory for what processes log."""

    plane: ControlPlane
    directory: Path
    replicas: list[Replica] = field(default_factory=list)

    def start(self, *flags: str) -> Replica:
        """Start a controller with the rights of the installation's role."""
        role = account(self.plane, "unisono-system", "unisono", self.directory / "role")
        log = self.directory / f"replica-{len(self.replicas)}.log"
        self.replicas.append(Replica(role, log, *flags))
        return self.replicas[-1]

    def check(self) -> None:
        """Raise if our controller that was started last is gone: waiting for it is useless then."""
        if not self.replicas:
            return
        if (code := self.replicas[-1].process.poll()) is not None:
            log = (self.directory / f"replica-{len(self.replicas) - 1}.log").read_text()
            raise RuntimeError(f"the controller ended with {code}: {log.splitlines()[-1]}")

    def cpu_s(self, server: str) -> float:
        """Return the processor time of a server."""
        assert self.plane.servers is not None
        return cpu_s(self.plane.servers.pid(server))


@contextmanager
def ground(
    *, controllers: Sequence[str] = CONTROLLERS, has_scheduler: bool = False
) -> Iterator[Ground]:
    """Run a control plane with our installation, and the memory that such servers take."""
    with (
        tempfile.TemporaryDirectory() as place,
        running(
            Path(place),
            controllers=controllers,
            has_scheduler=has_scheduler,
            memory={},
        ) as plane,
    ):
        installed = unisono(plane, "install")
        assert installed.returncode == 0, installed.stderr
        made = Ground(plane, Path(place))
        _settle(made)
        yield made


def _settle(place: Ground) -> None:
    """Wait until the server has told itself of new kinds: it builds their documents."""
    for _ in range(_MOST_LOOKS):
        before = place.cpu_s("kube-apiserver")
        time.sleep(_LOOK_S)
        if place.cpu_s("kube-apiserver") - before < _QUIET * _LOOK_S:
            return


@asynccontextmanager
async def client_of(plane: ControlPlane) -> AsyncIterator[Client]:
    """Yield a client that only the API server slows down."""
    clock = RealClock()
    lanes = Lanes(clock, rate=math.inf)
    access = find_access(path=plane.kubeconfig)
    async with connected(
        access, clock=clock, random_source=random_source(), ids=new_uid, lanes=lanes
    ) as client:
        yield client


def cpu_s(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_bytes(pid: int) -> int:
    """Return the memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process ever had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def writes_of(replica: Replica) -> dict[str, int]:
    """Return what a controller wrote so far, by resource; the lease does not count."""
    address = str(replica.until_told("listening")["address"])
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    found: dict[str, int] = {}
    for method, resource, count in _WRITES.findall(page):
        if resource not in ("leases", "selfsubjectrulesreviews"):
            found[f"{method} {resource}"] = int(count)
    return found


def requests_of(place: Ground) -> dict[str, int]:
    """Return the changes of all clients so far, as the API server counts."""
    context = ssl.create_default_context(cafile=str(place.plane.ca_file))
    asks = {"Authorization": f"Bearer {place.plane.token}"}
    request = urllib.request.Request(f"{place.plane.url}/metrics", headers=asks)
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        page = answer.read().decode()
    found: dict[str, int] = {}
    for labels, count in _REQUESTS.findall(page):
        said = dict(_LABEL.findall(labels))
        if said["verb"] in _CHANGING and said["resource"] not in _UNCOUNTED:
            path = "/".join(filter(None, (said["resource"], said["subresource"])))
            name = f"{said['verb']} {path}"
            found[name] = found.get(name, 0) + int(float(count))
    return found


def without_events(writes: dict[str, int]) -> int:
    """Return how many writes there were besides events, which are a courtesy."""
    return sum(count for name, count in writes.items() if not name.endswith("events"))


def told(writes: dict[str, int], each: int) -> str:
    """Say how much was written for each of so many things; what is hardly anything is left out."""
    parts = sorted(writes.items(), key=lambda one: -one[1])
    parts = [one for one in parts if one[1] >= each / 200]
    total = sum(writes.values()) / each
    return f"{total:.2f} ({', '.join(f'{count / each:.2f} {name}' for name, count in parts)})"


def difference(after: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """Return what was written in between."""
    return {name: count - before.get(name, 0) for name, count in after.items()}


def end(replica: Replica) -> None:
    """Have a controller give its lease back and end."""
    if replica.process.poll() is None:
        replica.end(signal.SIGTERM)


async def in_lots(count: int, at_once: int, do: Callable[[int], object]) -> None:
    """Do something for every number below `count`, some at a time."""

    async def some(first: int) -> None:
        for number in range(first, count, at_once):
            await do(number)  # type: ignore[misc]  # whatever can be awaited

    await asyncio.gather(*(some(first) for first in range(at_once)))
