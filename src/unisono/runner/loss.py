"""When a pod is lost with its node: not ready, or gone, for too long."""

from __future__ import annotations

from unisono.control.actions import Json
from unisono.control.conditions import find, seconds
from unisono.runner.containers import Containers, Ended
from unisono.runner.status import Failure

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
    """Return how the containers of a lost pod stand: nobody knows how they ended."""
    message = "The container could not be located when the pod was terminated"
    return containers.put(
        *(
            one.ended(now, KILLED, "ContainerStatusUnknown", message)
            for one in containers
            if not isinstance(one.state, Ended)
        )
    )


def loss_of(node: str) -> Failure:
    """Return why a pod of a lost node failed."""
    message = f"node {node} is gone or does not answer"
    return Failure("NodeLost", message, "DeletionByTaintManager")
