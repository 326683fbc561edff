"""`batch/v1` Job, and JobSet."""

from __future__ import annotations

from unisono.kinds.views.base import Flag, Number, NumberIfAny, Part, Parts, Text, View
from unisono.kinds.views.objects import Object, Status
from unisono.kinds.views.pods import PodTemplate


class JobSpec(View):
    """How many pods of which template, and when the job is done."""

    __slots__ = ()

    parallelism = Number("parallelism", 1)
    completions = NumberIfAny("completions")
    completion_mode = Text("completionMode", "NonIndexed")
    suspend = Flag("suspend")
    template = Part("template", PodTemplate)
    backoff_limit = Number("backoffLimit", 6)
    backoff_limit_per_index = NumberIfAny("backoffLimitPerIndex")
    max_failed_indexes = NumberIfAny("maxFailedIndexes")
    active_deadline_seconds = NumberIfAny("activeDeadlineSeconds")
    ttl_seconds_after_finished = NumberIfAny("ttlSecondsAfterFinished")
    managed_by = Text("managedBy")


class JobStatus(Status):
    """How far a job is."""

    __slots__ = ()

    active = Number("active")
    ready = Number("ready")
    succeeded = Number("succeeded")
    failed = Number("failed")
    terminating = Number("terminating")
    completed_indexes = Text("completedIndexes")
    failed_indexes = Text("failedIndexes")
    start_time = Text("startTime")
    completion_time = Text("completionTime")


class Job(Object):
    """Pods that run to completion."""

    __slots__ = ()

    spec = Part("spec", JobSpec)
    status = Part("status", JobStatus)

    @property
    def is_complete(self) -> bool:
        """Whether it succeeded."""
        return self.conditions.is_true("Complete")

    @property
    def is_failed(self) -> bool:
        """Whether it failed for good."""
        return self.conditions.is_true("Failed")

    @property
    def is_over(self) -> bool:
        """Whether it ended, one way or the other."""
        return self.is_complete or self.is_failed


class JobTemplate(View):
    """What every job of a set is made from."""

    __slots__ = ()

    spec = Part("spec", JobSpec)


class ReplicatedJob(View):
    """Jobs of one template in a set."""

    __slots__ = ()

    name = Text("name")
    group_name = Text("groupName", "default")
    replicas = Number("replicas", 1)
    template = Part("template", JobTemplate)


class JobSetSpec(View):
    """Which jobs run together."""

    __slots__ = ()

    replicated_jobs = Parts("replicatedJobs", ReplicatedJob)
    suspend = Flag("suspend")
    managed_by = Text("managedBy")


class JobSetStatus(Status):
    """How far a set of jobs is."""

    __slots__ = ()

    restarts = Number("restarts")
    restarts_count_towards_max = Number("restartsCountTowardsMax")
    terminal_state = Text("terminalState")


class JobSet(Object):
    """Jobs that run together."""

    __slots__ = ()

    spec = Part("spec", JobSetSpec)
    status = Part("status", JobSetStatus)
