"""Which objects of a collection a request is about: a namespace, labels, fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from unisono.apiserver.errors import ApiError, bad_request
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request
from unisono.apiserver.rest.route import Route
from unisono.apiserver.storage.record import Record
from unisono.kinds.meta import wrong_with_label_key, wrong_with_label_value
from unisono.kinds.nearest import did_you_mean

_MOST = 2**63 - 1
_COMMON = ("metadata.name", "metadata.namespace")
# Field selectors of built-in kinds; custom resources bring theirs along.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "/pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "/nodes": ("spec.unschedulable",),
    "/namespaces": ("status.phase",),
    "/secrets": ("type",),
    "/services": ("spec.clusterIP", "spec.type"),
    "batch/jobs": ("status.successful",),
    "/events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "reason",
        "reportingComponent",
        "reportingController",
        "source",
        "type",
    ),
}
# What an absent field counts as, where that is not the empty text.
_ABSENT = {
    "spec.hostNetwork": "false",
    "spec.unschedulable": "false",
    "spec.restartPolicy": "Always",
    "status.successful": "0",
}
# Fields that are called otherwise in the stored form.
_STORED_AS = {
    "status.successful": "status.succeeded",
    "source": "source.component",
    "reportingController": "reportingComponent",
}


class Selection:
    """A test for objects. Labels are looked at first: they need no decoding."""

    __slots__ = ("_fields", "_labels", "is_everything", "key", "namespace", "only_name")

    def __init__(self, request: Request, route: Route) -> None:
        """Read the selectors of a request."""
        self.namespace = route.namespace
        self.only_name = ""
        self._labels: Callable[[Mapping[str, str]], bool] | None = None
        self._fields: Callable[[Callable[[str], str]], bool] | None = None
        labels = request.query.get("labelSelector", "")
        if labels:
            self._labels = parse_labels(labels)
        fields = request.query.get("fieldSelector", "")
        if fields:
            self._take_fields(fields, route)
        self.is_everything = not (labels or fields)
        self.key = (self.namespace, labels, fields)  # the same selection shows the same

    def _take_fields(self, text: str, route: Route) -> None:
        served = route.resource.served
        custom = tuple(path.lstrip(".") for path in served.selectable)
        allowed = (*_COMMON, *_FIELDS.get(served.key, ()), *custom)
        selector = parse_fields(text, allowed)
        for path, sign, value in selector.requirements:
            if path == "metadata.name" and sign == "=" and not self.only_name:
                self.only_name = value  # a quick no for all other objects
        if selector.requirements != (("metadata.name", "=", self.only_name),):
            self._fields = selector.matches

    def matches(self, record: Record) -> bool:
        """Say whether an object is meant."""
        if self.namespace and record.key[1] != self.namespace:
            return False
        if self.only_name and record.key[2] != self.only_name:
            return False
        if self._labels is not None and not self._labels(record.labels):
            return False
        return self._fields is None or self._fields(_Lookup(record))


class _Lookup:
    """Reads fields of an object as text, decoding it once."""

    __slots__ = ("_obj", "_record")

    def __init__(self, record: Record) -> None:
        self._record = record
        self._obj: Json | None = None

    def __call__(self, path: str) -> str:
        if path == "metadata.name":
            return self._record.key[2]
        if path == "metadata.namespace":
            return self._record.key[1]
        if self._obj is None:
            self._obj = self._record.load()
        at: Any = self._obj
        where = _STORED_AS.get(path, path)
        if where.startswith("regarding.") and "involvedObject" in self._obj:
            where = f"involvedObject.{where.removeprefix('regarding.')}"
        for part in where.split("."):
            at = at.get(part) if isinstance(at, dict) else None
        if at is None:
            return _ABSENT.get(path, "")
        if isinstance(at, bool):
            return "true" if at else "false"
        if isinstance(at, list):
            return ",".join(str(one.get("ip", one) if isinstance(one, dict) else one) for one in at)
        return str(at)


def number(request: Request, name: str) -> int:
    """Return a whole number of the query; 0 if it is absent."""
    text = request.query.get(name, "")
    if not text:
        return 0
    try:
        return min(max(0, int(text)), _MOST)
    except ValueError as error:
        raise bad_request(f"{name}: {text[:40]!r} is not a number") from error


# ---- parsing -------------------------------------------------------------------------------------
#
# labels   a=b,c!=d,e in (f,g),h notin (i),j,!k,l>5      all must hold
#     fields   metadata.name=a,status.phase!=Running         a backslash protects a "," or "="
#
# A label that is absent satisfies `!=` and `notin`. `kinds.meta` reads the selectors that
# stand inside objects; the rules for keys and values are shared.


Labels = Mapping[str, str]
LabelTest = Callable[[Labels], bool]

_WORD = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+|$)")
_SIGNS = frozenset(("==", "!=", "=", "!", "<", ">", "(", ")", ",", ""))
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")

# ---- labels ----------------------------------------------------------------------------------


def parse_labels(text: str) -> LabelTest:
    """Return the test that a label selector means; raise a 400 if it means nothing."""
    if not text.strip():
        return lambda labels: True
    tests = _LabelParser(text).tests()
    if len(tests) == 1:
        return tests[0]
    return lambda labels: all(test(labels) for test in tests)


class _LabelParser:
    """Reads one selector from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._word = ""
        self._advance()

    def tests(self) -> list[LabelTest]:
        """Return one test per requirement."""
        tests = [self._requirement()]
        while self._word == ",":
            self._advance()
            tests.append(self._requirement())
        if self._word:
            raise self._wrong(f"there is a comma missing before {self._word!r}")
        return tests

    def _requirement(self) -> LabelTest:
        if self._word == "!":
            self._advance()
            absent = self._key()
            return lambda labels: absent not in labels
        key = self._key()
        sign = self._word
        if sign in ("", ","):
            return lambda labels: key in labels
        self._advance()
        if sign in ("=", "=="):
            wanted = self._value()
            return lambda labels: labels.get(key) == wanted
        if sign == "!=":
            unwanted = self._value()
            return lambda labels: labels.get(key) != unwanted
        if sign in ("in", "notin"):
            values = self._values()
            if sign == "in":
                return lambda labels: labels.get(key) in values
            return lambda labels: labels.get(key) not in values
        if sign in ("<", ">"):
            return _compared(key, sign, self._number(sign))
        raise self._wrong(f"{sign!r} is not one of = == != in notin < >")

    def _key(self) -> str:
        key = self._word
        if key in _SIGNS:
            raise self._wrong(f"there is a label's key missing before {key!r}")
        wrong = wrong_with_label_key(key)
        if wrong:
            raise self._wrong(wrong)
        self._advance()
        return key

    def _value(self) -> str:
        """Read a value, which may be empty."""
        value = self._word
        if value in ("", ",", ")"):
            return ""
        if value in _SIGNS:
            raise self._wrong(f"{value!r} stands where a value is expected")
        wrong = wrong_with_label_value(value)
        if wrong:
            raise self._wrong(wrong)
        self._advance()
        return value

    def _values(self) -> frozenset[str]:
        if self._word != "(":
            raise self._wrong("the values after in and notin stand in parentheses")
        self._advance()
        values = [self._value()]
        while self._word == ",":
            self._advance()
            values.append(self._value())
        if self._word != ")":
            raise self._wrong("there is a ) missing")
        self._advance()
        return frozenset(values)

    def _number(self, sign: str) -> int:
        text = self._word
        if _INTEGER.fullmatch(text) is None:
            raise self._wrong(f"{sign} compares whole numbers, not {text!r}")
        self._advance()
        return int(text)

    def _advance(self) -> None:
        found = _WORD.match(self._text, self._at)
        assert found is not None, "every character is a sign, a blank or part of a word"
        self._word = found.group(1)
        self._at = found.end()

    def _wrong(self, why: str) -> ApiError:
        return bad_request(f"unable to parse the label selector {self._text!r}: {why}")


