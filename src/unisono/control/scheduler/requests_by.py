"""What besides its templates decides what a workload asks for, and which ones a change concerns.

    LimitRange      defaults for containers, and bounds: every workload of its namespace
    RuntimeClass    overhead: workloads whose pods name it
    DeviceClass     resources that are devices to be claimed: workloads that ask for a resource with
                    a domain in its name
    Node            the same, when the first node gets such a resource from a device plugin, or the
                    last one loses it

Only what waits is read again. What runs keeps what it was admitted with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

REQUESTS_BY = frozenset({names.LIMIT_RANGE, names.RUNTIME_CLASS, names.DEVICE_CLASS, names.NODE})


class RequestsBy:
    """Finds the workloads that ask for something else after a change."""

    def __init__(self, view: View) -> None:
        """Begin without nodes."""
        self._view = view
        self._of_node: dict[str, frozenset[str]] = {}
        self._nodes_with: Counter[str] = Counter()  # how many nodes have a resource by themselves
        self._moved: frozenset[str] = (
            frozenset()
        )  # which the last node was the first, or last, with

    def node_changed(self, name: str, node: Json | None) -> None:
        """Note which resources with a domain in their names a node has."""
        has = frozenset(_offered(node)) if node is not None else frozenset()
        had = self._of_node.get(name, frozenset())
        if has == had:
            self._moved = frozenset()
            return
        before = {one for one in has | had if self._nodes_with[one]}
        self._nodes_with.update(has)
        self._nodes_with.subtract(had)
        self._moved = frozenset(
            one for one in has | had if bool(self._nodes_with[one]) != (one in before)
        )
        if has:
            self._of_node[name] = has
        else:
            self._of_node.pop(name, None)

    def concerns(self, waiting: Json, kind: Kind, key: Key) -> bool:
        """Say whether what waits may ask for something else after a change of this object."""
        match kind:
            case names.LIMIT_RANGE:
                return bool(waiting["metadata"]["namespace"] == key.namespace)
            case names.RUNTIME_CLASS:
                return any(spec.get("runtimeClassName") == key.name for spec in _specs(waiting))
            case names.DEVICE_CLASS:
                return any(True for _ in _asked(waiting))
            case _:
                return self._gets_devices(waiting)

    def _gets_devices(self, waiting: Json) -> bool:
        """Say whether it asks for what a device plugin has now, or has not, instead of a class."""
        if not self._moved or not self._view.has(names.DEVICE_CLASS):
            return False
        of_classes = {
            (one.get("spec") or {}).get("extendedResourceName")
            for one in self._view.all(names.DEVICE_CLASS)
        }
        return not (of_classes & self._moved).isdisjoint(_asked(waiting))


def _offered(node: Json) -> Iterator[str]:
    status = node.get("status") or {}
    for resource, amount in (status.get("allocatable") or status.get("capacity") or {}).items():
        if "/" in resource and str(amount) != "0":
            yield resource


def _specs(waiting: Json) -> Iterator[Json]:
    """Yield the pod specs of a Workload; a pod that waits by itself has one."""
    if "podSets" not in waiting["spec"]:
        yield waiting["spec"]
    for one in waiting["spec"].get("podSets") or ():
        yield (one.get("template") or {}).get("spec") or {}


def _asked(waiting: Json) -> Iterator[str]:
    """Yield the resources with a domain in their names that pods ask for."""
    for spec in _specs(waiting):
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            for part in ("requests", "limits"):
                named = (container.get("resources") or {}).get(part) or {}
                yield from (one for one in named if "/" in one)
