"""What a client sent: JSON, YAML or kubectl's protobuf, how large it is, and the object in it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

import orjson

from unisono.apiserver.catalogue import Resource
from unisono.apiserver.errors import (
    ApiError,
    Cause,
    bad_request,
    invalid,
    too_large,
    unsupported_media_type,
)
from unisono.apiserver.objects import Json
from unisono.apiserver.protobuf.decode import decode as decode_protobuf
from unisono.apiserver.request import Origin, Request
from unisono.apiserver.schema.body_checks import (
    MAX_DEPTH,
    duplicate_fields,
    has_every_key,
    refuse_deep,
)
from unisono.kinds.shapes.served import definition, served_kinds
from unisono.kinds.yaml_values import Unreadable, yaml_documents

PROTOBUF = "application/vnd.kubernetes.protobuf"
_YAML = ("application/yaml", "application/x-yaml", "text/yaml")
_JSON = ("application/json", "")
# Keys count, too. Reading YAML takes thirty times as long as JSON, which is what kubectl sends
# whatever it is given.
MAX_YAML_VALUES = 20_000


def media_type(request: Request) -> str:
    """Return the type of the body without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def parse(request: Request) -> Any:
    """Return what the body says, whatever it is."""
    kind = media_type(request)
    if kind == PROTOBUF:
        return decode_protobuf(request.body)
    if kind in _YAML:
        return parse_yaml(request.body)
    if kind in _JSON:
        return parse_json(request.body)
    raise unsupported_media_type(
        f"the body has type {kind}; use application/json, application/yaml or {PROTOBUF}"
    )


def parse_json(body: bytes) -> Any:
    """Return what a JSON text says; 413 for more values than any object may have."""
    _refuse_body(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"the body is not valid JSON: {error}") from error


def parse_yaml(body: bytes) -> Any:
    """Return what a YAML text says; JSON, which is YAML too, is read much faster."""
    if _looks_like_json(body):
        _refuse_body(body)
        with contextlib.suppress(orjson.JSONDecodeError):
            return orjson.loads(body)
    try:
        # Bounded: a few lines of aliases to aliases would otherwise fill all memory.
        documents = yaml_documents(body.decode(), most_values=MAX_YAML_VALUES)
        found = list(islice(documents, 2))
    except (UnicodeDecodeError, Unreadable) as error:
        raise bad_request(f"the body is not valid YAML: {error}") from error
    if len(found) > 1:
        raise bad_request("the body has several YAML documents; send them one by one")
    return found[0] if found else None


def parse_object(request: Request, resource: Resource) -> Json:
    """Return the object in the body, which must be of the kind that the address names."""
    obj = parse(request)
    body = request.body
    brackets = body.count(b"{") + body.count(b"[")
    # A text with few brackets is not deep; that is most of them.
    if brackets > MAX_DEPTH:
        refuse_deep(obj)
    if _looks_like_json(body):
        request.most_values = brackets + body.count(b",")
    request.has_no_duplicates = has_every_key(obj, request.body)
    return of_kind(obj, resource)


def of_kind(obj: Any, resource: Resource) -> Json:
    """Return an object if it is of a kind and version, which it may leave unsaid."""
    if not isinstance(obj, dict):
        raise bad_request("the body is not an object")
    served = resource.served
    if not resource.strategy.is_typed and not (obj.get("apiVersion") and obj.get("kind")):
        raise bad_request("the object has no apiVersion or no kind")
    for key, wanted in (("apiVersion", served.api_version), ("kind", served.kind)):
        given = obj.setdefault(key, wanted)
        if given != wanted:
            raise bad_request(
                f"the {key} in the data ({given}) does not match the expected {key} ({wanted})"
            )
    metadata = obj.setdefault("metadata", {})
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        raise bad_request("metadata is not an object")
    # The order in which people expect to read it; what is stored is shown as it is.
    head = {key: obj.pop(key) for key in ("apiVersion", "kind", "metadata")}
    return {**head, **obj}


