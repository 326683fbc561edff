"""Headers that a client repeats are read once, and never say more than they did."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import orjson

from unisono.apiserver.access.filters import Authenticator, RequestFilter, hash_token
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import bootstrap
from unisono.apiserver.http_entry import HttpEntry
from unisono.apiserver.request import User
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store
from unisono.net.http.server import serving
from unisono.net.listener import listen

ADMIN = User(name="admin", groups=("system:masters", "system:authenticated"))
OTHER = User(name="other", groups=("system:authenticated",))
USERS = {hash_token("good"): ADMIN, hash_token("plain"): OTHER}
SELF_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def _asked(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    length = f"Content-Length: {len(body)}"
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", length, *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def _codes(requests: Sequence[bytes]) -> list[int]:
    """Send requests one after the other on one connection; return the codes of the answers."""

    async def story() -> list[int]:
        store = Store(Database(":memory:"))
        random_source = random.Random(1)
        outside = Environment(
            clock=lambda: 0.0,
            new_uid=lambda: f"{random_source.getrandbits(64)}",
            random_source=random_source,
        )
        api = Api(store, outside)
        await bootstrap(api)
        gate = RequestFilter(Authenticator(USERS))
        sock = listen("127.0.0.1", 0)
        codes = []
        async with asyncio.timeout(20), serving(HttpEntry(api, gate.admit), sock, None):
            reader, writer = await asyncio.open_connection(*sock.getsockname(), limit=2**22)
            for each in requests:
                writer.write(each)
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                codes.append(int(head.split()[1]))
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                await reader.readexactly(int(length))
            writer.close()
        store.close()
        return codes

    return asyncio.run(story())


def test_another_token_is_another_user() -> None:
    good, bad = "Authorization: Bearer good", "Authorization: Bearer bad"
    nodes = [_asked("GET", "/api/v1/nodes", one) for one in (good, good, bad, good, bad)]
    assert _codes(nodes) == [200, 200, 401, 200, 401]


def test_what_is_open_to_all_opens_nothing_else() -> None:
    asked = [_asked("GET", "/healthz"), _asked("GET", "/api/v1/nodes"), _asked("GET", "/healthz")]
    assert _codes(asked) == [200, 401, 200]


def test_impersonation_is_checked_each_time() -> None:
    plain = ("Authorization: Bearer plain", "Impersonate-User: admin")
    good = ("Authorization: Bearer good", "Impersonate-User: other")
    asked = [_asked("GET", "/api/v1/nodes", *one) for one in (plain, plain, good, good)]
    assert _codes(asked) == [403, 403, 200, 200]


def test_bodies_of_different_length_come_with_the_same_headers() -> None:
    def config(name: str, size: int) -> bytes:
        made = {"metadata": {"name": name}, "data": {"a": "x" * size}}
        headers = ("Authorization: Bearer good", "Content-Type: application/json")
        path = "/api/v1/namespaces/default/configmaps"
        return _asked("POST", path, *headers, body=orjson.dumps(made))

    assert _codes([config("a", 1), config("b", 500), config("a", 20)]) == [201, 201, 409]
