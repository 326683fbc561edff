"""ClusterQueue, Cohort and LocalQueue of Kueue, v1beta2."""

from __future__ import annotations

from unisono.kinds.views.base import (
    Amounts,
    Number,
    NumberIfAny,
    Part,
    PartIfAny,
    Parts,
    Raw,
    Text,
    Texts,
    View,
    objects_in,
)
from unisono.kinds.views.objects import Object, Status


class ResourceQuota(View):
    """How much of one resource; the amounts are as they are written, None if absent."""

    __slots__ = ()

    name = Text("name")

    @property
    def nominal_quota(self) -> object:
        """What the queue may always use."""
        return self.raw.get("nominalQuota")

    @property
    def borrowing_limit(self) -> object:
        """What it may borrow from its cohort on top; None: no limit."""
        return self.raw.get("borrowingLimit")

    @property
    def lending_limit(self) -> object:
        """What other queues may borrow of its quota; None: all of it."""
        return self.raw.get("lendingLimit")


class FlavorQuotas(View):
    """The quota of one flavor."""

    __slots__ = ()

    name = Text("name")
    resources = Parts("resources", ResourceQuota)


class ResourceGroup(View):
    """Resources that come from one flavor together, and the flavors to try, in order."""

    __slots__ = ()

    covered_resources = Texts("coveredResources")
    resources = Parts("resources", ResourceQuota)

    @property
    def flavors(self) -> tuple[FlavorQuotas, ...]:
        """The flavors; a pooled quota (flavors that are only names) is that of the first one."""
        found = self.raw.get("flavors")
        if isinstance(found, list) and found and isinstance(found[0], str):
            pooled: Raw = {"name": found[0], "resources": self.raw.get("resources")}
            return (FlavorQuotas(pooled),)
        return tuple(map(FlavorQuotas, objects_in(found, "flavors")))


class FairSharing(View):
    """How much weight a share has."""

    __slots__ = ()

    @property
    def weight(self) -> object:
        """The weight as it is written; None: 1."""
        return self.raw.get("weight")


class ClusterQueueSpec(View):
    """Quota, and the rules of its use."""

    __slots__ = ()

    resource_groups = Parts("resourceGroups", ResourceGroup)
    _name = Text("cohortName")
    _older_name = Text("cohort")
    queueing_strategy = Text("queueingStrategy", "BestEffortFIFO")
    stop_policy = Text("stopPolicy", "None")
    fair_sharing = Part("fairSharing", FairSharing)

    @property
    def cohort_name(self) -> str:
        """The cohort, which v1beta1 called `cohort`.

        A real API server stores a queue as it was applied in v1beta1: it has no converter
        (`kinds.shapes.crds`).
        """
        return self._name or self._older_name


class ResourceUsage(View):
    """How much of one resource is in use, and how much of that is borrowed, as it is written."""

    __slots__ = ()

    name = Text("name")

    @property
    def total(self) -> object:
        """What is in use."""
        return self.raw.get("total")

    @property
    def borrowed(self) -> object:
        """What of it belongs to other queues of the cohort."""
        return self.raw.get("borrowed")


class FlavorUsage(View):
    """What is in use of a flavor."""

    __slots__ = ()

    name = Text("name")
    resources = Parts("resources", ResourceUsage)


class AdmissionFairSharingStatus(View):
    """What a LocalQueue used lately."""

    __slots__ = ()

    consumed = Amounts("consumedResources")


class FairSharingStatus(View):
    """How much a queue or cohort borrows, by its weight."""

    __slots__ = ()

    weighted_share = NumberIfAny("weightedShare")
    admission = PartIfAny("admissionFairSharingStatus", AdmissionFairSharingStatus)


class ClusterQueueStatus(Status):
    """What was observed of a queue."""

    __slots__ = ()

    fair_sharing = Part("fairSharing", FairSharingStatus)

    pending_workloads = Number("pendingWorkloads")
    reserving_workloads = Number("reservingWorkloads")
    admitted_workloads = Number("admittedWorkloads")
    flavors_usage = Parts("flavorsUsage", FlavorUsage)
    flavors_reservation = Parts("flavorsReservation", FlavorUsage)


class ClusterQueue(Object):
    """A queue with quota of its own."""

    __slots__ = ()

    spec = Part("spec", ClusterQueueSpec)
    status = Part("status", ClusterQueueStatus)


class CohortSpec(View):
    """Its place in the tree, and quota that belongs to all members."""

    __slots__ = ()

    parent_name = Text("parentName")
    resource_groups = Parts("resourceGroups", ResourceGroup)
    fair_sharing = Part("fairSharing", FairSharing)


class CohortStatus(Status):
    """What was observed of a cohort."""

    __slots__ = ()

    fair_sharing = Part("fairSharing", FairSharingStatus)


class Cohort(Object):
    """Queues and cohorts that share quota."""

    __slots__ = ()

    spec = Part("spec", CohortSpec)
    status = Part("status", CohortStatus)


class LocalQueueSpec(View):
    """Where a queue leads."""

    __slots__ = ()

    cluster_queue = Text("clusterQueue")
    stop_policy = Text("stopPolicy", "None")
    fair_sharing = Part("fairSharing", FairSharing)


class LocalQueueStatus(Status):
    """What was observed of a queue."""

    __slots__ = ()

    fair_sharing = Part("fairSharing", FairSharingStatus)

    pending_workloads = Number("pendingWorkloads")
    reserving_workloads = Number("reservingWorkloads")
    admitted_workloads = Number("admittedWorkloads")
    flavors_usage = Parts("flavorsUsage", FlavorUsage)
    flavors_reservation = Parts("flavorsReservation", FlavorUsage)


class LocalQueue(Object):
    """A namespace's entrance to a ClusterQueue."""

    __slots__ = ()

    spec = Part("spec", LocalQueueSpec)
    status = Part("status", LocalQueueStatus)
