"""Which words a field of a built-in kind takes: OpenAPI documents do not say, the Go types do.

A string type marked `+enum` lists its words as constants; every struct field of that type takes
only those. Go cannot tell an empty word from none, so an optional field may also be empty.
"""

from __future__ import annotations

import re
from pathlib import Path

from tools.shapes.sources import API, API_VERSION
from unisono.kube.form import Json

_ENUM = re.compile(r"\+enum\n(?:\s*//[^\n]*\n)*\s*type (\w+) string")
_WORD = re.compile(r"^\s+\w+\s+(\w+)\s+=\s+\"([^\"]*)\"", re.MULTILINE)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s+\w+\s+(\[\]|\*)?(\w+)\s+`json:\"(\w+)", re.MULTILINE)


_MOST_WORDS = 20  # a list of the 65 signals that can stop a container would not be read


def add_words(definitions: dict[str, Json], directory: Path) -> None:
    """Add an enumeration to every field whose type has one, in place."""
    folder = directory / f"{API}@{API_VERSION}"
    for file in sorted(folder.glob("*/*/types.go")):
        group, version = file.parent.parent.name, file.parent.name
        text = file.read_text()
        words: dict[str, list[str]] = {name: [] for name in _ENUM.findall(text)}
        for name, word in _WORD.findall(text):
            if name in words:
                words[name].append(word)
        for struct, body in _STRUCT.findall(text):
            definition = definitions.get(f"{group}.{version}.{struct}", {})
            fields = definition.get("properties", {})
            for wrapper, name, field in _FIELD.findall(body):
                if field in fields and 0 < len(words.get(name, ())) <= _MOST_WORDS:
                    at = fields[field]["items"] if wrapper == "[]" else fields[field]
                    is_optional = wrapper != "[]" and field not in definition.get("required", ())
                    unset = [""] if is_optional else []
                    at["enum"] = list(dict.fromkeys([*words[name], *unset]))
