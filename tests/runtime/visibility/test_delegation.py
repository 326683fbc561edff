"""Which user a request is for: only the API server's certificate gives its headers any weight."""

from __future__ import annotations

import asyncio

import pytest

from unisono.kube.form import Json
from unisono.net.http.pages import PageRequest
from unisono.runtime.visibility.delegation import Delegation, FrontProxy, Visitor, front_proxy_of
from unisono.runtime.visibility.delegation import visitor_of as read

PROXY = FrontProxy(
    authority="PEM",
    names=("front-proxy-client",),
    user_headers=("X-Remote-User",),
    uid_headers=("X-Remote-Uid",),
    group_headers=("X-Remote-Group",),
    extra_prefixes=("X-Remote-Extra-",),
)


def request(*fields: tuple[str, str], client: str = "front-proxy-client") -> PageRequest:
    raw = [(name.encode(), value.encode()) for name, value in fields]
    joined: dict[str, str] = {}
    for name, value in fields:
        key = name.lower()
        joined[key] = f"{joined[key]},{value}" if key in joined else value
    return PageRequest(
        method="GET", path="/apis", query={}, headers=joined, fields=raw, client_name=client
    )


def test_a_user_with_groups_and_extra_fields() -> None:
    made = request(
        ("X-Remote-User", "ada"),
        ("x-remote-uid", "42"),
        ("X-Remote-Group", "ml"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Extra-Example.com%2fscopes", "read"),
        ("X-Remote-Extra-Example.com%2fscopes", "write"),
    )
    assert read(made, PROXY) == Visitor(
        name="ada",
        uid="42",
        groups=("ml", "system:authenticated"),
        extra=(("example.com/scopes", ("read", "write")),),
    )


def test_a_group_with_a_comma_stays_one_group() -> None:
    made = request(("X-Remote-User", "ada"), ("X-Remote-Group", "cn=x,system:masters"))
    visitor = read(made, PROXY)
    assert visitor is not None
    assert visitor.groups == ("cn=x,system:masters",)


@pytest.mark.parametrize(
    ("client", "proxy"),
    [
        ("", PROXY),  # no certificate, or none that was verified
        ("kubelet", PROXY),  # one of the same authority for something else
        ("front-proxy-client", FrontProxy(user_headers=("X-Remote-User",))),  # no authority at all
    ],
)
def test_headers_of_others_are_worth_nothing(client: str, proxy: FrontProxy) -> None:
    assert read(request(("X-Remote-User", "ada"), client=client), proxy) is None


def test_without_names_any_certificate_of_the_authority_will_do() -> None:
    proxy = FrontProxy(authority="PEM", user_headers=("X-Remote-User",))
    assert read(request(("X-Remote-User", "ada"), client="any"), proxy) == Visitor(name="ada")


def test_no_user_is_no_user() -> None:
    assert read(request(("X-Remote-Group", "system:masters")), PROXY) is None
    assert read(request(("X-Remote-User", "")), PROXY) is None


def test_what_an_api_server_says_of_itself() -> None:
    found = front_proxy_of(
        {
            "requestheader-client-ca-file": "PEM",
            "requestheader-allowed-names": '["front-proxy-client"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-uid-headers": '["X-Remote-Uid"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        }
    )
    assert found == PROXY
    assert front_proxy_of({}) == FrontProxy()
    assert front_proxy_of({"requestheader-allowed-names": "{"}) == FrontProxy()


class Reviews:
    """An API that allows some users, and counts questions."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[Json] = []

    async def create(self, review: Json) -> Json:
        self.asked.append(review["spec"])
        if review["kind"] == "TokenReview":
            user = {"username": "ada", "groups": ["ml"], "extra": {"b": ["1"], "a": ["2"]}}
            known = review["spec"]["token"] == "good"
            return {"status": {"authenticated": known, "user": user if known else {}}}
        return {"status": {"allowed": review["spec"]["user"] in self.allowed}}


def test_answers_are_kept_for_seconds() -> None:
    async def story() -> None:
        now, reviews = 0.0, Reviews("ada")
        delegation = Delegation(reviews, lambda: now)  # type: ignore[arg-type]  # one of its calls
        ada = Visitor(name="ada", groups=("ml",), extra=(("a", ("1",)),))
        about = {"verb": "get", "name": "cq"}
        assert await delegation.may(ada, about)
        assert await delegation.may(ada, about)
        assert not await delegation.may(Visitor(name="eve"), about)
        assert len(reviews.asked) == 2
        spec = reviews.asked[0]
        assert (spec["groups"], spec["extra"]) == (["ml"], {"a": ["1"]})
        assert spec["resourceAttributes"] == about
        now, reviews.allowed = 11.0, ()
        assert not await delegation.may(ada, about)

    asyncio.run(story())


def test_a_token_has_a_user_or_none() -> None:
    async def story() -> None:
        delegation = Delegation(Reviews(), lambda: 0.0)  # type: ignore[arg-type]  # as above
        expected = Visitor(name="ada", groups=("ml",), extra=(("a", ("2",)), ("b", ("1",))))
        assert await delegation.user_of_token({"authorization": "Bearer good"}) == expected
        assert await delegation.user_of_token({"authorization": "Bearer bad"}) is None
        assert await delegation.user_of_token({}) is None

    asyncio.run(story())
