"""Probes: whether containers are started, ready and alive.

    startupProbe     until it succeeds no other probe runs; if it never does, the container is
    killed readinessProbe   decides whether the container is ready livenessProbe    if it fails too
    often, the container is killed, and starts again by its rules

Pure but for the results that it remembers; the machine runs the probes. A container without a
command of its own is always healthy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import msgspec

from unisono.control.actions import Json
from unisono.kinds.digits import whole_number
from unisono.runner.containers import Container, Containers, Running
from unisono.runner.process.launch import is_sshd

_LAST_PORT = 65_535

ProbeName = Literal["startupProbe", "readinessProbe", "livenessProbe"]
_ALL: tuple[ProbeName, ...] = ("startupProbe", "readinessProbe", "livenessProbe")
# While an answer is outstanding, we look again this often.
_LOOK_SECONDS = 1.0


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a container: a command, a connection, or a page."""

    timeout_s: float = 1.0
    command: tuple[str, ...] = ()
    host: str = ""
    port: int = 0
    path: str | None = None  # a page; None: a connection is enough
    is_secure: bool = False
    headers: Mapping[str, str] = {}


class ProbeRunner(Protocol):
    """Runs probes, and has their results later."""

    def ask(self, uid: str, container: str, which: str, check: Check) -> None:
        """Ask a container something."""

    def answer(self, uid: str, container: str, which: str) -> bool | None:
        """Return an answer that came, once; None if none has come."""


@dataclass(slots=True)
class _Watch:
    run: int
    due: float
    is_asked: bool = False
    good: int = 0
    bad: int = 0
    is_well: bool = False


@dataclass(frozen=True, slots=True)
class ProbeResults:
    """How the containers are, when to look again, and which are to be killed, with the reason."""

    containers: Containers
    again_at: float
    failing: Mapping[str, str]


class ProbeTracker:
    """What is known of the containers of all pods."""

    def __init__(self, asks: ProbeRunner) -> None:
        """Take what runs the probes."""
        self._runner = asks
        self._watches: dict[tuple[str, str, ProbeName], _Watch] = {}

    def forget(self, uid: str) -> None:
        """Forget a pod."""
        for key in [key for key in self._watches if key[0] == uid]:
            del self._watches[key]

    def examine(self, pod: Json, containers: Containers, address: str, now: float) -> ProbeResults:
        """Take results, start probes that are due, and return the containers' health."""
        changed: list[Container] = []
        failing: dict[str, str] = {}
        again = math.inf
        spec = pod["spec"]
        for each in (*(spec.get("initContainers") or ()), *spec["containers"]):
            one = containers.get(each["name"])
            if not isinstance(one.state, Running) or not is_probed(each):
                continue
            due, is_ready, error = self._examine(pod, each, one, one.state, address, now)
            again = min(again, due)
            if error:
                failing[one.name] = error
            if is_ready != one.state.is_ready:
                changed.append(replace(one, state=Running(one.state.since, is_ready)))
        return ProbeResults(containers.put(*changed), again, failing)

    def _examine(
        self, pod: Json, spec: Json, one: Container, state: Running, address: str, now: float
    ) -> tuple[float, bool, str]:
        """Return when to look again, whether it is ready, and why it must be killed."""
        uid = pod["metadata"]["uid"]
        again = math.inf
        is_ready = not spec.get("readinessProbe")
        for which in _ALL:
            probe = spec.get(which)
            if not probe:
                continue
            watch = self._watches.get((uid, one.name, which))
            if watch is None or watch.run != one.restarts:
                first = state.since + float(probe.get("initialDelaySeconds") or 0)
                watch = self._watches[uid, one.name, which] = _Watch(one.restarts, first)
                watch.is_well = which == "livenessProbe"
                self._runner.answer(uid, one.name, which)  # of an earlier run
            again = min(again, self._update(watch, probe, pod, spec, which, address, now))
            failures = int(probe.get("failureThreshold") or 3)
            if which != "readinessProbe" and watch.bad >= failures:
                watch.bad = 0  # said once
                return again, False, f"{which.removesuffix('Probe')} probe failed"
            if which == "startupProbe" and not watch.is_well:
                return again, False, ""
            if which == "readinessProbe":
                is_ready = watch.is_well
        return again, is_ready, ""

    def _update(
        self,
        watch: _Watch,
        probe: Json,
        pod: Json,
        spec: Json,
        which: ProbeName,
        address: str,
        now: float,
    ) -> float:
        """Take a result if there is one, start a probe if due; return when to look again."""
        uid, name = pod["metadata"]["uid"], spec["name"]
        answer = self._runner.answer(uid, name, which) if watch.is_asked else None
        if answer is not None:
            watch.is_asked = False
            watch.good, watch.bad = (watch.good + 1, 0) if answer else (0, watch.bad + 1)
            watch.due = now + float(probe.get("periodSeconds") or 10)
            if watch.good >= int(probe.get("successThreshold") or 1):
                watch.is_well = True
            elif watch.bad >= int(probe.get("failureThreshold") or 3):
                watch.is_well = False
        is_done = which == "startupProbe" and watch.is_well
        if not watch.is_asked and not is_done and now >= watch.due:
            watch.is_asked = True
            self._runner.ask(uid, name, which, check_of(probe, spec, address))
        if is_done:
            return math.inf
        return now + _LOOK_SECONDS if watch.is_asked else watch.due


def check_of(probe: Json, container: Json, address: str) -> Check:
    """Return the question that a probe asks."""
    timeout_s = float(probe.get("timeoutSeconds") or 1)
    if command := probe.get("exec"):
        return Check(timeout_s=timeout_s, command=tuple(command.get("command") or ()))
    if page := probe.get("httpGet"):
        return Check(
            timeout_s=timeout_s,
            host=page.get("host") or address,
            port=_port(page.get("port"), container),
            path=page.get("path") or "/",
            is_secure=page.get("scheme") == "HTTPS",
            headers={one["name"]: one["value"] for one in page.get("httpHeaders") or ()},
        )
    connection = probe.get("tcpSocket") or probe.get("grpc") or {}
    return Check(
        timeout_s=timeout_s,
        host=connection.get("host") or address,
        port=_port(connection.get("port"), container),
    )


def _port(named_port: object, container: Json) -> int:
    """Return a port by number or by name; 0, on which nothing listens, if there is none."""
    if isinstance(named_port, int):
        return named_port
    for port in container.get("ports") or ():
        if port.get("name") == named_port:
            return int(port["containerPort"])
    return whole_number(named_port, _LAST_PORT) or 0


def is_probed(container: Json) -> bool:
    """Say whether a container has probes, and a program that could answer."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    is_program = bool(words) and not is_sshd(words[0])
    return is_program and any(container.get(which) for which in _ALL)
