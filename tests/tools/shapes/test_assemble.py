"""Data files as text."""

from __future__ import annotations

import json

from tools.shapes.assemble import text_of
from tools.shapes.messages import with_messages
from tools.shapes.ours import policy_entry

SCORINGS = ["auto", "binpack", "fgd", "leftover", "none", "spare", "spread"]


def test_a_file_has_one_line_per_definition_and_version() -> None:
    content = {
        "group": "example.com",
        "definitions": {"b.v1.B": {"type": "object"}, "a.v1.A": {"type": "object"}},
        "kinds": [
            {"kind": "A", "plural": "as", "versions": [{"name": "v1"}, {"name": "v1beta1"}]},
            {"kind": "B", "plural": "bs", "versions": [{"name": "v1"}]},
        ],
    }
    text = text_of(content)
    assert json.loads(text) == content
    assert text.index("a.v1.A") < text.index("b.v1.B")
    assert len([line for line in text.splitlines() if '"name"' in line]) == 3


def test_rules_get_our_message() -> None:
    schema = {"items": {"x-kubernetes-validations": [{"rule": "self  ==\n oldSelf"}]}}
    assert with_messages(schema)["items"]["x-kubernetes-validations"] == [
        {"rule": "self  ==\n oldSelf", "message": "cannot be changed"}
    ]


def test_our_policy_has_the_fields_of_its_struct() -> None:
    schema = policy_entry()["versions"][0]["schema"]
    assert schema["properties"]["compat"] == {
        "type": "object",
        "properties": {"strict": {"type": "boolean"}},
    }
    assert schema["properties"]["placement"]["properties"]["scoring"]["enum"] == SCORINGS
