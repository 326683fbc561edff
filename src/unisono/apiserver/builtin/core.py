"""Small kinds of the core group: nodes, namespaces, config maps, secrets, events; and leases."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping

from unisono.apiserver.builtin.field_errors import forbidden, immutable, invalid, required, too_long
from unisono.apiserver.builtin.pods.defaults import NOT_READY
from unisono.apiserver.builtin.typed_validation import judge, known_kind
from unisono.apiserver.errors import Cause, bad_request
from unisono.apiserver.objects import Json, annotations_of, at, child, fill, fill_text, items
from unisono.apiserver.strategy import Context, Strategy
from unisono.apiserver.times import micro_timestamp, seconds
from unisono.kinds.meta import NAMESPACE_LABEL
from unisono.kinds.overriding import override

_NODE = known_kind("v1", "Node")
_NAMESPACE_FINALIZER = "kubernetes"
# What a node always says of itself, be it nothing.
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


class NodeStrategy(Strategy):
    """A node; it brings its status along, and is tainted as not ready until it was looked at."""

    has_generation = False
    clears_status = False

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """Keep pods away until the node controller has seen that the node is ready."""
        spec = child(obj, "spec")
        taints = items(spec, "taints")
        if not any(taint.get("key") == NOT_READY for taint in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]

    @override
    def default(self, obj: Json) -> None:
        """What a node has is what it gives, unless it says otherwise."""
        status = child(obj, "status")
        capacity = at(status, "capacity")
        if capacity:
            fill(status, allocatable=dict(capacity))
        fill(child(status, "nodeInfo"), **dict.fromkeys(_NODE_INFO, ""))
        fill(child(child(status, "daemonEndpoints"), "kubeletEndpoint"), Port=0)

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield amounts and taints that cannot be, and what belongs to the node for good."""
        assert _NODE is not None, "Node is one of our kinds"
        causes, _ = judge(_NODE, obj)
        yield from causes
        for field in ("providerID", "podCIDRs") if old is not None else ():
            before = at(old or {}, "spec").get(field)
            if before and at(obj, "spec").get(field) != before:
                yield forbidden(f"spec.{field}", "node updates may not change it once it is set")


class NamespaceStrategy(Strategy):
    """A namespace; it goes when its content is gone."""

    has_generation = False

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """A new namespace is active and stays until it is emptied."""
        obj["status"] = {"phase": "Active"}
        spec = child(obj, "spec")
        given = spec.get("finalizers")
        if given is not None and not isinstance(given, list):
            return  # the schema says what is wrong with it
        spec["finalizers"] = [
            *(one for one in given or () if one != _NAMESPACE_FINALIZER),
            _NAMESPACE_FINALIZER,
        ]

    @override
    def prepare_update(self, obj: Json, old: Json, context: Context) -> None:
        """Finalizers of the spec are removed by an address of their own."""
        obj["spec"] = dict(at(old, "spec"))

    @override
    def default(self, obj: Json) -> None:
        """Every namespace can be selected by its name."""
        metadata = child(obj, "metadata")
        name = metadata.get("name")
        if name:
            child(metadata, "labels")[NAMESPACE_LABEL] = name


# ---- config maps and secrets ---------------------------------------------------------------------
#
# ConfigMaps and Secrets: bytes under names, which may be frozen.

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_MAX_KEY = 253
_MAX_BYTES = 2**20
_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
# Which keys a secret of a well-known type must have.
_KEYS_OF_TYPE: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


_LOGIN = ("username", "password")  # of which one is enough


