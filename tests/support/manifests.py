"""Manifests as YAML text in, what a job kind makes of them out.

`job(text, *others)` reads the first document as a job (or pods of a group) and gives its hooks the
other documents as context, as `snapshot.build` does, but with nothing in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from unisono.engine.model.names import Instant
from unisono.engine.model.workload import PodSet
from unisono.kinds.decode import Problem, Schema, decode
from unisono.kinds.documents import read_documents
from unisono.kinds.known import KNOWN
from unisono.kinds.notes import Finding, Notes
from unisono.kinds.objects import Objects, read_objects
from unisono.kinds.registry import Kind
from unisono.kinds.resource_rules import NO_RULES, ResourceRules
from unisono.kinds.shapes.served import Column, Served
from unisono.kinds.shapes.shape import Shape
from unisono.kinds.snapshot.build import World, read_world


@dataclass
class FakeContext:
    """The context of one document among a few others."""

    namespace: str = "default"
    notes: Notes = field(default_factory=lambda: Notes("test.yaml", 1))
    rules: ResourceRules = NO_RULES
    others: tuple[Any, ...] = ()

    def find(self, kind: str, name: str, *, namespace: str = "") -> Any | None:
        named = (one for one in self.every(kind, namespace=namespace) if one.metadata.name == name)
        return next(named, None)

    def every(self, kind: str, *, namespace: str = "") -> tuple[Any, ...]:
        return tuple(
            one
            for one in self.others
            if one.kind == kind and (one.metadata.namespace or "default") in (namespace, "default")
        )


@dataclass(frozen=True)
class ReadJob:
    """Everything that the hooks of a kind say about a manifest."""

    pod_sets: tuple[PodSet, ...]
    problems: list[tuple[str, str]]
    warnings: list[tuple[str, str]]  # code and path
    misconfigured: list[str]
    priority_class: str = ""
    queue: str = ""
    is_finished: bool = False
    reclaimable: tuple[tuple[str, int], ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        return {one.name: one.count for one in self.pod_sets}

    def requests(self, name: str) -> dict[str, int]:
        return dict(next(one for one in self.pod_sets if one.name == name).requests)


def documents(text: str) -> list[dict[str, Any]]:
    """Return the documents of a YAML text."""
    found = read_documents("test.yaml", text.encode())
    assert not found.problems, found.problems
    return [document.raw for document in found.documents]


def kind_of(raw: dict[str, Any]) -> Kind:
    """Return the registered kind of a document."""
    kind = KNOWN.look_up(raw["apiVersion"], raw["kind"])
    assert isinstance(kind, Kind), kind
    return kind


def read(text: str) -> Any:
    """Decode one document that must be without fault."""
    (raw,) = documents(text)
    manifest, problems = _decode(kind_of(raw), raw)
    assert not problems, problems
    return manifest


def _decode(kind: Kind, raw: dict[str, Any]) -> tuple[Any, list[Problem]]:
    struct: type[msgspec.Struct] = kind.struct
    assert issubclass(struct, Schema)
    return decode(struct, raw)


def job(text: str, *others: str, rules: ResourceRules = NO_RULES, strict: bool = False) -> ReadJob:
    """Read a job, or the pods of one group, in the context of other documents."""
    raws = documents(text)
    kind = kind_of(raws[0])
    read_others = tuple(read(one) for one in others)
    context = FakeContext(rules=rules, others=read_others, notes=Notes("test.yaml", 1, strict))
    notes = context.notes
    manifests = []
    for raw in raws:
        manifest, problems = _decode(kind, raw)
        for problem in problems:
            notes.problem(problem.path, problem.message)
        manifests.append(manifest)
    if notes.problems:
        return _result(notes)
    for manifest in manifests:
        if kind.check is not None:
            kind.check(manifest, notes)
    hooks: Any = kind.job or kind.members
    subject: Any = manifests[0] if kind.job else tuple(manifests)
    return _result(
        notes,
        pod_sets=hooks.pod_sets(subject, context),
        priority_class=hooks.priority_class(subject),
        queue=hooks.queue(subject) if kind.job else "",
        is_finished=hooks.is_finished(subject),
        reclaimable=hooks.reclaimable(subject),
    )


def _result(notes: Notes, pod_sets: tuple[PodSet, ...] = (), **facts: Any) -> ReadJob:
    return ReadJob(
        pod_sets=pod_sets,
        problems=[(one.path, one.message) for one in notes.problems],
        warnings=[(one.code, one.path) for one in notes.warnings],
        misconfigured=list(notes.faults),
        **facts,
    )


def check(text: str) -> list[tuple[str, str]]:
    """Return the problems of a document of any kind: those of its fields, or those of its rules."""
    (raw,) = documents(text)
    kind = kind_of(raw)
    manifest, problems = _decode(kind, raw)
    notes = Notes("test.yaml", 1)
    if manifest is not None and kind.check is not None:
        kind.check(manifest, notes)
    found = [(one.path, one.message) for one in problems]
    return found + [(one.path, one.message) for one in notes.problems]


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


def kind(
    group: str,
    version: str,
    name: str,
    *,
    plural: str = "",
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    subresources: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (),
    namespaced: bool = True,
) -> Served:
    """Return a kind with an empty schema."""
    singular = name.lower()
    return Served(
        group=group,
        version=version,
        kind=name,
        plural=plural or f"{singular}s",
        singular=singular,
        namespaced=namespaced,
        short_names=short,
        categories=categories,
        subresources=subresources,
        columns=columns,
        shape=Shape({}, lambda _: {}),
    )
