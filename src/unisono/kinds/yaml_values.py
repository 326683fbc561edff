"""YAML text to plain values, read as Kubernetes reads it and with limits on what it may cost.

Kubernetes reads YAML 1.1 and then treats the result as JSON, and so do we: `yes`, `on` and `y` are
true, `0644` is octal, timestamps stay strings, keys are strings, merge keys (`<<`) work.

What a hostile or broken file could do is bounded: values are nested at most `MAX_DEPTH` deep, also
through aliases; aliases may add at most `MAX_ALIASED` values (the "billion laughs"); an anchor
cannot contain itself; a key cannot stand twice in one mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from unisono.engine.model.errors import UnisonoError

# No Kubernetes object comes near it; the interpreter's own stack ends well above it.
MAX_DEPTH = 64
# Aliases in moderation are fine; a bomb passes this within a few lines.
MAX_ALIASED = 1_000_000

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE = frozenset(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_NULL = frozenset(["", "~", "null", "Null", "NULL"])
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MAX_DIGITS = 400  # more digits than any number that a float can hold
_TAGS = "tag:yaml.org,2002:"


class Unreadable(UnisonoError):
    """The text is not YAML that we accept: why, and where if that is known."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {problem}" if line else problem)


def yaml_documents(text: str, *, most_values: int | None = None) -> Iterator[Any]:
    """Yield the value of every document, None for an empty one; raise `Unreadable`.

    With `most_values`, documents of more values (keys, items, what aliases add) are unreadable.
    """
    try:
        events = yaml.parse(text, Loader=_LOADER)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                yield _Builder(events, most_values).node(next(events), depth=1).value
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise Unreadable(_explain(error, text), line, column) from None
    except yaml.reader.ReaderError as error:
        shown = f"character U+{error.character:04X}" if isinstance(error.character, int) else ""
        raise Unreadable(f"{shown or 'a character'} is not allowed in YAML") from None
    except yaml.YAMLError as error:
        raise Unreadable(str(error).partition("\n")[0]) from None


def _explain(error: yaml.MarkedYAMLError, text: str) -> str:
    """Say what the parser disliked, and the most frequent cause of it."""
    problem = error.problem or error.context or "not valid YAML"
    mark = error.problem_mark
    lines = text.split("\n", mark.line + 1) if mark is not None else []
    # The parser may point behind the last line, where there is nothing to look at.
    if mark is not None and mark.line < len(lines):
        if "\t" in lines[mark.line][: mark.column + 1]:
            return f"{problem}: indent with spaces, not with tabs"
    return problem


@dataclass(slots=True)
class _Node:
    """A value with what an alias to it would cost."""

    value: Any
    size: int = 1  # values in it, itself included
    height: int = 1  # levels in it


@dataclass(slots=True)
class _Builder:
    """Builds the value of one document from parser events."""

    events: Iterator[yaml.Event]
    most_values: int | None = None
    anchors: dict[str, _Node | None] = field(default_factory=dict)  # None: not complete yet
    aliased: int = 0
    built: int = 0

    def node(self, event: yaml.Event, *, depth: int) -> _Node:
        """Build the value that starts with `event`."""
        if depth > MAX_DEPTH:
            raise _unreadable(event, f"values are nested deeper than {MAX_DEPTH} levels")
        self.built += 1
        if self.most_values is not None and self.built + self.aliased > self.most_values:
            raise _unreadable(event, f"there are more than {self.most_values:,} values")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        assert isinstance(event, yaml.NodeEvent)
        anchor = event.anchor
        if anchor is not None:
            self.anchors[anchor] = None
        match event:
            case yaml.ScalarEvent():
                made = _Node(_scalar(event))
            case yaml.SequenceStartEvent():
                _check_tag(event, "seq")
                made = self._sequence(depth)
            case _:
                _check_tag(event, "map")
                made = self._mapping(depth)
        if anchor is not None:
            self.anchors[anchor] = made
        return made

    def _alias(self, event: yaml.AliasEvent, depth: int) -> _Node:
        if event.anchor not in self.anchors:
            raise _unreadable(event, f"alias *{event.anchor} has no anchor before it")
        made = self.anchors[event.anchor]
        if made is None:
            raise _unreadable(event, f"alias *{event.anchor} stands inside its own anchor")
        self.aliased += made.size
        if self.aliased > MAX_ALIASED:
            raise _unreadable(event, f"aliases expand to more than {MAX_ALIASED:,} values")
        if depth + made.height - 1 > MAX_DEPTH:
            raise _unreadable(event, f"values are nested deeper than {MAX_DEPTH} levels")
        return made

    def _sequence(self, depth: int) -> _Node:
        made = _Node([])
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            item = self.node(event, depth=depth + 1)
            made.value.append(item.value)
            _grow(made, item)
        return made

    def _mapping(self, depth: int) -> _Node:
        made = _Node({})
        merged: list[Any] = []
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(event, depth)
            item = self.node(next(self.events), depth=depth + 1)
            _grow(made, item)
            if _is_merge(event):
                merged.extend(_merge_sources(event, item.value))
            elif key in made.value:
                raise _unreadable(event, f'key "{key}" stands twice in the same mapping')
            else:
                made.value[key] = item.value
        for source in merged:
            for key, value in source.items():
                made.value.setdefault(key, value)
        return made

    def _key(self, event: yaml.Event, depth: int) -> str:
        key = self.node(event, depth=depth + 1).value
        if isinstance(key, str):
            return key
        if isinstance(event, yaml.ScalarEvent):
            what = "null" if key is None else "a boolean" if isinstance(key, bool) else "a number"
            raise _unreadable(event, f"key {event.value} is {what}; put it in quotes")
        raise _unreadable(event, "a key must be a string, not a list or an object")


