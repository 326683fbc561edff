"""`unisono.dev/v1` WorkloadKind: how to queue objects of a kind that we have no code for.

    spec.apiVersion, kind      the kind, in the version whose fields the paths below are about
    spec.podSets               its pods: where each template stands, and how many pods it is for
    spec.suspend               the path of a boolean; while that is true, its operator makes no pods
    spec.ready                 whether the pods of a running one are ready
    spec.active                whether anything of it runs, or may
    spec.succeeded, failed     whether it is over
    spec.message               what it says of its end

A *path* is a JSONPath that only goes from field to field: `.spec.workers.template`. A *value* is
such a path, of any form that columns of custom resources have, or an expression in CEL of which
`self` is the object; within `forEach` a value may also speak of `each`, the item, and of `key`, its
name or number. What begins with a dot, a dollar or a brace is a path.

All of it is compiled when the object is written, so that mistakes are told then. What fails for one
object of the kind later on stops that object alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from msgspec import Meta

from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.decode import Schema
from unisono.kinds.expressions.evaluate import FAILURES, Program
from unisono.kinds.expressions.functions import Maybe
from unisono.kinds.expressions.jsonpath import compile_path, plain_names
from unisono.kinds.kueue.workloads import MOST_SETS
from unisono.kinds.meta import Condition, Json, ObjectMeta, wrong_with_dns_label
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Kind

# Longer ones cannot be understood by their readers, and take time to compile.
_LONGEST = 1024
_MOST_SAID = 200  # characters of what went wrong: it may contain a value of any length
_NAMES = frozenset({"self", "each", "key"})
_NOTHING = object()

Value = Callable[[Json, Any, Any], Any]  # of the object, of an item and its key


class DeclaredPodSet(Schema, frozen=True, kw_only=True):
    """Pods of one template, or of one template per item of a list or map."""

    template: str
    name: str = ""
    for_each: str = ""
    count: str = "1"
    min_count: str = ""


class WorkloadKindSpec(Schema, frozen=True, kw_only=True):
    """How objects of a kind are read, held and released."""

    api_version: str
    kind: str
    pod_sets: Annotated[tuple[DeclaredPodSet, ...], Meta(min_length=1)]
    suspend: str
    ready: str = ""
    active: str = ""
    succeeded: str
    failed: str = ""
    message: str = ""


class WorkloadKindStatus(Schema, frozen=True, kw_only=True):
    """Whether objects of the kind are queued."""

    conditions: tuple[Condition, ...] = ()


class WorkloadKind(Schema, frozen=True, kw_only=True):
    """A kind of jobs by declaration."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: WorkloadKindSpec
    status: WorkloadKindStatus = WorkloadKindStatus()


@dataclass(frozen=True, slots=True)
class FoundSet:
    """Pods of one object: how many, and where their template stands."""

    name: str
    count: int
    min_count: int | None
    place: tuple[str | int, ...]
    template: Json


# ---- reading objects -----------------------------------------------------------------------------


class Declaration:
    """A WorkloadKind, ready to read objects of its kind; an error names the field that failed."""

    def __init__(self, name: str, spec: WorkloadKindSpec) -> None:
        """Compile all of it; raise InvalidManifest with what is wrong and where."""
        self.name = name
        self.api_version, self.kind = spec.api_version, spec.kind
        self.suspend = _place(spec.suspend, "spec.suspend")
        self._ready = _value(spec.ready, "spec.ready")
        self._active = _value(spec.active, "spec.active")
        self._succeeded = _value(spec.succeeded, "spec.succeeded")
        self._failed = _value(spec.failed, "spec.failed")
        self._message = _value(spec.message, "spec.message")
        self._sets = [
            _ReadSet(one, f"spec.podSets[{index}]") for index, one in enumerate(spec.pod_sets)
        ]

    def pod_sets(self, obj: Json) -> list[FoundSet]:
        """Return the pods that an object asks for; sets without pods are left out."""
        found = [one for reads in self._sets for one in reads.found(obj)]
        names = [one.name for one in found]
        twice = next((name for name in names if names.count(name) > 1), "")
        if twice:
            raise InvalidManifest("spec.podSets", f"two pod sets are called {twice}")
        if len(found) > MOST_SETS:
            raise InvalidManifest("spec.podSets", f"{len(found)} pod sets; {MOST_SETS} is the most")
        return [one for one in found if one.count]

    def is_suspended(self, obj: Json) -> bool:
        """Say whether an object is held back."""
        return _at(obj, self.suspend) is True

    def ready(self, obj: Json) -> bool | None:
        """Say whether its pods are ready; None if the declaration leaves that to its pods."""
        return self._truth(self._ready, obj, "spec.ready")

    def active(self, obj: Json) -> bool | None:
        """Say whether anything of it runs, or may; None if that is left to its pods."""
        return self._truth(self._active, obj, "spec.active")

    def end(self, obj: Json) -> tuple[bool, str] | None:
        """Return whether it succeeded, and what it says; None while it is not over."""
        for is_good, value, field in (
            (True, self._succeeded, "spec.succeeded"),
            (False, self._failed, "spec.failed"),
        ):
            if self._truth(value, obj, field):
                said = self._message(obj, None, None) if self._message is not None else ""
                return is_good, "" if said is None else str(said)
        return None

    @staticmethod
    def _truth(value: Value | None, obj: Json, field: str) -> bool | None:
        if value is None:
            return None
        found = value(obj, None, None)
        if found is None or found in ("", "False", "false"):
            return False
        if found is True or found in ("True", "true"):
            return True
        if found is False:
            return False
        raise InvalidManifest(field, f"says {_short(found)}, neither true nor false")


