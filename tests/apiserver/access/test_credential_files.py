"""The file for kubectl."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from unisono.apiserver.access.credential_files import (
    kubeconfig,
    merged,
    read_token,
    write_kubeconfig,
)


def write(path: Path, token: str = "secret") -> None:
    write_kubeconfig(path, url="https://127.0.0.1:1", authority_pem=b"PEM", token=token)


def test_what_is_written_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    write(path)
    config = yaml.safe_load(path.read_text())
    assert config["current-context"] == "unisono"
    assert config["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": "UEVN",
    }
    assert read_token(path) == "secret"
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_unchanged_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    write(path)
    before = path.stat().st_ino
    write(path)
    assert path.stat().st_ino == before
    write(path, "other")
    assert read_token(path) == "other"


@pytest.mark.parametrize("text", ["", "[", "users: []", "users: [{user: {token: 5}}]", "a", "\0"])
def test_no_token_where_there_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    assert read_token(path) == ""
    assert read_token(tmp_path / "absent") == ""


def test_merging_keeps_what_is_not_ours() -> None:
    ours = kubeconfig(url="https://new", authority_pem=b"", token="t", name="unisono")
    theirs = {
        "clusters": [{"name": "work", "cluster": {}}, {"name": "unisono", "cluster": {"old": 1}}],
        "users": None,
        "contexts": [{"name": "work", "context": {}}],
        "current-context": "work",
        "preferences": {"colors": True},
    }
    made = merged(theirs, ours)
    assert [each["name"] for each in made["clusters"]] == ["work", "unisono"]
    assert made["clusters"][1]["cluster"]["server"] == "https://new"
    assert [each["name"] for each in made["users"]] == ["unisono"]
    assert made["current-context"] == "unisono"
    assert made["preferences"] == {"colors": True}
    assert merged(made, ours) == made
