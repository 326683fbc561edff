"""Released pods that the other scheduler finds no room for on the node that we left it.

It may know of something there that we do not: a pod that came first, a port, a volume of another
zone. If it says `Unschedulable` for half a minute, the place is as lost to the gang as one on a
node that turned its pod away: it gets another, and the pod is replaced, since a gate cannot be put
back.

When it began is counted from what we saw. The time in the condition does not tell: a pod behind a
gate was not scheduled either, so lifting the gate leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from unisono.control.actions import Json
from unisono.control.conditions import find

STUCK_SECONDS = 30.0


def is_unschedulable(pod: Json) -> bool:
    """Say whether a scheduler looked at a pod and found no node."""
    found = find((pod.get("status") or {}).get("conditions"), "PodScheduled")
    if found is None or found["status"] != "False":
        return False
    return bool(found.get("reason") == "Unschedulable")  # who set it need not give one


class Unbindable:
    """Remembers since when pods are refused; whoever comes after us counts anew."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._since: dict[str, dict[str, float]] = {}  # by workload and uid

    def forget(self, workload: str) -> None:
        """A workload is no more."""
        self._since.pop(workload, None)

    def seen(
        self, workload: str, promised: Sequence[tuple[Json, str]], now: float
    ) -> tuple[set[str], float | None]:
        """Return the nodes that pods of a gang wait for in vain, and when more may be found."""
        before = self._since.pop(workload, {})
        since = {
            uid: (before.get(uid, now), node)
            for pod, node in promised
            if is_unschedulable(pod) and (uid := pod["metadata"]["uid"])
        }
        if since:
            self._since[workload] = {uid: at for uid, (at, _) in since.items()}
        in_vain = {node for at, node in since.values() if now >= at + STUCK_SECONDS}
        due = [at + STUCK_SECONDS for at, _ in since.values() if now < at + STUCK_SECONDS]
        return in_vain, min(due, default=None)
