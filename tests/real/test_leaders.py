"""Leaders, API servers and etcds that are killed and restarted in the middle of a commit.

Every story ends as those of `test_faults` do: whole gangs, once, and nothing over its limit.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import pytest
from aiohttp import web

from tests.real.cluster import until
from tests.real.fault_proxy import Asked, Dropped
from tests.real.stage import Stage
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
            # Requests on their way end with their sender: the first two have to be carried out.
            await asyncio.sleep(1.0)
            if first.process.poll() is None:
                first.process.send_signal(signal.SIGKILL)
                stage.faults["leaders killed"] = 1
            raise Dropped
        return None

    first = stage.replica(behind)
    first.until_told("leading")
    second = stage.replica()
    second.until_told("all is read")
    proxy.fault = fault
    stage.submit("half", 4, seconds=180, scheduler=scheduler)
    assert nth.came.wait(120)
    stage.submit("next", 2)  # not before: two of the three moments might be its pods
    assert int(second.until_told("leading")["epoch"]) >= 2
    stage.judge()
    assert stage.auditor.longest_partial_s > 0  # else nothing was in pieces to begin with


@pytest.mark.parametrize("server", ["kube-apiserver", "etcd"])
def test_a_server_is_restarted_mid_commit(stage: Stage, server: str) -> None:
    proxy, behind = stage.proxied()
    servers = stage.plane.servers
    assert servers is not None
    nth = Nth(3)

    async def fault(asked: Asked) -> web.Response | None:
        if nth.is_it(asked) and not is_killed.is_set():
            servers.kill(server)
            stage.faults[f"restarts of {server}"] += 1
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
    until("a replica leads", lambda: _leads_again(stage))
    stage.judge()


def _leads_again(stage: Stage) -> bool:
    """Do what a Deployment does: restart a replica that ended because its lease ran out."""
    last = stage.replicas[-1]
    if last.process.poll() is None:
        return last.told("leading") is not None
    assert last.process.poll() == 3
    stage.replica()
    return False
