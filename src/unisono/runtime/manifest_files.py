"""Manifests that a user names with -f: files, what a folder holds, or stdin."""

from __future__ import annotations

import sys
from pathlib import Path

from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.documents import MAX_FILE_BYTES, Document, read_documents

File = tuple[str, bytes]

MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
SCRIPT_SUFFIXES = (".sh", ".sbatch")


def files_of(name: str, *, takes_scripts: bool = False) -> list[File]:
    """Return the files behind one -f: itself, stdin, or what a folder holds."""
    if name == "-":
        return [("<stdin>", sys.stdin.buffer.read(MAX_FILE_BYTES + 1))]
    path = Path(name)
    if path.is_dir():
        wanted = (*MANIFEST_SUFFIXES, *SCRIPT_SUFFIXES) if takes_scripts else MANIFEST_SUFFIXES
        found = sorted(p for p in path.iterdir() if p.suffix in wanted)
        if not found:
            raise InvalidManifest("-f", f"{name} has no .yaml, .yml or .json files")
        return [(str(file), _content(file)) for file in found]
    if is_script(name) and not takes_scripts:
        raise InvalidManifest("-f", f"{name} is a batch script; submit it with `unisono sbatch`")
    return [(name, _content(path))]


def is_script(name: str) -> bool:
    """Say whether a file is a batch script by its name."""
    return Path(name).suffix in SCRIPT_SUFFIXES


def documents_of(names: list[str]) -> list[Document]:
    """Return every object behind some -f; raises InvalidManifest with all that cannot be read."""
    documents: list[Document] = []
    problems: list[str] = []
    for file, content in (found for name in names for found in files_of(name)):
        read = read_documents(file, content)
        documents += read.documents
        problems += (problem.line() for problem in read.problems)
        for warning in read.warnings:
            sys.stderr.write(f"unisono: {warning.line()}\n")
    if problems:
        raise InvalidManifest("", "\n".join(problems))
    if not documents:
        raise InvalidManifest("-f", f"{', '.join(names)}: no objects there")
    return documents


def _content(path: Path) -> bytes:
    """Read a file, but never more than what the reader of documents accepts."""
    with path.open("rb") as opened:
        return opened.read(MAX_FILE_BYTES + 1)
