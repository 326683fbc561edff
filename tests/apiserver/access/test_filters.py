"""The door."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from unisono.apiserver.access.filters import (
    ANONYMOUS,
    Authenticator,
    InFlightLimit,
    RequestFilter,
    hash_token,
)
from unisono.apiserver.errors import ApiError
from unisono.apiserver.request import User

ALICE = User(name="alice", groups=("system:authenticated",))
USERS = Authenticator({hash_token("t"): ALICE})
TOKEN = {"authorization": "Bearer t"}


def code(
    gate: RequestFilter, headers: Mapping[str, str], path: str = "/api", method: str = "GET"
) -> int:
    try:
        gate.admit(method, path, headers)
    except ApiError as refused:
        return refused.code
    return 200


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1:6443", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:6443", 200),
        ("evil.example:6443", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
def test_only_our_own_names_lead_here(host: str, answer: int) -> None:
    assert code(RequestFilter(USERS), {"host": host, **TOKEN}) == answer


def test_other_names_when_they_are_ours() -> None:
    gate = RequestFilter(USERS, hosts=("Cluster.Example",))
    assert code(gate, {"host": "cluster.example:443", **TOKEN}) == 200
    assert code(gate, {"host": "localhost", **TOKEN}) == 403


def test_web_pages_stay_out_except_our_own() -> None:
    gate = RequestFilter(USERS, origins=("https://127.0.0.1:8080",))
    for origin, answer in (
        ("https://evil.example", 403),
        ("http://localhost:3000", 403),
        ("null", 403),
        ("https://127.0.0.1:8080", 200),
    ):
        assert code(gate, {"host": "localhost", "origin": origin, **TOKEN}) == answer


def test_strangers_may_only_ask_for_health() -> None:
    """Scenario 29 of the specification."""
    gate = RequestFilter(USERS)
    here = {"host": "127.0.0.1"}
    for path in ("/healthz", "/livez", "/readyz"):
        assert gate.admit("GET", path, here) == ANONYMOUS
        assert code(gate, here, path, "POST") == 401
        assert code(gate, {**here, "authorization": "Bearer wrong"}, path) == 401
    for path in ("/api", "/version", "/metrics", "/healthz/x", "/", "/openapi/v3"):
        assert code(gate, here, path) == 401


class TestActingAsSomebodyElse:
    def test_with_the_right_to(self) -> None:
        asked = []

        def may(user: User, what: str, name: str) -> bool:
            asked.append((user.name, what, name))
            return True

        gate = RequestFilter(USERS, may_impersonate=may)
        headers = {"host": "localhost", **TOKEN, "impersonate-user": "bob"}
        user = gate.admit("GET", "/api", {**headers, "impersonate-group": "dev, ops"})
        assert user == User(name="bob", groups=("dev", "ops", "system:authenticated"))
        assert asked == [
            ("alice", "users", "bob"),
            ("alice", "groups", "dev"),
            ("alice", "groups", "ops"),
        ]

    def test_without(self) -> None:
        headers = {"host": "localhost", **TOKEN, "impersonate-user": "bob"}
        assert code(RequestFilter(USERS), headers) == 403
        only_bob = RequestFilter(USERS, may_impersonate=lambda user, what, name: name == "bob")
        assert code(only_bob, headers) == 200
        assert code(only_bob, {**headers, "impersonate-group": "system:masters"}) == 403

    def test_masters_may_unless_told_otherwise(self) -> None:
        root = User(name="root", groups=("system:masters",))
        gate = RequestFilter(Authenticator({hash_token("t"): root}))
        headers = {"host": "localhost", **TOKEN, "impersonate-user": "bob"}
        assert gate.admit("GET", "/api", headers).name == "bob"

    def test_a_group_alone_makes_no_sense(self) -> None:
        headers = {"host": "localhost", **TOKEN, "impersonate-group": "dev"}
        assert code(RequestFilter(USERS, may_impersonate=lambda *_: True), headers) == 403

    def test_impersonation_needs_a_token(self) -> None:
        headers = {"host": "localhost", "impersonate-user": "alice"}
        assert code(RequestFilter(USERS, may_impersonate=lambda *_: True), headers) == 401


def test_more_requests_than_can_be_at_work_are_turned_away() -> None:
    flights = InFlightLimit(reads=2, writes=1)
    held = [flights.enter(method) for method in ("GET", "HEAD", "PATCH")]
    for method in ("GET", "POST"):
        with pytest.raises(ApiError, match="at work") as refused:
            flights.enter(method)
        assert refused.value.code == 429
        assert refused.value.retry_after == 1
    flights.leave(flights.enter("GET", is_long=True))
    for place in held:
        flights.leave(place)
    flights.enter("POST")
    flights.enter("GET")