def field_validation(request: Request) -> str:
    """Return how strictly unknown fields are to be taken."""
    chosen = request.query.get("fieldValidation") or "Warn"
    if chosen not in ("Ignore", "Warn", "Strict"):
        cause = Cause(
            "FieldValueNotSupported",
            f'Unsupported value: "{chosen}": supported values: "Ignore", "Warn", "Strict"',
            "fieldValidation",
        )
        raise invalid("CreateOptions", "", [cause], group="meta.k8s.io")
    return chosen


def report_fields(
    request: Request,
    unknown: list[str],
    *,
    duplicates: bool = True,
    hint: Callable[[str], str] = lambda path: "",
) -> None:
    """Refuse or warn about fields that are unknown, or given twice."""
    chosen = field_validation(request)
    if chosen == "Ignore":
        return
    found = [f'unknown field "{path}"{hint(path)}' for path in unknown]
    if request.has_no_duplicates:
        duplicates = False
    if duplicates and media_type(request) in (*_JSON, *_YAML, "application/apply-patch+yaml"):
        found += [f'duplicate field "{path}"' for path in duplicate_fields(request.body)]
    if not found:
        return
    if chosen == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(found)}")
    request.warnings.extend(found)


# ---- size limits ---------------------------------------------------------------------------------
#
# How large an object may be: in bytes as it is stored, and in values.
#
# What an object costs is a matter of its values (fields of maps, items of lists) rather than of its
# bytes: a text of a megabyte is copied as a whole, and a megabyte of `{}` becomes half a million
# objects that are pruned, filled, checked and owned one by one, each of which takes a hundred bytes
# in every copy. So values are counted before a body is decoded. ADR 0031.
#
#                     as stored           values
#     any kind        1.5 MiB             20,000
#     definitions     1.5 MiB             60,000     of kinds; only administrators make them
#     jobs, pods …    384 KiB              8,000     what others read and pods are made from
#
# An object that is larger already (it was stored before there was a bound, or our own controllers
# made it) can be changed as long as it does not grow.

# What etcd takes of one object, in a form that is half as long as JSON for built-in kinds. Defaults
# and managedFields count, and can make ten times as much of what was sent.
MAX_OBJECT_BYTES = 3 * 512 * 1024
# Of what controllers read and pods are made from: a job's manifest is copied into its Workload and
# every one of its pods, and each of those is written and read a dozen times. So one of them costs a
# hundred times its size; manifests have some kilobytes, those with whole scripts in them a hundred.
MAX_READ_OBJECT_BYTES = 384 * 1024
# Without managedFields. A value takes some microseconds, and up to two kilobytes in all copies that
# there are while its object is changed.
MAX_VALUES = 20_000
# Ours have 15,000, of one version and without descriptions. Nearly all of it is one schema that
# has one owner as a whole, so a value costs a third of what others do.
_MAX_DEFINITION_VALUES = 60_000
# Manifests of jobs have 200; one of a hundred tasks with all that a container can say 6,000. Checks
# of pods are the most thorough, so these take a tenth of a second.
MAX_READ_VALUES = 8_000
# A body may be twice as large as what is stored of it: it has spaces, unknown fields and, where an
# object was read and is sent back, managedFields.
_SENT = 2
# From this size on a request can take tens of milliseconds: three megabytes of containers take
# seconds. Manifests of jobs have some kilobytes; few definitions of kinds are larger than this.
LARGE_BODY_BYTES = 64 * 1024
# Reading other spellings may add values, never as many as there are.
_SPELT = 2
_DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"
# A TrainJob has only some of a pod's parts.
_PARTS_OF_PODS = frozenset({"core.v1.PodSpec", "core.v1.Container", "core.v1.EnvVar"})
# A text that does not end counts as one, or each quote in it would be the beginning of another.
_TEXT_OR_SEPARATOR = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*+"?|[,\[{]', re.DOTALL)
_QUOTE = ord('"')


