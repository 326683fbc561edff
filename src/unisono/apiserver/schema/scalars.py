"""Check one string, number or flag: its type, format, bounds, pattern and allowed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from unisono.apiserver.schema import fault
from unisono.apiserver.schema.fault import Fault, quoted, wrong_type
from unisono.apiserver.schema.node import Node, Pass
from unisono.kinds.expressions.formats import FORMATS, RANGES, matcher
from unisono.kinds.nearest import did_you_mean
from unisono.kinds.quantity import Quantity
from unisono.kinds.short_texts import cached_if_short

Faults = list[Fault] | None
# Says what is wrong with a value of the right type.
Rule = Callable[[Any], Fault | None]

# How many allowed values a message lists; a longer list is no help.
_MAX_LISTED = 12
# A longer text is no misspelt word.
_MOST_GUESSED = 100


def compile_scalar(node: Node, combined: Sequence[Callable[[Any], Faults]]) -> Pass:
    """Make the check of a place where one plain value stands."""
    shape = node.shape
    rules = list(scalar_rules(node))
    if shape.is_quantity:
        wanted = "a quantity such as 4, 500m or 64Gi"
        check = _or_whole(_checked((int, str), wanted, [_amount, *rules], combined))
        return check if rules or combined else _unless_amount(check)
    if shape.is_int_or_string:
        return _or_whole(_checked((int, str), "an integer or a string", rules, combined))
    if shape.type == "string":
        return _unless_usual(node, _checked((str,), "a string", rules, combined))
    if shape.type == "boolean":
        return _checked((bool,), "true or false", rules, combined)
    if shape.type == "integer":
        return _unless_usual(node, _integer(rules, combined))
    return _checked((int, float), "a number", rules, combined)


def _checked(
    types: tuple[type, ...],
    wanted: str,
    rules: Sequence[Rule],
    combined: Sequence[Callable[[Any], Faults]],
) -> Pass:
    def check(value: Any) -> Faults:
        if type(value) not in types:
            return [wrong_type(wanted, value)]
        found: Faults = None
        for rule in rules:
            wrong = rule(value)
            if wrong is not None:
                found = [*found, wrong] if found else [wrong]
        for more in combined:
            faults = more(value)
            if faults:
                found = [*found, *faults] if found else faults
        return found

    return check


def _unless_usual(node: Node, check: Pass) -> Pass:
    """Let the values of the two usual kinds pass at once: whole numbers in bounds, known words."""
    raw = node.raw
    keywords = raw.keys() - {"type", "default", "description", "title"}
    if node.shape.type == "integer" and keywords <= {"format", "minimum", "maximum"}:
        low, high = _bounds(node)
        return lambda value: None if type(value) is int and low <= value <= high else check(value)
    if node.shape.type == "string" and keywords == {"enum"}:
        words = frozenset(each for each in raw["enum"] if isinstance(each, str))
        return lambda value: None if type(value) is str and value in words else check(value)
    return check


def _bounds(node: Node) -> tuple[Any, Any]:
    low, high = node.raw.get("minimum"), node.raw.get("maximum")
    if node.shape.type == "integer":  # larger numbers do not survive other clients
        fits = RANGES.get(str(node.raw.get("format", "")), RANGES["int64"])
        return fits[0] if low is None else low, fits[1] if high is None else high
    return low, high


def _integer(rules: Sequence[Rule], combined: Sequence[Callable[[Any], Faults]]) -> Pass:
    check = _checked((int, float), "an integer", rules, combined)

    def check_integer(value: Any) -> Any:
        if type(value) is float and not value.is_integer():
            return [Fault(fault.WRONG_TYPE, f"must be an integer, not {value}")]
        return check(value)

    return check_integer


def _or_whole(check: Pass) -> Pass:
    """Take 2.0 for the integer that it is: clients in languages with one kind of number say so."""

    def check_number(value: Any) -> Any:
        return check(int(value) if type(value) is float and value.is_integer() else value)

    return check_number


def scalar_rules(node: Node) -> Iterable[Rule]:
    """Yield what is said about plain values; each rule lets pass what it does not concern."""
    raw = node.raw
    if "enum" in raw:
        yield _one_of(raw["enum"])
    yield from _number_rules(node)
    if (most := raw.get("maxLength")) is not None:
        yield lambda value: _too_long(value, most)
    if fewest := raw.get("minLength"):
        yield lambda value: _too_short(value, fewest)
    # The pattern of a quantity says less than reading it does.
    if (pattern := raw.get("pattern")) and not node.shape.is_quantity:
        yield _pattern(str(pattern))
    if (known := FORMATS.get(str(raw.get("format", "")))) and node.shape.type == "string":
        yield _format(*known)


def _number_rules(node: Node) -> Iterable[Rule]:
    raw = node.raw
    low, high = _bounds(node)
    is_above, is_below = raw.get("exclusiveMinimum"), raw.get("exclusiveMaximum")
    if low is not None:
        yield _at_least(low, is_above=bool(is_above))
    if high is not None:
        yield _at_most(high, is_below=bool(is_below))
    if step := raw.get("multipleOf"):
        yield (
            lambda value: (
                Fault(fault.INVALID, f"is {value}; only multiples of {step} are allowed")
                if _is_number(value) and value % step
                else None
            )
        )


def _at_least(low: float, *, is_above: bool) -> Rule:
    def rule(value: Any) -> Fault | None:
        if not _is_number(value) or value > low or (value == low and not is_above):
            return None
        bound = f"greater than {low}" if is_above else f"greater than or equal to {low}"
        return Fault(fault.INVALID, f"is {value}; it should be {bound}")

    return rule


def _at_most(high: float, *, is_below: bool) -> Rule:
    def rule(value: Any) -> Fault | None:
        if not _is_number(value) or value < high or (value == high and not is_below):
            return None
        bound = f"less than {high}" if is_below else f"less than or equal to {high}"
        return Fault(fault.INVALID, f"is {value}; it should be {bound}")

    return rule


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _one_of(allowed: Sequence[Any]) -> Rule:
    named = [each for each in allowed if each != ""]  # an empty value is left out instead
    listed = ", ".join(quoted(each) for each in named[:_MAX_LISTED])
    more = f" or {len(named) - _MAX_LISTED} more" if len(named) > _MAX_LISTED else ""
    texts = [each for each in allowed if isinstance(each, str)]

    def rule(value: Any) -> Fault | None:
        if value in allowed:
            return None
        text = f"{quoted(value)} is not supported; use {listed}{more}"
        if isinstance(value, str) and len(value) < _MOST_GUESSED:
            return Fault(fault.NOT_SUPPORTED, text, hint=lambda: did_you_mean(value, texts))
        return Fault(fault.NOT_SUPPORTED, text)

    return rule


def _too_long(value: Any, most: int) -> Fault | None:
    if type(value) is not str or len(value) <= most:
        return None
    return Fault(fault.TOO_LONG, f"has {len(value)} characters; at most {most} are allowed")


def _too_short(value: Any, fewest: int) -> Fault | None:
    if type(value) is not str or len(value) >= fewest:
        return None
    if not value and fewest == 1:
        return Fault(fault.INVALID, "is empty; it should be at least 1 chars long")
    message = f"has {len(value)} characters; it should be at least {fewest} chars long"
    return Fault(fault.INVALID, message)


def _pattern(pattern: str) -> Rule:
    try:
        matches = matcher(pattern)
    except ValueError:
        return lambda value: (
            None
        )  # refused with the schema; a stored one must not block its objects

    def rule(value: Any) -> Fault | None:
        if type(value) is not str or matches(value):
            return None
        return Fault(fault.INVALID, f"{quoted(value)} should match '{pattern}'")

    return rule


def _format(is_fine: Callable[[str], bool], name: str) -> Rule:
    def rule(value: Any) -> Fault | None:
        if type(value) is not str or is_fine(value):
            return None
        return Fault(fault.WRONG_TYPE, f"{quoted(value)} is not {name}")

    return rule


def _amount(value: Any) -> Fault | None:
    wrong = _wrong_with_amount(value)
    return Fault(fault.INVALID, wrong) if wrong else None


def _unless_amount(check: Pass) -> Pass:
    return lambda value: (
        None if type(value) is str and not _wrong_with_amount(value) else check(value)
    )


@cached_if_short(4096)  # manifests repeat a few amounts thousands of times
def _wrong_with_amount(value: str | int) -> str:
    try:
        Quantity.from_raw(value)
    except ValueError as problem:
        return str(problem)
    return ""
