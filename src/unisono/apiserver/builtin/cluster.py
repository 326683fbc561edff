"""Nodes and namespaces."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.field_errors import forbidden
from unisono.apiserver.builtin.fields import at, child, fill, items
from unisono.apiserver.builtin.pods.defaults import NOT_READY
from unisono.apiserver.builtin.typed_validation import judge, known_kind
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json
from unisono.apiserver.strategy import Context, Strategy
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
