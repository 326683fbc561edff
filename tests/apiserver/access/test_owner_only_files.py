"""Secrets on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unisono.apiserver.access.credential_files import Exposed, refuse_exposed, write_privately


def test_only_the_owner_can_read_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    before = os.umask(0)
    try:
        write_privately(path, b"one")
        write_privately(path, b"two")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["secret"]


def test_a_link_that_is_there_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "secret.new").symlink_to(victim)
    write_privately(tmp_path / "secret", b"key")
    assert victim.read_text() == "mine"
    assert (tmp_path / "secret").read_bytes() == b"key"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_an_open_file_is_refused_with_the_command_that_closes_it(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a secret"
    path.write_text("x")
    path.chmod(mode)
    with pytest.raises(Exposed, match=rf"mode {mode:04o}.*chmod 600 '.*a secret'"):
        refuse_exposed(path)
    path.chmod(0o600)
    refuse_exposed(path)


def test_folders_too_and_absent_files_are_fine(tmp_path: Path) -> None:
    refuse_exposed(tmp_path / "absent")
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(Exposed, match="chmod 700"):
        refuse_exposed(folder)
