"""A pod's status from the states of its containers, and its failure when its node is lost.

One value per transition: phase, addresses, containers and conditions change in one write. What
others wrote there (PodScheduled, DisruptionTarget, readiness gates) stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from unisono.control.actions import Json
from unisono.control.conditions import find, is_true, seconds, timestamp
from unisono.runner.containers import Containers, Running, Terminated, written
from unisono.runner.lifecycle import is_initialized, is_sidecar, phase_of

TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PodAddress:
    """The addresses of a pod and of its node."""

    pod_ip: str
    host_ip: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a whole pod failed, whatever its containers say."""

    reason: str
    message: str
    # The reason of the condition DisruptionTarget, if the pod is not to blame.
    disruption: str = ""


def status_of(
    pod: Json,
    containers: Containers,
    where: PodAddress,
    now: float,
    *,
    failure: Failure | None = None,
    is_over: bool = False,
    is_stopping: bool = False,
) -> Json:
    """Return the status.

    `is_over`: nothing will start again (the pod is deleted); `is_stopping`: some still have to end.
    """
    spec, old, at = pod["spec"], pod.get("status") or {}, timestamp(now)
    phase: str = phase_of(pod, containers)
    if failure is not None:
        phase = "Failed"
    elif is_over:
        phase = _last_phase(containers)
    elif is_stopping:
        phase = "Running"
    status: Json = {
        "phase": phase,
        "hostIP": where.host_ip,
        "hostIPs": [{"ip": where.host_ip}],
        "podIP": where.pod_ip,
        "podIPs": [{"ip": where.pod_ip}],
        "startTime": old.get("startTime") or at,
        "containerStatuses": written(containers.main, spec["containers"]),
        "conditions": _conditions(pod, containers, phase, failure, at),
    }
    if containers.init:
        status["initContainerStatuses"] = written(containers.init, spec["initContainers"])
    if failure is not None:
        status |= {"reason": failure.reason, "message": failure.message}
    return status


def host_ip(node: Json | None) -> str:
    """Return the address of a node; the loopback address if it has none."""
    for address in ((node or {}).get("status") or {}).get("addresses") or ():
        if address["type"] == "InternalIP":
            return str(address["address"])
    return "127.0.0.1"


def _last_phase(containers: Containers) -> str:
    """Return the phase of a pod that was stopped."""
    codes = [
        one.state.code if isinstance(one.state, Terminated) else 137
        for one in containers.main.values()
    ]
    return "Failed" if any(codes) else "Succeeded"


def _conditions(
    pod: Json, containers: Containers, phase: str, failure: Failure | None, at: str
) -> list[Json]:
    old: Sequence[Json] = (pod.get("status") or {}).get("conditions") or ()
    ended = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "")
    through = is_initialized(pod, containers)
    unready = _unready(pod, containers) if not ended else []
    why = ended or ("ContainersNotReady" if unready else "")
    unready_message = f"containers with unready status: [{' '.join(unready)}]" if unready else ""
    gates_open = all(
        is_true(old, gate["conditionType"]) for gate in pod["spec"].get("readinessGates") or ()
    )
    wanted: list[tuple[str, bool, str, str]] = [
        ("PodReadyToStartContainers", not ended, "", ""),
        (
            "Initialized",
            through,
            "PodCompleted"
            if phase == "Succeeded"
            else ""
            if through
            else "ContainersNotInitialized",
            "",
        ),
        (
            "Ready",
            not why and gates_open,
            why or ("" if gates_open else "ReadinessGatesNotReady"),
            unready_message,
        ),
        ("ContainersReady", not why, why, unready_message),
        ("PodScheduled", True, "", ""),
    ]
    if failure is not None and failure.disruption:
        wanted.append(("DisruptionTarget", True, failure.disruption, failure.message))
    conditions = [one for one in old if one["type"] not in {kind for kind, *_ in wanted}]
    for kind, is_so, reason, message in wanted:
        conditions.append(_condition(find(old, kind), kind, is_so, reason, message, at))
    return conditions


def _condition(
    old: Json | None, kind: str, is_so: bool, reason: str, message: str, at: str
) -> Json:
    status: Literal["True", "False"] = "True" if is_so else "False"
    since = old.get("lastTransitionTime") if old is not None and old["status"] == status else None
    new: Json = {"type": kind, "status": status, "lastTransitionTime": since or at}
    if reason:
        new["reason"] = reason
    if message:
        new["message"] = message
    return new


def _unready(pod: Json, containers: Containers) -> list[str]:
    """Return the containers that a ready pod would have ready."""
    beside = [
        containers.init[spec["name"]]
        for spec in pod["spec"].get("initContainers") or ()
        if is_sidecar(spec)
    ]
    return [
        one.name
        for one in (*beside, *containers.main.values())
        if not (isinstance(one.state, Running) and one.state.is_ready)
    ]


KILLED = 137


def unready_since(node: Json) -> float | None:
    """Return since when a node is not ready; None if it is."""
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    if ready is None or ready["status"] == "True":
        return None
    return seconds(ready.get("lastTransitionTime") or "")


def first_seen(seen: float, dated: float, now: float) -> float:
    """Return when something began that an object dates and that may have been seen before.

    Never in our future. The API's clock may be ahead of ours, or ours was set back before we
    started: by its date alone, what lasts seconds would last for as long as the clocks differ.

    >>> first_seen(float("inf"), dated=3700.0, now=100.0)
    100.0
    >>> first_seen(100.0, dated=3700.0, now=130.0)
    100.0
    """
    return min(seen, dated, now)


def lost(containers: Containers, now: float) -> Containers:
    """Return the containers of a lost pod: how they ended is unknown."""
    message = "The container could not be located when the pod was terminated"
    return containers.put(
        *(
            one.ended(now, KILLED, "ContainerStatusUnknown", message)
            for one in containers
            if not isinstance(one.state, Terminated)
        )
    )


def loss_of(node: str) -> Failure:
    """Return why a pod of a lost node failed."""
    message = f"node {node} is gone or not ready"
    return Failure("NodeLost", message, "DeletionByTaintManager")
