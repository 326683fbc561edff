"""What objects of every kind have in common (`meta/v1`): metadata, label selectors, conditions.

Everything that an API server may have put there is accepted, so the output of
`kubectl get -o yaml` is valid input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from msgspec import Meta, json

from unisono.engine.model import selection as engine
from unisono.engine.model.names import Instant
from unisono.kinds.decode import Int64, Problem, Schema, decode
from unisono.kinds.scalar import Timestamp

# An object as JSON has it, for what changes one in place; to read one, there are `kinds.views`.
Json = dict[str, Any]

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


# ---- label selectors, as `namespaceSelector` and others write them -------------------------------

# What Kubernetes makes of a selector that is not there at all: no value is among no values.
NOTHING = engine.LabelSelector((engine.Requirement("nothing", "In", ()),))


class LabelSelectorRequirement(Schema, frozen=True, kw_only=True):
    """One clause about one label."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class LabelSelector(Schema, frozen=True, kw_only=True):
    """All clauses must hold; an empty selector matches everything."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


def check_selector(selector: LabelSelector, path: str) -> Iterator[Problem]:
    """Yield what is wrong with a selector that stands at `path`."""
    for key, value in selector.match_labels.items():
        wrong = wrong_with_label(key, value)
        if wrong:
            yield Problem(f"{path}.matchLabels[{key}]", wrong)
    for index, clause in enumerate(selector.match_expressions):
        at = f"{path}.matchExpressions[{index}]"
        wrong = wrong_with_label_key(clause.key)
        if wrong:
            yield Problem(f"{at}.key", wrong)
        wants_values = clause.operator in ("In", "NotIn")
        if wants_values and not clause.values:
            yield Problem(f"{at}.values", f"{clause.operator} needs at least one value")
        if not wants_values and clause.values:
            yield Problem(f"{at}.values", f"{clause.operator} takes no values")
        for number, value in enumerate(clause.values):
            wrong = wrong_with_label_value(value)
            if wrong:
                yield Problem(f"{at}.values[{number}]", wrong)


def selector_of(selector: LabelSelector) -> engine.LabelSelector:
    """Return the engine's form of a selector."""
    from_labels = tuple(
        engine.Requirement(key, "In", (value,))
        for key, value in sorted(selector.match_labels.items())
    )
    from_clauses = tuple(
        engine.Requirement(clause.key, clause.operator, clause.values)
        for clause in selector.match_expressions
    )
    return engine.LabelSelector(from_labels + from_clauses)


def is_selected(selector: Mapping[str, object], labels: Mapping[str, str]) -> bool:
    """Say whether labels satisfy a selector; one that cannot be read refuses none."""
    # A set of pods asks for each of them: the text is written in a fiftieth of the time of reading.
    text = json.encode(selector)
    read = _selector_read if len(text) <= _LONGEST_KEPT else _selector_read.__wrapped__
    known = read(text)
    return known is None or engine.selects(known, dict(labels))


# Selectors are kept up to this length, 4 MiB together at most.
_LONGEST_KEPT = 4096


@lru_cache(maxsize=1024)
def _selector_read(text: bytes) -> engine.LabelSelector | None:
    """Return a selector; None if it cannot be read."""
    manifest, _ = decode(LabelSelector, json.decode(text), ignore_unknown=True)
    return None if manifest is None else selector_of(manifest)


# ---- `status.conditions`: what was observed of an object, one entry per type ---------------------


class Condition(Schema, frozen=True, kw_only=True):
    """One observed fact, and since when it holds."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    last_transition_time: Timestamp | None = None
    observed_generation: Int64 = 0

    @property
    def is_true(self) -> bool:
        """Whether it was observed to hold."""
        return self.status == "True"

    @property
    def since(self) -> Instant | None:
        """The instant of its last change, if it was written down."""
        return self.last_transition_time.instant if self.last_transition_time else None


def condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Return the condition of a type; the last one, should there be several."""
    found = None
    for candidate in conditions:
        if candidate.type == type_:
            found = candidate
    return found


class TimedCondition(Condition, frozen=True, kw_only=True):
    """A condition of a pod, a node, a job: the field names of all of them together."""

    last_probe_time: Timestamp | None = None
    last_update_time: Timestamp | None = None
    last_heartbeat_time: Timestamp | None = None


def holds(conditions: Iterable[Condition], *types: str) -> bool:
    """Say whether a condition of one of these types is true."""
    return any(one.type in types and one.is_true for one in conditions)
