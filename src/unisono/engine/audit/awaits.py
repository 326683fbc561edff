"""May it wait for these pods of others, and does it have to? (spec placement §14, scenario 15)"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.node_occupancy import with_only
from unisono.engine.audit.nodes import has_room, is_plain
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import Instant
from unisono.engine.model.node import NodePod
from unisono.engine.model.plan import Await, Plan

# So much later than announced a pod may still be waited for.
LATE_MS = 60_000


def check_awaits(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check everyone that waits for pods to leave by themselves."""
    pods = {pod.key: pod for pod in index.pods}
    for patient in plan.awaits:
        for problem in _problems(index, plan, patient, pods):
            yield Violation(rule="await", workload=patient.workload, message=problem)


def _problems(
    index: SnapshotIndex, plan: Plan, patient: Await, pods: dict[str, NodePod]
) -> Iterator[str]:
    if not patient.pods:
        yield "it waits for nobody"
    for key in patient.pods:
        pod = pods.get(key)
        if pod is None:
            yield f"there is no pod {key}"
        elif why := _why_not_soon(pod, plan.now, index.policy.placement.wait_for_leaving_ms):
            yield f"{key}: {why}"
    workload = index.waiting.get(patient.workload)
    if workload is None or len(workload.pod_sets) > 1 or not is_plain(workload.pod_sets[0]):
        return  # where placing is a search, the proof may have been out of reach
    occupancy = with_only(index, patient, {})
    if not occupancy.with_anti_affinity and all(
        has_room(occupancy, workload, placement)
        for placement in occupancy.added.get(workload.key, ())
    ):
        yield "its nodes have room while those pods are still there"


def _why_not_soon(pod: NodePod, now: Instant, wait_ms: int) -> str:
    if pod.leaves_at is None:
        return "nobody told it to end"
    if pod.leaves_at - now > wait_ms:
        return f"it leaves in {pod.leaves_at - now} ms, and {wait_ms} ms may be waited"
    if now - pod.leaves_at >= LATE_MS:
        return f"it is {now - pod.leaves_at} ms late"
    return ""
