"""A leader that is paused in the middle of a commit for longer than its lease, and comes back.

Every story ends as those of `test_faults` do: whole gangs, once, and nothing over its limit.
"""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest
from aiohttp import web

from tests.real.cluster import there, until
from tests.real.fault_proxy import Asked
from tests.real.stage import WORKLOAD, Stage, phase_of
from unisono.control import names

pytestmark = [pytest.mark.real, pytest.mark.slow]


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
                stage.faults["leaders paused and resumed"] = 1
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
