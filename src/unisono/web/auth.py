"""Permissions of users: an authenticator turns a request into the permissions of its user.

    workloads   workloads, why they wait and which GPUs they hold: by namespace
    nodes       nodes and what they cost
    queues      ClusterQueues and cohorts, with usage and the next workload
    machines    node pools and claims
    reports     usage and cost of all users

Without a permission, a user sees that something exists (a GPU in use, a position in a queue that is
taken) and not its owner.

On loopback one token opens everything. It is sent in a header, from the memory of one page in one
tab: a cookie would be sent to every other port of the same host, whatever listens there. Under a
name of its own, in a cluster, it is a cookie that scripts cannot read (`cluster_auth`).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Protocol

import msgspec

from unisono.engine.model.errors import UnisonoError

HIDDEN = "·"


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """What one person may see."""

    name: str
    workloads: frozenset[str] | None = frozenset()  # namespaces; None: all
    pods: frozenset[str] | None = frozenset()
    nodes: bool = False
    queues: bool = False
    machines: bool = False
    reports: bool = False

    def sees(self, namespace: str) -> bool:
        """Say whether the gangs of a namespace may be seen."""
        return self.workloads is None or namespace in self.workloads

    def sees_pods(self, namespace: str) -> bool:
        """Say whether the pods of a namespace may be seen."""
        return self.pods is None or namespace in self.pods

    def named(self, namespace: str, name: str) -> str:
        """Return the owner of something, as far as the user may see it."""
        return f"{namespace}/{name}" if self.sees(namespace) else HIDDEN


def everything(name: str) -> Permissions:
    """Return all permissions, for the owner of the cluster."""
    return Permissions(
        name=name, workloads=None, pods=None, nodes=True, queues=True, machines=True, reports=True
    )


COOKIE = "unisono-token"


class AuthenticationError(UnisonoError):
    """The user cannot be determined now; try again."""


class Authenticator(Protocol):
    """Signs users in."""

    @property
    def uses_cookie(self) -> bool:
        """Whether a cookie keeps the user signed in."""

    async def admit(self, headers: Mapping[str, str]) -> Permissions | None:
        """Return the permissions of the user; None if unknown. Raises AuthenticationError."""

    async def may_see_pods(self, permissions: Permissions, namespace: str) -> Permissions:
        """Return a permissions that also says whether the pods of a namespace may be seen."""


class TokenAuthenticator:
    """One token for one user, who may see everything."""

    uses_cookie = False

    def __init__(self, token: str) -> None:
        """Take the token."""
        self._token = token.encode()

    async def admit(self, headers: Mapping[str, str]) -> Permissions | None:
        """Compare the token."""
        if hmac.compare_digest(token_of(headers).encode(), self._token):
            return everything("the owner")
        return None

    async def may_see_pods(self, permissions: Permissions, namespace: str) -> Permissions:
        """All of them."""
        return permissions


def token_of(headers: Mapping[str, str]) -> str:
    """Return the token of a request: of its header, else of its cookie; empty if it has none."""
    header = headers.get("authorization", "")
    if header[:7].lower() == "bearer ":
        return header[7:].strip()
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""
