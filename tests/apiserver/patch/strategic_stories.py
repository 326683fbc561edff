"""Seeded strategic merge patches for one Deployment, with every directive."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from unisono.apiserver.objects import Json

_LABELS = {"app": "one"}
TARGET: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "patched",
        "labels": {"x": "0", "z": "0"},
        "finalizers": ["example.com/a", "example.com/d", "example.com/b", "example.com/e"],
    },
    "spec": {
        "selector": {"matchLabels": _LABELS},
        "template": {
            "metadata": {"labels": _LABELS},
            "spec": {
                "nodeSelector": {"x": "0", "z": "0"},
                "volumes": [
                    {"name": "v1", "emptyDir": {}},
                    {"name": "v2", "configMap": {"name": "q"}},
                ],
                "containers": [
                    {
                        "name": "a",
                        "image": "i",
                        "env": [{"name": name, "value": "0"} for name in ("E2", "E1", "E3")],
                        "ports": [{"containerPort": 81}, {"containerPort": 80, "name": "q"}],
                        "resources": {"limits": {"cpu": "5", "memory": "1Gi"}},
                    },
                    {
                        "name": "b",
                        "image": "i",
                        "args": ["x"],
                        "volumeMounts": [{"mountPath": "/a", "name": "v1"}],
                    },
                ],
            },
        },
    },
}

_VARIABLES = ["E1", "E2", "E3", "E4"]


class _Dice(random.Random):
    def some(self, share: float) -> bool:
        return self.random() < share

    def items(
        self, names: list[Any], key: str, item: Callable[[Any], Json], *, directives: bool
    ) -> list[Json]:
        """Return items of a patch; with directives only where there is something to direct."""
        made: list[Json] = []
        for name in self.sample(names, self.randint(0, min(3, len(names)))):
            if directives and self.some(0.2):
                made.append({key: name, "$patch": "delete"})
            else:
                made.append(item(name))
        return made

    def order(self, names: list[Any], key: str, items: list[Json]) -> list[Json]:
        """Return an order that the items of a patch are in."""
        listed = [item[key] for item in items if "$patch" not in item]
        for name in self.sample(names, self.randint(0, len(names))):
            if name not in listed:
                listed.insert(self.randint(0, len(listed)), name)
        return [{key: name} for name in listed]


def strategic_patch(seed: int) -> Json:
    """Return a patch of `TARGET`."""
    dice = _Dice(seed)
    pod: Json = {}
    if dice.some(0.7):
        containers = dice.items(
            ["a", "b", "c"], "name", lambda name: _container(dice, name), directives=True
        )
        pod["containers"] = containers
        if dice.some(0.4) and not _deletes(containers):
            pod["$setElementOrder/containers"] = dice.order(["a", "b", "c"], "name", containers)
    if dice.some(0.4):
        volumes = dice.items(
            ["v1", "v2", "v3"], "name", lambda name: _volume(dice, name), directives=True
        )
        pod["volumes"] = volumes
        if dice.some(0.4) and not _deletes(volumes):
            pod["$setElementOrder/volumes"] = dice.order(["v1", "v2", "v3"], "name", volumes)
    if dice.some(0.3):
        pod["nodeSelector"] = dice.choice(
            (
                None,
                {"x": "1"},
                {"x": None},
                {"$patch": "replace", "y": "1"},
                {"$patch": "delete"},
                {"$retainKeys": ["x"], "x": "3"},
            )
        )
    if dice.some(0.2):
        pod["tolerations"] = dice.choice(([{"key": "k", "operator": "Exists"}], [], None))
    patch: Json = {"spec": {"template": {"spec": pod}}}
    metadata = _metadata(dice)
    return {**patch, "metadata": metadata} if metadata else patch


def _deletes(items: list[Json]) -> bool:
    # A server in Go shares memory between the list and its order there, so its answer is chance.
    return any("$patch" in item for item in items)


def _metadata(dice: _Dice) -> Json:
    metadata: Json = {}
    if dice.some(0.3):
        added = [f"example.com/{name}" for name in dice.sample("abc", dice.randint(0, 2))]
        metadata["finalizers"] = added
        if dice.some(0.5):
            gone = [f"example.com/{name}" for name in dice.sample("def", dice.randint(0, 2))]
            metadata["$deleteFromPrimitiveList/finalizers"] = gone
        if dice.some(0.4):
            others = [f"example.com/{name}" for name in dice.sample("abcd", dice.randint(0, 3))]
            metadata["$setElementOrder/finalizers"] = list(dict.fromkeys([*added, *others]))
    if dice.some(0.2):
        metadata["labels"] = dice.choice(
            ({"x": "1"}, {"x": None, "y": "2"}, None, {"$patch": "delete"})
        )
    return metadata


def _container(dice: _Dice, name: str) -> Json:
    made: Json = {"name": name}
    if name == "c" or dice.some(0.7):
        made["image"] = dice.choice("ij")
    if dice.some(0.5):
        env = dice.items(
            _VARIABLES,
            "name",
            lambda name: {"name": name, "value": dice.choice("12")},
            directives=name == "a",
        )
        made["env"] = env
        if dice.some(0.4) and env and not _deletes(env):
            made["$setElementOrder/env"] = dice.order(_VARIABLES, "name", env)
    if dice.some(0.4):
        made["ports"] = dice.items(
            [80, 81, 82],
            "containerPort",
            lambda port: {"containerPort": port, **({"name": f"p{port}"} if port > 80 else {})},
            directives=name == "a",
        )
    if dice.some(0.2):
        made["args"] = dice.choice((["a"], ["b", "c"], None, []))
    if name == "a" and dice.some(0.4):
        made["resources"] = dice.choice(
            (
                {"limits": {"cpu": "1"}},
                {"limits": None},
                {"limits": {"memory": "2Gi", "cpu": None}},
                {"$patch": "replace", "limits": {"cpu": "2"}},
                {"$patch": "delete"},
                None,
            )
        )
    if name == "b" and dice.some(0.3):
        made["volumeMounts"] = dice.items(
            ["/a", "/b"],
            "mountPath",
            lambda path: {"mountPath": path, "name": "v1"},
            directives=True,
        )
    return made


def _volume(dice: _Dice, name: str) -> Json:
    source = dice.choice(("emptyDir", "configMap", "secret"))
    content = {"emptyDir": {}, "configMap": {"name": "x"}, "secret": {"secretName": "s"}}[source]
    made: Json = {"name": name, source: content}
    if dice.some(0.7):
        made["$retainKeys"] = ["name", source]
    return made
