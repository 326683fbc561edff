"""What may stand where something sensible is expected, by what is expected there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tests.hostile.bases import least_of
from tests.hostile.fields import Field, Sort
from unisono.apiserver.rest.body import MAX_READ_OBJECT_BYTES
from unisono.net.http.messages import MAX_BODY_BYTES

MANY = 100_000  # entries of a list or a map
# The rest of the object needs room in the body, too.
_BYTES_FOR_ENTRIES = MAX_BODY_BYTES - 64 * 1024
_BYTES_SENT = 2 * MAX_READ_OBJECT_BYTES - 64 * 1024
_BYTES_STORED = MAX_READ_OBJECT_BYTES - 64 * 1024


class Absent:
    """Nothing at all, not even null."""


Make = Callable[[Field, Any], Any]  # from the field and what stands there, or None


def _is(value: Any) -> Make:
    return lambda field, now: copy.deepcopy(value)


def _entry(field: Field, now: Any) -> Any:
    if isinstance(now, list) and now:
        return now[0]
    return least_of(field.shape.items) if field.shape.items is not None else "a"


def _numbered(entry: Any, number: int) -> Any:
    """Return an entry with a name of its own, so that it is no double of another."""
    if isinstance(entry, str):
        return f"{entry}-{number}"
    if isinstance(entry, dict):
        for key in ("name", "key", "ip", "mountPath", "topologyKey"):
            if isinstance(entry.get(key), str):
                return {**entry, key: f"{entry[key]}-{number}"}
    return entry


def _many(most_bytes: int) -> Make:
    """Return a list as long as a body can hold, with at most so many entries."""

    def made(field: Field, now: Any) -> list[Any]:
        entry = _entry(field, now)
        size = len(orjson.dumps(_numbered(entry, MANY))) + 1
        return [_numbered(entry, number) for number in range(min(MANY, most_bytes // size))]

    return made


def _twice(field: Field, now: Any) -> list[Any]:
    entry = _entry(field, now)
    return [entry, copy.deepcopy(entry)]


def _value(field: Field) -> Any:
    return least_of(field.shape.values) if field.shape.values is not None else "a"


def _many_keys(most_bytes: int) -> Make:
    def made(field: Field, now: Any) -> dict[str, Any]:
        value = _value(field)
        size = len(orjson.dumps({f"example.org/k{MANY}": value})) + 1
        count = min(MANY, most_bytes // size)
        return {f"example.org/k{number}": value for number in range(count)}

    return made


def _keyed(*keys: str) -> Make:
    return lambda field, now: {key: _value(field) for key in keys}


_LONG = "a" * 300_000
_WRONG: Mapping[str, Make] = {
    "absent": _is(Absent),
    "null": _is(None),
    "a map": _is({}),
    "a map of maps": _is({"a": {"b": {}}}),
    "a list": _is([]),
    "a list of lists": _is([[["a"]]]),
    "true": _is(True),
}
_ODD_TEXTS: Mapping[str, Make] = {
    "an empty text": _is(""),
    "a space": _is(" "),
    "many letters": _is(_LONG),
    "a million letters": _is("a" * 1_000_000),
    "NaN": _is("NaN"),
    "Infinity": _is("Infinity"),
    "-1 as text": _is("-1"),
    "a null byte": _is("a\x00b"),
    "emoji": _is("ä€😀"),
    "right to left": _is("\u202eabc\u202c"),
    "digits of another script": _is("٣"),
    "a path": _is("../../etc/passwd"),
    "a template": _is("$(A){{.B}}%s%n${C}"),
    "a line break": _is("a\nb: c"),
}
_NUMBERS: Mapping[str, Make] = {
    "-1": _is(-1),
    "0": _is(0),
    "2^31-1": _is(2**31 - 1),
    "2^31": _is(2**31),
    "-2^31": _is(-(2**31)),
    "2^63-1": _is(2**63 - 1),
    "2^63": _is(2**63),
    "-2^63": _is(-(2**63)),
    "10^30": _is(10**30),
    "1e308": _is(1e308),
    "half": _is(0.5),
}
_AMOUNTS: Mapping[str, Make] = {
    "an amount of -8": _is("-8"),
    "an amount of 0": _is("0"),
    "an amount of 2^31-1": _is("2147483647"),
    "an amount of 2^63-1": _is("9223372036854775807"),
    "an amount of 2^63": _is("9223372036854775808"),
    "an amount of 10^30": _is("1e30"),
    "an amount of 10^300": _is("1e300"),
    "an amount of 10^-30": _is("1e-30"),
    "many exbibytes": _is("8000000Ei"),
    "ten thousand digits": _is("9" * 10_000),
    "an exponent of a billion": _is("1e1000000000"),
    "nano": _is("1n"),
}
_LISTS: Mapping[str, Make] = {
    "many entries": _many(_BYTES_FOR_ENTRIES),
    "as many entries as a job can be sent with": _many(_BYTES_SENT),
    "as many entries as a job can be stored with": _many(_BYTES_STORED),
    "the same twice": _twice,
    "null in a list": _is([None]),
    "a number in a list": _is([5]),
    "a text in a list": _is(["x"]),
    "an empty map in a list": _is([{}]),
    "a text": _is("x"),
    "a number": _is(5),
}
_MAPS: Mapping[str, Make] = {
    "many keys": _many_keys(_BYTES_FOR_ENTRIES),
    "as many keys as a job can be sent with": _many_keys(_BYTES_SENT),
    "as many keys as a job can be stored with": _many_keys(_BYTES_STORED),
    "an empty key": _keyed(""),
    "a long key": _keyed("k" * 100_000),
    "an odd key": _keyed("ä\x00/😀"),
    "a key with slashes": _keyed("a/b/c"),
    "null in a map": _is({"example.org/key": None}),
    "a number in a map": _is({"example.org/key": 5}),
    "a map in a map": _is({"example.org/key": {}}),
    "a negative amount in a map": _is({"nvidia.com/gpu": "-8", "cpu": -1}),
    "a huge amount in a map": _is({"nvidia.com/gpu": "1e30", "cpu": 2**63}),
    "a text": _is("x"),
    "a number": _is(5),
}

BY_SORT: Mapping[Sort, Mapping[str, Make]] = {
    "number": {**_WRONG, **_NUMBERS, "NaN": _is("NaN"), "a text": _is("x")},
    "quantity": {**_WRONG, **_AMOUNTS, **_NUMBERS, **_ODD_TEXTS},
    "either": {**_WRONG, **_NUMBERS, **_ODD_TEXTS, "more than all": _is("1000%")},
    "text": {**_WRONG, **_ODD_TEXTS, "a number": _is(5), "10^30": _is(10**30)},
    "list": {**_WRONG, **_LISTS},
    "map": {**_WRONG, **_MAPS},
    "any": {**_WRONG, **_LISTS, **_MAPS, **_NUMBERS, **_ODD_TEXTS},
}
