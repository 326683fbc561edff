"""Find values in an object by the paths that custom resources declare for their columns.

    path   = [$] step*
    step   = .name | ['name'] | ["name"] | [0] | [-1] | [0:2] | [*] | .*
             | [?(@path op literal)] | [?(@path)], which asks whether the path finds anything
    op     = == != < <= > >=
    name   letters, digits, - _ / and whatever follows a backslash: .metadata.labels.a\\.b/c

One path can find several values: a star and a filter look at every item of a list. What is not
there is simply not found. A path that cannot be read is a ValueError when it is compiled, so that
the definition which declares it can be refused; nothing fails when it is used.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# Takes the values found so far, gives what it finds in them.
Step = Callable[[Iterable[Any]], Iterable[Any]]
Find = Callable[[Any], list[Any]]

_NAME = re.compile(r"\.((?:[\w/-]|\\.)+)")
_QUOTED = re.compile(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]""")
_INDEX = re.compile(r"\[\s*(-?[0-9]{1,9})\s*\]")
_SLICE = re.compile(r"\[\s*(-?[0-9]{1,9})?\s*:\s*(-?[0-9]{1,9})?\s*\]")
_STAR = re.compile(r"\[\s*\*\s*\]|\.\*")
_FILTER = re.compile(
    r"""\[\s*\?\(\s*@((?:"[^"]*"|'[^']*'|[^=!<>()"'])*?)\s*"""
    r"""(?:(==|!=|<=|>=|<|>)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w.+-]+)\s*)?\)\s*\]"""
)
_ESCAPED = re.compile(r"\\(.)")

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS = {"true": True, "false": False, "null": None}


def compile_path(path: str) -> Find:
    """Return a function that lists what the path finds in an object.

    >>> compile_path(".status.conditions[?(@.type=='Ready')].status")(
    ...     {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    ... )
    ['True']
    """
    steps = tuple(_steps(path))

    def find(root: Any) -> list[Any]:
        found: Iterable[Any] = (root,)
        for step in steps:
            found = step(found)
        return list(found)

    return find


def plain_names(path: str) -> tuple[str, ...] | None:
    """Return the names of a path that only goes from field to field; None for any other.

    >>> plain_names(".metadata.creationTimestamp")
    ('metadata', 'creationTimestamp')
    """
    inner = _inner(path)
    names = []
    at = 0
    while at < len(inner):
        match = _NAME.match(inner, at) or _QUOTED.match(inner, at)
        if match is None:
            return None
        names.append(_name_in(match))
        at = match.end()
    return tuple(names)


def _inner(path: str) -> str:
    inner = path.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    inner = inner.removeprefix("$")
    # `kubectl -o jsonpath` takes a name without its dot, and so do other readers.
    return inner if not inner or inner[0] in ".[" else f".{inner}"


def _steps(path: str) -> Iterator[Step]:
    inner = _inner(path)
    at = 0
    while at < len(inner):
        for pattern, make in _READERS:
            match = pattern.match(inner, at)
            if match is not None:
                yield make(match)
                at = match.end()
                break
        else:
            if inner[at:] == ".":  # the object itself
                return
            raise ValueError(f"{path!r}: cannot read {inner[at:]!r}")


def _name_in(match: re.Match[str]) -> str:
    return _ESCAPED.sub(r"\1", next(group for group in match.groups() if group is not None))


def _field(match: re.Match[str]) -> Step:
    name = _name_in(match)
    return lambda found: [
        value[name] for value in found if isinstance(value, dict) and name in value
    ]


def _index(match: re.Match[str]) -> Step:
    at = int(match[1])
    return lambda found: [
        value[at] for value in found if isinstance(value, list) and -len(value) <= at < len(value)
    ]


def _slice(match: re.Match[str]) -> Step:
    start, end = (None if text is None else int(text) for text in match.groups())
    return lambda found: [
        item for value in found if isinstance(value, list) for item in value[start:end]
    ]


def _wildcard(_: re.Match[str]) -> Step:
    return lambda found: [item for value in found for item in _members(value)]


def _filter(match: re.Match[str]) -> Step:
    inner, compared, written = match.groups()
    find = compile_path(inner.strip() or ".")
    if compared is None:
        return lambda found: [item for value in found for item in _members(value) if find(item)]
    compare, literal = _COMPARE[compared], _literal(written)

    def passes(item: Any) -> bool:
        values = find(item)
        # Only values of one type have an order; true is not 1 here.
        return bool(values) and type(values[0]) is type(literal) and compare(values[0], literal)

    return lambda found: [item for value in found for item in _members(value) if passes(item)]


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, dict) else ()


def _literal(written: str) -> Any:
    if written[0] in "'\"":
        return _ESCAPED.sub(r"\1", written[1:-1])
    if written in _WORDS:
        return _WORDS[written]
    try:
        return json.loads(written)
    except json.JSONDecodeError:
        raise ValueError(f"{written!r} is neither a number nor quoted text") from None


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_STAR, _wildcard),
    (_NAME, _field),
    (_QUOTED, _field),
    (_INDEX, _index),
    (_SLICE, _slice),
    (_FILTER, _filter),
)
