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
from typing import Any, NamedTuple

import yaml

from unisono.cli.connection import add_filenames
from unisono.cli.help_format import HelpFormat
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
        formatter_class=HelpFormat,
    )
    add_filenames(made)
    made.add_argument("--write", action="store_true", help="write the changes to the files")
    return made


def run(arguments: argparse.Namespace) -> int:
    """Show or make the changes."""
    is_left = False
    for file, content in (one for name in arguments.filename for one in files_of(name)):
        read = read_documents(file, content)
        if read.problems:
            raise InvalidManifest("", "\n".join(problem.line() for problem in read.problems))
        text = content.decode("utf-8-sig")
        made, notes = rewritten(text, read.documents)
        for line in notes:
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
    notes: list[str] = []
    parts = _parts(text)
    for number, obj in _objects(documents):
        fixed = spelled(obj)
        notes.extend(f"document {number}: {change}" for change in fixed.changes)
        if fixed.changes:
            parts[number - 1] = in_place(parts[number - 1], obj, fixed.obj)
    return "".join(parts), notes


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


# ---- edits of a YAML text ------------------------------------------------------------------------
# They leave the rest of it as it was written: order, comments, style.
#
# `edited` compares a document with what it should be and changes only the places that differ: keys
# that are called otherwise, values, keys that come and go. What is too different is written anew
# from its key on. The caller reads the result again; where it is not what it should be, the whole
# document is to be written anew.


class Edit(NamedTuple):
    """Other text for a stretch of it."""

    start: int
    end: int
    text: str


def edited(text: str, old: Any, new: Any) -> str:
    """Return the text of one document that says `old`, saying `new`."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None:
        return text
    for edit in sorted(_differences(node, old, new), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _differences(node: yaml.Node, old: Any, new: Any) -> Iterator[Edit]:
    if old == new:
        return
    if isinstance(node, yaml.MappingNode) and isinstance(old, dict) and isinstance(new, dict):
        yield from _in_mapping(node, old, new)
    elif (
        isinstance(node, yaml.SequenceNode)
        and isinstance(old, list)
        and isinstance(new, list)
        and len(old) == len(new)
    ):
        for child, before, after in zip(node.value, old, new, strict=True):
            yield from _differences(child, before, after)
    else:
        yield _anew(node, new)


def _in_mapping(node: yaml.MappingNode, old: Any, new: Any) -> Iterator[Edit]:
    gone = [key for key in old if key not in new]
    came = [key for key in new if key not in old]
    renamed = {
        before: after
        for before in gone
        for after in came
        if old[before] == new[after] and _are_alone(old[before], old, new)
    }
    pairs = [(str(key.value), key, value) for key, value in node.value]
    for at, (name, key, value) in enumerate(pairs):
        if name in renamed:
            yield Edit(key.start_mark.index, key.end_mark.index, renamed[name])
        elif name in gone:
            following = pairs[at + 1][1].start_mark.index if at + 1 < len(pairs) else None
            yield _without(node, key, value, following)
        else:
            yield from _differences(value, old[name], new[name])
    added = {key: new[key] for key in came if key not in renamed.values()}
    if added and pairs:
        yield _inserted(node, pairs[0][1], added)


def _are_alone(value: Any, old: Any, new: Any) -> bool:
    """Say whether a value is there once before and once after: then it only has another name."""
    return list(old.values()).count(value) == list(new.values()).count(value) == 1


def _without(
    node: yaml.MappingNode, key: yaml.Node, value: yaml.Node, following: int | None
) -> Edit:
    """Take a key away, with the rest of its lines; or up to the next one, if both share a line."""
    text, start = key.start_mark.buffer or "", key.start_mark.index
    begins = start - key.start_mark.column
    if node.flow_style or text[begins:start].strip():
        return Edit(start, _end(value) if following is None else following, "")
    ends = text.find("\n", _end(value))
    return Edit(begins, len(text.rstrip("\0")) if ends < 0 else ends + 1, "")


def _end(node: yaml.Node) -> int:
    """Return where the text of a node ends: a block says it does where the next one begins."""
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return _end(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return _end(node.value[-1])
    text = (node.start_mark.buffer or "")[node.start_mark.index : node.end_mark.index]
    return node.start_mark.index + len(text.rstrip("\0 \n"))


def _inserted(node: yaml.MappingNode, first: yaml.Node, added: dict[str, Any]) -> Edit:
    start = first.start_mark.index
    if node.flow_style:
        return Edit(start, start, "".join(f"{key}: {_inline(one)}, " for key, one in added.items()))
    margin = " " * first.start_mark.column
    lines = dump(added, "yaml").splitlines()
    return Edit(start, start, "".join(f"{line}\n{margin}" for line in lines))


def _anew(node: yaml.Node, value: Any) -> Edit:
    """Write a value anew: on one line where the old one was, else in the same column."""
    start = node.start_mark.index
    is_block = isinstance(node, yaml.CollectionNode) and not node.flow_style
    if not is_block or not isinstance(value, dict | list):
        return Edit(start, _end(node), _inline(value))
    margin = "\n" + " " * node.start_mark.column
    return Edit(start, _end(node), margin.join(dump(value, "yaml").splitlines()))


def _inline(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return text.strip().removesuffix("\n...").strip()
