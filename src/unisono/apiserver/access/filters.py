"""Filters of every request: Host and Origin, authentication, requests in flight.

A page in a browser can send requests to loopback. It cannot forge the Host header, which stops a
web site that points its own name at 127.0.0.1, and it announces itself by Origin; both are looked
at, so that no web site can talk to the API.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from unisono.apiserver.access.credential_files import refuse_exposed
from unisono.apiserver.errors import ApiError
from unisono.apiserver.request import User

LOOPBACK = ("127.0.0.1", "::1", "localhost")
ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))

# Answered without a token, for probes; details are for users (see `reviews`).
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
# Requests at work at the same time; more would only wait for each other. Watches do not count.
MAX_READS = 400
MAX_WRITES = 200
_READS = frozenset({"GET", "HEAD", "OPTIONS"})

# Whether a user may act as another: (user, what: users, groups or serviceaccounts, name).
MayImpersonate = Callable[[User, str, str], bool]


def _masters_may(user: User, _what: str, _name: str) -> bool:
    return "system:masters" in user.groups


class RequestFilter:
    """Checks where a request comes from, and authenticates it."""

    def __init__(
        self,
        authenticator: Authenticator,
        *,
        hosts: Collection[str] = LOOPBACK,
        origins: Collection[str] = (),
        may_impersonate: MayImpersonate = _masters_may,
    ) -> None:
        """Take the users, our own names, and the addresses of pages that may call us."""
        self._authenticator = authenticator
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origins)
        self._may_impersonate = may_impersonate

    def admit(self, method: str, path: str, headers: Mapping[str, str]) -> User:
        """Return the user; raise if it is unknown, or the request comes from a foreign page."""
        host = _host(headers.get("host", ""))
        if host not in self._hosts:
            known = ", ".join(sorted(self._hosts))
            raise ApiError(403, "Forbidden", f'this API is not called "{host}"; it is {known}')
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            raise ApiError(403, "Forbidden", f"requests from web pages ({origin}) are not accepted")
        user = self._authenticator.user_of(headers)
        if user is not None:
            return self._acting_as(user, headers)
        if path in _OPEN_PATHS and method in _READS and "authorization" not in headers:
            return ANONYMOUS
        raise ApiError(401, "Unauthorized", "Unauthorized")

    def _acting_as(self, user: User, headers: Mapping[str, str]) -> User:
        """Return the user that `kubectl --as` names, if this one may act for them."""
        name = headers.get("impersonate-user", "")
        group = headers.get("impersonate-group", "")
        if not name:
            if group or headers.get("impersonate-uid"):
                raise ApiError(403, "Forbidden", "a group can be impersonated only with a user")
            return user
        groups = tuple(part.strip() for part in group.split(",") if part.strip())
        wanted = [("users", name), *(("groups", each) for each in groups)]
        for what, which in wanted:
            if not self._may_impersonate(user, what, which):
                message = f'{what} "{which}" is forbidden: User "{user.name}" cannot impersonate it'
                raise ApiError(403, "Forbidden", message, name=which, kind=what)
        return User(name=name, groups=tuple(dict.fromkeys((*groups, AUTHENTICATED))))


def _host(value: str) -> str:
    """Return a host without its port.

    >>> _host("127.0.0.1:6443"), _host("[::1]:6443"), _host("LocalHost")
    ('127.0.0.1', '::1', 'localhost')
    """
    if value.startswith("["):
        return value[1:].partition("]")[0].lower()
    return value.partition(":")[0].lower()


class InFlightLimit:
    """Counts the requests at work and turns away more than can be."""

    def __init__(self, *, reads: int = MAX_READS, writes: int = MAX_WRITES) -> None:
        """Take how many of each may be at work."""
        self._limits = {"reads": reads, "writes": writes}
        self._flying = {"reads": 0, "writes": 0}

    def enter(self, method: str, *, is_long: bool = False) -> str:
        """Take a place for one request; raise a 429 if there is none. Long ones need none."""
        if is_long:
            return ""
        kind = "reads" if method in _READS else "writes"
        if self._flying[kind] >= self._limits[kind]:
            message = f"too many requests: {self._limits[kind]} {kind} are at work; try again soon"
            raise ApiError(429, "TooManyRequests", message, retry_after=1)
        self._flying[kind] += 1
        return kind

    def leave(self, kind: str) -> None:
        """Give back the place that `enter` gave."""
        if kind:
            self._flying[kind] -= 1


# ---- authenticate --------------------------------------------------------------------------------
#
# Authentication by a bearer token, known by its hash and compared in constant time.
#
# More users than the owner of an instance come from a file:
#
#     users:
#     - name: alice
#       groups: [research]
#       tokenHash: sha256:5e884898da28047151d0e56f8dc6292773603d0d6aabbd62a11ef721d1542d8
#       uid: 1001        # optional: the system user of their process pods

AUTHENTICATED = "system:authenticated"
# Every request is compared with every hash, so that time tells nothing; at half a microsecond each
# this many still cost less than reading the request.
_MAX_USERS = 1000
_MAX_TOKEN = 4096
_LAST_UID = 2**31 - 1  # the kernel has one bit more; many programs do not
_HASH = re.compile(r"sha256:([0-9a-f]{64})")


class BadUsers(Exception):
    """A users file that cannot be used; the message says where and why."""


def hash_token(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


class Authenticator:
    """Knows users by the hashes of their tokens."""

    def __init__(self, users: Mapping[str, User]) -> None:
        """Take the users, by hash."""
        self._users = dict(users)

    def user_of(self, headers: Mapping[str, str]) -> User | None:
        """Return the user that sent these headers, or None."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self.user_of_token(token.strip())

    def user_of_token(self, token: str) -> User | None:
        """Return whose token it is, or None."""
        if not token or len(token) > _MAX_TOKEN:
            return None
        given = hash_token(token)
        found: User | None = None
        for known, user in self._users.items():
            if hmac.compare_digest(known, given):
                found = user
        return found


