"""Users of an embedded cluster's page: its owner by the page's own token, others by theirs.

The others are those of `unisono up --users`; the API knows their tokens and their roles, and every
action is a request of theirs to it. The token is sent in a header by the page, never as a cookie: a
cookie would go to every other port of this machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from unisono.apiserver.api import Api
from unisono.apiserver.bootstrap import SYSTEM
from unisono.apiserver.request import User
from unisono.kube.client import Client
from unisono.kube.connect import client_over
from unisono.runtime.clock import RealClock, seconds_now
from unisono.runtime.embedded.in_process import InProcess
from unisono.runtime.embedded.server import ADMIN
from unisono.runtime.ids import new_uid, random_source
from unisono.web.auth import AuthenticationError, Permissions, TokenAuthenticator, token_of
from unisono.web.cluster_auth import ClusterAuthenticator


class Users:
    """Signs users in, and makes API clients that act as them."""

    uses_cookie = False

    def __init__(self, api: Api, token: str, namespaces: Callable[[], Iterable[str]]) -> None:
        """Know the owner by a token, and the users of an API."""
        self._api = api
        self._owner = TokenAuthenticator(token)
        self._others = ClusterAuthenticator(
            self._client(SYSTEM, is_checked=False), namespaces, now=seconds_now
        )

    async def admit(self, headers: Mapping[str, str]) -> Permissions | None:
        """Return the permissions of a user; None if unknown."""
        headers = _without_cookies(headers)
        return await self._owner.admit(headers) or await self._others.admit(headers)

    async def may_see_pods(self, permissions: Permissions, namespace: str) -> Permissions:
        """Ask about the pods of one namespace."""
        return await self._others.may_see_pods(permissions, namespace)

    @contextlib.asynccontextmanager
    async def acting(self, headers: Mapping[str, str]) -> AsyncIterator[Client]:
        """Act as the user of a request."""
        headers = _without_cookies(headers)
        if await self._owner.admit(headers) is not None:
            yield self._client(ADMIN)
            return
        known = await self._others.user_of(token_of(headers))
        if known is None:
            raise AuthenticationError("the token is missing or wrong")
        user = User(name=str(known["username"]), groups=tuple(known.get("groups") or ()))
        yield self._client(user)

    def _client(self, user: User, *, is_checked: bool = True) -> Client:
        transport = InProcess(self._api, user, "unisono-web", is_checked=is_checked)
        client = client_over(
            transport, clock=RealClock(), random_source=random_source(), ids=new_uid
        )
        return client.variant(most_tries=1)


def _without_cookies(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in headers.items() if name == "authorization"}
