"""Words out of Go types."""

from __future__ import annotations

from pathlib import Path

from tools.shapes.enums import add_words
from tools.shapes.sources import API, API_VERSION
from unisono.kube.form import Json

TYPES = """
// +enum
type RestartPolicy string

const (
	RestartPolicyAlways RestartPolicy = "Always"
	RestartPolicyNever  RestartPolicy = "Never"
	SomethingElse       Other         = "Else"
)

type PodSpec struct {
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
	Must RestartPolicy `json:"must"`
	All []RestartPolicy `json:"all,omitempty"`
	Other Other `json:"other,omitempty"`
}
"""


def test_fields_of_such_a_type_take_its_words(tmp_path: Path) -> None:
    file = tmp_path / f"{API}@{API_VERSION}" / "core/v1/types.go"
    file.parent.mkdir(parents=True)
    file.write_text(TYPES)
    text: Json = {"type": "string"}
    fields: Json = {
        "restartPolicy": dict(text),
        "must": dict(text),
        "all": {"type": "array", "items": dict(text)},
        "other": dict(text),
    }
    definitions: dict[str, Json] = {
        "core.v1.PodSpec": {"type": "object", "properties": fields, "required": ["must"]}
    }
    add_words(definitions, tmp_path)
    assert fields["restartPolicy"]["enum"] == ["Always", "Never", ""]
    assert fields["must"]["enum"] == ["Always", "Never"]
    assert fields["all"]["items"]["enum"] == ["Always", "Never"]
    assert "enum" not in fields["other"]
