"""Does every pod have a node, may it run there, and is there room? (spec placement §5, §9)

Checked for admitted workloads with all pods still on their nodes, and for preemptors with the
victims gone. No GPU is booked twice. Terminating pods that a workload waits for must terminate, and
it must need their place (§14, scenario 15).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from unisono.engine.audit.node_occupancy import (
    NodeOccupancy,
    after_admissions,
    after_preemptions,
    with_only,
)
from unisono.engine.audit.pod_rules import check_pod_rules, check_topology
from unisono.engine.audit.pods_on_nodes import PlacedPods
from unisono.engine.audit.snapshot_index import Decided, SnapshotIndex, charged_pods, started_by
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import Node, NodePod
from unisono.engine.model.plan import Admit, Await, Plan, Preempt
from unisono.engine.model.queue import Flavor
from unisono.engine.model.selection import Labels, Taint, Toleration, meets, tolerates
from unisono.engine.model.workload import PodSet, PodSetAssignment, Workload

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def check_nodes(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check the nodes of every workload that the plan starts, now or later."""
    decided = [each for each in started_by(plan) if each.workload in index.waiting]
    if not index.has_nodes:
        yield from _check_none_named(index, decided)
        return
    if not decided:
        return
    now, later = (
        after_admissions(index, plan),
        after_preemptions(index, plan) if _later(plan) else None,
    )
    for each in decided:
        workload = index.waiting[each.workload]
        if _awaits_nodes_of_check(index, each) or (isinstance(each, Preempt) and each.buys):
            yield from _check_none_named(index, [each])
            continue
        occupancy = now if isinstance(each, Admit) or later is None else later
        after = later
        if isinstance(each, Admit) and each.opportunistic_on:
            yield from _check_opportunistic_use(index, plan, workload, each)
            occupancy = after_admissions(index, plan, opportunistic_on=each.opportunistic_on)
            after = (
                after_preemptions(index, plan, opportunistic_on=each.opportunistic_on)
                if later is not None
                else None
            )
        yield from _check_placement(index, occupancy, workload, each)
        if workload.replaces not in index.admitted_workloads:
            yield from check_topology(index, occupancy, workload, each.admission)
        placements = {
            placement.pod_set: placement for placement in occupancy.added.get(workload.key, ())
        }
        is_certain = _is_certain(index, plan, each)
        for assigned in each.admission.pod_sets:
            placement = placements.get(assigned.name)
            if placement is None:
                continue
            wanted = _wanted(index, workload, assigned)
            yield from check_pod_rules(
                occupancy, workload, placement, wanted, is_certain=is_certain
            )
            running = _running(index, workload, assigned.name)
            yield from _check_capacity("node-overfull", occupancy, workload, placement, running)
            if isinstance(each, Admit) and after is not None:
                yield from _check_capacity("preemption-short", after, workload, placement, running)


def _check_opportunistic_use(
    index: SnapshotIndex, plan: Plan, workload: Workload, admit: Admit
) -> Iterator[Violation]:
    """An opportunistic job on nodes held for a gang has a limit and ends before that starts."""
    limit = workload.longest_ms
    if limit is None or workload.longest_from in ("history", "policy"):
        yield _broken("node-overfull", workload, "uses nodes of others and does not say how long")
        return
    for key in admit.opportunistic_on:
        gang = index.admitted_workloads.get(key)
        if gang is None or gang.ready_by is None or gang.evicting:
            yield _broken("node-overfull", workload, f"{key} has no nodes to lend")
        elif plan.now + limit > gang.ready_by:
            yield _broken("node-overfull", workload, f"is not over when {key} is to start")


def _awaits_nodes_of_check(index: SnapshotIndex, decided: Decided) -> bool:
    """Say whether an admission check that brings its nodes is not ready yet (quota §12)."""
    queue = index.queues.get(decided.admission.queue)
    flavors = {flavor for each in decided.admission.pod_sets for _, flavor in each.flavors}
    agreed = {each.name for each in index.waiting[decided.workload].checks if each.state == "Ready"}
    for rule in queue.checks if queue is not None else ():
        check = index.checks.get(rule.name)
        if check is not None and check.brings_nodes and rule.name not in agreed:
            if not rule.on_flavors or flavors.intersection(rule.on_flavors):
                return True
    return False


def _is_certain(index: SnapshotIndex, plan: Plan, decided: Decided) -> bool:
    """Say whether it was placed with exactly its own victims gone from the snapshot."""
    if decided.workload in index.waiting and index.waiting[decided.workload].replaces is not None:
        return False  # some of its pods run already, since an unknown time
    others_leave = any(
        admit.replaces is not None and admit is not decided for admit in plan.admissions
    )
    return not others_leave and (isinstance(decided, Admit) or len(_later(plan)) == 1)


