"""Which user a request is for, and whether that user may: asked of the cluster's own API.

    over the API server    it shows a certificate of the authority that the ConfigMap
                           `extension-apiserver-authentication` names, and says the user in headers
    directly               a bearer token, by TokenReview
    may they?              SubjectAccessReview, kept for some seconds

Headers of a client without that certificate are worth nothing: any client could send them. A header
that is given several times is several values; joined by commas, one group would become two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from unisono.kube.client import Client
from unisono.kube.form import Json
from unisono.net.http.pages import PageRequest
from unisono.web.auth import token_of

# As extension servers of Kubernetes keep such answers.
_KEPT_S = 10.0
# Users times queues that are looked at within that time; beyond it the oldest are asked about anew.
_MOST_KEPT = 4096


class FrontProxy(msgspec.Struct, frozen=True):
    """How the API server of a cluster proves itself, and how it says which user it asks for."""

    authority: str = ""  # PEM; empty where the API server does not do this at all
    names: tuple[str, ...] = ()  # of its certificate; any if there are none
    user_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()


def front_proxy_of(data: Mapping[str, Any]) -> FrontProxy:
    """Read the ConfigMap in which an API server says it."""

    def listed(name: str) -> tuple[str, ...]:
        try:
            found = json.loads(data.get(f"requestheader-{name}") or "[]")
        except ValueError:
            return ()
        return tuple(map(str, found)) if isinstance(found, list) else ()

    return FrontProxy(
        authority=str(data.get("requestheader-client-ca-file") or ""),
        names=listed("allowed-names"),
        user_headers=listed("username-headers"),
        uid_headers=listed("uid-headers"),
        group_headers=listed("group-headers"),
        extra_prefixes=listed("extra-headers-prefix"),
    )


class Visitor(msgspec.Struct, frozen=True):
    """The user of a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


def visitor_of(request: PageRequest, proxy: FrontProxy) -> Visitor | None:
    """Return the user that the API server names; None if the request does not come from it."""
    if not proxy.authority or not request.client_name:
        return None
    if proxy.names and request.client_name not in proxy.names:
        return None
    name = _first(request, proxy.user_headers)
    if not name:
        return None
    return Visitor(
        name=name,
        uid=_first(request, proxy.uid_headers),
        groups=tuple(
            value for header in proxy.group_headers for value in request.values(header) if value
        ),
        extra=_extra(request, proxy.extra_prefixes),
    )


def _first(request: PageRequest, headers: Sequence[str]) -> str:
    values = (value for header in headers for value in request.values(header))
    return next((value for value in values if value), "")


def _extra(
    request: PageRequest, prefixes: Sequence[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = []
    for header in sorted(request.headers):
        for prefix in prefixes:
            if header.startswith(prefix.lower()):
                key = unquote(header.removeprefix(prefix.lower()))
                found.append((key, tuple(request.values(header))))
                break
    return tuple(found)


class Delegation:
    """Asks the cluster's API about users."""

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        """Ask with this client."""
        self._client = client
        self._now = now
        self._kept: dict[tuple[object, ...], tuple[float, bool]] = {}

    async def user_of_token(self, headers: Mapping[str, str]) -> Visitor | None:
        """Return the user of a bearer token; None if there is none."""
        token = token_of(headers)
        if not token:
            return None
        status = await self._ask("authentication.k8s.io/v1", "TokenReview", {"token": token})
        user = status.get("user") or {}
        if not status.get("authenticated") or not user.get("username"):
            return None
        extra = user.get("extra") or {}
        return Visitor(
            name=str(user["username"]),
            uid=str(user.get("uid") or ""),
            groups=tuple(map(str, user.get("groups") or ())),
            extra=tuple((str(key), tuple(map(str, extra[key]))) for key in sorted(extra)),
        )

    async def may(self, visitor: Visitor, about: Mapping[str, str]) -> bool:
        """Say whether a user may do something; `about` are attributes of a resource."""
        key = (visitor, *sorted(about.items()))
        known = self._kept.get(key)
        if known is not None and self._now() - known[0] < _KEPT_S:
            return known[1]
        spec = {
            "user": visitor.name,
            "uid": visitor.uid,
            "groups": list(visitor.groups),
            "extra": {name: list(values) for name, values in visitor.extra},
            "resourceAttributes": {**about},
        }
        status = await self._ask("authorization.k8s.io/v1", "SubjectAccessReview", spec)
        allowed = status.get("allowed") is True and not status.get("denied")
        self._kept.pop(key, None)
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (self._now(), allowed)
        return allowed

    async def _ask(self, api_version: str, kind: str, spec: Json) -> Json:
        review = {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}
        return (await self._client.create(review)).get("status") or {}
