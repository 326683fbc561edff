"""Objects of the API to changes of the engine's state, one object at a time.

An object that fails the intake (`kinds.known`) raises InvalidManifest, and nothing of it reaches
the state. The embedded API refuses such objects; a real one stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import msgspec

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.admission.elastic import (
    first_of_slice,
    holds,
    only_new,
    pods_to_keep,
    slices_of,
)
from unisono.control.admission.placement import hosts_of, number_of, placement_of, read_devices
from unisono.control.admission.purchases import machines_due
from unisono.control.admission.record import (
    VOLCANO_LOCAL_QUEUE,
    granted_ms,
    read_flavor,
    read_queue,
)
from unisono.control.conditions import find, is_true
from unisono.control.manifests import LiveContext, Manifests, PodSetCache, claims_in, claims_of_sets
from unisono.control.pod_gangs.membership import gang_of, is_bare_and_ours, is_solo
from unisono.control.scheduler.quarantine import Name
from unisono.control.scheduler.requests_by import RequestsBy
from unisono.control.scheduler.time_limits import Limits
from unisono.control.scheduler.volcano_queues import SharedQueues
from unisono.control.scheduler.writes_in_flight import BindsInFlight, InDoubt
from unisono.control.view import View
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.names import (
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    QueueName,
    WorkloadKey,
)
from unisono.engine.model.node import NodePod, Topology
from unisono.engine.model.queue import LocalQueue
from unisono.engine.model.snapshot import Namespace
from unisono.engine.model.workload import (
    AdmittedWorkload,
    PodSetAssignment,
    Workload,
    first_of,
    first_pods,
)
from unisono.engine.state import changes
from unisono.kinds.core.gpu_parts import device_of
from unisono.kinds.core.nodes import node_of
from unisono.kinds.core.pod_groups import set_of_pods
from unisono.kinds.core.pod_rules import pod_rules
from unisono.kinds.core.pod_sets import costing_of, pod_sets
from unisono.kinds.core.requests import pod_cost
from unisono.kinds.core.selection import labels_of
from unisono.kinds.job_annotations import wrong_with_annotations
from unisono.kinds.kueue.flavors import check_of, flavor_of
from unisono.kinds.kueue.queue_rules import cohort_of, local_queue_of, queue_of
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kinds.kueue.unsupported import priority_boost
from unisono.kinds.kueue.workload_rules import (
    admitted_workload_of,
    is_finished,
    recorded_admitted_workload,
    result_of,
    run_of,
    workload_of,
)
from unisono.kinds.meta import NAMESPACE_LABEL
from unisono.kinds.policy.settings import Settings
from unisono.kinds.snapshot.local_queues import UNLIMITED, UNLIMITED_LOCAL_QUEUE
from unisono.kinds.volcano.network_topology import hypernode_labels, hypernode_topology
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# Before the key of a pod that is a workload only for the engine.
STRAY = "pod:"

Changes = Iterator[changes.Change]


NeedsQueue = Callable[[Json, View], bool]


def _nothing(_obj: Json) -> Changes:
    """Yield no changes: the engine does not know such objects."""
    return iter(())


def is_free(_pod: Json, _view: View) -> bool:
    """Let every pod without a queue go where it fits."""
    return False


class Translator:
    """Knows the view and the operator's settings; keeps nothing that is not in them."""

    def __init__(
        self,
        view: View,
        settings: Settings,
        *,
        places_strays: bool,
        left_out: Container[Name],
        needs_queue: NeedsQueue = is_free,
    ) -> None:
        """Read objects from a view; strays are pods for which no workload finds a node.

        The engine does not know workloads that are `left_out`: their pods count by themselves.
        `needs_queue` says whether a queue has to admit a pod that names our scheduler and no queue.
        """
        self._needs_queue = needs_queue
        self._left_out = left_out
        self._places_strays = places_strays
        self.sent = BindsInFlight()
        self.in_doubt = InDoubt()
        self._view = view
        self._settings = settings
        self.manifests = Manifests(view)
        self._sets = PodSetCache()
        self._shared = SharedQueues()
        self.limits = Limits(view)
        self._requests_by = RequestsBy(view)
        self._readers: dict[Kind, Callable[[Json], Changes]] = {
            **dict.fromkeys((names.LIMIT_RANGE, names.RUNTIME_CLASS, names.DEVICE_CLASS), _nothing),
            names.NODE: self._node,
            names.POD: self._pod,
            names.NAMESPACE: self._namespace,
            names.FLAVOR: self._flavor,
            names.CLUSTER_QUEUE: self._queue,
            names.LOCAL_QUEUE: self._local_queue,
            names.COHORT: self._cohort,
            names.ADMISSION_CHECK: self._check,
            names.TOPOLOGY: self._topology,
            names.VOLCANO_QUEUE: self._volcano_queue,
            names.HYPER_NODE: self._hypernodes,
            names.WORKLOAD: self._workload,
            names.CLAIM: self._claim,
            names.VOLUME: self._volume,
        }
        self.watches = tuple(kind for kind in self._readers if view.has(kind))

    def use(self, settings: Settings) -> None:
        """Read objects by other settings from now on."""
        self._settings = settings

    def forget(self) -> None:
        """Read everything anew from now on."""
        self._sets = PodSetCache()
        self._shared = SharedQueues()

    def is_to_be_read(self, name: Name, kind: Kind, key: Key) -> bool:
        """Say whether what waits asks for something else since an object changed; forget its sets.

        Of the kinds in `REQUESTS_BY`.
        """
        of, own = name
        waiting = self._view.peek(of, own.name, own.namespace)
        if waiting is None or not self._requests_by.concerns(waiting, kind, key):
            return False
        self._sets.forget(WorkloadKey(f"{own.namespace}/{own.name}"))
        return True

    def translate(self, kind: Kind, key: Key) -> Changes:
        """Yield the changes of the engine's state for an object as it is now."""
        obj = self._view.get(kind, key.name, key.namespace)
        if kind == names.NODE:
            self._requests_by.node_changed(key.name, obj)
        if obj is None:
            self.manifests.forget(kind, key.namespace, key.name)
            yield from self._gone(kind, key)
        else:
            yield from self._readers[kind](obj)

    def _gone(self, kind: Kind, key: Key) -> Changes:
        full = f"{key.namespace}/{key.name}"
        match kind:
            case names.NODE:
                yield changes.NodeGone(NodeName(key.name))
                yield from self._nodes_hold(key.name, {})
            case names.POD:
                self.sent.gone(key)
                yield changes.WorkloadGone(WorkloadKey(f"{STRAY}{full}"))
                yield changes.PodGone(full)
            case names.NAMESPACE:
                yield changes.NamespaceGone(key.name)
            case names.FLAVOR:
                yield changes.FlavorGone(FlavorName(key.name))
            case names.CLUSTER_QUEUE:
                yield changes.QueueGone(QueueName(key.name))
            case names.LOCAL_QUEUE:
                yield changes.LocalQueueGone(LocalQueueKey(full))
            case names.COHORT:
                yield changes.CohortGone(CohortName(key.name))
            case names.ADMISSION_CHECK:
                yield changes.CheckGone(key.name)
            case names.TOPOLOGY:
                yield changes.TopologyGone(key.name)
            case names.VOLCANO_QUEUE:
                yield changes.QueueGone(self._shared.gone(key.name))
                yield from self._volcano_queues()
            case names.HYPER_NODE:
                yield from self._hypernodes()
            case names.CLAIM:
                yield from self._mounting(key.namespace, key.name)
            case names.LIMIT_RANGE | names.RUNTIME_CLASS | names.DEVICE_CLASS:
                return  # what asks for something else without it is read again
            case names.VOLUME:
                return  # what was on it is lost, and its claim says so
            case _:
                self.in_doubt.gone(WorkloadKey(full))
                self._sets.forget(WorkloadKey(full))
                yield changes.WorkloadGone(WorkloadKey(full))
                yield from self._stragglers(full)

    # ---- configuration -----------------------------------------------------------------------

    def _namespace(self, obj: Json) -> Changes:
        name = obj["metadata"]["name"]
        labels = {**(obj["metadata"].get("labels") or {}), NAMESPACE_LABEL: name}
        yield changes.NamespaceSet(Namespace(name, labels_of(labels)))

    def _flavor(self, obj: Json) -> Changes:
        made = self.manifests.of(obj)
        if made is not None:
            yield changes.FlavorSet(flavor_of(made))

    def _queue(self, obj: Json) -> Changes:
        made = self.manifests.of(obj)
        if made is not None:
            yield changes.QueueSet(queue_of(made, strict=self._settings.policy.strict))

    def _local_queue(self, obj: Json) -> Changes:
        made = self.manifests.of(obj)
        if made is not None:
            yield changes.LocalQueueSet(local_queue_of(made, obj["metadata"]["namespace"]))

    def _cohort(self, obj: Json) -> Changes:
        made = self.manifests.of(obj)
        if made is not None:
            yield changes.CohortSet(cohort_of(made))

    def _check(self, obj: Json) -> Changes:
        made = self.manifests.of(obj)
        if made is not None:
            yield changes.CheckSet(check_of(made, others_bring_nodes=not self._places_strays))

    def _topology(self, obj: Json) -> Changes:
        made = self.manifests.of(obj)
        if made is not None:
            levels = tuple(level.node_label for level in made.spec.levels)
            yield changes.TopologySet(Topology(obj["metadata"]["name"], levels))

    def _volcano_queue(self, obj: Json) -> Changes:
        if self.manifests.of(obj) is not None:
            yield from self._volcano_queues()

    def _volcano_queues(self) -> Changes:
        """Yield what is new about Volcano's queues: they share, so one may concern them all."""
        return self._shared.changes(self.manifests.every(names.VOLCANO_QUEUE))

    def _nodes_hold(self, name: str, amounts: Mapping[str, int]) -> Changes:
        """Note what a node has; what all have counts where a queue is guaranteed a part of it."""
        if self._shared.nodes_hold(name, amounts):
            yield from self._volcano_queues()

    # ---- nodes -------------------------------------------------------------------------------

    def _node(self, obj: Json) -> Changes:
        made = self.manifests.read(obj)
        if made is None:
            return
        hypernodes = self.manifests.every(names.HYPER_NODE)
        more = (
            hypernode_labels(hypernodes, [made]).get(made.metadata.name, {}) if hypernodes else {}
        )
        node = node_of(made, more)
        yield changes.NodeSet(node)
        yield from self._nodes_hold(node.name, dict(node.allocatable))

    def _hypernodes(self, _: Json | None = None) -> Changes:
        """HyperNodes show as labels of nodes, so a change of one concerns them all."""
        topology = hypernode_topology(self.manifests.every(names.HYPER_NODE))
        if topology is not None:
            yield changes.TopologySet(topology)
        for node in self._view.all(names.NODE):
            yield from self._node(node)

    def _pod(self, obj: Json) -> Changes:
        """A bound pod without a workload uses its node by itself."""
        metadata = obj["metadata"]
        full = f"{metadata['namespace']}/{metadata['name']}"
        node = self.sent.node_of(obj)
        is_over = (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if node or is_over or not self._is_stray(obj):
            yield changes.WorkloadGone(WorkloadKey(f"{STRAY}{full}"))
        else:
            yield from self._stray(obj)
        if not node or is_over or self.is_of_workload(obj):
            yield changes.PodGone(full)
            return
        made = self.manifests.read(obj)
        if made is None:
            return
        context = self.context(metadata["namespace"])
        ends = made.metadata.deletion_timestamp
        near = pod_rules(made.spec, made.metadata.labels, context)
        yield changes.PodOnNode(
            NodePod(
                key=full,
                node=NodeName(node),
                requests=pod_cost(
                    made.spec, costing_of(context), made.metadata.annotations
                ).requests,
                device=device_of(made.metadata.annotations),
                labels=labels_of(made.metadata.labels),
                host_ports=near.host_ports,
                anti_affinity=near.anti_affinity,
                leaves_at=ends.instant if ends is not None else None,
            )
        )

    def _is_stray(self, pod: Json) -> bool:
        """Say whether a pod waits for a node and no workload will find it one."""
        is_for_us = self._places_strays or pod["spec"].get("schedulerName") == names.SCHEDULER
        if not is_for_us or "deletionTimestamp" in pod["metadata"]:
            return False
        annotations = pod["metadata"].get("annotations") or {}
        if names.WORKLOAD_ANNOTATION in annotations or pod["spec"].get("schedulingGates"):
            return False
        if is_bare_and_ours(pod) and self._needs_queue(pod, self._view):
            return False  # `pod_gangs` makes a Workload for it
        return gang_of(pod) is None or is_solo(pod)

    def _stray(self, pod: Json) -> Changes:
        """A pod by itself is a gang of one, in a queue without limits."""
        made = self.manifests.read(pod)
        if made is None:
            return
        metadata = pod["metadata"]
        context = self.context(metadata["namespace"])
        sets = pod_sets((set_of_pods((made,), "main", 1),), context)
        yield from self._implicit_local_queue(metadata["namespace"], UNLIMITED_LOCAL_QUEUE)
        created = made.metadata.creation_timestamp
        yield changes.WorkloadWaits(
            Workload(
                key=WorkloadKey(f"{STRAY}{metadata['namespace']}/{metadata['name']}"),
                uid=metadata["uid"],
                queue=LocalQueueKey(f"{metadata['namespace']}/{UNLIMITED_LOCAL_QUEUE}"),
                pod_sets=sets,
                priority=made.spec.priority or 0,
                created_at=created.instant if created is not None else Instant(0),
                misconfigured="; ".join(context.notes.faults),
            )
        )

    def stray(self, key: WorkloadKey) -> Json | None:
        """Return the pod that a workload of the engine is; None if it is a real one."""
        if not key.startswith(STRAY):
            return None
        namespace, _, name = key.removeprefix(STRAY).partition("/")
        return self._view.get(names.POD, name, namespace)

    def is_of_workload(self, pod: Json) -> bool:
        """Say whether a pod's place is counted with a workload that holds it."""
        annotations = pod["metadata"].get("annotations") or {}
        name = annotations.get(names.WORKLOAD_ANNOTATION)
        if not name:
            return False
        namespace = pod["metadata"]["namespace"]
        if (names.WORKLOAD, Key(namespace, name)) in self._left_out:
            return False
        workload = self._view.peek(names.WORKLOAD, name, namespace)
        status = (workload.get("status") or {}) if workload is not None else {}
        if not status.get("admission") or is_true(status.get("conditions"), "Finished"):
            return False
        return "deletionTimestamp" not in pod["metadata"] or self._is_placed(pod, workload)

    def _is_placed(self, pod: Json, workload: Json | None) -> bool:
        """Say whether a pod that was told to end is where its workload is placed now.

        When a node is lost, a gang is placed elsewhere before its pods there are gone, and the node
        may come back before they are.
        """
        hosts = hosts_of(workload) if workload is not None else []
        node = pod["spec"].get("nodeName")
        return not hosts or any(self._node_of_host(host) == node for host, _ in hosts)

    def _stragglers(self, workload: str) -> Changes:
        """Pods that outlive what their workload held are counted by themselves."""
        for pod in self._view.by(names.POD, names.BY_WORKLOAD, workload):
            yield from self._pod(pod)

    # ---- volumes -----------------------------------------------------------------------------

    def _claim(self, obj: Json) -> Changes:
        yield from self._mounting(obj["metadata"]["namespace"], obj["metadata"]["name"])

    def _volume(self, obj: Json) -> Changes:
        claim = obj["spec"].get("claimRef") or {}
        if claim.get("name"):
            yield from self._mounting(claim.get("namespace", ""), claim["name"])

    def _mounting(self, namespace: str, claim: str) -> Changes:
        """A workload that waits with a claim may run elsewhere once it has a volume."""
        for workload in self._view.within(names.WORKLOAD, namespace):
            if claim in claims_of_sets(workload):
                self._sets.forget(WorkloadKey(f"{namespace}/{workload['metadata']['name']}"))
                yield from self._workload(workload)
        for pod in self._view.within(names.POD, namespace):
            if claim in claims_in(pod["spec"]) and not pod["spec"].get("nodeName"):
                yield from self._pod(pod)

    # ---- workloads ---------------------------------------------------------------------------

    def _workload(self, obj: Json) -> Changes:
        first = first_of_slice(obj, self._view)
        # What is decided for a slice ends the first, or is void.
        for one in (*((first,) if first is not None else ()), obj, *slices_of(obj, self._view)):
            yield from self._own(one)

    def _own(self, obj: Json) -> Changes:
        obj = self.in_doubt.as_if(obj)
        metadata = obj["metadata"]
        key = WorkloadKey(f"{metadata['namespace']}/{metadata['name']}")
        is_known = self._sets.is_known(key, metadata)
        written = self._written(obj, is_known=is_known)
        # One that was deleted holds its nodes until the last of its pods is gone: then `gangs`
        # takes our finalizer off. A foreign finalizer keeps the object, but not its quota.
        is_held = names.RESOURCE_IN_USE in (metadata.get("finalizers") or ())
        is_leaving = "deletionTimestamp" in metadata and not (
            is_held and obj.get("status", {}).get("admission")
        )
        if written is None or is_finished(written) or is_leaving:
            if written is not None and run_of(written) is not None:
                self.limits.learn(self._asked(written, metadata, is_known=is_known), written)
            self._sets.forget(key)
            result = None if written is None else result_of(written, metadata["namespace"])
            if result is not None:
                yield changes.ResultSet(result)
            yield changes.WorkloadGone(key)
            yield from self._stragglers(key)
            return
        yield from self._implicit_local_queue(metadata["namespace"], written.spec.queue_name)
        made = self._asked(written, metadata, is_known=is_known)
        made = self.limits.filled_in(made, written)
        wrong = wrong_with_annotations(written.metadata.annotations)
        if wrong:
            text = "; ".join(f"{path}: {reason}" for path, reason in wrong.items())
            made = msgspec.structs.replace(made, misconfigured=text)
        admitted = admitted_workload_of(written, made)
        if admitted is None:
            yield changes.WorkloadWaits(made)
            yield from self._stragglers(key)
        else:
            placed = self._beside_first(self._with_nodes(admitted, written, obj), obj)
            keeps = {} if placed.evicting else pods_to_keep(obj)
            if keeps:
                placed = msgspec.structs.replace(placed, keeps=first_of(placed.admission, keeps))
            limit = granted_ms(obj)
            if limit is not None:
                granted = placed.workload.granted(limit)
                placed = msgspec.structs.replace(placed, workload=granted)
            due = machines_due(obj)
            if due is not None:
                placed = msgspec.structs.replace(placed, ready_by=Instant(due * 1000))
            yield changes.WorkloadHolds(placed)
            _, placement = placement_of(obj["status"].get("conditions"))
            if number_of(placement, "gen", 1) > 1:  # it may have pods where it was before
                yield from self._stragglers(key)

    def _written(self, obj: Json, *, is_known: bool) -> Any | None:
        """Return a Workload as it is written; raise what is wrong with it, unless it is over.

        Its sets were checked when they were read; what others write about it, is every time.
        """
        try:
            return self.manifests.without_sets(obj) if is_known else self.manifests.read(obj)
        except InvalidManifest:
            if is_true((obj.get("status") or {}).get("conditions"), "Finished"):
                return None  # whatever it was, it holds nothing any more
            raise

    def _asked(self, written: Any, metadata: Json, *, is_known: bool) -> Workload:
        """Return what a Workload asks for; if its pod sets are known, they were not read again."""
        created = written.metadata.creation_timestamp
        made = workload_of(
            written,
            self.context(metadata["namespace"]),
            uid=metadata.get("uid", ""),
            priority=(written.spec.priority or 0) + priority_boost(written.metadata.annotations),
            created_at=created.instant if created is not None else Instant(0),
            policy=self._settings.policy,
        )
        if is_known:
            return self._sets.given_back(made)
        self._sets.remember(made, metadata)
        return made

    def recorded(self, obj: Json) -> Changes:
        """Yield the changes for a Workload that is left out: what its status holds.

        Otherwise others would be admitted into quota that its pods still use.
        """
        metadata, conditions = obj["metadata"], (obj.get("status") or {}).get("conditions")
        key = WorkloadKey(f"{metadata['namespace']}/{metadata['name']}")
        reserved = find(conditions, "QuotaReserved")
        is_held = names.RESOURCE_IN_USE in (metadata.get("finalizers") or ())
        if (
            is_true(conditions, "Finished")
            or (reserved is not None and reserved["status"] == "False")
            or ("deletionTimestamp" in metadata and not is_held)
            or (admitted := recorded_admitted_workload(obj, key)) is None
        ):
            yield changes.WorkloadGone(key)
            return
        lq = admitted.workload.queue.partition("/")[2]
        yield from self._implicit_local_queue(metadata["namespace"], lq)
        sets = tuple(
            msgspec.structs.replace(
                one, flavors=tuple((name, read_flavor(flavor)) for name, flavor in one.flavors)
            )
            for one in admitted.admission.pod_sets
        )
        queue = read_queue(admitted.admission.queue, lq)
        admission = msgspec.structs.replace(admitted.admission, queue=queue, pod_sets=sets)
        yield changes.WorkloadHolds(msgspec.structs.replace(admitted, admission=admission))

    def _beside_first(self, placed: AdmittedWorkload, obj: Json) -> AdmittedWorkload:
        """Count a slice for what it holds on top of its first."""
        first = first_of_slice(obj, self._view)
        written = self.manifests.read(first) if first is not None else None
        if first is None or written is None or not holds(first):
            return placed
        there = admitted_workload_of(
            written, self._asked(written, first["metadata"], is_known=False)
        )
        return (
            placed if there is None else only_new(placed, self._with_nodes(there, written, first))
        )

    def _with_nodes(self, admitted: AdmittedWorkload, written: Any, obj: Json) -> AdmittedWorkload:
        """Put an admitted workload on the nodes, and shared GPUs, that its record names."""
        _, about = placement_of((obj.get("status") or {}).get("conditions"))
        devices = read_devices(about.get("devices", ""))
        record = {
            one.name: one.topology_assignment
            for one in written.status.admission.pod_set_assignments
        }
        placed = tuple(
            msgspec.structs.replace(
                one,
                flavors=tuple((name, read_flavor(flavor)) for name, flavor in one.flavors),
                nodes=tuple(  # in the order of ranks
                    (self._node_of_host(host), pods)
                    for host, pods in pods_per_host(record.get(one.name))
                ),
            )
            for one in admitted.admission.pod_sets
        )
        if devices:
            placed = tuple(_with_devices(one, devices.get(one.name, ())) for one in placed)
        queue = read_queue(admitted.admission.queue, written.spec.queue_name)
        placed = tuple(_trimmed(one) for one in placed)
        admission = msgspec.structs.replace(admitted.admission, queue=queue, pod_sets=placed)
        return msgspec.structs.replace(admitted, admission=admission)

    def _node_of_host(self, host: str) -> NodeName:
        if self._view.get(names.NODE, host) is None:
            for node in self._view.by(names.NODE, "hostname", host):
                return NodeName(node["metadata"]["name"])
        return NodeName(host)

    def _implicit_local_queue(self, namespace: str, queue: str) -> Changes:
        """Yield the LocalQueues that have no object: of Volcano's queues, and of no queue."""
        key = LocalQueueKey(f"{namespace}/{queue}")
        if queue == UNLIMITED_LOCAL_QUEUE:
            yield changes.QueueSet(UNLIMITED)
            yield changes.LocalQueueSet(LocalQueue(key=key, queue=UNLIMITED.name))
        elif queue.startswith(VOLCANO_LOCAL_QUEUE):
            name = QueueName(f"volcano/{queue.removeprefix(VOLCANO_LOCAL_QUEUE)}")
            yield changes.LocalQueueSet(LocalQueue(key=key, queue=name))

    def context(self, namespace: str) -> LiveContext:
        """Return what may be looked at while an object of a namespace is read."""
        return LiveContext(self.manifests, namespace, self._settings.rules)


def _trimmed(one: PodSetAssignment) -> PodSetAssignment:
    """Leave out places of a set that was made smaller in place; it loses its highest ranks."""
    if sum(pods for _, pods in one.nodes) <= one.count:
        return one
    nodes, devices = first_pods(one.nodes, one.count), one.devices[: one.count]
    return msgspec.structs.replace(one, nodes=nodes, devices=devices)


def _with_devices(one: PodSetAssignment, devices: tuple[int, ...]) -> PodSetAssignment:
    """Let pods share the GPUs that were written down, if there is one for each of them."""
    fits = len(devices) == sum(pods for _, pods in one.nodes)
    return msgspec.structs.replace(one, devices=devices if fits else ())
