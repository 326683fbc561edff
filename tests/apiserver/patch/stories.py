"""Seeded stories: what three managers do to one object, step by step.

A step is plain JSON, so that it can be recorded with a real server's answer:

    op       create, apply, force (apply), put, merge, json, strategic, status, apply-status, wipe
    manager  A, B or C
    body     what is sent
"""

from __future__ import annotations

import random
from typing import Any

from tests.apiserver.patch.gadgets import gadget
from unisono.apiserver.objects import Json

_FIRST = ("apply", "create")
_WRITES = ("merge", "merge", "put", "json", "status", "apply-status", "wipe")
_GADGET_OPS = ("apply", "apply", "apply", "force", "force", *_WRITES)
_DEPLOYMENT_OPS = ("apply", "apply", "apply", "force", "force", "put", "merge", "strategic")


class _Dice(random.Random):
    def some(self, share: float) -> bool:
        return self.random() < share

    def few(self, names: str | list[Any], most: int) -> list[Any]:
        return self.sample(list(names), self.randint(0, min(most, len(names))))

    def digit(self) -> str:
        return self.choice("12")


# ---- gadgets -----------------------------------------------------------------------------------


def gadget_story(seed: int, steps: int = 7) -> list[Json]:
    """Return what happens to a gadget."""
    dice = _Dice(seed)
    story = [{"op": dice.choice(_FIRST), "manager": dice.choice("ABC"), "body": _gadget(dice)}]
    for _ in range(steps - 1):
        op = dice.choice(_GADGET_OPS)
        story.append({"op": op, "manager": dice.choice("ABC"), "body": _gadget_body(dice, op)})
    return story


def _gadget_body(dice: _Dice, op: str) -> Any:
    match op:
        case "merge":
            made = _gadget(dice)
            spec = {
                name: None if name in ("text", "map", "set", "open") and dice.some(0.2) else value
                for name, value in made.get("spec", {}).items()
            }
            labels = made["metadata"].get("labels")
            return {"spec": spec, **({"metadata": {"labels": labels}} if labels else {})}
        case "json":
            return [{"op": "add", "path": "/spec", "value": _gadget_spec(dice)}]
        case "status" | "apply-status":
            conditions = [
                {"type": name, "status": dice.choice("TF")} for name in dice.few("RSU", 2)
            ]
            status = {"text": dice.digit(), "conditions": conditions}
            return {**gadget(), "status": status}
        case "wipe":
            return {"metadata": {"managedFields": [{}]}}
        case _:
            return _gadget(dice)


def _gadget(dice: _Dice) -> Json:
    metadata: Json = {}
    if dice.some(0.4):
        metadata["labels"] = {name: dice.digit() for name in dice.few("xyz", 3)}
    if dice.some(0.2):
        metadata["finalizers"] = [f"example.com/{name}" for name in dice.few("ab", 2)]
    if dice.some(0.2):
        metadata["ownerReferences"] = [_owner(name) for name in dice.few("ab", 2)]
    return gadget(_gadget_spec(dice) if dice.some(0.9) else None, **metadata)


