"""Sentences for fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.shapes.describe import FOLDER, Sentences, describe
from unisono.kube.form import Json


@pytest.fixture
def sentences(tmp_path: Path) -> Sentences:
    common = {"name": "Its name.", "flavors.name": "The flavor."}
    group = {"name": "Our name.", "never": "Not at all."}
    (tmp_path / "common.json").write_text(json.dumps(common))
    (tmp_path / "kueue.json").write_text(json.dumps(group))
    return Sentences(tmp_path)


def test_the_group_comes_first_and_the_longest_key(sentences: Sentences) -> None:
    assert sentences.of("kueue", ("Queue", "name")) == "Our name."
    assert sentences.of("ray", ("Cluster", "name")) == "Its name."
    assert sentences.of("ray", ("Queue", "spec", "flavors", "name")) == "The flavor."


def test_what_is_missing_and_what_is_unused(sentences: Sentences) -> None:
    assert sentences.of("ray", ("Cluster", "spec", "size")) == ""
    assert sentences.missing == {"spec.size": "ray: Cluster.spec.size"}
    sentences.of("ray", ("name",))
    assert list(sentences.unused()) == [
        "common.json: flavors.name",
        "kueue.json: name",
        "kueue.json: never",
    ]


def test_fields_inside_lists_are_described(sentences: Sentences) -> None:
    flavor: Json = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema: Json = {
        "type": "object",
        "properties": {"flavors": {"type": "array", "items": flavor}},
    }
    made = describe(schema, "ray", ("Queue",), sentences)
    items = made["properties"]["flavors"]["items"]
    assert items["properties"]["name"]["description"] == "The flavor."
    assert "description" not in flavor["properties"]["name"]


def test_our_sentences_end_with_a_full_stop() -> None:
    for file in sorted(FOLDER.glob("*.json")):
        for key, sentence in json.loads(file.read_text()).items():
            assert sentence.endswith("."), f"{file.name}: {key}"