def _grow(made: _Node, item: _Node) -> None:
    made.size += item.size
    made.height = max(made.height, item.height + 1)


def _is_merge(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style


def _merge_sources(event: yaml.Event, value: Any) -> list[dict[str, Any]]:
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise _unreadable(event, "a merge key (<<) needs an object or a list of objects")
    return sources


def _unreadable(event: yaml.Event, problem: str) -> Unreadable:
    mark = event.start_mark
    return Unreadable(problem, mark.line + 1, mark.column + 1) if mark else Unreadable(problem)


def _check_tag(event: Any, expected: str) -> None:
    if event.tag not in (None, "!", _TAGS + expected):
        raise _unreadable(event, f"the tag {event.tag} is not supported here")


# ---- scalars ---------------------------------------------------------------------------------


def _scalar(event: yaml.ScalarEvent) -> Any:
    tag = event.tag
    if tag is None:
        return event.value if event.style else plain_value(event.value)
    if tag in ("!", _TAGS + "str", _TAGS + "timestamp"):
        return event.value
    value = plain_value(event.value)
    wanted: dict[str, Any] = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}
    name = tag.removeprefix(_TAGS)
    if name not in wanted:
        raise _unreadable(event, f"the tag {tag} is not supported here")
    if not isinstance(value, wanted[name]) or (isinstance(value, bool) and name != "bool"):
        raise _unreadable(event, f'"{event.value}" does not fit its tag !!{name}')
    return value


def plain_value(text: str) -> Any:
    """Return what an unquoted scalar means.

    >>> [plain_value(text) for text in ("on", "0644", "0x10", "1e3", "~", "12:30", "2026-01-31")]
    [True, 420, 16, 1000.0, None, '12:30', '2026-01-31']
    """
    if text in _NULL:
        return None
    # Everything below starts with one of these; most strings are done here.
    if text[0] not in "0123456789+-.yYnNtTfFoO":
        return text
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if len(text) <= _MAX_DIGITS:
        if _INTEGER.fullmatch(text):
            return _integer(text)
        if _FLOAT.fullmatch(text):
            return float(text.replace("_", ""))
        if _SPECIAL_FLOAT.fullmatch(text):
            return float(text.lower().replace(".", ""))
    return text


def _integer(text: str) -> int | float | str:
    """Read an integer in any base; beyond 64 bits it is a float, as it would be in JSON."""
    plain = text.replace("_", "")
    sign, digits = (plain[0], plain[1:]) if plain[0] in "+-" else ("", plain)
    base = {"0x": 16, "0b": 2, "0o": 8}.get(digits[:2].lower(), 8 if digits[0] == "0" else 10)
    body = digits[2:] if digits[:2].lower() in ("0x", "0b", "0o") else digits
    if not body:
        return text
    value = int(body, base)
    value = -value if sign == "-" else value
    return value if -(2**63) <= value < 2**64 else float(value)