def check_size(request: Request, kind: str) -> None:
    """Refuse a body that is much larger than an object of the kind may be, before it is read."""
    if request.origin is not Origin.CLIENT:
        return
    if kind in _read_kinds() and len(request.body) > _SENT * MAX_READ_OBJECT_BYTES:
        raise too_large(_SENT * MAX_READ_OBJECT_BYTES, advice_for(kind))
    _refuse_body(request.body, _SENT * _most_values(kind), advice_for(kind))


def most_bytes_of(kind: str) -> int:
    """Return how large an object of a kind may be, by the kind's key."""
    return MAX_READ_OBJECT_BYTES if kind in _read_kinds() else MAX_OBJECT_BYTES


def advice_for(kind: str) -> str:
    """Say what to do with an object of a kind that is too large."""
    if kind in _read_kinds():
        return "put large texts and tables into a ConfigMap"
    return "split it into several objects"


def _most_values(kind: str) -> int:
    if kind == _DEFINITIONS:
        return _MAX_DEFINITION_VALUES
    return MAX_READ_VALUES if kind in _read_kinds() else MAX_VALUES


def refuse_large(
    kind: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None, sent: int | None = None
) -> None:
    """Refuse an object with more values than its kind may have, and than it had before.

    `sent` is the most that there can have been in the body of a new object.
    """
    most = _most_values(kind)
    if sent is not None and _SPELT * sent <= most:
        return
    count = _own_values(obj)
    if count > most and (old is None or count > _own_values(old)):
        message = f"the object has {count} fields and items of lists; at most {most} are allowed"
        raise ApiError(413, "RequestEntityTooLarge", f"{message}; {advice_for(kind)}")


def _refuse_body(text: bytes, most: int = _SENT * _MAX_DEFINITION_VALUES, advice: str = "") -> None:
    """Raise a 413 for a JSON text of more values than there may be, before it is decoded.

    Other texts pass: readers of YAML and of protobuf count as they go.
    """
    if _looks_like_json(text) and _has_more(text, most):
        message = f"the request body has more than {most} fields and items of lists"
        raise ApiError(413, "RequestEntityTooLarge", "; ".join(filter(None, (message, advice))))


def _looks_like_json(text: bytes) -> bool:
    """Say whether a text can be an object or a list in JSON."""
    return text[:256].lstrip()[:1] in (b"{", b"[")


def _has_more(text: bytes, most: int) -> bool:
    """Say whether a JSON text has more values than that.

    >>> _has_more(b'{"a":[1,2]}', 3), _has_more(b'{"a":"[1,2,3]"}', 3)
    (True, False)
    """
    # Every value but the outermost stands behind one of these.
    if text.count(b",") + text.count(b"[") + text.count(b"{") <= most:
        return False
    count = 0
    for found in _TEXT_OR_SEPARATOR.finditer(text):
        count += text[found.start()] != _QUOTE
        if count > most:
            return True
    return False  # most of them stand in texts


def _own_values(obj: Mapping[str, Any]) -> int:
    """Count the values of an object, but for managedFields."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields"):
        # As many as all others together. The field itself counts.
        return _values_of({**obj, "metadata": {**metadata, "managedFields": None}})
    return _values_of(obj)


def _values_of(value: object) -> int:
    """Return how many fields and items there are in a value."""
    count = 0
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    while level:
        count += sum(map(len, level))
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) is dict or type(item) is list
        ]
    return count


@cache
def _read_kinds() -> frozenset[str]:
    """Return the keys of nodes and of all kinds that say what a pod is made of."""
    found = {"/nodes"}
    for served in served_kinds():
        seen: set[str] = set()
        names = [*_references(served.schema)]
        while names:
            name = names.pop()
            if name not in seen:
                seen.add(name)
                names += _references(definition(name))
        if not _PARTS_OF_PODS.isdisjoint(seen):
            found.add(served.key)
    return frozenset(found)


def _references(schema: object) -> Iterator[str]:
    """Yield the definitions that a schema names."""
    if not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            yield value
        else:
            yield from _references(value)