class _ReadSet:
    """One entry of `podSets`, compiled."""

    def __init__(self, declared: DeclaredPodSet, path: str) -> None:
        self._path = path
        self._each = _place(declared.for_each, f"{path}.forEach") if declared.for_each else None
        self._template = _place(declared.template, f"{path}.template")
        self._count = _value(declared.count, f"{path}.count")
        self._min = _value(declared.min_count, f"{path}.minCount")
        self._fixed, self._name = "", None
        if declared.for_each and declared.name:
            self._name = _value(declared.name, f"{path}.name")
        else:
            self._fixed = declared.name or "main"

    def found(self, obj: Json) -> Iterator[FoundSet]:
        if self._each is None:
            yield self._one(obj, (), None, self._fixed)
            return
        among = _at(obj, self._each)
        if isinstance(among, Mapping):
            items: Sequence[tuple[str | int, Any]] = [*among.items()]
        elif isinstance(among, list):
            items = [*enumerate(among)]
        elif among is _NOTHING or among is None:
            items = ()
        else:
            raise InvalidManifest(f"{self._path}.forEach", "finds neither a list nor a map")
        if len(items) > MOST_SETS:
            message = f"finds {len(items)} items; {MOST_SETS} is the most"
            raise InvalidManifest(f"{self._path}.forEach", message)
        for key, item in items:
            if self._name is not None:
                name = str(self._name(obj, item, key))
            else:
                name = key.lower() if isinstance(key, str) else f"{self._fixed}-{key}"
            yield self._one(obj, (*self._each, key), (item, key), name)

    def _one(
        self, obj: Json, base: tuple[str | int, ...], item: tuple[Any, Any] | None, name: str
    ) -> FoundSet:
        each, key = item if item is not None else (None, None)
        wrong = wrong_with_dns_label(name)
        if wrong:
            raise InvalidManifest(f"{self._path}.name", f'"{_short(name)}" is no name: {wrong}')
        place = (*base, *self._template)
        template = _at(obj, place)
        count = self._number(self._count, obj, each, key, "count")
        if count is None:
            raise InvalidManifest(f"{self._path}.count", "finds nothing")
        if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
            if not count:
                return FoundSet(name, 0, None, place, {})
            message = f"there is no pod template at {_spelt(place)}"
            raise InvalidManifest(f"{self._path}.template", message)
        least = self._number(self._min, obj, each, key, "minCount")
        return FoundSet(name, count, least, place, template)

    def _number(self, value: Value | None, obj: Json, each: Any, key: Any, of: str) -> int | None:
        if value is None:
            return None
        found = value(obj, each, key)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MAX_COUNT:
            message = f"says {_short(found)}; pods are counted from 0 to {MAX_COUNT}"
            raise InvalidManifest(f"{self._path}.{of}", message)
        return found


def _at(obj: Any, place: Sequence[str | int]) -> Any:
    """Return what stands at a place of an object; _NOTHING if nothing does."""
    for step in place:
        if isinstance(step, str) and isinstance(obj, Mapping) and step in obj:
            obj = obj[step]
        elif isinstance(step, int) and isinstance(obj, list) and 0 <= step < len(obj):
            obj = obj[step]
        else:
            return _NOTHING
    return obj


def _spelt(place: Sequence[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}…"


# ---- paths and expressions -----------------------------------------------------------------------


def _place(text: str, path: str) -> tuple[str, ...]:
    """Return the fields of a path that leads to one place."""
    if not text:
        raise InvalidManifest(path, "is required: the path of a field, such as .spec.suspend")
    found = plain_names(text) if len(text) <= _LONGEST and text[0] in ".${" else None
    if not found:
        message = f'"{_short(text)}" does not go from field to field, as .spec.suspend does'
        raise InvalidManifest(path, message)
    return found


def _value(text: str, path: str) -> Value | None:
    """Return what reads a value; None if nothing is declared."""
    if not text:
        return None
    if len(text) > _LONGEST:
        raise InvalidManifest(path, f"has {len(text)} characters; {_LONGEST} is the most")
    try:
        return _by_path(text) if text[0] in ".${" else _by_expression(text, path)
    except ValueError as problem:
        raise InvalidManifest(path, _short(problem)) from problem


def _by_path(text: str) -> Value:
    find = compile_path(text)

    def read(obj: Json, each: Any, key: Any) -> Any:
        return next(iter(find(obj)), None)

    return read


def _by_expression(text: str, path: str) -> Value:
    program = _program(text)
    if program.missing:
        raise ValueError(f"there is no function {', '.join(program.missing)}")
    unknown = sorted(program.names - program.loop_variables - _NAMES)
    if unknown:
        raise ValueError(f"there is no variable {', '.join(unknown)}; self is the object")

    def read(obj: Json, each: Any, key: Any) -> Any:
        try:
            found = program.run_with({"self": obj, "each": each, "key": key})
        except FAILURES as problem:
            raise InvalidManifest(path, f"fails: {_short(problem)}") from problem
        if isinstance(found, Maybe):
            return found.value if found.has_value else None
        return found

    return read


@lru_cache(maxsize=256)
def _program(text: str) -> Program:
    return Program(text)


# ---- the kind ------------------------------------------------------------------------------------


def _check(declared: WorkloadKind, notes: Notes) -> None:
    spec = declared.spec
    _, slash, version = spec.api_version.partition("/")
    if not slash or not version:
        notes.problem("spec.apiVersion", "needs a group and a version, such as example.com/v1")
    try:
        Declaration(declared.metadata.name, spec)
    except InvalidManifest as error:
        notes.problem(error.path, error.problem)


KINDS: tuple[Kind, ...] = (
    Kind(
        group="unisono.dev",
        version="v1",
        kind="WorkloadKind",
        struct=WorkloadKind,
        namespaced=False,
        check=_check,
    ),
)
