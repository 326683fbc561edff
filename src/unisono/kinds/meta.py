"""`metadata`, which every object has: its struct, and the rules for names and labels.

Everything that an API server may have put there is accepted, so the output of
`kubectl get -o yaml` is valid input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta

from unisono.kinds.decode import Int64, Problem, Schema
from unisono.kinds.scalar import Timestamp

# Every namespace has this label, with its name as the value.
NAMESPACE_LABEL = "kubernetes.io/metadata.name"

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MAX_SUBDOMAIN = 253
_MAX_LABEL = 63
_MAX_ANNOTATION_BYTES = 256 * 1024


class OwnerReference(Schema, frozen=True, kw_only=True):
    """The object that this one belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Schema, frozen=True, kw_only=True):
    """An object's name, place and history."""

    name: Annotated[str, Meta(description="Unique among objects of the kind in its place.")] = ""
    generate_name: str = ""
    namespace: Annotated[str, Meta(description="The namespace; empty means default.")] = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    creation_timestamp: Annotated[
        Timestamp | None, Meta(description="When it was created; older workloads go first.")
    ] = None
    uid: Annotated[str, Meta(description="Unique in time and space; breaks ties.")] = ""
    owner_references: tuple[OwnerReference, ...] = ()
    deletion_timestamp: Timestamp | None = None
    deletion_grace_period_seconds: Int64 | None = None
    finalizers: tuple[str, ...] = ()
    resource_version: str = ""
    generation: Int64 = 0
    managed_fields: Any = None
    self_link: str = ""


def check_metadata(metadata: ObjectMeta, *, namespaced: bool) -> Iterator[Problem]:
    """Yield what is wrong with the names and labels of an object."""
    if metadata.name:
        yield from _about("metadata.name", wrong_with_subdomain(metadata.name))
    elif not metadata.generate_name:
        yield Problem("metadata.name", "is required")
    if metadata.namespace and namespaced:
        yield from _about("metadata.namespace", wrong_with_dns_label(metadata.namespace))
    for key, value in metadata.labels.items():
        yield from _about(f"metadata.labels[{key}]", wrong_with_label(key, value))
    size = sum(
        len(key.encode()) + len(value.encode()) for key, value in metadata.annotations.items()
    )
    if size > _MAX_ANNOTATION_BYTES:
        limit = _MAX_ANNOTATION_BYTES
        yield Problem("metadata.annotations", f"take {size} bytes; at most {limit} are allowed")
    for key in metadata.annotations:
        yield from _about(f"metadata.annotations[{key}]", wrong_with_label_key(key.lower()))


def _about(path: str, wrong: str) -> Iterator[Problem]:
    if wrong:
        yield Problem(path, wrong)


def wrong_with_subdomain(name: str) -> str:
    """Say why a text is not an RFC 1123 subdomain, the shape of most names; empty if it is.

    >>> wrong_with_subdomain("gpu.team-a"), wrong_with_subdomain("Team_A")
    ('', '"Team_A" is not a valid name: use lower-case letters, digits, "-" and "."')
    """
    if len(name) > _MAX_SUBDOMAIN:
        return f"has {len(name)} characters; a name has at most {_MAX_SUBDOMAIN}"
    if _SUBDOMAIN.fullmatch(name) is None:
        return f'"{name}" is not a valid name: use lower-case letters, digits, "-" and "."'
    return ""


def wrong_with_dns_label(name: str) -> str:
    """Say why a text is not a DNS label, the shape of namespaces; empty if it is."""
    if len(name) > _MAX_LABEL:
        return f"has {len(name)} characters; a name here has at most {_MAX_LABEL}"
    if _LABEL.fullmatch(name) is None:
        return f'"{name}" is not a valid name: use lower-case letters, digits and "-"'
    return ""


def wrong_with_label(key: str, value: str) -> str:
    """Say why a label cannot exist; empty if it can."""
    return wrong_with_label_key(key) or wrong_with_label_value(value)


def wrong_with_label_key(key: str) -> str:
    """Say why a text is not a label key (`name` or `prefix/name`); empty if it is."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _MAX_SUBDOMAIN or _SUBDOMAIN.fullmatch(prefix) is None):
        return f'the part "{_short(prefix)}" of the key is not a valid DNS subdomain'
    if not name or len(name) > _MAX_LABEL or _QUALIFIED.fullmatch(name) is None:
        return (
            f'"{_short(name)}" is not a valid key: use up to {_MAX_LABEL} letters, digits, '
            '"-", "_" and ".", with a letter or digit at both ends'
        )
    return ""


def wrong_with_label_value(value: str) -> str:
    """Say why a text is not a label value; empty if it is."""
    if value and (len(value) > _MAX_LABEL or _QUALIFIED.fullmatch(value) is None):
        return (
            f'"{_short(value)}" is not a valid label value: use up to {_MAX_LABEL} letters, '
            'digits, "-", "_" and ".", with a letter or digit at both ends'
        )
    return ""


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
