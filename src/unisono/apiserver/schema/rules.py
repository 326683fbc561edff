"""The rules of a schema, written in the Common Expression Language.

A rule sees its value as `self`. One that also names `oldSelf` is about the change: it runs on
updates only, for values that have a counterpart in the old object. The others are skipped for
values that an update left alone, so that a rule which is added later does not lock its objects.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from unisono.apiserver.schema import fault
from unisono.apiserver.schema.fault import Fault, below
from unisono.apiserver.schema.node import Node, Pass
from unisono.kinds.expressions.evaluate import FAILURES, Program
from unisono.kinds.expressions.functions import MISSING, present
from unisono.kinds.shapes.served import definition

_REASONS = frozenset((fault.REQUIRED, fault.INVALID, fault.FORBIDDEN, fault.DUPLICATE))
_MAX_REASON = 200  # what went wrong may contain a value of any length

Faults = list[Fault] | None
# Runs the rules at and below a place: the value, its counterpart or NOTHING.
Visit = Callable[[Any, Any], Faults]


def rule_problem(rule: str) -> str:
    """Say why a schema must not have a rule; empty if it may."""
    try:
        program(rule)
    except ValueError as problem:
        return str(problem)
    return ""


@lru_cache(maxsize=1024)  # versions of a kind repeat each other's rules
def program(rule: str) -> Program:
    """Return a rule ready to run; raise ValueError with what is wrong and where."""
    return Program(rule)


def compile_rules(node: Node) -> Pass | None:
    """Make the pass that runs all rules at and below a place; None if there are none."""
    if node.typed or not says(node.raw, lambda raw: bool(raw.get("x-kubernetes-validations"))):
        return None
    rules = [
        rule
        for raw in node.raw.get("x-kubernetes-validations", ())
        if (rule := _rule(raw)) is not None
    ]
    if node.shape.type == "array":
        return _list(node, rules)
    return _object(node, rules)


def _object(node: Node, rules: Sequence[Rule]) -> Visit:
    children = {
        name: below_it
        for name, child in node.fields.items()
        if (below_it := _lazy(child)) is not None
    }
    values = _lazy(node.values) if node.values is not None else None

    def visit(value: Any, old: Any) -> Faults:
        if value is None:
            return None
        found = _broken(rules, value, old)
        if type(value) is not dict:
            return found or None
        before = old if type(old) is dict else {}
        for name, child in children.items():
            if name in value:
                faults = child(value[name], before.get(name, NOTHING))
                if faults:
                    found += below(faults, name)
        if values is not None:
            for key, item in value.items():
                faults = None if key in children else values(item, before.get(key, NOTHING))
                if faults:
                    found += below(faults, key)
        return found or None

    return visit


def _list(node: Node, rules: Sequence[Rule]) -> Visit:
    each = _lazy(node.items) if node.items is not None else None
    keys = node.shape.list_keys if node.shape.list_type == "map" else ()

    def visit(value: Any, old: Any) -> Faults:
        if value is None:
            return None
        found = _broken(rules, value, old)
        if each is None or type(value) is not list:
            return found or None
        if not keys and old is not NOTHING and value == old:
            return found or None  # the items have no counterparts, but did not change either
        find = _finder(old if type(old) is list else [], keys)
        for index, item in enumerate(value):
            faults = each(item, find(item))
            if faults:
                found += below(faults, index)
        return found or None

    return visit


def _lazy(node: Node) -> Visit | None:
    """Return a visit that is compiled at its first call; None if there is nothing to visit."""
    if not says(node.raw, lambda raw: bool(raw.get("x-kubernetes-validations"))):
        return None

    def visit(value: Any, old: Any) -> Faults:
        made = node.compiled(compile_rules)
        return None if made is None else made(value, old)

    return visit


def _broken(rules: Sequence[Rule], value: Any, old: Any) -> list[Fault]:
    if not rules:
        return []
    is_unchanged = old is not NOTHING and value == old
    return [
        wrong
        for rule in rules
        if (wrong := rule.judge(value, old, is_unchanged=is_unchanged)) is not None
    ]


# ---- one rule --------------------------------------------------------------------------------


class Rule:
    """One rule of one place."""

    __slots__ = (
        "_is_transition",
        "_message",
        "_old_is_optional",
        "_phrase",
        "_program",
        "_reason",
        "_suffix",
    )

    def __init__(self, raw: Mapping[str, Any], text: str) -> None:
        """Read what a schema says about a rule."""
        self._program = program(text)
        self._phrase = _runnable(str(raw.get("messageExpression") or ""))
        self._message = str(raw.get("message") or f"breaks the rule {' '.join(text.split())}")
        reason = raw.get("reason")
        self._reason = str(reason) if reason in _REASONS else fault.INVALID
        self._suffix = str(raw.get("fieldPath") or "")
        self._is_transition = "oldSelf" in self._program.names
        self._old_is_optional = bool(raw.get("optionalOldSelf"))

    def judge(self, value: Any, old: Any, *, is_unchanged: bool) -> Fault | None:
        """Return what is wrong with a value, or None."""
        if not self._is_transition:
            if is_unchanged:
                return None
        elif self._old_is_optional:
            old = MISSING if old is NOTHING else present(old)
        elif old is NOTHING:
            return None
        try:
            holds = self._program.run(value, old)
        except FAILURES as problem:
            text = f"{self._message} (the rule fails: {_short(problem)})"
            return Fault(fault.INVALID, text, suffix=self._suffix)
        if holds is True:
            return None
        return Fault(self._reason, self._say(value, old), suffix=self._suffix)

    def _say(self, value: Any, old: Any) -> str:
        if self._phrase is None:
            return self._message
        try:
            message = self._phrase.run(value, old)
        except FAILURES:
            return self._message
        return message.strip() if isinstance(message, str) and message.strip() else self._message


def _rule(raw: Mapping[str, Any]) -> Rule | None:
    """Return a rule, or None if it cannot run here and so is not enforced."""
    text = str(raw.get("rule") or "")
    return None if _runnable(text) is None else Rule(raw, text)


def _runnable(text: str) -> Program | None:
    if not text or rule_problem(text):
        return None
    made = program(text)
    return None if made.missing else made


def _short(problem: Exception) -> str:
    text = f"no field {problem}" if isinstance(problem, KeyError) else str(problem)
    return text if len(text) <= _MAX_REASON else text[: _MAX_REASON - 3] + "..."


# ---- ask a schema whether something is said anywhere in it, without compiling it -----------------


Test = Callable[[Mapping[str, Any]], bool]


def says(raw: Mapping[str, Any], test: Test) -> bool:
    """Say whether a test holds for the schema or for any schema below it."""
    seen: set[str] = set()
    waiting = [raw]
    while waiting:
        at = waiting.pop()
        name = at.get("$ref")
        if name is not None:
            if name not in seen:
                seen.add(name)
                waiting.append(definition(name))
            continue
        if test(at):
            return True
        waiting.extend(at.get("properties", {}).values())
        for word in ("items", "additionalProperties"):
            below = at.get(word)
            if isinstance(below, Mapping):
                waiting.append(below)
    return False


# ---- counterparts --------------------------------------------------------------------------------
#
# Which part of the old object a part of the new one corresponds to.
#
# Fields and map entries correspond by name, items of a list of type map by the fields that tell
# them apart. Items of any other list have no counterpart: such a list is one value.


class _Nothing:
    """There is no counterpart."""

    __slots__ = ()


NOTHING: Final = _Nothing()


# Finds what an item of a new list was in the old one, or NOTHING.
_Find = Callable[[Any], Any]


def _finder(items: list[Any], keys: tuple[str, ...]) -> _Find:
    """Index an old list once, so that looking up each item of the new one costs the same."""
    if not keys:
        return lambda item: NOTHING
    known: dict[Hashable, Any] = {}
    for candidate in items:
        if type(candidate) is dict:
            known.setdefault(_identity(candidate, keys), candidate)
    return lambda item: known.get(_identity(item, keys), NOTHING) if type(item) is dict else NOTHING


def _identity(item: dict[str, Any], keys: tuple[str, ...]) -> Hashable:
    told_by = tuple(item.get(key) for key in keys)
    try:
        hash(told_by)
    except TypeError:  # an object or a list, which the check of types refuses
        return orjson.dumps(told_by, option=orjson.OPT_SORT_KEYS)
    return told_by


class Comparing:
    """A new object beside the old one, each pair of their parts compared once.

    An update may carry a fault in each of a million items; every one of them asks about the lists
    and objects above it.
    """

    def __init__(self, node: Node, new: Any, old: Any) -> None:
        """Take both states of an object, which do not change meanwhile."""
        self._node = node
        self._new = new
        self._old = old
        self._same: dict[tuple[int, int], bool] = {}
        self._finders: dict[int, _Find] = {}

    def stood_before(self, fault: Fault) -> bool:
        """Say whether a fault concerns a value that the update left as it was."""
        return _stood_before(self, fault, self._node, self._new, self._old)

    def are_same(self, new: Any, old: Any) -> bool:
        """Compare two parts."""
        pair = id(new), id(old)
        known = self._same.get(pair)
        if known is None:
            known = self._same[pair] = bool(new == old)
        return known

    def item_before(self, items: list[Any], keys: tuple[str, ...], item: Any) -> Any:
        """Return the item of an old list with the same keys, or NOTHING."""
        find = self._finders.get(id(items))
        if find is None:
            find = self._finders[id(items)] = _finder(items, keys)
        return find(item)


def _stood_before(both: Comparing, fault: Fault, node: Node, new: Any, old: Any) -> bool:
    at: Node | None = node
    for step in reversed(fault.steps):
        if both.are_same(new, old):
            return True
        if isinstance(step, int):
            keys = at.shape.list_keys if at is not None and at.shape.list_type == "map" else ()
            new = new[step]
            old = both.item_before(old, keys, new) if type(old) is list else NOTHING
            at = at.items if at is not None else None
        else:
            name = step[0] if isinstance(step, tuple) else step
            new = new[name]
            old = old.get(name, NOTHING) if type(old) is dict else NOTHING
            at = (at.fields.get(name) or at.values) if at is not None else None
        if old is NOTHING:
            return False
    return bool(new == old)