def _owner(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": f"owner-{name}", "uid": name}


def _gadget_spec(dice: _Dice) -> Json:
    spec: Json = {}
    if dice.some(0.5):
        spec["text"] = dice.digit()
    if dice.some(0.3):
        spec["number"] = dice.choice((1, 2))
    if dice.some(0.15):
        spec["defaulted"] = dice.choice(("given", "other"))
    if dice.some(0.1):
        spec["nullable"] = dice.choice((None, "1"))
    if dice.some(0.2):
        spec["list"] = dice.few("ab", 2)
    if dice.some(0.5):
        spec["set"] = dice.few("abcde", 4)
    if dice.some(0.5):
        spec["ports"] = [_port(dice, number) for number in dice.few([1, 2, 3, 4], 3)]
    if dice.some(0.4):
        spec["map"] = {name: dice.digit() for name in dice.few("xyz", 3)}
    if dice.some(0.4):
        spec["pairs"] = {
            name: {half: dice.digit() for half in dice.few("pq", 2)} for name in dice.few("xyz", 2)
        }
    if dice.some(0.2):
        spec["whole"] = {half: dice.digit() for half in dice.few("pq", 2)}
    if dice.some(0.2):
        spec["either"] = dice.choice((1, "1"))
    if dice.some(0.3):
        spec["open"] = {name: _anything(dice) for name in dice.few("uvw", 3)}
    if dice.some(0.2):
        spec["anything"] = _anything(dice)
    if dice.some(0.3):
        digit = dice.digit()
        spec["nested"] = dice.choice(({}, {"p": digit}, {"q": {}}, {"q": {"r": digit}}))
    return spec


def _port(dice: _Dice, number: int) -> Json:
    port: Json = {"port": number}
    for name, values in (("protocol", ("TCP", "UDP")), ("x", ("1", "2")), ("y", ("1",))):
        if dice.some(0.5):
            port[name] = dice.choice(values)
    return port


def _anything(dice: _Dice, depth: int = 0) -> Any:
    chance = dice.random()
    if chance < 0.25 or depth > 2:
        return dice.choice((1, 2, "a", True))
    if chance < 0.4:
        return [dice.choice((1, {"q": 1})) for _ in range(dice.randint(0, 2))]
    return {name: _anything(dice, depth + 1) for name in dice.few("uvw", 3)}


# ---- deployments -------------------------------------------------------------------------------


def deployment_story(seed: int, steps: int = 6) -> list[Json]:
    """Return what happens to a Deployment."""
    dice = _Dice(seed)
    story = [{"op": dice.choice(_FIRST), "manager": dice.choice("ABC"), "body": _deployment(dice)}]
    for _ in range(steps - 1):
        op, body = dice.choice(_DEPLOYMENT_OPS), _deployment(dice)
        if op in ("merge", "strategic"):
            body = {"spec": {"template": body["spec"]["template"]}}
        story.append({"op": op, "manager": dice.choice("ABC"), "body": body})
    return story


def _deployment(dice: _Dice) -> Json:
    metadata: Json = {"name": "one"}
    if dice.some(0.3):
        metadata["labels"] = {name: dice.digit() for name in dice.few("xyz", 2)}
    if dice.some(0.2):
        metadata["annotations"] = {name: dice.digit() for name in dice.few("xyz", 2)}
    if dice.some(0.2):
        metadata["ownerReferences"] = [_owner(name) for name in dice.few("ab", 2)]
    labels = {"app": "one", **({"x": dice.digit()} if dice.some(0.3) else {})}
    spec: Json = {
        "selector": {"matchLabels": {"app": "one"}},
        "template": {"metadata": {"labels": labels}, "spec": _pod_spec(dice)},
    }
    if dice.some(0.3):
        spec["replicas"] = dice.choice((1, 2))
    if dice.some(0.2):
        rolling = {"rollingUpdate": {"maxSurge": dice.choice((1, "50%"))}}
        spec["strategy"] = dice.choice(({"type": "Recreate"}, rolling, {}))
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _pod_spec(dice: _Dice) -> Json:
    names = dice.sample("abc", dice.randint(1, 3))
    spec: Json = {"containers": [_container(dice, name) for name in names]}
    if dice.some(0.7):
        spec["volumes"] = [{"name": "v1", "emptyDir": {}}]
        if dice.some(0.5):
            spec["volumes"].append({"name": "v2", "configMap": {"name": dice.choice("xy")}})
    if dice.some(0.3):
        spec["nodeSelector"] = {name: dice.digit() for name in dice.few("xyz", 2)}
    if dice.some(0.3):
        spec["tolerations"] = dice.choice(([{"key": "k", "operator": "Exists"}], []))
    if dice.some(0.2):
        spec["securityContext"] = dice.choice(({}, {"runAsUser": 1}))
    if dice.some(0.2):
        spec["imagePullSecrets"] = [{"name": name} for name in dice.few("pq", 2)]
    if dice.some(0.2):
        spec["hostAliases"] = [
            {"ip": f"10.0.0.{end}", "hostnames": ["h"]} for end in dice.few("12", 2)
        ]
    return spec


def _container(dice: _Dice, name: str) -> Json:
    made: Json = {"name": name}
    if dice.some(0.8):
        made["image"] = dice.choice("ij")
    if dice.some(0.5):
        made["env"] = [_variable(dice, name) for name in dice.few(["E1", "E2", "E3"], 3)]
    if dice.some(0.4):
        made["ports"] = [_container_port(dice, number) for number in dice.few([80, 81, 82], 2)]
    if dice.some(0.3):
        made["args"] = dice.choice((["a"], ["b", "c"], []))
    if dice.some(0.4):
        amounts = {"cpu": "2", "memory": "1Gi"}
        made["resources"] = dice.choice(({"limits": {"cpu": "1"}}, {"limits": amounts}, {}))
    if dice.some(0.2):
        made["securityContext"] = dice.choice(({}, {"runAsUser": 1}))
    return made


def _variable(dice: _Dice, name: str) -> Json:
    if dice.some(0.8):
        return {"name": name, "value": dice.digit()}
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def _container_port(dice: _Dice, number: int) -> Json:
    port: Json = {"containerPort": number}
    if dice.some(0.6):
        port["protocol"] = dice.choice(("TCP", "UDP"))
    if dice.some(0.4):
        port["name"] = f"p{number}"
    return port
