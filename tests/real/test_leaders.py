"""Leaders, API servers and etcds that are killed, paused and restarted in the middle of a commit.

Every story ends as those of `test_faults` do: whole gangs, once, and nothing over its limit.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import pytest
from aiohttp import web

from tests.real.cluster import there, until
from tests.real.fault_proxy import Asked, Dropped
from tests.real.stage import WORKLOAD, Stage, phase_of
from unisono.control import names

pytestmark = [pytest.mark.real, pytest.mark.slow]


class Nth:
    """Notices the moment in which a gang is half on its way: the n-th pod is about to be freed."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.came = threading.Event()

    def is_it(self, asked: Asked) -> bool:
        """Say whether the moment has come, or is past."""
        if asked.frees_a_pod and not self.came.is_set():
            self._left -= 1
            if self._left == 0:
                self.came.set()
        return self.came.is_set()


@pytest.mark.parametrize("scheduler", ["", names.SCHEDULER])
def test_the_leader_is_killed_mid_commit(stage: Stage, scheduler: str) -> None:
    """Once with the stock scheduler behind gates, once with pods that we bind ourselves."""
    proxy, behind = stage.proxied()
    nth = Nth(3)

    async def fault(asked: Asked) -> web.Response | None:
        if nth.is_it(asked):
            first.process.send_signal(signal.SIGKILL)
            raise Dropped
        return None

    first = stage.replica(behind)
    first.until_told("leading")
    second = stage.replica()
    second.until_told("all is read")
    proxy.fault = fault
    stage.submit("half", 4, seconds=180, scheduler=scheduler)
    stage.submit("next", 2)
    assert nth.came.wait(120)
    assert int(second.until_told("leading")["epoch"]) >= 2
    stage.judge()
    assert stage.auditor.longest_partial_s > 0  # else nothing was in pieces to begin with


@pytest.mark.parametrize("what", ["pods", "bindings", "workload"])
def test_a_paused_leader_comes_back_too_late(stage: Stage, what: str) -> None:
    """Its writes arrive after another leads: those about the decision are refused."""
    proxy, behind = stage.proxied()
    late = asyncio.Event()
    held: list[Asked] = []
    holds = threading.Event()

    async def fault(asked: Asked) -> web.Response | None:
        is_decision = asked.method == "PATCH" and asked.path.endswith("/status")
        is_decision = is_decision and "/workloads/" in asked.path
        # The first one goes through; all others are on the wire for long.
        is_pod = asked.frees_a_pod and what != "workload"
        if is_pod or (is_decision and what == "workload"):
            counted.append(asked)
            if len(counted) > 1 and not late.is_set():
                held.append(asked)
                first.process.send_signal(signal.SIGSTOP)
                holds.set()
                await late.wait()
        return None

    counted: list[Asked] = []
    first = stage.replica(behind)
    first.until_told("leading")
    second = stage.replica()
    second.until_told("all is read")
    proxy.fault = fault
    scheduler = names.SCHEDULER if what == "bindings" else ""
    # Long enough to be there still when another leads: all of its pods are ready when that is held.
    stage.submit("half", 4, seconds=500 if what == "workload" else 100, scheduler=scheduler)
    assert holds.wait(120)
    second.until_told("leading")
    until("the gang is whole", lambda: stage.on_nodes() == 4)
    until("that is written down", lambda: _phases(stage) == ["Committed"])
    method = "POST" if what == "bindings" else "PATCH"
    conflicts = proxy.answers[method, 409]
    proxy._loop.call_soon_threadsafe(late.set)
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(timeout=120) == 3
    if what != "pods":
        assert proxy.answers[method, 409] > conflicts
    stage.submit("next", 2)
    stage.judge()


def _phases(stage: Stage) -> list[str]:
    return [phase_of(one) for one in there(stage.plane, WORKLOAD, stage.namespace)]


@pytest.mark.parametrize("server", ["kube-apiserver", "etcd"])
def test_a_server_is_restarted_mid_commit(stage: Stage, server: str) -> None:
    proxy, behind = stage.proxied()
    servers = stage.plane.servers
    assert servers is not None
    nth = Nth(3)

    async def fault(asked: Asked) -> web.Response | None:
        if nth.is_it(asked) and not is_killed.is_set():
            servers.kill(server)
            is_killed.set()
        return None

    is_killed = threading.Event()
    stage.replica(behind).until_told("leading")
    proxy.fault = fault
    stage.submit("half", 4)
    stage.submit("next", 2)
    stage.submit("last", 3)
    assert is_killed.wait(120)
    time.sleep(1)
    servers.again(server)
    until("somebody leads", lambda: _leads_again(stage))
    stage.judge()


def _leads_again(stage: Stage) -> bool:
    """Do what a Deployment does: whoever ended because its lease ran out is started again."""
    last = stage.replicas[-1]
    if last.process.poll() is None:
        return last.told("leading") is not None
    assert last.process.poll() == 3
    stage.replica()
    return False
