"""Workload of Kueue, v1beta2, as informers hold it; `kinds.kueue.workloads` decodes it strictly."""

from __future__ import annotations

from unisono.kinds.views.base import (
    Amounts,
    Flag,
    Number,
    NumberIfAny,
    Part,
    PartIfAny,
    Parts,
    Raws,
    Text,
    TextMap,
    View,
    seconds_of,
)
from unisono.kinds.views.objects import Object, Status
from unisono.kinds.views.pods import PodTemplate


class TopologyRequest(View):
    """Which pods of a set must be close to each other."""

    __slots__ = ()

    required = Text("required")
    preferred = Text("preferred")
    unconstrained = Flag("unconstrained")
    pod_set_group_name = Text("podSetGroupName")
    pod_set_slice_required_topology = Text("podSetSliceRequiredTopology")
    pod_set_slice_size = NumberIfAny("podSetSliceSize")


class PodSet(View):
    """Pods of one template."""

    __slots__ = ()

    name = Text("name", "main")
    count = Number("count", 1)
    min_count = NumberIfAny("minCount")
    template = Part("template", PodTemplate)
    topology_request = PartIfAny("topologyRequest", TopologyRequest)


class PriorityClassRef(View):
    """The class that gave the priority."""

    __slots__ = ()

    group = Text("group")
    kind = Text("kind")
    name = Text("name")


class WorkloadSpec(View):
    """What is asked for."""

    __slots__ = ()

    pod_sets = Parts("podSets", PodSet)
    queue_name = Text("queueName")
    priority = Number("priority")
    priority_class_ref = Part("priorityClassRef", PriorityClassRef)
    active = Flag("active", default=True)
    maximum_execution_time_seconds = NumberIfAny("maximumExecutionTimeSeconds")


class PodSetAssignment(View):
    """What one pod set was given."""

    __slots__ = ()

    name = Text("name", "main")
    count = NumberIfAny("count")
    flavors = TextMap("flavors")
    resource_usage = Amounts("resourceUsage")

    @property
    def topology_assignment(self) -> object:
        """Which nodes were chosen, as it is written; `kinds.kueue.topology_assignment` reads it."""
        return self.raw.get("topologyAssignment")


class Admission(View):
    """A quota reservation."""

    __slots__ = ()

    cluster_queue = Text("clusterQueue")
    pod_set_assignments = Parts("podSetAssignments", PodSetAssignment)


class RequeueState(View):
    """How often it was requeued after a time-out, and until when it waits."""

    __slots__ = ()

    count = Number("count")
    requeue_at = Text("requeueAt")

    @property
    def until(self) -> float:
        """Until when it waits, in seconds since 1970; 0 if it does not."""
        return seconds_of(self.requeue_at)


class ReclaimablePods(View):
    """Pods of a set that are done and will not come back."""

    __slots__ = ()

    name = Text("name")
    count = Number("count")


class AdmissionCheck(View):
    """What an admission check says of a workload."""

    __slots__ = ()

    name = Text("name")
    state = Text("state", "Pending")
    message = Text("message")
    last_transition_time = Text("lastTransitionTime")
    requeue_after_seconds = NumberIfAny("requeueAfterSeconds")
    retry_count = Number("retryCount")
    pod_set_updates = Raws("podSetUpdates")


class EvictionCount(View):
    """How often a workload was evicted for one reason."""

    __slots__ = ()

    reason = Text("reason")
    underlying_cause = Text("underlyingCause")
    count = Number("count")


class SchedulingStats(View):
    """What happened to a workload so far."""

    __slots__ = ()

    evictions = Parts("evictions", EvictionCount)


class UnhealthyNode(View):
    """A node that a workload cannot go on using."""

    __slots__ = ()

    name = Text("name")


class WorkloadStatus(Status):
    """What became of a workload."""

    __slots__ = ()

    requeue_state = Part("requeueState", RequeueState)
    reclaimable_pods = Parts("reclaimablePods", ReclaimablePods)
    admission_checks = Parts("admissionChecks", AdmissionCheck)
    scheduling_stats = Part("schedulingStats", SchedulingStats)
    unhealthy_nodes = Parts("unhealthyNodes", UnhealthyNode)
    accumulated_past_execution_time_seconds = Number("accumulatedPastExecutionTimeSeconds")

    _admission = PartIfAny("admission", Admission)

    @property
    def admission(self) -> Admission | None:
        """The quota that is reserved; None without, also if one without fields was left behind."""
        found = self._admission
        return found if found is not None and found.raw else None


class Workload(Object):
    """A gang of pods that is admitted whole."""

    __slots__ = ()

    spec = Part("spec", WorkloadSpec)
    status = Part("status", WorkloadStatus)

    @property
    def key(self) -> tuple[str, str]:
        """Its namespace and name."""
        metadata = self.metadata
        return metadata.namespace, metadata.name

    @property
    def is_finished(self) -> bool:
        """Whether it is over, for good or for bad."""
        return self.conditions.is_true("Finished")

    @property
    def is_admitted(self) -> bool:
        """Whether it may run: it has quota, and all admission checks are ready."""
        return self.conditions.is_true("Admitted")

    @property
    def has_quota(self) -> bool:
        """Whether quota is reserved for it."""
        return self.conditions.is_true("QuotaReserved")

    @property
    def is_evicted(self) -> bool:
        """Whether it was told to stop."""
        return self.conditions.is_true("Evicted")
