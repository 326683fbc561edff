"""What all sets of pods have in common: which pods are theirs, how those are, which goes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.control.actions import Json, Patch, Ref
from unisono.control.apps import LEADER_WORKER_SET
from unisono.control.conditions import find, seconds
from unisono.control.jobs.pods import is_deleting, is_ready, is_terminal, phase_of
from unisono.kinds.core.pod_groups import TOTAL_COUNT
from unisono.kinds.digits import whole_number
from unisono.kinds.meta import is_selected

_LWS = "leaderworkerset.sigs.k8s.io"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
# Pods of one set that wait for nodes at a time.
MOST_WAITING = 100


def selector_of(owner: Json) -> Mapping[str, object]:
    """Return a selector.

    That of a ReplicationController is a plain map of labels; that of a LeaderWorkerSet, as an
    autoscaler looks at it, are its leaders.
    """
    if owner["kind"] == LEADER_WORKER_SET.kind:
        name = owner["metadata"]["name"]
        return {"matchLabels": {f"{_LWS}/name": name, f"{_LWS}/worker-index": "0"}}
    selector = owner["spec"].get("selector") or {}
    if owner["kind"] == "ReplicationController":
        labels = selector or ((owner["spec"].get("template") or {}).get("metadata") or {}).get(
            "labels"
        )
        return {"matchLabels": labels or {}}
    return dict(selector)


def is_its_own(owner: Json, obj: Json) -> bool:
    """Say whether a set's selector matches an object; an empty one matches none."""
    selector = selector_of(owner)
    if not any(selector.values()):
        return False
    return is_selected(selector, obj["metadata"].get("labels") or {})


def controller_uid(obj: Json) -> str:
    """Return the uid of the owner that controls an object; empty if there is none."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner["uid"])
    return ""


def released(owner: Json, obj: Json) -> Patch:
    """Return the patch after which an object does not belong to an owner any more."""
    uid = owner["metadata"]["uid"]
    left = [one for one in obj["metadata"].get("ownerReferences") or () if one["uid"] != uid]
    return Patch(Ref.to(obj), {"metadata": {"ownerReferences": left or None}})


def is_active(pod: Json) -> bool:
    """Say whether a pod counts: it has not ended, and is not about to."""
    return not is_deleting(pod) and not is_terminal(pod)


def ready_since(pod: Json) -> float | None:
    """Return when a pod became ready; None if it is not."""
    ready = find((pod.get("status") or {}).get("conditions"), "Ready")
    if ready is None or ready["status"] != "True":
        return None
    return seconds(ready.get("lastTransitionTime") or "")


def is_available(pod: Json, least_ready_s: float, now: float) -> bool:
    """Say whether a pod has been ready for long enough."""
    since = ready_since(pod)
    return since is not None and since + least_ready_s <= now


def may_wait(template: Json, pods: Sequence[Json]) -> int:
    """Return how many more pods may be made to wait for nodes beside these.

    A set may ask for any number of pods. Each that waits is a workload with explanations of its
    own, so more are made as those before them get nodes; a group has to be there whole.
    """
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    together = whole_number(annotations.get(TOTAL_COUNT)) or 0
    waiting = sum(is_active(pod) and not pod["spec"].get("nodeName") for pod in pods)
    return max(0, max(MOST_WAITING, together) - waiting)


def read_of_pod(pod: Json) -> object:
    """Return what a set reads of a pod; each wake costs a look at all pods of the set."""
    metadata = pod["metadata"]
    ready = find((pod.get("status") or {}).get("conditions"), "Ready")
    return (
        metadata.get("labels"),
        metadata.get("ownerReferences"),
        metadata.get("deletionTimestamp"),
        pod["spec"].get("nodeName"),
        phase_of(pod),
        (ready["status"], ready.get("lastTransitionTime")) if ready is not None else None,
    )


def available_at(pods: Sequence[Json], least_ready_s: float, now: float) -> float | None:
    """Return when the next of some pods becomes available by waiting."""
    times = [since + least_ready_s for pod in pods if (since := ready_since(pod)) is not None]
    return min((time for time in times if time > now), default=None)


def goes_before(pods: Sequence[Json]) -> list[Json]:
    """Return pods in the order in which they are given up, as Kubernetes has it.

    First those without a node (they wait in a queue, or for room), then those that do not run yet,
    then those that are not ready; then by deletion cost, crowded nodes first, the youngest first.
    """
    pods_on: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName") or ""
        pods_on[node] = pods_on.get(node, 0) + 1

    def rank(pod: Json) -> tuple[object, ...]:
        metadata, status = pod["metadata"], pod.get("status") or {}
        node = pod["spec"].get("nodeName") or ""
        restarts = sum(one.get("restartCount", 0) for one in status.get("containerStatuses") or ())
        since = ready_since(pod)
        return (
            bool(node),
            phase_of(pod) == "Running",
            is_ready(pod),
            _cost(pod),
            -pods_on[node],
            -(since or 0.0),
            -restarts,
            -seconds(metadata.get("creationTimestamp") or ""),
            metadata["name"],
        )

    return sorted(pods, key=rank)


def _cost(pod: Json) -> int:
    written = str((pod["metadata"].get("annotations") or {}).get(_DELETION_COST, ""))
    number = whole_number(written.removeprefix("-"), 2**31 - 1) or 0
    return -number if written.startswith("-") else number


def waits_for_quota(pod: Json) -> bool:
    """Say whether a queue has not admitted a pod yet."""
    gates = pod["spec"].get("schedulingGates") or ()
    return any(one["name"] == "kueue.x-k8s.io/admission" for one in gates)


def share_of(value: object, total: int, *, rounds_up: bool) -> int:
    """Return a number, or a percentage of a total.

    >>> share_of("25%", 10, rounds_up=True), share_of("25%", 10, rounds_up=False)
    (3, 2)
    """
    if isinstance(value, int):
        return max(0, value)
    text = str(value or "0")
    number = whole_number(text.removesuffix("%"), 2**31 - 1) or 0
    if not text.endswith("%"):
        return number
    return -(-number * total // 100) if rounds_up else number * total // 100