class ConfigMapStrategy(Strategy):
    """Texts and bytes under names."""

    has_generation = False

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield bad keys, too many bytes, and changes of what was frozen."""
        data, binary = at(obj, "data"), at(obj, "binaryData")
        yield from _check_keys(data, "data")
        yield from _check_keys(binary, "binaryData")
        for key in sorted(data.keys() & binary.keys()):
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        _refuse_other_than_base64(binary, "ConfigMap")
        size = sum(len(str(one).encode()) for one in data.values())
        size += sum(len(str(one)) * 3 // 4 for one in binary.values())
        if size > _MAX_BYTES:
            yield too_long("", _MAX_BYTES)
        if old is not None:
            yield from _check_frozen(obj, old, ("data", "binaryData"))


class SecretStrategy(Strategy):
    """Bytes under names that only some users may read."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Store what was given as text with the rest, as bytes."""
        fill_text(obj, type="Opaque")
        texts = obj.pop("stringData", None)
        if isinstance(texts, dict) and texts:
            data = child(obj, "data")
            for key, text in texts.items():
                # What is no text is left for the schema to refuse.
                data[key] = (
                    base64.b64encode(text.encode()).decode() if isinstance(text, str) else text
                )

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield bad keys, missing keys of the type, too many bytes, and changes of the frozen."""
        data, kind = at(obj, "data"), str(obj.get("type"))
        yield from _check_keys(data, "data")
        _refuse_other_than_base64(data, "Secret")
        if sum(len(str(one)) * 3 // 4 for one in data.values()) > _MAX_BYTES:
            yield too_long("data", _MAX_BYTES)
        for key in _KEYS_OF_TYPE.get(kind, ()):
            if key not in data:
                yield required(f"data[{key}]")
        if kind == "kubernetes.io/basic-auth" and not {*_LOGIN} & data.keys():
            yield from (required(f"data[{key}]") for key in _LOGIN)
        if kind == _ACCOUNT_TOKEN and not annotations_of(obj).get(_ACCOUNT_NAME):
            yield required(f"metadata.annotations[{_ACCOUNT_NAME}]")
        if old is not None:
            if obj.get("type") != old.get("type"):
                yield immutable("type", obj.get("type"))
            yield from _check_frozen(obj, old, ("data",))


def _check_keys(data: Json, path: str) -> Iterator[Cause]:
    for key in data:
        if len(key) > _MAX_KEY:
            yield invalid(f"{path}[{key}]", key, f"must be no more than {_MAX_KEY} characters")
        elif _KEY.fullmatch(key) is None or key in (".", "..") or key.startswith(".."):
            why = "a valid key has only letters, digits, '-', '_' or '.'"
            yield invalid(f"{path}[{key}]", key, why)


def _refuse_other_than_base64(data: Json, kind: str) -> None:
    """Bytes that cannot be read are no object at all, rather than one with a wrong field."""
    for key, value in data.items():
        try:
            base64.b64decode(str(value), validate=True)
        except (binascii.Error, ValueError):
            raise bad_request(f"{kind} cannot be read: {key} is not base64") from None


def _check_frozen(obj: Json, old: Json, fields: tuple[str, ...]) -> Iterator[Cause]:
    if old.get("immutable") is not True:
        return
    why = "field is immutable when `immutable` is set"
    if obj.get("immutable") is not True:
        yield forbidden("immutable", why)
    for field in fields:
        if (obj.get(field) or {}) != (old.get(field) or {}):
            yield forbidden(field, why)


# ---- events and leases ---------------------------------------------------------------------------
#
# Events and leases, whose times are written with microseconds.
#
# The newer face, `events.k8s.io/v1`, is a conversion of the same object (`rest.versions`). An
# object is checked in the version that it was written in, with the names of its fields.

# Where events about objects without a namespace live; the newer face knows one more place.
_FOR_CLUSTER = ("default",)
_FOR_CLUSTER_NEW = ("default", "kube-system")


class EventStrategy(Strategy):
    """An Event, under either face."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Write times with microseconds where they have them."""
        _to_micros(obj, "eventTime")
        _to_micros(at(obj, "series"), "lastObservedTime")

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield an event in another namespace than its object, or without its author."""
        is_new_style = obj.get("apiVersion") != "v1"
        subject = "regarding" if is_new_style else "involvedObject"
        homes = _FOR_CLUSTER_NEW if is_new_style else _FOR_CLUSTER
        namespace = at(obj, "metadata").get("namespace")
        about = at(obj, subject).get("namespace") or ""
        if about != namespace if about else namespace not in homes:
            yield invalid(f"{subject}.namespace", about, "does not match event.namespace")
        if is_new_style and old is None:
            yield from _check_author(obj)


def _check_author(obj: Json) -> Iterator[Cause]:
    if not obj.get("eventTime"):
        yield required("eventTime")
    else:
        for field in ("reportingController", "reportingInstance", "action", "reason"):
            if not obj.get(field):
                yield required(field)
    kind = obj.get("type")
    if kind not in ("Normal", "Warning"):
        yield invalid("type", kind, "must be Normal or Warning")


# ---- leases --------------------------------------------------------------------------------------


class LeaseStrategy(Strategy):
    """A Lease."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Write times with microseconds, as leader election expects."""
        _to_micros(at(obj, "spec"), "acquireTime", "renewTime")

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield durations that make no sense."""
        spec = at(obj, "spec")
        duration = spec.get("leaseDurationSeconds")
        if isinstance(duration, int) and duration <= 0:
            yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
        transitions = spec.get("leaseTransitions")
        if isinstance(transitions, int) and transitions < 0:
            yield invalid("spec.leaseTransitions", transitions, "must be greater or equal than 0")


def _to_micros(obj: Json, *fields: str) -> None:
    """Write times with six digits behind the point; what is no time is left to the schema."""
    for field in fields:
        text = obj.get(field)
        moment = seconds(text) if isinstance(text, str) else None
        if moment is not None:
            obj[field] = micro_timestamp(moment)
