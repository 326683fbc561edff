"""What `metadata` may say: names, labels, annotations, finalizers, owners; and what it says.

Names have the shape that their kind asks for:

    subdomain      most kinds           team-a.gpu
    label          Namespace            team-a
    DNS-1035       Service              like a label, but begins with a letter
    path segment   RBAC kinds           system:node, anything that can stand in an address
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from unisono.apiserver.builtin.field_errors import (
    about,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
)
from unisono.apiserver.errors import Cause
from unisono.apiserver.errors import invalid as invalid_object
from unisono.apiserver.objects import Json, at, numbered
from unisono.apiserver.schema.fault import WRONG_TYPE, below
from unisono.apiserver.schema.node import OBJECT_META, node_of
from unisono.apiserver.schema.structure import compile_check
from unisono.kinds.meta import (
    wrong_with_dns_label,
    wrong_with_label_key,
    wrong_with_label_value,
    wrong_with_subdomain,
)
from unisono.kinds.shapes.served import Served
from unisono.kinds.short_texts import cached_if_short

MAX_ANNOTATION_BYTES = 262_144
# Of finalizers, owners and entries of managedFields. Each finalizer is a controller that has to act
# before an object is gone, each owner is looked for by the garbage collector, and each entry is
# compared with every write. Objects have one or two; what a whole gang shares may have hundreds.
MAX_ENTRIES = 1000
STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_MAX_CRON_JOB = 52  # the jobs' names get eleven characters more and must still be labels


def check_metadata(obj: Json, served: Served) -> list[Cause]:
    """Return everything that is wrong with an object's metadata."""
    metadata = at(obj, "metadata")
    return [
        *_check_name(metadata, served),
        *_check_namespace(metadata, served),
        *check_labels(metadata.get("labels"), "metadata.labels"),
        *check_annotations(metadata.get("annotations"), "metadata.annotations"),
        *_check_finalizers(metadata, served),
        *_check_owners(metadata),
    ]


# ---- names -------------------------------------------------------------------------------------


def wrong_with_path_segment(name: str) -> str:
    """Say why a text cannot stand alone in an address; empty if it can."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    for letter in "/%":
        if letter in name:
            return f"may not contain '{letter}'"
    return ""


def wrong_with_service_name(name: str) -> str:
    """Say why a text is no name of a service; empty if it is one."""
    if wrong := wrong_with_dns_label(name):
        return wrong
    return "" if _DNS_1035.fullmatch(name) else "must begin with a lower-case letter"


def _wrong_with_cron_job(name: str) -> str:
    if len(name) > _MAX_CRON_JOB:
        return f"must be no more than {_MAX_CRON_JOB} characters"
    return wrong_with_subdomain(name)


_NAME_RULES: Mapping[str, Callable[[str], str]] = {
    "/namespaces": wrong_with_dns_label,
    "/services": wrong_with_service_name,
    "batch/cronjobs": _wrong_with_cron_job,
}


def _name_rule(served: Served) -> Callable[[str], str]:
    if served.group == "rbac.authorization.k8s.io":
        return wrong_with_path_segment
    return _NAME_RULES.get(served.key, wrong_with_subdomain)


def _check_name(metadata: Json, served: Served) -> Iterator[Cause]:
    name, base = metadata.get("name") or "", metadata.get("generateName") or ""
    if name:
        yield from about("metadata.name", name, _name_rule(served)(str(name)))
    elif not base:
        yield required("metadata.name", "name or generateName is required")
    if base and not name:
        # Five random characters follow, so an end that would be wrong alone is fine here.
        yield from about("metadata.generateName", base, _name_rule(served)(f"{base}x"))


_wrong_namespace = cached_if_short(256)(wrong_with_dns_label)


def _check_namespace(metadata: Json, served: Served) -> Iterator[Cause]:
    namespace = metadata.get("namespace") or ""
    if not served.namespaced:
        if namespace:
            yield forbidden("metadata.namespace", "not allowed on this type")
    elif not namespace:
        yield required("metadata.namespace")
    else:
        yield from about("metadata.namespace", namespace, _wrong_namespace(namespace))


# ---- labels and annotations --------------------------------------------------------------------

# Few keys are on many objects.
_wrong_key = cached_if_short(1024)(wrong_with_label_key)


def check_labels(labels: object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with labels that stand at `path`."""
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if wrong := _wrong_key(key):
            yield invalid(path, key, wrong)
        if wrong := wrong_with_label_value(str(value)):
            yield invalid(path, value, wrong)


