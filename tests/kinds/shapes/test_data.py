"""The data files as a whole: complete, consistent, and short enough to be read at every start."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Iterator

import pytest

from unisono.kinds.shapes.served import GROUPS, Served, all_definitions, served_kinds
from unisono.kube.form import Json

# Everything is parsed when the server starts; this much takes about 10 ms.
MOST_BYTES = 700_000
LONGEST_SENTENCE = 130
NOT_OURS = re.compile(r"(?i)\bmore info\b|https?://|\bthis field\b|\bdefaults to\b|\boptional\b:")


def _content(group: str) -> bytes:
    found = pkgutil.get_data("unisono.kinds.shapes", f"data/{group or 'core'}.json")
    assert found is not None
    return found


def _fields(node: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Return every field below a node with its path, without following references."""
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from _fields(node[key], path)
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from _fields(child, f"{path}.{name}")


def _nodes(node: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Return every node of a schema with its path, itself first."""
    yield path, node
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from _nodes(node[key], f"{path}[]")
    for name, child in node.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}")


def _schemas() -> Iterator[tuple[str, Json]]:
    for group in GROUPS:
        content = json.loads(_content(group))
        yield from content["definitions"].items()
        for kind in content["kinds"]:
            for version in kind["versions"]:
                yield f"{group}/{version['name']} {kind['kind']}", version["schema"]


def test_every_group_has_a_file_and_all_are_small() -> None:
    assert sum(len(_content(group)) for group in GROUPS) < MOST_BYTES


def test_every_field_has_a_sentence_of_our_own() -> None:
    problems = []
    for where, schema in _schemas():
        for path, field in _fields(schema, where):
            sentence = field.get("description", "")
            if not sentence.endswith(".") or "\n" in sentence:
                problems.append(f"{path}: {sentence!r} is no sentence")
            elif len(sentence) > LONGEST_SENTENCE or NOT_OURS.search(sentence):
                problems.append(f"{path}: {sentence!r} is not plain")
    assert problems == []


@pytest.mark.parametrize("served", served_kinds(), ids=lambda one: f"{one.api_version}-{one.kind}")
def test_a_kind_explains_itself(served: Served) -> None:
    assert served.schema["description"].endswith(".")
    assert served.shape.type == "object"
    assert served.shape.field("metadata") is not None
    assert {"apiVersion", "kind"} <= set(served.shape.names)


def test_every_reference_leads_somewhere() -> None:
    known = all_definitions()
    for where, schema in _schemas():
        for path, node in _nodes(schema, where):
            assert node.get("$ref", "meta.v1.ObjectMeta") in known, path


def test_definitions_stand_in_one_file_only() -> None:
    names = [name for group in GROUPS for name in json.loads(_content(group))["definitions"]]
    assert len(names) == len(set(names))


def test_required_fields_and_list_keys_exist() -> None:
    known = all_definitions()
    for where, schema in _schemas():
        for path, node in _nodes(schema, where):
            fields = node.get("properties")
            if fields is not None:
                assert set(node.get("required", ())) <= set(fields), path
            if node.get("x-kubernetes-list-type") == "map":
                item = node["items"]
                item = known[item["$ref"]] if "$ref" in item else item
                assert set(node["x-kubernetes-list-map-keys"]) <= set(item["properties"]), path


def test_every_rule_has_a_message_of_our_own() -> None:
    rules = 0
    for where, schema in _schemas():
        for path, node in _nodes(schema, where):
            for rule in node.get("x-kubernetes-validations", ()):
                rules += 1
                assert rule.get("message"), f"{path}: {rule['rule']}"
    assert rules > 60


def test_every_kind_is_stored_in_one_version() -> None:
    stored: dict[str, int] = {}
    for served in served_kinds():
        stored[served.key] = stored.get(served.key, 0) + served.is_storage
    assert set(stored.values()) == {1}


def test_names_are_unique_within_a_group() -> None:
    for group in GROUPS:
        kinds = json.loads(_content(group))["kinds"]
        names = [
            name
            for kind in kinds
            for name in {kind["plural"], kind["singular"], *kind.get("shortNames", ())} - {""}
        ]
        assert len(names) == len(set(names)), group


def test_what_people_type_leads_to_what_they_mean() -> None:
    """The first kind in the order of discovery gets a name that several have."""
    first: dict[str, str] = {}
    for served in served_kinds():
        for name in (served.plural, served.singular, *served.short_names):
            first.setdefault(name, served.resource)
    assert first["jobs"] == "jobs.batch"
    assert first["workloads"] == first["wl"] == "workloads.kueue.x-k8s.io"
    assert first["cq"] == "clusterqueues.kueue.x-k8s.io"
    assert first["lq"] == "localqueues.kueue.x-k8s.io"
    assert first["vcjob"] == "jobs.batch.volcano.sh"
    assert first["podgroups"] == first["pg"] == "podgroups.scheduling.volcano.sh"
    assert first["nodes"] == "nodes"
    assert first["pc"] == "priorityclasses.scheduling.k8s.io"


def test_categories() -> None:
    def members(category: str) -> set[str]:
        return {served.resource for served in served_kinds() if category in served.categories}

    assert {"pods", "services", "deployments.apps", "jobs.batch"} <= members("all")
    assert {
        "jobs.batch",
        "jobs.batch.volcano.sh",
        "trainjobs.trainer.kubeflow.org",
        "rayclusters.ray.io",
        "workloads.kueue.x-k8s.io",
    } <= members("unisono")
