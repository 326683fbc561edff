"""What is said about a YAML text: problems and warnings, of single objects or of all together."""

from __future__ import annotations

from typing import Any

from unisono.engine.model.names import Instant
from unisono.kinds.documents import read_documents
from unisono.kinds.known import KNOWN
from unisono.kinds.notes import Finding
from unisono.kinds.objects import Objects, read_objects
from unisono.kinds.snapshot.build import World, read_world

NOW = Instant(1_000_000)


def objects(text: str, *, strict: bool = False) -> Objects:
    """Decode and check every document by itself."""
    found = read_documents("f.yaml", text.encode())
    assert not found.problems, found.problems
    made = Objects()
    read_objects(enumerate(found.documents), KNOWN, strict=strict, into=made)
    return made


def only(text: str) -> Any:
    """Return the one manifest of a text that must be without problems."""
    made = objects(text)
    assert not made.problems, made.problems
    (entry,) = made.all()
    return entry.manifest


def problems(text: str, *, strict: bool = False) -> list[tuple[str, str]]:
    """Return path and message of every problem with single documents."""
    return [(one.path, one.message) for one in objects(text, strict=strict).problems]


def warnings(text: str, *, strict: bool = False) -> list[tuple[str, str]]:
    """Return code and path of every warning about single documents."""
    return [(one.code, one.path) for one in objects(text, strict=strict).warnings]


def world(*texts: str) -> World:
    """Read texts as files `1.yaml`, `2.yaml`, … at a fixed instant."""
    files = [(f"{number}.yaml", text.encode()) for number, text in enumerate(texts, start=1)]
    return read_world(files, now=NOW)


def sound(*texts: str) -> World:
    """Read texts that must be without problems."""
    made = world(*texts)
    assert not made.problems, [problem.line() for problem in made.problems]
    return made


def lines(findings: tuple[Finding, ...]) -> list[str]:
    """Return findings as their lines."""
    return [finding.line() for finding in findings]
