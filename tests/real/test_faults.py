"""Our controllers on a real control plane in trouble: killed, paused, cut off, refused, slowed.

Every story ends the same way: all gangs ran whole and once, no node and no queue was ever over its
limit, and no gang was in pieces for longer than the time to roll back (`auditor`).
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.real.cluster import asked, kubelets, there, unisono, until
from tests.real.control_plane import CONTROLLERS, ControlPlane, running
from tests.real.fault_proxy import Asked, Dropped, expired_watch, refusal
from tests.real.stage import NODES, SPEED, WORKLOAD, Stage, phase_of, staged
from unisono.control import names
from unisono.kube.client import Client
from unisono.kube.mapping import Kind

pytestmark = [pytest.mark.real, pytest.mark.slow]
Json = dict[str, Any]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run one cluster for all stories, with our installation and four nodes."""
    from tests.real.binaries import NoControlPlane

    directory = tmp_path_factory.mktemp("faults")
    try:
        with running(
            directory, controllers=(*CONTROLLERS, "job-controller"), has_scheduler=True
        ) as found:
            installed = unisono(found, "install")
            assert installed.returncode == 0, installed.stderr
            with kubelets(found, NODES, SPEED):
                yield found
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


@pytest.fixture
def stage(plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    name = "".join(one if one.isalnum() else "-" for one in request.node.name).strip("-").lower()
    with staged(plane, name[5:60].strip("-"), tmp_path) as made:
        yield made


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
    assert nth.came.wait(60)
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
    assert holds.wait(60)
    second.until_told("leading")
    until("the gang is whole", lambda: stage.on_nodes() == 4)
    until("that is written down", lambda: _phases(stage) == ["Committed"])
    method = "POST" if what == "bindings" else "PATCH"
    conflicts = proxy.answers[method, 409]
    proxy._loop.call_soon_threadsafe(late.set)
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(timeout=30) == 3
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
    assert is_killed.wait(60)
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


def _mixed(stage: Stage) -> None:
    """Submit gangs of several sizes; together they want more than twice of what there is."""
    for number, pods in enumerate((4, 1, 2, 3, 2, 1, 4)):
        stage.submit(f"gang-{number}", pods)


def test_watches_are_cut_again_and_again(stage: Stage) -> None:
    proxy, behind = stage.proxied()
    stage.replica(behind).until_told("leading")
    _mixed(stage)
    for _ in range(12):
        proxy.drop_watches()
        time.sleep(0.4)
    stage.judge()


def test_versions_to_watch_from_are_forgotten(stage: Stage) -> None:
    proxy, behind = stage.proxied()
    stage.replica(behind).until_told("leading")
    expired = 0

    async def fault(asked: Asked) -> web.Response | None:
        nonlocal expired
        if asked.resumes and expired < 40:
            expired += 1
            return expired_watch()
        return None

    proxy.fault = fault
    proxy.drop_watches()
    _mixed(stage)
    for _ in range(4):
        time.sleep(0.7)
        proxy.drop_watches()
    stage.judge()
    assert expired == 40


def test_every_second_write_conflicts(stage: Stage) -> None:
    proxy, behind = stage.proxied()
    dice = random.Random(7)

    async def fault(asked: Asked) -> web.Response | None:
        if asked.is_write and asked.method != "DELETE" and dice.random() < 0.5:
            return refusal(409, "Conflict", "the object has been modified")
        return None

    stage.replica(behind).until_told("leading")
    proxy.fault = fault
    _mixed(stage)
    stage.judge()
    assert proxy.answers["PATCH", 409] > 10


def test_the_server_has_too_much_to_do(stage: Stage) -> None:
    proxy, behind = stage.proxied()
    dice = random.Random(8)

    async def fault(asked: Asked) -> web.Response | None:
        if asked.method != "GET" and dice.random() < 0.2:
            return refusal(429, "TooManyRequests", "try again", **{"Retry-After": "1"})
        return None

    stage.replica(behind).until_told("leading")
    proxy.fault = fault
    _mixed(stage)
    stage.judge()
    assert proxy.answers["PATCH", 429] > 5


def test_the_network_is_slow_and_loses_answers(stage: Stage) -> None:
    proxy, behind = stage.proxied()
    dice = random.Random(9)

    async def fault(asked: Asked) -> web.Response | None:
        await asyncio.sleep(dice.uniform(0.1, 0.6))
        if asked.is_write and dice.random() < 0.1:
            raise Dropped
        return None

    stage.replica(behind).until_told("leading")
    proxy.fault = fault
    _mixed(stage)
    stage.judge()


def test_the_role_is_enough_for_all_of_it(stage: Stage) -> None:
    proxy, behind = stage.proxied()
    stage.replica(behind).until_told("leading")
    _mixed(stage)
    stage.judge()
    assert proxy.denied == [], json.dumps(proxy.denied)


def test_a_right_is_taken_away_for_a_while(stage: Stage) -> None:
    """Nothing is lost, and the log says which verb on which resource is missing."""
    role = Kind("rbac.authorization.k8s.io/v1", "ClusterRole")
    (whole,) = (one for one in there(stage.plane, role) if one["metadata"]["name"] == "unisono")
    less = [
        {**one, "resources": [name for name in one["resources"] if name != "workloads/status"]}
        for one in whole["rules"]
    ]

    async def allow(client: Client, rules: list[Json]) -> None:
        await client.patch(role, "unisono", "", {"rules": rules})

    one = stage.replica()
    one.until_told("leading")
    asked(stage.plane, lambda client: allow(client, less))
    try:
        _mixed(stage)
        told = one.until_told("not allowed")
        assert (told["verb"], told["resource"]) == ("patch", "workloads/status.kueue.x-k8s.io")
        assert stage.on_nodes() == 0
    finally:
        asked(stage.plane, lambda client: allow(client, whole["rules"]))
    stage.judge()
