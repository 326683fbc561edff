"""Put in what a schema says about absent fields, and take out nulls that mean "absent".

Kubernetes' own kinds live in Go structs, and that shows; for them, three things more:

    amounts get their canonical form
    optional lists and maps that are empty vanish
    in a status, required texts, numbers and flags that are missing become "", 0 and false

A second run changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from unisono.apiserver.schema.node import Compile, Node, Pass, later
from unisono.kinds.quantity import MILLI, NANO, Quantity
from unisono.kinds.short_texts import cached_if_short

_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


# An empty list of managers asks to forget all of them.
_MEANT_EMPTY = frozenset(("managedFields",))


class _Empty:
    """Says that a value may as well not be there."""

    __slots__ = ()


_EMPTY: Final = _Empty()


def compile_fill(node: Node) -> Pass | None:
    """Make the pass for one place; it returns a value to put in the old one's stead, or None."""
    return _fill(node, compile_fill)


def _compile_status(node: Node) -> Pass | None:
    """Make the pass for a place in the status of a typed kind."""
    return _fill(node, _compile_status)


def _compile_optional(node: Node) -> Pass | None:
    return _unless_empty(node.compiled(compile_fill))


def _compile_optional_status(node: Node) -> Pass | None:
    return _unless_empty(node.compiled(_compile_status))


_OPTIONAL: dict[Compile, Compile] = {
    compile_fill: _compile_optional,
    _compile_status: _compile_optional_status,
}


def _fill(node: Node, again: Compile) -> Pass | None:
    kind = node.shape.type
    if node.typed and node.shape.is_quantity:
        return _amount
    if kind == "array":
        items = node.items
        below = None if items is None else items.compiled(again)
        return None if below is None else _list(below)
    if kind not in ("", "object") or node.shape.is_int_or_string:
        return None
    if node.fields:
        return _object(node, again)
    if node.values is not None:
        return _map(node.values, again)
    return None


def _object(node: Node, again: Compile) -> Pass:
    children: dict[Any, Pass | None] = {}
    defaults: list[tuple[str, Callable[[], Any]]] = []
    required = frozenset(node.raw.get("required", ()))
    for name, child in node.fields.items():
        how = again
        if node.is_whole and name == "status" and child.typed:
            how = _compile_status
        if child.typed and name not in required | _MEANT_EMPTY and _is_list_or_map(child):
            how = _OPTIONAL[how]
        if not child.is_scalar or child.shape.is_quantity:
            children[name] = later(child, how, children, name)
        if child.shape.has_default:
            defaults.append((name, _maker(child)))
        elif again is _compile_status and name in required and _has_zero(child):
            defaults.append((name, _constant(_ZEROS[child.shape.type])))
    get = children.get
    never_null = {name for name, child in node.fields.items() if not child.raw.get("nullable")}

    def fill(value: Any) -> None:
        if type(value) is not dict:
            return
        if None in value.values():
            for name in [
                name for name, item in value.items() if item is None and name in never_null
            ]:
                del value[name]
        empty: list[str] | None = None
        for name, item in value.items():
            child = get(name)
            if child is not None:
                new = child(item)
                if new is _EMPTY:
                    empty = [*empty, name] if empty else [name]
                elif new is not None:
                    value[name] = new
        if empty:
            for name in empty:
                del value[name]
        for name, make in defaults:
            if name not in value:
                value[name] = make()

    return fill


def _is_list_or_map(node: Node) -> bool:
    return node.shape.type == "array" or (node.values is not None and not node.fields)


def _has_zero(node: Node) -> bool:
    is_time = node.shape.type == "string" and "format" in node.raw
    return node.shape.type in _ZEROS and "enum" not in node.raw and not is_time


