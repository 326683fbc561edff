"""Several users on one API: what they may do follows from the objects they write."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import orjson

from tests.apiserver.access.cluster import MASTER, person, rule, user
from unisono.apiserver.access.authorize import authorizer_for
from unisono.apiserver.access.filters import Authenticator
from unisono.apiserver.access.reviews import RoleBasedAccess
from unisono.apiserver.access.roles import GROUP
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import bootstrap
from unisono.apiserver.request import Request, User
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store

ALICE = user("alice")
RBAC = f"/apis/{GROUP}/v1"
PODS = "/api/v1/namespaces/default/pods"

Ask = Callable[..., Awaitable[int]]


def on_an_api(story: Callable[[Ask], Awaitable[None]]) -> None:
    async def run() -> None:
        store = Store(Database(":memory:"))
        numbers = count(1)
        outside = Environment(
            clock=lambda: 1e9,
            new_uid=lambda: f"uid-{next(numbers)}",
            random_source=random.Random(1),
            reviews=RoleBasedAccess(authorizer_for(store), Authenticator({})),
        )
        try:
            api = Api(store, outside)
            await bootstrap(api)

            async def ask(caller: User, method: str, path: str, body: Any = None) -> int:
                headers = {"content-type": "application/json"}
                sent = b"" if body is None else orjson.dumps(body)
                request = Request(method=method, path=path, headers=headers, body=sent, user=caller)
                return (await api.handle(request)).code

            await story(ask)
        finally:
            store.close()

    asyncio.run(run())


def test_a_binding_opens_a_namespace_and_its_end_closes_it() -> None:
    binding = {
        "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"},
        "subjects": [person("alice")],
    }

    async def story(ask: Ask) -> None:
        bindings = f"{RBAC}/namespaces/default/rolebindings"
        assert await ask(ALICE, "GET", PODS) == 403
        assert await ask(ALICE, "GET", "/apis") == 200
        assert await ask(ALICE, "GET", "/metrics") == 403
        assert await ask(MASTER, "POST", bindings, binding) == 201
        assert await ask(ALICE, "GET", PODS) == 200
        assert await ask(ALICE, "GET", "/api/v1/namespaces/kube-system/pods") == 403
        assert await ask(ALICE, "GET", "/api/v1/pods") == 403
        assert await ask(ALICE, "DELETE", f"{PODS}/p") == 403
        assert await ask(ALICE, "GET", "/api/v1/namespaces/default/secrets") == 403
        assert await ask(MASTER, "DELETE", f"{bindings}/alice") == 200
        assert await ask(ALICE, "GET", PODS) == 403

    on_an_api(story)


def test_a_role_of_ones_own() -> None:
    async def story(ask: Ask) -> None:
        roles, bindings = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
        role = {"metadata": {"name": "nodes"}, "rules": [rule("get list", "nodes")]}
        reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "nodes"}
        bound = {"metadata": {"name": "n"}, "roleRef": reference, "subjects": [person("alice")]}
        assert await ask(MASTER, "POST", bindings, bound) == 201
        assert await ask(ALICE, "GET", "/api/v1/nodes") == 403
        assert await ask(MASTER, "POST", roles, role) == 201
        assert await ask(ALICE, "GET", "/api/v1/nodes") == 200

    on_an_api(story)
