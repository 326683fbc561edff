"""Our controllers on a real control plane in trouble: cut off, refused, slowed, short of a right.

Every story ends the same way: all gangs ran whole and once, no node and no queue was ever over its
limit, and no gang was in pieces for longer than the time to roll back (`auditor`).
"""

from __future__ import annotations

import asyncio
import json
import random
import time

import pytest
from aiohttp import web

from tests.real.cluster import asked, there, until
from tests.real.fault_proxy import Asked, Dropped, expired_watch, refusal
from tests.real.stage import Stage
from unisono.kube.client import Client
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

pytestmark = [pytest.mark.real, pytest.mark.slow]


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

    def have_all_been_refused() -> bool:
        proxy.drop_watches()
        return expired == 40

    proxy.fault = fault
    proxy.drop_watches()
    _mixed(stage)
    until("forty watches were refused", have_all_been_refused, instead=lambda: expired)
    stage.judge()


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
    # Roles of operators give it, too: what one part may do does not depend on the others.
    whole = {
        one["metadata"]["name"]: one["rules"]
        for one in there(stage.plane, role)
        if one["metadata"]["name"].startswith("unisono")
        # An aggregated role has none of its own.
        and any("workloads/status" in rule.get("resources", ()) for rule in one["rules"] or ())
    }
    less = {name: _without_status(rules) for name, rules in whole.items()}

    async def allow(client: Client, roles: dict[str, list[Json]]) -> None:
        for name, rules in roles.items():
            await client.patch(role, name, "", {"rules": rules})

    one = stage.replica()
    one.until_told("leading")
    asked(stage.plane, lambda client: allow(client, less))
    stage.faults["rights taken away"] += 1
    try:
        _mixed(stage)
        told = one.until_told("not allowed")
        assert (told["verb"], told["resource"]) == ("patch", "workloads/status.kueue.x-k8s.io")
        assert stage.on_nodes() == 0
    finally:
        asked(stage.plane, lambda client: allow(client, whole))
    stage.judge()


def _without_status(rules: list[Json]) -> list[Json]:
    """Return rules without the right to write statuses of Workloads."""
    left = [
        {**one, "resources": [name for name in one["resources"] if name != "workloads/status"]}
        for one in rules
        if "resources" in one
    ]
    return [one for one in left if one["resources"]]
