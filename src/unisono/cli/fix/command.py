"""`unisono fix`: manifests as their own projects accept them today.

We read old versions and shorthands that Kueue and others refuse. This shows what to change, as a
diff, or changes it; comments, order and documents that are well stay as they are.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from unisono.cli.connection import add_filenames
from unisono.cli.fix.yaml_edits import edited
from unisono.cli.objects import dump
from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.documents import Document, read_documents
from unisono.kinds.spelling import spelled
from unisono.runtime.manifest_files import files_of

EPILOG = """\
examples:
  unisono fix -f queues.yaml              show what to change, as a diff
  unisono fix -f manifests/ --write       change the files
  unisono fix -f - < old.yaml > new.yaml  through a pipe: the whole text comes out

What was changed, and why, stands on stderr, one line for each. Exit code 0: nothing had to be
changed, or it was; 1: there is something to change and --write was not given.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        prog="unisono fix",
        description="Rewrite manifests into the spelling that Kueue and others accept today.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_filenames(made)
    made.add_argument("--write", action="store_true", help="change the files")
    return made


def run(arguments: argparse.Namespace) -> int:
    """Show or make the changes."""
    is_left = False
    for file, content in (one for name in arguments.filename for one in files_of(name)):
        read = read_documents(file, content)
        if read.problems:
            raise InvalidManifest("", "\n".join(problem.line() for problem in read.problems))
        text = content.decode("utf-8-sig")
        made, said = rewritten(text, read.documents)
        for line in said:
            print(f"{file}: {line}", file=sys.stderr)
        if file == "<stdin>":
            sys.stdout.write(made)
        elif made != text and arguments.write:
            _replace(Path(file).resolve(), made)
        elif made != text:
            is_left = True
            sys.stdout.writelines(_diff(file, text, made))
    return int(is_left)


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole or not at all: a full disk must not cost a manifest."""
    unfinished = path.with_name(f".{path.name}.new")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.chmod(path.stat().st_mode & 0o777)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def rewritten(text: str, documents: Sequence[Document]) -> tuple[str, list[str]]:
    """Return a file in today's spelling, and what was changed, by document."""
    said: list[str] = []
    parts = _parts(text)
    for number, obj in _objects(documents):
        fixed = spelled(obj)
        said.extend(f"document {number}: {change}" for change in fixed.changes)
        if fixed.changes:
            parts[number - 1] = in_place(parts[number - 1], obj, fixed.obj)
    return "".join(parts), said


def _objects(documents: Sequence[Document]) -> Iterator[tuple[int, Any]]:
    """Yield documents with their numbers; members of a List are left as they are."""
    for one in documents:
        if not one.prefix:
            yield one.number, one.raw


def _parts(text: str) -> list[str]:
    """Cut a text into its documents, each with the line that ends it."""
    if text.lstrip().startswith("{"):
        return [text]
    parts, current = [], ""
    has_begun = False
    for line in text.splitlines(keepends=True):
        if line.startswith("---") and line[3:4] in ("", " ", "\n", "\r"):
            if has_begun:
                parts.append(current)
                current = ""
            has_begun = True
        elif line.strip() and not line.lstrip().startswith("#"):
            has_begun = True
        current += line
    return [*parts, current]


def in_place(text: str, old: Any, new: Any) -> str:
    """Change a document in place if that can be done, else write it anew."""
    head, body = _head(text)
    if old == new:
        return text
    if _is_json(body):
        return head + dump(new, "json")
    try:
        made = edited(body, old, new)
        if yaml.safe_load(made) == new:
            return head + made
    except (yaml.YAMLError, KeyError, ValueError):
        pass
    return head + dump(new, "yaml")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _head(text: str) -> tuple[str, str]:
    """Return the line that begins a document, and the rest."""
    if text.startswith("---"):
        line, _, rest = text.partition("\n")
        return f"{line}\n", rest
    return "", text


def _diff(file: str, before: str, after: str) -> Iterator[str]:
    lines = (before.splitlines(keepends=True), after.splitlines(keepends=True))
    for line in difflib.unified_diff(*lines, fromfile=file, tofile=f"{file} (fixed)"):
        yield line if line.endswith("\n") else f"{line}\n"
