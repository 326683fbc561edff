"""May a workload wait for these terminating pods, and must it? (placement §14, scenario 15)"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.node_occupancy import with_only
from unisono.engine.audit.nodes import has_room, is_plain
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import Instant
from unisono.engine.model.node import NodePod
from unisono.engine.model.plan import Await, Plan

# How late a terminating pod may be and still be waited for.
LATE_MS = 60_000


def check_terminating_pods(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every workload that waits for terminating pods."""
    pods = {pod.key: pod for pod in index.pods}
    for waiting in plan.awaits:
        for problem in _problems(index, plan, waiting, pods):
            yield Violation(rule="await", workload=waiting.workload, message=problem)


def _problems(
    index: SnapshotIndex, plan: Plan, waiting: Await, pods: dict[str, NodePod]
) -> Iterator[str]:
    if not waiting.pods:
        yield "it waits for no pods"
    for key in waiting.pods:
        pod = pods.get(key)
        if pod is None:
            yield f"there is no pod {key}"
        elif why := _why_not_soon(pod, plan.now, index.policy.placement.wait_for_leaving_ms):
            yield f"{key}: {why}"
    workload = index.waiting.get(waiting.workload)
    if workload is None or len(workload.pod_sets) > 1 or not is_plain(workload.pod_sets[0]):
        return  # where placement is a search, it may have missed a place
    occupancy = with_only(index, waiting, {})
    if not occupancy.with_anti_affinity and all(
        has_room(occupancy, workload, placement)
        for placement in occupancy.added.get(workload.key, ())
    ):
        yield "its nodes have room while those pods are still there"


def _why_not_soon(pod: NodePod, now: Instant, wait_ms: int) -> str:
    if pod.leaves_at is None:
        return "it is not terminating"
    if pod.leaves_at - now > wait_ms:
        return f"it leaves in {pod.leaves_at - now} ms, and {wait_ms} ms may be waited"
    if now - pod.leaves_at >= LATE_MS:
        return f"it is {now - pod.leaves_at} ms late"
    return ""