def _later(plan: Plan) -> tuple[Preempt | Await, ...]:
    """List the workloads that start only after evictions or terminations."""
    return (*plan.preemptions, *plan.awaits)


def _broken(rule: Rule, workload: Workload, message: str) -> Violation:
    return Violation(rule=rule, workload=workload.key, message=message)


def _check_none_named(index: SnapshotIndex, decided: list[Decided]) -> Iterator[Violation]:
    for each in decided:
        if any(assigned.nodes for assigned in each.admission.pod_sets):
            yield _broken("unplaced", index.waiting[each.workload], "there are no nodes to name")


def _check_placement(
    index: SnapshotIndex, occupancy: NodeOccupancy, workload: Workload, decided: Decided
) -> Iterator[Violation]:
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    for assigned in decided.admission.pod_sets:
        pod_set = pod_sets.get(assigned.name)
        if pod_set is None:
            continue
        pods = charged_pods(workload, assigned.name, assigned.count)
        placed = sum(count for _, count in assigned.nodes)
        if placed != pods:
            message = f"{assigned.name}: {pods} pods have to run, {placed} have a node"
            yield _broken("unplaced", workload, message)
        names = [name for name, _ in assigned.nodes]
        if len(set(names)) < len(names) or any(count <= 0 for _, count in assigned.nodes):
            message = f"{assigned.name}: a node twice, or for no pods: {assigned.nodes}"
            yield _broken("unplaced", workload, message)
        if fault := naming_fault(pod_set, assigned):
            yield _broken("unplaced", workload, fault)
        running = _running(index, workload, assigned.name)
        for name, count in assigned.nodes:
            if count > running.get(name, 0):
                yield from _check_node(index, occupancy, workload, pod_set, assigned, name)


def _running(index: SnapshotIndex, workload: Workload, pod_set: str) -> dict[NodeName, int]:
    """Return where pods of the slice that the workload replaces run already.

    They stay there, whatever the state of their nodes is by now.
    """
    old = index.admitted_workloads.get(workload.replaces) if workload.replaces is not None else None
    assigned = () if old is None else old.admission.pod_sets
    return next((dict(each.nodes) for each in assigned if each.name == pod_set), {})


def _check_node(
    index: SnapshotIndex,
    occupancy: NodeOccupancy,
    workload: Workload,
    pod_set: PodSet,
    assigned: PodSetAssignment,
    name: NodeName,
) -> Iterator[Violation]:
    node = index.nodes.get(name)
    if node is None:
        yield _broken("node-closed", workload, f"{pod_set.name}: there is no node {name}")
        return
    flavors = _flavors(index, assigned)
    tolerations = (*pod_set.tolerations, *(t for each in flavors for t in each.tolerations))
    if why := _why_closed(node, workload, tolerations):
        yield _broken("node-closed", workload, f"{pod_set.name} on {name}: {why}")
    wanted = _wanted(index, workload, assigned)
    if why := _why_mismatch(occupancy.labels(name), node, pod_set, wanted, tolerations):
        yield _broken("node-mismatch", workload, f"{pod_set.name} on {name}: {why}")


def _flavors(index: SnapshotIndex, assigned: PodSetAssignment) -> list[Flavor]:
    names = dict.fromkeys(flavor for _, flavor in assigned.flavors)
    return [index.flavors[each] for each in names if each in index.flavors]


def _wanted(index: SnapshotIndex, workload: Workload, assigned: PodSetAssignment) -> Labels:
    """Return the labels that nodes must have: node selector and flavors."""
    pod_set = next((each for each in workload.pod_sets if each.name == assigned.name), None)
    selected = () if pod_set is None else pod_set.node_selector
    return (*selected, *(item for each in _flavors(index, assigned) for item in each.node_labels))


def _why_closed(node: Node, workload: Workload, tolerations: tuple[Toleration, ...]) -> str:
    if not node.ready:
        return "it is not ready"
    if node.unschedulable and not any(tolerates(each, UNSCHEDULABLE) for each in tolerations):
        return "it is unschedulable"
    if node.held_for not in ("", workload.key):
        return f"it is held for {node.held_for}"
    return ""


