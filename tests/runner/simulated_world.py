"""A control plane whose pods are simulated."""

from __future__ import annotations

from typing import Any

from tests.support.control_world import World
from unisono.control.assembly import Assembly, embedded
from unisono.control.names import POD
from unisono.control.view import View
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json
from unisono.runner.logs import Logs
from unisono.runner.simulated.agents import pod_usage
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation


def simulated_world(
    simulation: Simulation | None = None, *, logs: Logs | None = None, **more: Any
) -> World:
    """Return a world with the real controllers and simulated pods."""

    def assemble(view: View, settings: Settings) -> Assembly:
        assembly = embedded(view, settings, usage=pod_usage)
        kubelet = SimulatedKubelet(simulation or Simulation(), logs=logs)
        return Assembly(assembly.scheduler, (*assembly.controllers, kubelet))

    return World(assemble=assemble, **more)


def kubelet_of(world: World) -> SimulatedKubelet:
    """Return the kubelet that plays in a world now."""
    found = [one for one in world.assembly.controllers if isinstance(one, SimulatedKubelet)]
    return found[0]


def node(name: str = "n1", **resources: str) -> Json:
    """Return a ready node."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "1000", **resources}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"providerID": f"unisono:///zone/{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "",
                    "lastTransitionTime": "2023-11-14T00:00:00Z",
                }
            ],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }


def pod(
    name: str = "p",
    *,
    command: list[str] | None = None,
    says: dict[str, str] | None = None,
    restart: str = "Never",
    on: str | None = "n1",
    **spec: Any,
) -> Json:
    """Return a pod; `says` are its annotations without the prefix."""
    container: Json = {"name": "main", "image": "busybox"}
    if command is not None:
        container["command"] = command
    annotations = {f"unisono.dev/{key}": value for key, value in (says or {}).items()}
    whole: Json = {"restartPolicy": restart, "containers": [container], **spec}
    if on is not None:
        whole["nodeName"] = on
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": whole,
    }


def word(world: World, name: str = "p") -> str:
    """Return how a pod stands, in one word as kubectl prints it, or `gone`."""
    found = [one for one in world.every(POD) if one["metadata"]["name"] == name]
    if not found:
        return "gone"
    status = found[0]["status"]
    for one in status.get("containerStatuses") or ():
        waiting = one["state"].get("waiting")
        if waiting and status["phase"] == "Running":
            return str(waiting["reason"])
    restarts = sum(one["restartCount"] for one in status.get("containerStatuses") or ())
    ready = any(
        one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ())
    )
    phase = str(status["phase"])
    if phase == "Running":
        phase = "Ready" if ready else "Running"
    return f"{phase}/{restarts}" if restarts else phase
