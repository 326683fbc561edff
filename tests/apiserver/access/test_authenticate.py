"""Tokens and the users file."""

from __future__ import annotations

from pathlib import Path

import pytest

from unisono.apiserver.access.credential_files import Exposed
from unisono.apiserver.access.filters import (
    Authenticator,
    BadUsers,
    hash_token,
    load_users,
)
from unisono.apiserver.request import User

ALICE, BOB = User(name="alice"), User(name="bob", groups=("team",))
KNOWN = Authenticator({hash_token("a-token"): ALICE, hash_token("b-token"): BOB})


@pytest.mark.parametrize(
    ("header", "user"),
    [
        ("Bearer a-token", ALICE),
        ("bearer b-token", BOB),
        ("Bearer  a-token ", ALICE),
        ("Bearer c-token", None),
        ("Bearer ", None),
        ("Bearer", None),
        ("Basic a-token", None),
        ("a-token", None),
        ("", None),
        ("Bearer " + "x" * 10_000, None),
        ("Bearer " + hash_token("a-token"), None),
    ],
)
def test_tokens(header: str, user: User | None) -> None:
    assert KNOWN.user_of({"authorization": header}) == user


def test_no_header_is_no_user() -> None:
    assert KNOWN.user_of({}) is None
    assert Authenticator({}).user_of({"authorization": "Bearer x"}) is None


def users_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "users.yaml"
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_users_of_a_file(tmp_path: Path) -> None:
    text = f"""
users:
- name: alice
  groups: [research, system:authenticated]
  tokenHash: sha256:{hash_token("a")}
- name: bob
  tokenHash: sha256:{hash_token("b")}
"""
    assert load_users(users_file(tmp_path, text)) == {
        hash_token("a"): User(name="alice", groups=("research", "system:authenticated")),
        hash_token("b"): User(name="bob", groups=("system:authenticated",)),
    }


HASH, OTHER = (f"sha256:{hash_token(token)}" for token in "ab")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "users.yaml"),
        ("", "needs a list `users`"),
        ("users: {}", "needs a list `users`"),
        ("users: [1]", r"users\[0\]: needs name"),
        (f"users: [{{name: '', tokenHash: '{HASH}'}}]", r"users\[0\]\.name"),
        (f"users: [{{name: system:masters, tokenHash: '{HASH}'}}]", r"users\[0\]\.name"),
        (f"users: [{{name: a, groups: b, tokenHash: '{HASH}'}}]", r"users\[0\]\.groups"),
        ("users: [{name: a, tokenHash: secret}]", "sha256sum"),
        ("users: [{name: a}]", "sha256sum"),
        (f"users: [{{name: a, tokenHash: '{HASH}', token: b}}]", "token: is not a field"),
        (
            f"users: [{{name: a, tokenHash: '{HASH}'}}, {{name: b, tokenHash: '{HASH}'}}]",
            "a has the same token",
        ),
        (
            f"users: [{{name: a, tokenHash: '{HASH}'}}, {{name: a, tokenHash: '{OTHER}'}}]",
            "a is there already",
        ),
        *(
            (f"users: [{{name: a, tokenHash: '{HASH}', uid: {uid}}}]", r"users\[0\]\.uid: must")
            for uid in ("0", "-1", "root", "true", "1.5", "2147483648", "null")
        ),
        (
            f"users: [{{name: a, tokenHash: '{HASH}', uid: 7}}, "
            f"{{name: b, tokenHash: '{OTHER}', uid: 7}}]",
            "7 is a's already",
        ),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadUsers, match=message):
        load_users(users_file(tmp_path, text))


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = users_file(tmp_path, "users: []")
    path.chmod(0o644)
    with pytest.raises(Exposed, match="chmod 600"):
        load_users(path)


def test_an_absent_file(tmp_path: Path) -> None:
    with pytest.raises(BadUsers, match="absent"):
        load_users(tmp_path / "absent")