def _why_mismatch(
    labels: dict[str, str],
    node: Node,
    pod_set: PodSet,
    wanted: Labels,
    tolerations: tuple[Toleration, ...],
) -> str:
    for key, value in wanted:
        if labels.get(key) != value:
            return f"{key} is {labels.get(key)}, not {value}"
    # Terms are alternatives; one without requirements matches nothing.
    if pod_set.affinity and not any(
        term and all(meets(requirement, labels) for requirement in term)
        for term in pod_set.affinity
    ):
        return "no term of its node affinity matches"
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not any(
            tolerates(each, taint) for each in tolerations
        ):
            return f"taint {taint.key}={taint.value}:{taint.effect} is not tolerated"
    return ""


def _check_capacity(
    rule: Rule,
    occupancy: NodeOccupancy,
    workload: Workload,
    placement: PlacedPods,
    running: Mapping[NodeName, int] = MappingProxyType({}),
) -> Iterator[Violation]:
    """No resource that the pods request is overcommitted; other resources are not checked."""
    for name, count in placement.nodes.items():
        if name not in occupancy.nodes or count <= running.get(name, 0):
            continue
        for resource, amount in placement.requests.items():
            if resource.endswith("/gpu-milli"):
                for fault in device_faults(occupancy, name, resource):
                    yield _broken(rule, workload, f"{placement.pod_set} on {name}: {fault}")
                continue
            free = occupancy.free(name, resource)
            if resource.endswith("/gpu"):
                free -= len(shared_milli(occupancy, name, resource))
            if amount > 0 and free < 0:
                message = f"{placement.pod_set} on {name}: {resource} is overbooked by {-free}"
                yield _broken(rule, workload, message)


def has_capacity(occupancy: NodeOccupancy, workload: Workload, placement: PlacedPods) -> bool:
    """Say whether pods fit on their nodes beside all other pods there."""
    return not any(_check_capacity("node-overfull", occupancy, workload, placement))


def is_plain(pod_set: PodSet) -> bool:
    """Say whether free resources alone decide where pods of a set may go."""
    sliced = pod_set.topology is not None and pod_set.topology.slice_size > 1
    return not (
        sliced
        or pod_set.host_ports
        or pod_set.affinity_to
        or pod_set.anti_affinity
        or pod_set.spread
    )


WHOLE = 1000  # thousandths of one GPU


def device_faults(occupancy: NodeOccupancy, name: NodeName, resource: str) -> Iterator[str]:
    """Yield what is wrong with the shared GPUs of a node."""
    gpu = resource.removesuffix("-milli")
    there = sum(amount for each, amount in occupancy.nodes[name].allocatable if each == gpu)
    taken = shared_milli(occupancy, name, gpu)
    for device, milli in sorted(taken.items()):
        if milli > WHOLE:
            yield f"{gpu} number {device} is shared by {milli} thousandths"
        if not 0 <= device < there:
            yield f"{gpu} number {device} is one of {there}"
    whole = occupancy.free(name, gpu) - len(taken)
    if whole < 0:
        yield f"{gpu} is overbooked by {-whole}: {len(taken)} are shared"


def shared_milli(occupancy: NodeOccupancy, name: NodeName, gpu: str) -> dict[int, int]:
    """Return the thousandths in use of every shared GPU of a node."""
    taken: dict[int, int] = {}
    for placement in occupancy.sharing_gpus(name):
        milli = placement.requests.get(f"{gpu}-milli", 0)
        for device in placement.devices[name] if milli else ():
            taken[device] = taken.get(device, 0) + milli
    return taken


def naming_fault(pod_set: PodSet, assigned: PodSetAssignment) -> str:
    """Say whether the pods that share GPUs, and no others, have a device; empty if so."""
    requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
    shares = any(name.endswith("/gpu-milli") and amount for name, amount in requests)
    pods = sum(count for _, count in assigned.nodes) if shares else 0
    if len(assigned.devices) != pods:
        return f"{assigned.name}: {pods} pods share GPUs, {len(assigned.devices)} have one"
    return ""


# --- terminating pods -----------------------------------------------------------------------------


# How overdue a terminating pod may be and still be waited for.
OVERDUE_MS = 60_000


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
        has_capacity(occupancy, workload, placement)
        for placement in occupancy.added.get(workload.key, ())
    ):
        yield "its nodes have room while those pods are still there"


def _why_not_soon(pod: NodePod, now: Instant, wait_ms: int) -> str:
    if pod.leaves_at is None:
        return "it is not terminating"
    if pod.leaves_at - now > wait_ms:
        return f"it leaves in {pod.leaves_at - now} ms, and {wait_ms} ms may be waited"
    if now - pod.leaves_at >= OVERDUE_MS:
        return f"it is {now - pod.leaves_at} ms overdue"
    return ""
