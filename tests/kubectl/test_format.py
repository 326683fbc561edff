"""Transcripts as files: written again they are the same, and each says what it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubectl.transcript import MANIFESTS, TRANSCRIPTS, read, write

FILES = sorted(TRANSCRIPTS.glob("*.console"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_transcript_is_in_its_written_form(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    write(copy, read(path))
    assert copy.read_text() == path.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_transcript_begins_with_what_it_is_about(path: Path) -> None:
    first = read(path)[0]
    assert not first.command
    assert first.lines


def test_every_manifest_is_used() -> None:
    commands = " ".join(step.command for path in FILES for step in read(path))
    unused = [path.name for path in MANIFESTS.iterdir() if path.name not in commands]
    assert not unused
