"""What a client sent: JSON, YAML or kubectl's protobuf, turned into an object and inspected."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import islice
from typing import Any

import orjson

from unisono.apiserver.catalogue import Resource
from unisono.apiserver.errors import Cause, bad_request, invalid, unsupported_media_type
from unisono.apiserver.objects import Json
from unisono.apiserver.protobuf.decode import decode as decode_protobuf
from unisono.apiserver.request import Request
from unisono.apiserver.rest.size_limits import looks_like_json, refuse_body
from unisono.apiserver.schema.body_checks import (
    MAX_DEPTH,
    duplicate_fields,
    has_every_key,
    refuse_deep,
)
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
    refuse_body(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"the body is not valid JSON: {error}") from error


def parse_yaml(body: bytes) -> Any:
    """Return what a YAML text says; JSON, which is YAML too, is read much faster."""
    if looks_like_json(body):
        refuse_body(body)
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
    # A text with few brackets is not deep; that is most of them.
    if request.body.count(b"{") + request.body.count(b"[") > MAX_DEPTH:
        refuse_deep(obj)
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
