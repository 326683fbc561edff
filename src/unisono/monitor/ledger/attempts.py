"""Which try of its gang a pod was part of: whether work was lost, and what was kept for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from unisono.monitor.ledger.rows import PodRow, WorkloadRow

Tries = Mapping[str, Sequence[WorkloadRow]]  # of each workload, by its uid


class Hold(NamedTuple):
    """Places that were kept for a pod that came later."""

    node: str
    gpus: int
    since: int
    until: int


def is_lost(pod: PodRow, tries: Tries) -> bool:
    """Say whether a pod's end threw work away: it failed, or its gang had to leave or restart."""
    if not pod.ended or pod.outcome == "Succeeded":
        return False
    if pod.outcome == "Failed":
        return True
    attempt = _attempt_at(tries.get(pod.workload, ()), pod.bound)
    if attempt is None:
        return False
    # Deleted with the job by its owner, or after a success: no wanted work is lost.
    return attempt.outcome not in ("Deleted", "Finished") or attempt.ended > pod.ended


def holds(pods: Sequence[PodRow], tries: Tries) -> Iterable[Hold]:
    """Yield for how long places were kept, from when a gang had quota until its pods came."""
    last: dict[tuple[str, str], int] = {}
    for pod in sorted(pods, key=lambda one: (one.bound, one.uid)):
        attempt = _attempt_at(tries.get(pod.workload, ()), pod.bound)
        if attempt is not None:
            here = pod.workload, pod.node
            since = max(attempt.reserved, last.get(here, 0))
            if since < pod.bound:
                yield Hold(pod.node, pod.gpus, since, pod.bound)
            if pod.ended:
                last[here] = max(last.get(here, 0), pod.ended)


def _attempt_at(tries: Sequence[WorkloadRow], when: int) -> WorkloadRow | None:
    """Return the try of a gang in which something happened."""
    found = None
    for one in tries:
        if one.reserved and one.reserved <= when and (not one.ended or when <= one.ended):
            found = one
    return found
