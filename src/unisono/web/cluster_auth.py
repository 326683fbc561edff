"""Sign-in on a cluster: its API says which user a token belongs to, and what that user may list.

    user of the token      TokenReview, kept for a minute
    permissions            SubjectAccessReview: in all namespaces at once; where that is refused,
                           namespace by namespace, for those that have workloads

A person sees in the page what `kubectl get` would show them. Nothing is kept of a token but its
hash. When the API does not answer, no user is let in.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

import msgspec

from unisono.kube.errors import KubeError
from unisono.kube.form import Json
from unisono.web.auth import AuthenticationError, Permissions, token_of

# Answers are kept so long; so long a user stays signed in after access was withdrawn.
_KEPT_S = 60.0
# A wrong token stays wrong for a while, so that guessing costs the API little.
_REFUSED_S = 5.0
_MOST_KNOWN = 512
_MOST_REFUSED = 1024
# Without the permission for all namespaces each is asked about, the busiest first.
_MOST_NAMESPACES = 500
_AT_ONCE = 8
_LONGEST_TOKEN = 16_384
_KUEUE, _KARPENTER = "kueue.x-k8s.io", "karpenter.sh"


class Creates(Protocol):
    """The part of an API client that is needed: a review is created, and its answer comes back."""

    async def create(self, new: Json) -> Json:
        """Create an object."""


@dataclass(slots=True)
class _Known:
    """A user, and what the API answered about their permissions."""

    user: Json
    since: float
    permissions: Permissions | None = None
    pods: dict[str, bool] = field(default_factory=dict)  # by namespace
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class ClusterAuthenticator:
    """Signs in users that the API of a cluster knows."""

    uses_cookie = True

    def __init__(
        self,
        api: Creates,
        namespaces: Callable[[], Iterable[str]],
        *,
        now: Callable[[], float],
    ) -> None:
        """Ask this API; `namespaces` are those that have something to see, the busiest first."""
        self._api = api
        self._namespaces = namespaces
        self._now = now
        self._known: dict[bytes, _Known] = {}
        self._refused: dict[bytes, float] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)
        # Tokens that were never valid have turns of their own: a flood of them holds up new users
        # and none that is signed in.
        self._turns_of_strangers = asyncio.Semaphore(_AT_ONCE)

    async def admit(self, headers: Mapping[str, str]) -> Permissions | None:
        """Ask which user that is and what they may see."""
        token = token_of(headers)
        if not token or len(token) > _LONGEST_TOKEN:
            return None
        known = await self._user_of(token)
        if known is None:
            return None
        async with known.asking:
            if known.permissions is None:
                known.permissions = await self._permissions(known.user)
            return known.permissions

    async def may_see_pods(self, permissions: Permissions, namespace: str) -> Permissions:
        """Ask about the pods of one namespace, when a user looks at a workload there."""
        if permissions.sees_pods(namespace) or not permissions.sees(namespace):
            return permissions
        known = next((one for one in self._known.values() if one.permissions is permissions), None)
        if known is None:
            return permissions
        if namespace not in known.pods:
            known.pods[namespace] = await self._may(known.user, "", "pods", namespace)
        if not known.pods[namespace]:
            return permissions
        return msgspec.structs.replace(permissions, pods=frozenset({namespace}))

    async def user_of(self, token: str) -> Json | None:
        """Return the user of a token as the API describes it; None if it knows none."""
        known = await self._user_of(token) if 0 < len(token) <= _LONGEST_TOKEN else None
        return known.user if known is not None else None

    # ---- users -----------------------------------------------------------------------------------

    async def _user_of(self, token: str) -> _Known | None:
        key = hashlib.sha256(token.encode()).digest()
        now = self._now()
        known = self._known.get(key)
        if known is not None and now - known.since < _KEPT_S:
            return known
        if now - self._refused.get(key, float("-inf")) < _REFUSED_S:
            return None
        status = await self._ask(
            "authentication.k8s.io/v1",
            "TokenReview",
            {"token": token},
            self._turns if known is not None else self._turns_of_strangers,
        )
        user = status.get("user") or {}
        self._known.pop(key, None)
        if not status.get("authenticated") or not user.get("username"):
            _put(self._refused, key, now, _MOST_REFUSED)
            return None
        made = _Known(user, now)
        _put(self._known, key, made, _MOST_KNOWN)
        return made

    # ---- permissions -----------------------------------------------------------------------------

    async def _permissions(self, user: Json) -> Permissions:
        all_workloads, all_pods, nodes, queues, machines = await asyncio.gather(
            self._may(user, _KUEUE, "workloads"),
            self._may(user, "", "pods"),
            self._may(user, "", "nodes"),
            self._may(user, _KUEUE, "clusterqueues"),
            self._may(user, _KARPENTER, "nodeclaims"),
        )
        some = frozenset[str]()
        if not all_workloads:
            asked = list(islice(self._namespaces(), _MOST_NAMESPACES))
            answers = await asyncio.gather(
                *(self._may(user, _KUEUE, "workloads", one) for one in asked)
            )
            some = frozenset(one for one, may in zip(asked, answers, strict=True) if may)
        return Permissions(
            name=str(user["username"]),
            workloads=None if all_workloads else some,
            pods=None if all_pods else frozenset(),
            nodes=nodes,
            queues=queues,
            machines=machines,
            reports=all_workloads and nodes,
        )

    async def _may(self, user: Json, group: str, resource: str, namespace: str = "") -> bool:
        about = {"verb": "list", "group": group, "resource": resource, "namespace": namespace}
        spec = {
            "user": user["username"],
            "groups": user.get("groups") or [],
            "uid": user.get("uid", ""),
            "extra": user.get("extra") or {},
            "resourceAttributes": about,
        }
        review = "SubjectAccessReview"
        status = await self._ask("authorization.k8s.io/v1", review, spec, self._turns)
        return status.get("allowed") is True and not status.get("denied")

    async def _ask(self, api_version: str, kind: str, spec: Json, turns: asyncio.Semaphore) -> Json:
        review = {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}
        async with turns:
            try:
                answer = await self._api.create(review)
            except KubeError as error:
                raise AuthenticationError(
                    "the API server cannot authenticate you now; try again"
                ) from error
        status: Json = answer.get("status") or {}
        return status


def _put(into: dict[bytes, Any], key: bytes, value: Any, most: int) -> None:
    """Remember something; of too much, the oldest is forgotten."""
    while len(into) >= most:
        del into[next(iter(into))]
    into[key] = value
