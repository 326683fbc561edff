"""Documents to decoded objects, found by kind and name.

Every document is looked up, decoded, checked and brought to its stored version; whatever is wrong
with it is collected. What is broken leaves its name behind, so that a reference to it is not
reported a second time as a reference to nothing.

Where several API groups have a kind of one name (Job, Workload, PodGroup), it is asked for as
kubectl does: `PodGroup.scheduling.volcano.sh`. Without a group, objects of all groups count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from unisono.kinds.decode import decode
from unisono.kinds.documents import Document
from unisono.kinds.meta import ObjectMeta, check_metadata
from unisono.kinds.notes import Finding, Notes
from unisono.kinds.registry import Kind, Registry, UnknownKind, UnknownVersion

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Entry:
    """One object, where it came from, and what is being said about it."""

    document: Document
    index: int  # the place among all documents of all files
    kind: Kind
    manifest: Any
    notes: Notes

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""
        metadata: ObjectMeta = self.manifest.metadata
        return metadata

    @property
    def namespace(self) -> str:
        """Its namespace; empty for objects that have none."""
        if not self.kind.namespaced:
            return ""
        return self.metadata.namespace or DEFAULT_NAMESPACE

    @property
    def name(self) -> str:
        """Its name; one that the API server would have to make up ends in the document's place."""
        return self.metadata.name

    @property
    def place(self) -> str:
        """Where it stands, for people."""
        return f"document {self.document.number} of {self.document.file}"


@dataclass(slots=True)
class Objects:
    """All objects, and everything that was found wrong or odd on the way."""

    problems: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    _by_kind: dict[str, dict[str, list[Entry]]] = field(default_factory=dict)
    _by_name: dict[tuple[str, str, str, str], Entry] = field(default_factory=dict)
    _first: dict[tuple[str, str, str], Entry] = field(default_factory=dict)  # of any group
    _broken: set[tuple[str, str, str, str]] = field(default_factory=set)

    def entries(self, kind: str, *, namespace: str | None = None) -> list[Entry]:
        """Return the objects of a kind, of one namespace or of all, in document order."""
        bare, _, group = kind.partition(".")
        spaces = self._by_kind.get(bare, {})
        if namespace is not None:
            found = spaces.get(namespace, [])
        else:
            every = [entry for entries in spaces.values() for entry in entries]
            found = sorted(every, key=lambda entry: entry.index)
        return [entry for entry in found if entry.kind.group == group] if group else found

    def find(self, kind: str, name: str, *, namespace: str = "", group: str = "") -> Entry | None:
        """Return one object; without a group, the first of any group that has such a kind."""
        bare, _, of_kind = kind.partition(".")
        if group or of_kind:
            return self._by_name.get((group or of_kind, bare, namespace, name))
        return self._first.get((bare, namespace, name))

    def exists(self, kind: str, name: str, *, namespace: str = "") -> bool:
        """Say whether an object was given, even if it could not be read."""
        if self.find(kind, name, namespace=namespace) is not None:
            return True
        bare, _, group = kind.partition(".")
        key = (bare, namespace, name)
        return any(key == broken[1:] and group in ("", broken[0]) for broken in self._broken)

    def all(self) -> Iterator[Entry]:
        """Yield all objects in document order."""
        yield from sorted(self._by_name.values(), key=lambda entry: entry.index)

    def add(self, entry: Entry) -> None:
        """Take an object, unless there is one of its name already."""
        key = (entry.kind.group, entry.kind.kind, entry.namespace, entry.name)
        first = self._by_name.get(key) if entry.kind.is_named else None
        if first is not None:
            message = f'{entry.kind.kind} "{entry.name}" is already defined in {first.place}'
            entry.notes.problem("metadata.name", message)
            return
        if not entry.kind.is_named:
            key = (*key[:3], f"#{entry.index}")
        self._by_name[key] = entry
        self._first.setdefault(key[1:], entry)
        spaces = self._by_kind.setdefault(entry.kind.kind, {})
        spaces.setdefault(entry.namespace, []).append(entry)

    def remember_broken(self, kind: Kind, document: Document) -> None:
        """Keep the name of an object that could not be read."""
        metadata = document.raw.get("metadata")
        if isinstance(metadata, dict):
            namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE)
            place = namespace if kind.namespaced else ""
            self._broken.add((kind.group, kind.kind, place, str(metadata.get("name"))))


def read_objects(
    documents: Iterable[tuple[int, Document]], registry: Registry, *, strict: bool, into: Objects
) -> list[Entry]:
    """Decode and check numbered documents; return the entries made, in order."""
    made: list[Entry] = []
    for index, document in documents:
        notes = document.notes(strict=strict)
        kind = _kind(document, registry, notes)
        entry = _entry(document, index, kind, notes) if kind is not None else None
        if entry is not None:
            into.add(entry)
            made.append(entry)
        elif kind is not None:
            into.remember_broken(kind, document)
        into.problems.extend(notes.problems)
        into.warnings.extend(notes.warnings)
        # From here on the entry's own list holds what is found when objects are put together.
        notes.problems, notes.warnings = [], []
    return made


def _kind(document: Document, registry: Registry, notes: Notes) -> Kind | None:
    match registry.look_up(document.api_version, document.kind):
        case UnknownKind(near=near):
            hint = f'; did you mean "{near}"?' if near else ""
            message = f"kind {document.kind} is not used by a decision; ignored{hint}"
            notes.warn("KindIgnored", "kind", message)
            return None
        case UnknownVersion(known=known):
            message = f"{document.kind} is not known in {document.api_version}; known are "
            notes.problem("apiVersion", message + ", ".join(known))
            return None
        case Kind() as kind:
            return kind


def _entry(document: Document, index: int, kind: Kind, notes: Notes) -> Entry | None:
    manifest, problems = decode(kind.struct, document.raw)
    for problem in problems:
        notes.problem(problem.path, problem.message)
    decoded: Any = manifest
    metadata = decoded.metadata if manifest is not None else _metadata(document)
    if kind.is_named and metadata is not None:
        for problem in check_metadata(metadata, namespaced=kind.namespaced):
            notes.problem(problem.path, problem.message)
        if metadata.namespace and not kind.namespaced:  # clients drop it, too
            message = "is ignored: objects of this kind have no namespace"
            notes.warn("NamespaceIgnored", "metadata.namespace", message)
    if manifest is not None and kind.check is not None:
        kind.check(decoded, notes)
    if notes.problems:
        return None
    stored = kind.upgrade(decoded) if kind.upgrade is not None else decoded
    return Entry(document, index, kind, _named(stored, kind, index), notes)


def _named(manifest: Any, kind: Kind, index: int) -> Any:
    """Make up a name where the API server would; the place of the document makes it unique."""
    metadata: ObjectMeta = manifest.metadata
    if metadata.namespace and not kind.namespaced:
        metadata = msgspec.structs.replace(metadata, namespace="")
        manifest = msgspec.structs.replace(manifest, metadata=metadata)
    if metadata.name or not kind.is_named:
        return manifest
    named = msgspec.structs.replace(metadata, name=f"{metadata.generate_name}{index:05d}")
    return msgspec.structs.replace(manifest, metadata=named)


def _metadata(document: Document) -> ObjectMeta | None:
    """Read only the metadata of an object that is broken elsewhere, to report all at once."""
    metadata, _ = decode(ObjectMeta, document.raw.get("metadata") or {})
    return metadata
