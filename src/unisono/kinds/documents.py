"""Bytes of a file to documents: YAML or JSON, one or many, lists taken apart.

Nothing here raises: what cannot be read becomes a finding that names file, document and place, and
what can be read is still returned. Whether a document makes sense is decided by `registry` and
`decode`; here it only has to say that it is a Kubernetes object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from unisono.kinds.decode import describe
from unisono.kinds.notes import Finding, Notes
from unisono.kinds.yaml_values import MAX_DEPTH, Unreadable, yaml_documents

# More than any set of manifests written by hand or by Helm; parsing it takes a few seconds.
MAX_FILE_BYTES = 16 * 1024 * 1024
# A file of that size made of the smallest possible objects.
MAX_DOCUMENTS = 100_000


@dataclass(frozen=True, slots=True)
class Document:
    """One Kubernetes object as it stands in a file."""

    file: str
    number: int  # from 1; empty documents count, as they do for a person who counts the `---`
    raw: dict[str, Any]
    prefix: str = ""  # `items[3]` for a member of a List

    @property
    def api_version(self) -> str:
        return str(self.raw["apiVersion"])

    @property
    def kind(self) -> str:
        return str(self.raw["kind"])

    def notes(self, *, strict: bool = False) -> Notes:
        """Start a collector of findings about this document."""
        return Notes(self.file, self.number, strict=strict, prefix=self.prefix)


@dataclass(slots=True)
class Documents:
    """What was found in one file."""

    documents: list[Document] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)


def read_documents(file: str, content: bytes) -> Documents:
    """Take a file apart; `file` is only used to name it in findings."""
    found = Documents()
    whole_file = Notes(file, 0)
    text = _text(content, whole_file)
    number = 0
    try:
        for raw in _values(text):
            number += 1
            if number > MAX_DOCUMENTS:
                whole_file.problem("", f"has more than {MAX_DOCUMENTS:,} documents")
                break
            _take(Document(file, number, raw), found)
    except Unreadable as error:
        Notes(file, number + 1, problems=found.problems).problem("", str(error))
    found.problems.extend(whole_file.problems)
    return found


def _text(content: bytes, notes: Notes) -> str:
    """Decode a file, or note why that cannot be done and return nothing."""
    if len(content) > MAX_FILE_BYTES:
        # The caller may stop reading here, so its real size is not ours to tell.
        limit = MAX_FILE_BYTES // 2**20
        notes.problem("", f"is larger than {limit} MiB, the most that is read; split it")
        return ""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at, byte = error.start, content[error.start]
        notes.problem("", f"is not UTF-8 text: byte 0x{byte:02x} at offset {at}")
        return ""


def _values(text: str) -> Iterator[Any]:
    """Yield raw documents; JSON is tried first on what looks like it, because it is quicker."""
    if not text.lstrip().startswith("{"):
        yield from yaml_documents(text)
        return
    values: list[Any] = []
    try:
        for value in _json_documents(text):
            values.append(value)
    except json.JSONDecodeError as error:
        # YAML may start with a brace, too; if it is neither, the JSON error is the better one.
        try:
            values = list(yaml_documents(text))
        except Unreadable:
            yield from values
            raise Unreadable(error.msg, error.lineno, error.colno) from None
    yield from values


# ---- JSON ------------------------------------------------------------------------------------


def _json_documents(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    at = _skip_space(text, 0)
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            if _is_deeper(value, MAX_DEPTH):
                raise Unreadable(f"values are nested deeper than {MAX_DEPTH} levels")
            yield value
            at = _skip_space(text, at)
    except RecursionError:
        raise Unreadable(f"values are nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise Unreadable(str(error).partition(";")[0]) from None


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Unreadable(f'key "{key}" stands twice in the same object')
            seen.add(key)
    return made


def _refuse_constant(name: str) -> Any:
    raise Unreadable(f"{name} is not a number that JSON allows")


def _is_deeper(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        return levels < 1 or any(_is_deeper(item, levels - 1) for item in value.values())
    if isinstance(value, list):
        return levels < 1 or any(_is_deeper(item, levels - 1) for item in value)
    return levels < 1


# ---- objects and lists -------------------------------------------------------------------------


def _take(document: Document, found: Documents) -> None:
    """Add a document, or the members of a list; warn about what is no object of Kubernetes."""
    raw: Any = document.raw
    notes = document.notes()
    if raw is None or raw == {}:
        return
    if not isinstance(raw, dict):
        notes.problem("", f"must be an object, not {describe(raw)}")
    elif _says_what_it_is(raw, notes):
        if raw["kind"].endswith("List") and isinstance(raw.get("items"), list):
            for index, item in enumerate(raw["items"]):
                prefix = f"{document.prefix}.items[{index}]".removeprefix(".")
                member = _with_kind_of_list(item, raw)
                _take(Document(document.file, document.number, member, prefix), found)
        else:
            found.documents.append(document)
    found.problems.extend(notes.problems)
    found.warnings.extend(notes.warnings)


def _says_what_it_is(raw: dict[str, Any], notes: Notes) -> bool:
    present = [key for key in ("apiVersion", "kind") if raw.get(key) is not None]
    if not present:
        notes.warn("NotAKubernetesObject", "", "not a Kubernetes object; skipped")
        return False
    for key in ("apiVersion", "kind"):
        if key not in present:
            notes.problem(key, "is required")
        elif not isinstance(raw[key], str) or not raw[key]:
            notes.problem(key, f"must be a string that is not empty, not {describe(raw[key])}")
    return not notes.problems


def _with_kind_of_list(item: Any, parent: dict[str, Any]) -> Any:
    """Fill in what members of a typed list (JobList) may leave out."""
    kind = parent["kind"].removesuffix("List")
    if not kind or not isinstance(item, dict):
        return item
    return {"apiVersion": parent["apiVersion"], "kind": kind, **item}