def check_annotations(annotations: object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with annotations that stand at `path`."""
    if not isinstance(annotations, dict):
        return
    for key in annotations:
        # Keys of annotations may have upper-case letters in the part before the slash.
        if wrong := _wrong_key(key.lower()):
            yield invalid(path, key, wrong)
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(str(value).encode())
    if size > MAX_ANNOTATION_BYTES:
        yield too_long(path, MAX_ANNOTATION_BYTES)


# ---- finalizers and owners ---------------------------------------------------------------------


def check_counts(obj: Json, old: Json | None) -> Iterator[Cause]:
    """Yield the lists that have too many entries; one that was so long before may be shortened."""
    metadata, before = at(obj, "metadata"), at(old, "metadata") if old is not None else {}
    for name in ("finalizers", "ownerReferences", "managedFields"):
        entries, known = metadata.get(name), before.get(name)
        if not isinstance(entries, list) or len(entries) <= MAX_ENTRIES:
            continue
        if not isinstance(known, list) or len(entries) > len(known):
            yield too_many(f"metadata.{name}", len(entries), MAX_ENTRIES)


def _check_finalizers(metadata: Json, served: Served) -> Iterator[Cause]:
    finalizers = metadata.get("finalizers")
    path = "metadata.finalizers"
    if not finalizers:
        return
    names = [str(one) for one in finalizers] if isinstance(finalizers, list) else []
    for name in names:
        if wrong := wrong_with_label_key(name):
            yield invalid(path, name, wrong)
        elif "/" not in name and name not in STANDARD_FINALIZERS and _is_core(served):
            yield invalid(path, name, "is neither a standard finalizer nor of the form domain/name")
    if "orphan" in names and "foregroundDeletion" in names:
        yield invalid(path, names, "finalizers orphan and foregroundDeletion exclude each other")


def _is_core(served: Served) -> bool:
    """Custom kinds may have finalizers without a domain; upstream warns and accepts."""
    return "." not in served.group or served.group.endswith(".k8s.io")


def _check_owners(metadata: Json) -> Iterator[Cause]:
    if not metadata.get("ownerReferences"):
        return
    controllers: list[Json] = []
    for path, owner in numbered(metadata, "ownerReferences", "metadata"):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield required(f"{path}.{field}", "must not be empty")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield invalid(path, _named(owner), "an event cannot own anything")
        if owner.get("controller") is True:
            controllers.append(owner)
    if len(controllers) > 1:
        named = " and ".join(_named(owner) for owner in controllers)
        why = f"only one reference can have controller set to true; found {named}"
        yield invalid("metadata.ownerReferences", len(controllers), why)


def _named(owner: Mapping[str, Any]) -> str:
    return f"{owner.get('kind')}/{owner.get('name')}"


# ---- before the schema is asked ------------------------------------------------------------------
#
# Whether an object is over, and whether its parts are fit to be looked at.

_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion")
_OWNER_TEXTS = ("apiVersion", "kind", "name", "uid")
_TEXT = {str}


def is_over(obj: Json) -> bool:
    """Say whether an object that was deleted has nothing left to wait for."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds"):
        return False
    return not (obj["kind"] == "Namespace" and obj.get("spec", {}).get("finalizers"))


def check_parts(obj: Json) -> None:
    """Let strategies rely on spec and status being objects and metadata being sound.

    The checker reports the rest, later: admission reads labels, annotations and owners first.
    """
    for part in ("spec", "status"):
        if part in obj and not isinstance(obj[part], dict):
            if obj[part] is None:
                del obj[part]
            else:
                cause = Cause("FieldValueTypeInvalid", "must be an object", part)
                raise invalid_object(obj["kind"], str(obj["metadata"].get("name", "")), [cause])


def check_metadata_types(kind: str, group: str, metadata: Json) -> None:
    """Refuse metadata whose parts are not of their types, with the path of each that is wrong.

    Nearly all are, so the schema is only asked where a quick look finds something odd.
    """
    if not _is_usual(metadata):
        check = node_of(OBJECT_META, typed=True).compiled(compile_check)
        assert check is not None, "metadata has types"
        faults = [fault for fault in check(metadata) or () if fault.reason == WRONG_TYPE]
        if faults:
            name = metadata.get("name")
            causes = [fault.cause() for fault in below(faults, "metadata")]
            raise invalid_object(kind, name if isinstance(name, str) else "", causes, group=group)


def _is_usual(metadata: Json) -> bool:
    for name in _TEXTS:
        if name in metadata and type(metadata[name]) is not str:
            return False
    for name in ("labels", "annotations"):
        texts = metadata.get(name)
        if texts is not None and (
            type(texts) is not dict or not _TEXT.issuperset(map(type, texts.values()))
        ):
            return False
    finalizers = metadata.get("finalizers")
    if finalizers is not None and (
        type(finalizers) is not list or not _TEXT.issuperset(map(type, finalizers))
    ):
        return False
    owners = metadata.get("ownerReferences")
    return owners is None or (
        type(owners) is list
        and all(type(one) is dict for one in owners)
        and all(type(one.get(field)) is str for one in owners for field in _OWNER_TEXTS)
    )


def drop_empty(metadata: Json) -> None:
    """Leave out what says nothing: no labels are the same as an empty map of them."""
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if key in metadata and not metadata[key]:
            del metadata[key]
