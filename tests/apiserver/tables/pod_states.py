"""Pods in any state, by dice."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from unisono.apiserver.objects import Json

Ago = Callable[[float], str]  # writes the time that many seconds before now


def pod(at: int, dice: random.Random, ago: Ago) -> Json:
    """Return a pod in some state that the API accepts."""
    mains, inits = dice.randint(1, 3), dice.choice([0, 0, 1, 2, 3])
    spec: Json = {"containers": [{"name": f"c{number}", "image": "i"} for number in range(mains)]}
    if inits:
        spec["initContainers"] = [
            {"name": f"i{number}", "image": "i", **_either(dice, 0.4, restartPolicy="Always")}
            for number in range(inits)
        ]
    spec |= _either(dice, 0.3, readinessGates=[{"conditionType": "x/y"}, {"conditionType": "x/z"}])
    spec |= dice.choice([{}, {"schedulingGates": [{"name": "a/b"}]}, {"nodeName": "n1"}])
    conditions = [
        {
            "type": name,
            "status": dice.choice(["True", "False"]),
            **(_either(dice, 0.3, reason="SchedulingGated") if name == "PodScheduled" else {}),
        }
        for name in ("Initialized", "Ready", "PodScheduled", "x/y")
        if dice.random() < 0.5
    ]
    status = {
        "phase": dice.choice(["Pending", "Running", "Succeeded", "Failed"]),
        "conditions": conditions,
        "containerStatuses": [
            _container(f"c{number}", dice, ago) for number in range(dice.randint(0, mains))
        ],
        "initContainerStatuses": [
            _container(f"i{number}", dice, ago) for number in range(dice.randint(0, inits))
        ],
        **_either(dice, 0.2, reason=dice.choice(["Evicted", "NodeLost"])),
        **_either(dice, 0.3, podIP="10.0.0.7", podIPs=[{"ip": "10.0.0.7"}]),
    }
    if "nodeName" not in spec:
        status |= _either(dice, 0.3, nominatedNodeName="n9")
    meta: Json = {"name": f"p{at}"}
    doomed = dice.random() < 0.3
    if doomed:
        meta["finalizers"] = ["example.com/held"]
    return {"metadata": meta, "spec": spec, "status": status, "doomed": doomed}


def _either(dice: random.Random, chance: float, **fields: Any) -> Json:
    return fields if dice.random() < chance else {}


def _container(name: str, dice: random.Random, ago: Ago) -> Json:
    ended = {"finishedAt": ago(10)}
    why = dice.choice(["CrashLoopBackOff", "PodInitializing", "ContainerCreating"])
    state = dice.choice(
        [
            {"waiting": {"reason": why}},
            {"waiting": {}},
            {"running": {"startedAt": ago(50)}},
            {"running": {"startedAt": ago(50)}},
            {"terminated": {**ended, "exitCode": 0, "reason": "Completed"}},
            {"terminated": {**ended, "exitCode": 3}},
            {"terminated": {**ended, "exitCode": 137, "signal": 9}},
            {"terminated": {**ended, "exitCode": 1, "reason": "OOMKilled"}},
            {},
        ]
    )
    last = {"exitCode": 1, "finishedAt": ago(dice.choice([5, 400, 5000, 90000, 10**6]))}
    return {
        "name": name,
        "image": "i",
        "imageID": "x",
        "ready": dice.random() < 0.5,
        "restartCount": dice.choice([0, 0, 1, 5]),
        "state": state,
        **_either(dice, 0.5, lastState={"terminated": last}),
        **_either(dice, 0.5, started=dice.random() < 0.7),
    }
