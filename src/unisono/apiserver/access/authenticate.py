"""Authentication by a bearer token, known by its hash and compared in constant time.

More users than the owner of an instance come from a file:

    users:
    - name: alice
      groups: [research]
      tokenHash: sha256:5e884898da28047151d0e56f8dc6292773603d0d6aabbd62a11ef721d1542d8
      uid: 1001        # optional: the system user of their process pods
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from unisono.apiserver.access.credential_files import refuse_exposed
from unisono.apiserver.request import User

AUTHENTICATED = "system:authenticated"
# Every request is compared with every hash, so that time tells nothing; at half a microsecond each
# this many still cost less than reading the request.
MAX_USERS = 1000
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
    if len(listed) > MAX_USERS:
        raise BadUsers(f"{path}: has {len(listed)} users; at most {MAX_USERS} are allowed")
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
