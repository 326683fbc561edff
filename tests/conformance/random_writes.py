"""Random writes to one object, from a seed: what two servers are compared with.

The values come from tiny sets, so that writes meet: the same label, the same container, the same
port. Bodies are plausible, not valid; a server that refuses one must refuse it like the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.conformance.client import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Answer,
    Collection,
    Manifest,
)
from tests.conformance.widgets import VERSION

T = TypeVar("T")

NAME = "a"
KINDS = {
    "ConfigMap": ("v1", "configmaps"),
    "Deployment": ("apps/v1", "deployments"),
    "Job": ("batch/v1", "jobs"),
    "Pod": ("v1", "pods"),
    "Service": ("v1", "services"),
    "Widget": (VERSION, "widgets"),
}
# Not lists inside of list items: a real server does not obey directives in an item that is new.
_MERGED_LISTS = {"containers": "name", "volumes": "name"}


@dataclass(frozen=True)
class Write:
    """One request about the object."""

    verb: str
    body: Any
    manager: str
    is_forced: bool = False

    def send(self, things: Collection) -> Answer:
        """Send it."""
        match self.verb:
            case "create":
                return things.create(self.body, fieldManager=self.manager)
            case "put":
                # Conditional where there is something to replace; a server may create otherwise.
                seen = things.read(NAME)
                if seen.code != 200:
                    return seen
                old = seen.json()
                version = {"resourceVersion": old["metadata"]["resourceVersion"]}
                body = {**self.body, "metadata": {**self.body["metadata"], **version}}
                if body["kind"] == "Service":
                    kept = {name: old["spec"].get(name) for name in ("clusterIP", "clusterIPs")}
                    body["spec"] = {**body["spec"], **kept}
                return things.replace(body, fieldManager=self.manager)
            case "apply":
                return things.apply(self.body, manager=self.manager, force=self.is_forced)
            case "status":
                return things.patch(NAME, self.body, sub="status", fieldManager=self.manager)
            case "delete":
                return things.delete(NAME, {"propagationPolicy": "Background"})
            case kind:
                return things.patch(NAME, self.body, kind=kind, fieldManager=self.manager)


def sequence(kind: str, seed: int) -> list[Write]:
    """Return some writes to one object; the first brings it about if it is valid."""
    writer = _Writer(kind, seed)
    first = writer.pick("create", "apply")
    return [
        Write(first, writer.whole(), "A"),
        *(writer.write() for _ in range(writer.pick(2, 3, 4, 5))),
    ]


class _Writer:
    def __init__(self, kind: str, seed: int) -> None:
        self._random = random.Random(f"{kind} {seed}")
        self._kind = kind

    # ---- dice --------------------------------------------------------------------------------

    def pick(self, *values: T) -> T:
        return self._random.choice(values)

    def chance(self, share: float = 0.5) -> bool:
        return self._random.random() < share

    def some(self, values: Iterable[T]) -> list[T]:
        return [value for value in values if self.chance()]

    def words(self, keys: str = "xyz", *, is_patch: bool = False) -> dict[str, str | None]:
        return {
            key: None if is_patch and self.chance(0.25) else self.pick("1", "2")
            for key in self.some(keys)
        }

    def unlike(self, make: Callable[[], T], key: Callable[[T], Hashable], count: int) -> list[T]:
        """Return up to so many values, no two with the same key."""
        made = [make() for _ in range(count)]
        return list({key(value): value for value in reversed(made)}.values())

    # ---- writes ------------------------------------------------------------------------------

    def write(self) -> Write:
        manager = self.pick("A", "B", "C")
        share = self._random.random()
        if share < 0.4:
            body = self.whole() if self.chance(0.8) else self._named(self.partial())
            return Write("apply", body, manager, is_forced=self.chance(0.35))
        if share < 0.55:
            return Write(MERGE_PATCH, self.partial(is_patch=True), manager)
        if share < 0.7:
            if self._kind == "Widget":
                return Write(JSON_PATCH, [{"op": "remove", "path": "/spec/tags"}], manager)
            return Write(STRATEGIC_PATCH, self.directed(self.partial(is_patch=True)), manager)
        if share < 0.8:
            return Write("put", self.whole(), manager)
        if share < 0.85:
            return Write("status", self.status(), manager)
        if share < 0.9:
            return Write(JSON_PATCH, self.operations(), manager)
        if share < 0.93:
            return Write(MERGE_PATCH, {"metadata": {"managedFields": [{}]}}, manager)
        if share < 0.96:
            return Write("delete", None, manager)
        return Write("create", self.whole(), manager)

    def whole(self) -> Manifest:
        return self._named(self._body(is_whole=True, is_patch=False))

    def partial(self, *, is_patch: bool = False) -> Manifest:
        return self._body(is_whole=False, is_patch=is_patch)

    def status(self) -> Manifest:
        if self._kind == "Pod":
            times = dict.fromkeys(("lastProbeTime", "lastTransitionTime"), "2024-01-01T00:00:00Z")
            ready = {"type": "Ready", "status": self.pick("True", "False"), **times}
            return {"status": {"phase": self.pick("Running", "Pending"), "conditions": [ready]}}
        number = self.pick(1, 2)
        return {"status": {"active": number} if self._kind == "Job" else {"replicas": number}}

    def operations(self) -> list[Manifest]:
        if self.chance():
            return [{"op": "remove", "path": "/metadata/labels/x"}]
        value = {"z": self.pick("1", "2")}
        return [{"op": "add", "path": "/metadata/annotations", "value": value}]

    def directed(self, patch: Any) -> Any:
        """Return a strategic merge patch with directives sprinkled in."""
        if isinstance(patch, list):
            return [self.directed(item) for item in patch]
        if not isinstance(patch, dict):
            return patch
        result = {name: self.directed(value) for name, value in patch.items()}
        for name, value in list(result.items()):
            if name in _MERGED_LISTS and value:
                self._direct_list(result, name, value)
            elif name == "finalizers" and self.chance(0.3):
                # Instead of the list: which of the two comes first is left to chance upstream.
                result["$deleteFromPrimitiveList/finalizers"] = result.pop("finalizers")
            elif name in ("labels", "nodeSelector") and self.chance(0.2):
                # Not `replace`: a real server drops the whole map if the object has none yet.
                result[name] = {**value, "$patch": "delete"}
        return result

    def _direct_list(self, parent: Manifest, name: str, items: list[Manifest]) -> None:
        key = _MERGED_LISTS[name]
        if self.chance(0.2):
            parent[f"$setElementOrder/{name}"] = [{key: item[key]} for item in items]
        elif self.chance(0.15):
            self.pick(*items)["$patch"] = "delete"
        elif self.chance(0.1):
            items.append({"$patch": "replace"})

    # ---- bodies ------------------------------------------------------------------------------

    def _named(self, body: Manifest) -> Manifest:
        version, _ = KINDS[self._kind]
        metadata = {"name": NAME, **body["metadata"]}
        return {"apiVersion": version, "kind": self._kind, **body, "metadata": metadata}

    def _body(self, *, is_whole: bool, is_patch: bool) -> Manifest:
        body: Manifest = {"metadata": self._metadata(is_patch=is_patch)}
        match self._kind:
            case "ConfigMap":
                if self.chance(0.7):
                    body["data"] = self.words("jkl", is_patch=is_patch)
            case "Deployment":
                body["spec"] = self._deployment(is_whole=is_whole, is_patch=is_patch)
            case "Job":
                body["spec"] = self._job(is_whole=is_whole)
            case "Pod":
                body["spec"] = self._pod_spec(is_whole=is_whole)
            case "Service":
                body["spec"] = self._service(is_whole=is_whole)
            case _:
                body["spec"] = self._widget(is_whole=is_whole, is_patch=is_patch)
        return body

    def _metadata(self, *, is_patch: bool) -> Manifest:
        metadata: Manifest = {}
        if self.chance():
            metadata["labels"] = self.words(is_patch=is_patch)
        if self.chance(0.3):
            # Never an empty map: the embedded server keeps an annotation of its own in some kinds.
            metadata["annotations"] = {"w": "1", **self.words(is_patch=is_patch)}
        if self.chance(0.2):
            metadata["finalizers"] = self.some(["a.b/c", "a.b/d", "a.b/e"])
        return metadata

    def _deployment(self, *, is_whole: bool, is_patch: bool) -> Manifest:
        spec: Manifest = {"selector": {"matchLabels": {"app": "a"}}} if is_whole else {}
        if self.chance():
            spec["replicas"] = self.pick(0, 1, 2)
        template: Manifest = {"spec": self._pod_spec(is_whole=is_whole)}
        if is_whole:
            labels = {"app": "a", "q": "1"} if self.chance() else {"app": "a"}
            template["metadata"] = {"labels": labels}
        elif self.chance(0.3):
            template["metadata"] = {"annotations": self.words(is_patch=is_patch)}
        spec["template"] = template
        return spec

    def _job(self, *, is_whole: bool) -> Manifest:
        spec: Manifest = {}
        if is_whole or self.chance(0.2):
            policy = {"restartPolicy": self.pick("Never", "OnFailure")} if is_whole else {}
            spec["template"] = {"spec": {**self._pod_spec(is_whole=is_whole), **policy}}
        for name, values in {
            "parallelism": (0, 1, 4),
            "completions": (1, 4),
            "backoffLimit": (0, 3),
            "activeDeadlineSeconds": (60, 90),
            "ttlSecondsAfterFinished": (0, 5),
            "suspend": (True, False),
            "completionMode": ("Indexed", "NonIndexed"),
        }.items():
            if self.chance(0.2):
                spec[name] = self.pick(*values)
        return spec

    def _pod_spec(self, *, is_whole: bool) -> Manifest:
        count = self.pick(1, 2, 3) if is_whole else self.pick(0, 1, 2)
        containers = self.unlike(
            lambda: self._container(is_whole=is_whole), lambda each: str(each["name"]), count
        )
        spec: Manifest = {"containers": containers} if containers or is_whole else {}
        if self.chance(0.3):
            keys = self.some(["t", "u"])
            spec["tolerations"] = [{"key": key, "operator": "Exists"} for key in keys]
        if self.chance(0.3):
            spec["nodeSelector"] = self.words()
        if is_whole:
            spec["volumes"] = [{"name": "v", "emptyDir": {}}]
        elif self.chance(0.3):
            spec["volumes"] = [{"name": "w", "emptyDir": {"medium": "Memory"}}]
        if self.chance(0.2):
            spec["securityContext"] = {"runAsUser": self.pick(0, 1000)}
        if self.chance(0.15):
            spec["hostAliases"] = [{"ip": self.pick("1.1.1.1", "2.2.2.2"), "hostnames": ["h"]}]
        if self.chance(0.15):
            key = self.pick("zone", "host")
            spec["topologySpreadConstraints"] = [
                {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
            ]
        return spec

    def _container(self, *, is_whole: bool) -> Manifest:
        container: Manifest = {"name": self.pick("a", "b", "c")}
        if is_whole or self.chance():
            container["image"] = self.pick("i:1", "i:2")
        if self.chance(0.4):
            container["ports"] = self.unlike(
                self._port,
                lambda port: (port["containerPort"], port.get("protocol", "TCP")),
                self.pick(0, 1, 2),
            )
        if self.chance(0.4):
            container["env"] = [
                {"name": name, "value": self.pick("1", "2")} for name in self.some("AB")
            ]
        if self.chance(0.3):
            container["command"] = self.some(["x", "y"])
        if self.chance(0.3):
            names = self.some(["cpu", "nvidia.com/gpu"])
            limits = {name: self.pick("1", "1000m", "2") for name in names}
            container["resources"] = {"limits": limits}
        if self.chance(0.2):
            container["volumeMounts"] = [{"name": "v", "mountPath": self.pick("/m", "/n")}]
        return container

    def _port(self) -> Manifest:
        port: Manifest = {"containerPort": self.pick(80, 81)}
        if self.chance():
            port["protocol"] = self.pick("TCP", "UDP")
        return port

    def _service(self, *, is_whole: bool) -> Manifest:
        spec: Manifest = {}
        if self.chance():
            spec["selector"] = self.words()
        if is_whole or self.chance():
            spec["ports"] = [
                {"port": number, "name": name, **({"protocol": "UDP"} if self.chance(0.3) else {})}
                for name, number in (("a", 80), ("b", 81))
                if name == "a" or self.chance()
            ]
        if self.chance(0.2):
            spec["sessionAffinity"] = "ClientIP"
        return spec

    def _widget(self, *, is_whole: bool, is_patch: bool) -> Manifest:
        spec: Manifest = {"size": self.pick(1, 2, 11)} if is_whole else {}
        if self.chance(0.4):
            spec["tags"] = self.some(["s", "t", "u"])
        if self.chance(0.4):
            spec["parts"] = self.unlike(self._part, lambda part: str(part["name"]), self.pick(1, 2))
        if self.chance(0.3):
            spec["steps"] = [self.pick("x", "y") for _ in range(self.pick(1, 2, 3))]
        if self.chance(0.3):
            spec["whole"] = {name: self.pick(1, 2) for name in self.some("ab")}
        if self.chance(0.3):
            values: tuple[Any, ...] = (1, {"d": 1}, {"d": {"e": 2}}, [1], [{"name": "z"}])
            spec["free"] = {"g": self.pick(*values)}
        if self.chance(0.3):
            spec["labels"] = {"k": "1", **self.words(is_patch=is_patch)}
        if self.chance(0.2):
            spec["colour"] = None if is_patch else self.pick("red", "green", "blue")
        if self.chance(0.2):
            spec["port"] = self.pick(80, "http")
        if self.chance(0.15):
            spec["fixed"] = self.pick("1", "2")
        return spec

    def _part(self) -> Manifest:
        part: Manifest = {"name": self.pick("p", "q", "r")}
        if self.chance():
            part["count"] = self.pick(1, 2)
        if self.chance():
            part["note"] = self.pick("m", "n")
        return part