def _compared(key: str, sign: str, bound: int) -> LabelTest:
    def test(labels: Labels) -> bool:
        value = labels.get(key)
        if value is None or _INTEGER.fullmatch(value) is None:
            return False
        return int(value) > bound if sign == ">" else int(value) < bound

    return test


# ---- fields ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Requirements on fields, each (path, "=" or "!=", value); all must hold."""

    requirements: tuple[tuple[str, str, str], ...]

    def matches(self, lookup: Callable[[str], str]) -> bool:
        """Say whether an object matches, whose fields `lookup` gives as texts."""
        return all(
            (lookup(path) == value) == (sign == "=") for path, sign, value in self.requirements
        )


def parse_fields(text: str, allowed: Collection[str]) -> FieldSelector:
    """Return a field selector; raise a 400 if it makes no sense or names a field not allowed."""
    requirements = []
    for term in _split(text):
        if not term:
            continue
        path, sign, value = _parts(term, text)
        if path not in allowed:
            hint = did_you_mean(path, allowed)
            raise bad_request(f"field label not supported: {path}{hint}")
        requirements.append((path, sign, value))
    return FieldSelector(tuple(requirements))


def _split(text: str) -> list[str]:
    """Cut at commas that no backslash protects."""
    terms, start, at = [], 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == ",":
            terms.append(text[start:at])
            start = at + 1
        at += 1
    return [*terms, text[start:]]


def _parts(term: str, text: str) -> tuple[str, str, str]:
    at = 0
    while at < len(term):
        if term[at] == "\\":
            at += 1
        else:
            for sign in ("!=", "==", "="):
                if term.startswith(sign, at):
                    value = _unescape(term[at + len(sign) :], text)
                    return term[:at].strip(), "!=" if sign == "!=" else "=", value
        at += 1
    raise bad_request(f"unable to parse the field selector {text!r}: {term!r} has no = or !=")


def _unescape(value: str, text: str) -> str:
    if "\\" not in value and "=" not in value:
        return value
    made, at = [], 0
    while at < len(value):
        letter = value[at]
        if letter == "\\":
            at += 1
            letter = value[at : at + 1]
            if letter not in ("\\", ",", "="):
                raise bad_request(
                    f"unable to parse the field selector {text!r}: "
                    f"a backslash stands before {letter!r}"
                )
        elif letter == "=":
            raise bad_request(f"unable to parse the field selector {text!r}: a second = in a term")
        made.append(letter)
        at += 1
    return "".join(made)
