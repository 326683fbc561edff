"""What the numbers of each message mean, read from `fields`.

    EnvVar  1 name*, 2 value, 3 valueFrom*: EnvVarSource
    Probe  1 .: ProbeHandler, 2 initialDelaySeconds: int

A message is its name, two spaces and its fields; lines that are indented go on with it. A field is
a number, the name it has in JSON, and a type unless it is text:

    int bool string bytes quantity intOrString time microtime json strings    or another message
    []T   a list of T                     {}T   a map from text to T
    name*     stands in JSON even when it is empty or zero: zero means something, or the field is
              required. Go writes most empty fields all the same, and without the star they vanish.
    .         the fields of that message stand directly in the one around it
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from unisono.apiserver.protobuf.fields import KINDS, MESSAGES

# What clients send beside a request to delete, under the version of whatever they delete.
_DELETE_OPTIONS = "DeleteOptions"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message."""

    name: str  # "." is inlined
    type: str
    is_list: bool
    is_map: bool
    stays_empty: bool


@cache
def message(name: str) -> dict[int, Field] | None:
    """Return the fields of a message by number; None if the name is that of a plain type."""
    text = texts().get(name)
    if text is None:
        return None
    return dict(_field(part) for part in text.split(","))


def message_of(api_version: str, kind: str) -> str:
    """Return the message of a kind; empty if its form is not known here."""
    if kind == _DELETE_OPTIONS:
        return _DELETE_OPTIONS
    return KINDS.get(f"{api_version} {kind}", "")


@cache
def texts() -> dict[str, str]:
    """Return every message in its notation, by name."""
    found: dict[str, str] = {}
    name = ""
    for line in MESSAGES.strip().splitlines():
        if line[0] == " ":
            found[name] += line
            continue
        name, _, fields = line.partition("  ")
        assert name not in found, f"two messages are named {name}"
        found[name] = fields
    return found


def _field(text: str) -> tuple[int, Field]:
    named, _, type_name = text.partition(":")
    number, name = named.split()
    type_name = type_name.strip() or "string"
    return int(number), Field(
        name=name.removesuffix("*"),
        type=type_name.removeprefix("[]").removeprefix("{}"),
        is_list=type_name.startswith("[]"),
        is_map=type_name.startswith("{}"),
        stays_empty=name.endswith("*"),
    )