def load_users(path: Path) -> dict[str, User]:
    """Return the users of a file by the hashes of their tokens; raise BadUsers or Exposed."""
    refuse_exposed(path)
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise BadUsers(f"{path}: {problem}") from problem
    listed = raw.get("users") if isinstance(raw, dict) else None
    if not isinstance(listed, list):
        raise BadUsers(f"{path}: needs a list `users`")
    if len(listed) > _MAX_USERS:
        raise BadUsers(f"{path}: has {len(listed)} users; at most {_MAX_USERS} are allowed")
    users: dict[str, User] = {}
    names: set[str] = set()
    accounts: dict[int, str] = {}
    for number, entry in enumerate(listed):
        where = f"{path}: users[{number}]"
        token_hash, user = _user(entry, where)
        if user.name in names:
            raise BadUsers(f"{where}.name: {user.name} is there already")
        if token_hash in users:
            raise BadUsers(f"{where}.tokenHash: {users[token_hash].name} has the same token")
        other = accounts.setdefault(user.system_uid, user.name) if user.system_uid else user.name
        if other != user.name:
            raise BadUsers(f"{where}.uid: {user.system_uid} is {other}'s already")
        names.add(user.name)
        users[token_hash] = user
    return users


def _user(entry: Any, where: str) -> tuple[str, User]:
    if not isinstance(entry, dict):
        raise BadUsers(f"{where}: needs name, groups and tokenHash")
    unknown = sorted(set(entry) - {"name", "groups", "tokenHash", "uid"}, key=str)
    if unknown:
        raise BadUsers(f"{where}.{unknown[0]}: is not a field of a user")
    name, groups = entry.get("name"), entry.get("groups") or []
    if not isinstance(name, str) or not name.strip() or name.startswith("system:"):
        raise BadUsers(f"{where}.name: must be a name that does not begin with system:")
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise BadUsers(f"{where}.groups: must be a list of names")
    written = _HASH.fullmatch(str(entry.get("tokenHash", "")))
    if written is None:
        raise BadUsers(
            f"{where}.tokenHash: must be sha256: and 64 hexadecimal digits, as made by: "
            "printf %s TOKEN | sha256sum"
        )
    system_uid = entry.get("uid", 0)
    if "uid" in entry and (type(system_uid) is not int or not 0 < system_uid <= _LAST_UID):
        raise BadUsers(
            f"{where}.uid: must be the number of a system user, from 1 (0 is root) to {_LAST_UID}"
        )
    all_groups = tuple(dict.fromkeys((*groups, AUTHENTICATED)))
    return written.group(1), User(name=name, groups=all_groups, system_uid=system_uid)
