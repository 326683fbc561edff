"""Puts it all together: one file per group, with its definitions and its kinds."""

from __future__ import annotations

import json
from pathlib import Path

from tools.shapes import ours
from tools.shapes.builtin import built_in_entries, needed, read_definitions
from tools.shapes.builtin_kinds import BUILT_IN, prefix_of
from tools.shapes.crd import read_kind, unite_kinds
from tools.shapes.describe import Sentences, describe
from tools.shapes.hoist import hoist
from tools.shapes.messages import with_messages
from tools.shapes.shared import share
from tools.shapes.sources import CUSTOM
from unisono.kube.form import Json

_EMPTY = ("shortNames", "categories", "subresources", "selectable", "columns")


def assemble(directory: Path, sentences: Sentences) -> dict[str, Json]:
    """Return the content of every data file, by group."""
    definitions = read_definitions(directory)
    entries = built_in_entries(definitions)
    prefixes = {prefix_of(kind.group): kind.group for kind in BUILT_IN} | {"meta": ""}
    custom = _custom_entries(directory, definitions) | {
        "karpenter.k8s.aws": [ours.node_class_entry()],
        "unisono.dev": [ours.policy_entry(), ours.slurm_job_entry(), ours.workload_kind_entry()],
    }
    named: dict[str, dict[str, Json]] = {group: {} for group in (*entries, *custom)}
    for group, kinds in custom.items():
        prefix = next((one.prefix for one in CUSTOM if one.group == group), group)
        entries[group] = kinds
        named[group] = _describe_and_hoist(group, prefix, kinds, sentences)
    every_kind = [kind for kinds in entries.values() for kind in kinds]
    made_here = {name for own in named.values() for name in own}
    known = definitions | {name: one for own in named.values() for name, one in own.items()}
    for name, schema in sorted(needed([*every_kind, *named.values()], known).items()):
        if name not in made_here:
            group = prefixes.get(name.partition(".")[0], "")
            path = (name.rpartition(".")[2],)
            named[group][name] = describe(schema, group or "core", path, sentences)
    return {
        group: {
            "group": group,
            "definitions": with_messages(named[group]),
            "kinds": [_tidy(with_messages(kind), group, sentences) for kind in kinds],
        }
        for group, kinds in entries.items()
    }


def _custom_entries(directory: Path, definitions: dict[str, Json]) -> dict[str, list[Json]]:
    by_group: dict[str, dict[str, Json]] = {}
    for source in CUSTOM:
        kinds = by_group.setdefault(source.group, {})
        for plural, files in source.files(directory):
            kind = read_kind(files)
            kinds[plural] = unite_kinds(kind, kinds[plural]) if plural in kinds else kind
    for group, kinds in by_group.items():
        for plural, kind in kinds.items():
            kind["versions"] = [
                version
                for version in kind["versions"]
                if (group, version["name"]) not in ours.NOT_SERVED
            ]
            for version in kind["versions"]:
                version["schema"] = share(version["schema"], definitions)
                ours.adjust(f"{group}/{plural}", version["name"], version["schema"])
    return {group: list(kinds.values()) for group, kinds in by_group.items()}


def _describe_and_hoist(
    group: str, prefix: str, kinds: list[Json], sentences: Sentences
) -> dict[str, Json]:
    """Describe the fields of a group's kinds and name what they share; return what got a name."""
    schemas: dict[str, Json] = {}
    for kind in kinds:
        for version in kind["versions"]:
            path = (kind["kind"],)
            key = f"{version['name']} {kind['kind']}"
            schemas[key] = describe(version["schema"], group, path, sentences)
    made, definitions = hoist(schemas, prefix)
    for kind in kinds:
        for version in kind["versions"]:
            version["schema"] = made[f"{version['name']} {kind['kind']}"]
    return definitions


def _tidy(kind: Json, group: str, sentences: Sentences) -> Json:
    """Return an entry without what is empty, with our categories and our words."""
    kind = dict(kind)
    if f"{group}/{kind['plural']}" in ours.SCHEDULABLE:
        kind["categories"] = [*kind["categories"], "unisono"]
    versions = []
    preferred = kind["versions"][0]["name"]
    for version in kind["versions"]:
        made = {key: value for key, value in version.items() if value or key not in _EMPTY}
        if made.get("deprecated"):
            made["deprecated"] = (
                f"{group}/{version['name']} {kind['kind']} is deprecated; "
                f"use {group}/{preferred} {kind['kind']}"
            )
        if not made.get("storage"):
            made["storage"] = False
        sentence = sentences.of(group or "core", (kind["kind"],))
        if sentence:
            made["schema"] = {"description": sentence} | made["schema"]
        versions.append(made)
    tidy = {key: value for key, value in kind.items() if value or key not in _EMPTY}
    return tidy | {"versions": versions}


def text_of(content: Json) -> str:
    """Return a data file: one line per definition and per version, so that changes can be read."""
    lines = ["{", f'"group":{json.dumps(content["group"])},', '"definitions":{']
    lines += _rows([f"{json.dumps(name)}:{_compact(one)}" for name, one in _sorted(content)])
    lines += ["},", '"kinds":[']
    kinds = []
    for kind in content["kinds"]:
        head = _compact({key: value for key, value in kind.items() if key != "versions"})
        versions = ",\n".join(_compact(version) for version in kind["versions"])
        kinds.append(f'{head[:-1]},"versions":[\n{versions}]}}')
    lines += _rows(kinds)
    return "\n".join([*lines, "]}", ""])


def _sorted(content: Json) -> list[tuple[str, Json]]:
    return sorted(content["definitions"].items())


def _rows(rows: list[str]) -> list[str]:
    return [f"{row}," for row in rows[:-1]] + rows[-1:]


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