def _unless_empty(fill: Pass | None) -> Pass:
    """Fill a list or map, and say so if nothing is in it."""

    def fill_or_drop(value: Any) -> Any:
        if fill is not None:
            fill(value)
        return _EMPTY if not value and type(value) in (list, dict) else None

    return fill_or_drop


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _maker(child: Node) -> Callable[[], Any]:
    """Return what makes a fresh copy of a default, its own defaults filled in."""
    default = child.raw["default"]
    if not isinstance(default, dict | list):
        return _constant(default)
    packed: list[bytes] = []

    def make() -> Any:
        if not packed:  # late, because a schema may contain itself
            value = orjson.loads(orjson.dumps(default))
            fill = child.compiled(compile_fill)
            if fill is not None:
                fill(value)
            packed.append(orjson.dumps(value))
        return orjson.loads(packed[0])

    return make


def _list(below: Pass) -> Pass:
    def fill(value: Any) -> None:
        if type(value) is not list:
            return
        for index, item in enumerate(value):
            new = below(item)
            if new is not None:
                value[index] = new

    return fill


def _map(values: Node, again: Compile) -> Pass:
    drops_null = not values.raw.get("nullable")
    if values.typed and values.shape.is_quantity:
        return _amounts
    below = values.compiled(again)

    def fill(value: Any) -> None:
        if type(value) is not dict:
            return
        if drops_null and None in value.values():
            for key in [key for key, item in value.items() if item is None]:
                del value[key]
        if below is not None:
            for key, item in value.items():
                new = below(item)
                if new is not None:
                    value[key] = new

    return fill


def _amounts(value: Any) -> None:
    """Write the amounts of a resource list in canonical form, in thousandths at the finest."""
    if type(value) is not dict:
        return
    if None in value.values():
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
    for key, item in value.items():
        new = _canonical(item, in_thousandths=True)
        if new is not None:
            value[key] = new


def _amount(value: Any) -> str | None:
    return _canonical(value, in_thousandths=False)


def _canonical(value: Any, *, in_thousandths: bool) -> str | None:
    """Return the canonical form, or None if it is no amount."""
    if type(value) is str:
        text = value
    elif type(value) is int or type(value) is float:
        text = str(value)
    else:
        return None
    try:
        return canonical(text, in_thousandths=in_thousandths)
    except ValueError:
        return None  # the check will say so


# ---- amounts in the one form that Kubernetes' own kinds keep them in -----------------------------
#
# The number is written without a fraction and with the largest suffix that allows it, in the family
# of suffixes its author chose: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`, `1.5Gi` is
# `1536Mi`. A binary amount below 1024, or with a fraction of a byte, moves to the decimal family.


_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@cached_if_short(4096)  # manifests repeat a few amounts thousands of times
def canonical(text: str, *, in_thousandths: bool) -> str:
    """Return the canonical form, rounded up to thousandths if asked; raise ValueError if none.

    >>> [canonical(text, in_thousandths=True) for text in ("1000m", "1024Mi", "0.5", "1.5Gi")]
    ['1', '1Gi', '500m', '1536Mi']
    >>> [canonical(text, in_thousandths=True) for text in ("1e3", "1000", "0", "1Ki", "1n")]
    ['1e3', '1k', '0', '1Ki', '1m']
    """
    nano = Quantity.from_raw(text).nano
    step = NANO // MILLI if in_thousandths else 1
    size = -(-abs(nano) // step) * step
    if size == 0:
        return "0"
    sign = "-" if nano < 0 else ""
    if text.endswith("i") and size >= 1024 * NANO and size % NANO == 0:
        number, suffix = _scaled(size // NANO, 1024, _BINARY)
        return f"{sign}{number}{suffix}"
    number, suffix = _scaled(size, 1000, _DECIMAL)
    if text[-1] in "0123456789" and ("e" in text or "E" in text):
        exponent = 3 * _DECIMAL.index(suffix) - 9
        return f"{sign}{number}e{exponent}" if exponent else f"{sign}{number}"
    return f"{sign}{number}{suffix}"


def _scaled(size: int, step: int, suffixes: tuple[str, ...]) -> tuple[int, str]:
    for suffix in suffixes[:-1]:
        if size % step:
            return size, suffix
        size //= step
    return size, suffixes[-1]
