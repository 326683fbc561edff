"""Every metric of Kueue under its own name, with its labels and buckets.

What is there now comes from records and from the statuses that our controllers write; what happened
is counted from changes of Workloads, as their conditions tell it. The series of a queue end with
the queue. `replica_role` is what Kueue says of one process (`standalone`) or of several (`leader`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from unisono.monitor.cache import ClusterCache, PodChange, WorkloadChange
from unisono.monitor.exposition import WAITS, Family, Histogram, Sample, Type, doubling
from unisono.monitor.records import QueueStatus, QuotaAmounts, Used, WorkloadRecord

# Of a cluster with more LocalQueues, theirs are left out: each would have forty series.
MOST_LOCAL_QUEUES = 2_000
# Series of one counter: queues, times priority classes, times reasons.
_MOST = 20_000
_SHORT = WAITS[:14]
_LATENCY = doubling(0.01, 11)
_ATTEMPT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_GATE = "unisono.dev/gang"
_CLUSTER_STATES = ("pending", "active", "terminating")
_LOCAL_STATES = ("True", "False", "Unknown")
_RESULTS = ("success", "inadmissible")

Values = tuple[str, ...]
_CQ = ("cluster_queue",)
_LQ = ("name", "namespace")
_CQ_CLASS = ("cluster_queue", "priority_class")
_LQ_CLASS = ("name", "namespace", "priority_class")
_EVICTED = ("reason", "underlying_cause")


class _Named(NamedTuple):
    """A family without its samples."""

    name: str
    type: Type
    labels: Values
    help: str
    bounds: tuple[float, ...] = ()


# What is counted as it happens. The first label, or the first two of a LocalQueue, name the queue.
_COUNTED = (
    _Named("admission_attempts_total", "counter", ("result",), "Scheduling cycles by result."),
    _Named(
        "admission_attempt_duration_seconds",
        "histogram",
        ("result",),
        "How long scheduling cycles take, by result.",
        _ATTEMPT,
    ),
    *(
        _Named(f"{prefix}{name}_total", "counter", labels, text)
        for prefix, labels in (("", _CQ_CLASS), ("local_queue_", _LQ_CLASS))
        for name, text in (
            ("quota_reserved_workloads", "Workloads that got quota."),
            ("admitted_workloads", "Workloads that were admitted."),
            ("finished_workloads", "Workloads that finished."),
        )
    ),
    *(
        _Named(f"{prefix}{name}_wait_time_seconds", "histogram", labels, text, bounds)
        for prefix, labels in (("", _CQ_CLASS), ("local_queue_", _LQ_CLASS))
        for name, text, bounds in (
            ("quota_reserved", "From queueing until quota is reserved.", _SHORT),
            ("admission", "From queueing until admission.", WAITS if not prefix else _SHORT),
            ("admission_checks", "From quota until all admission checks are ready.", _SHORT),
            ("ready", "From queueing until all pods are ready.", _SHORT),
            ("admitted_until_ready", "From admission until all pods are ready.", _SHORT),
        )
    ),
    _Named(
        "pods_ready_to_evicted_time_seconds",
        "histogram",
        (*_CQ, *_EVICTED),
        "From ready pods to an eviction.",
        _SHORT,
    ),
    _Named(
        "workload_creation_latency_seconds",
        "histogram",
        ("job_kind",),
        "From the creation of a job to that of its Workload.",
        _LATENCY,
    ),
    _Named(
        "pod_scheduling_gate_removal_seconds",
        "histogram",
        ("name", "cluster_queue", "is_group"),
        "From admission until a pod is free to go to its node.",
        _ATTEMPT,
    ),
    _Named(
        "evicted_workloads_total",
        "counter",
        (*_CQ, *_EVICTED, "priority_class"),
        "Evictions by reason.",
    ),
    _Named(
        "evicted_workloads_once_total",
        "counter",
        (*_CQ, *_EVICTED, "priority_class"),
        "Workloads that were evicted for a reason, each counted once.",
    ),
    _Named(
        "local_queue_evicted_workloads_total",
        "counter",
        (*_LQ, *_EVICTED, "priority_class"),
        "Evictions by reason.",
    ),
    _Named(
        "preempted_workloads_total",
        "counter",
        ("preempting_cluster_queue", "reason"),
        "Preemptions by the ClusterQueue of the preemptor.",
    ),
    _Named(
        "workload_eviction_latency_seconds",
        "histogram",
        (*_CQ, "reason"),
        "From an eviction until its quota is free.",
        _SHORT,
    ),
    _Named("replaced_workload_slices_total", "counter", _CQ, "Workloads that a slice replaced."),
    _Named(
        "cohort_subtree_admitted_workloads_total",
        "counter",
        ("cohort", "priority_class"),
        "Workloads that were admitted below a cohort.",
    ),
)
_BY_COHORT = frozenset({"cohort_subtree_admitted_workloads_total"})
_FREE = frozenset({"admission_attempts_total", "workload_creation_latency_seconds"})


class KueueMetrics:
    """Follows what becomes of workloads, and tells it as Kueue does."""

    def __init__(self, cache: ClusterCache, *, since: float, role: str, version: str) -> None:
        """Listen; what happened before `since` was counted by another process."""
        self._cache = cache
        self._since = math.floor(since)  # conditions tell whole seconds
        self._role = role
        self._version = version
        self._counts: dict[str, dict[Values, int]] = {
            one.name: {} for one in _COUNTED if one.type == "counter"
        }
        self._times = {
            one.name: Histogram((*one.labels, "replica_role"), one.bounds, most=_MOST)
            for one in _COUNTED
            if one.type == "histogram"
        }
        # When the job of a workload was created, by kind, namespace and name; 0 if unknown.
        self.job_created: Callable[[str, str, str], float] = lambda kind, namespace, name: 0.0
        # The exact weighted shares, by kind and name; those of statuses are rounded.
        self.shares: Callable[[], Mapping[tuple[str, str], float]] = dict
        cache.on_queue_gone.append(self._forget)
        cache.on_cohort_gone.append(self._forget_cohort)
        cache.on_workload.append(self._follow)
        cache.on_pod.append(self._follow_pod)

    def attempt(self, *, admitted: bool, seconds: float) -> None:
        """Count a scheduling cycle."""
        result = _RESULTS[0] if admitted else _RESULTS[1]
        self._count("admission_attempts_total", result)
        self._time("admission_attempt_duration_seconds", seconds, result)

    # ---- what happens ----------------------------------------------------------------------------

    def _follow(self, step: WorkloadChange) -> None:
        before, after = step
        if after is None:
            return
        if before is None and after.created >= self._since:
            self._time_creation(after)
        if self._is_news(before.reserved if before else 0.0, after.reserved):
            self._waited(after, "quota_reserved", after.reserved - after.story.queued)
            self._counted(after, "quota_reserved_workloads_total")
        if self._is_news(before.admitted if before else 0.0, after.admitted):
            self._admitted(after)
        if self._is_news(before.ready if before else 0.0, after.ready):
            self._waited(after, "ready", after.ready - after.story.queued)
            self._waited(after, "admitted_until_ready", after.ready - after.admitted)
        if self._is_news(before.finished if before else 0.0, after.finished):
            self._counted(after, "finished_workloads_total")
            if after.story.is_replaced:
                self._count("replaced_workload_slices_total", self._queue(before, after))
        self._count_evictions(before, after)

    def _time_creation(self, after: WorkloadRecord) -> None:
        created = self.job_created(after.owner_kind, after.namespace, after.owner_name)
        if created:
            latency = max(0.0, after.created - created)
            self._time("workload_creation_latency_seconds", latency, after.owner_kind)

    def _admitted(self, after: WorkloadRecord) -> None:
        self._waited(after, "admission", after.admitted - after.story.queued)
        self._counted(after, "admitted_workloads_total")
        if after.story.has_checks:
            self._waited(after, "admission_checks", after.admitted - after.reserved)
        for cohort in self._above(after.cluster_queue):
            name = "cohort_subtree_admitted_workloads_total"
            self._count(name, cohort, after.priority_class)

    def _count_evictions(self, before: WorkloadRecord | None, after: WorkloadRecord) -> None:
        if not self._is_news(0.0, after.evicted):
            return
        queue, priority = self._queue(before, after), after.priority_class
        known = (
            {(one, cause): count for one, cause, count in before.story.evictions} if before else {}
        )
        for reason, cause, count in after.story.evictions:
            had = known.get((reason, cause), 0 if before is not None else count - 1)
            for number in range(had, min(count, had + 1000)):
                self._count("evicted_workloads_total", queue, reason, cause, priority)
                if number == 0:
                    self._count("evicted_workloads_once_total", queue, reason, cause, priority)
                local = (after.local_queue, after.namespace)
                self._count("local_queue_evicted_workloads_total", *local, reason, cause, priority)
            if count > had and before is not None and before.ready and before.admitted:
                seconds = max(0.0, after.evicted - before.ready)
                self._time("pods_ready_to_evicted_time_seconds", seconds, queue, reason, cause)
        story = after.story
        if self._is_news(before.story.preempted if before else 0.0, story.preempted):
            preemptor = story.preemptor_queue or queue
            self._count("preempted_workloads_total", preemptor, after.preemption)
        left = after.left if after.left >= after.evicted else 0.0
        if before is not None and before.cluster_queue and self._is_news(before.left, left):
            latency = left - after.evicted
            name = "workload_eviction_latency_seconds"
            self._time(name, latency, before.cluster_queue, story.eviction)

    def _follow_pod(self, step: PodChange) -> None:
        before, after, is_gone = step
        is_bound = self._is_news(before.bound if before else 0.0, after.bound)
        workload = self._cache.workload_of(after)
        if is_gone or not is_bound or workload is None or not workload.admitted:
            return
        seconds = max(0.0, after.bound - workload.admitted)
        is_group = "true" if workload.owner_kind == "Pod" and workload.pods > 1 else "false"
        name = "pod_scheduling_gate_removal_seconds"
        self._time(name, seconds, _GATE, self._cache.queue_of(workload), is_group)

    def _is_news(self, before: float, after: float) -> bool:
        return after > before and after >= self._since

    def _queue(self, before: WorkloadRecord | None, after: WorkloadRecord) -> str:
        return (before.cluster_queue if before else "") or self._cache.queue_of(after)

    def _waited(self, one: WorkloadRecord, what: str, seconds: float) -> None:
        waited = max(0.0, seconds)
        name = f"{what}_wait_time_seconds"
        self._time(name, waited, self._cache.queue_of(one), one.priority_class)
        if self._tells_local_queues():
            local = (one.local_queue, one.namespace, one.priority_class)
            self._time(f"local_queue_{name}", waited, *local)

    def _counted(self, one: WorkloadRecord, name: str) -> None:
        self._count(name, self._cache.queue_of(one), one.priority_class)
        if self._tells_local_queues():
            local = (one.local_queue, one.namespace, one.priority_class)
            self._count(f"local_queue_{name}", *local)

    def _count(self, name: str, *values: str) -> None:
        counts = self._counts[name]
        if values not in counts and len(counts) >= _MOST:
            del counts[next(iter(counts))]  # the oldest makes room
        counts[values] = counts.get(values, 0) + 1

    def _time(self, name: str, seconds: float, *values: str) -> None:
        self._times[name].observe(seconds, *values, self._role)

    def _tells_local_queues(self) -> bool:
        return len(self._cache.local_queues) <= MOST_LOCAL_QUEUES

    def _above(self, queue: str) -> list[str]:
        """Return the cohorts above a ClusterQueue, the nearest first."""
        record = self._cache.queues.get(queue)
        return self._from(record.cohort if record is not None else "")

    def _from(self, cohort: str) -> list[str]:
        """Return a cohort and those above it; a circle of cohorts is walked once."""
        found: list[str] = []
        while cohort and cohort not in found:
            found.append(cohort)
            cohort = self._cache.cohorts.get(cohort, "")
        return found

    # ---- what is told ----------------------------------------------------------------------------

    def families(self) -> Iterator[Family]:
        """Yield everything, as it is now."""
        for one in _COUNTED:
            yield Family(f"kueue_{one.name}", one.type, one.help, self._samples(one))
        yield from self._states()
        yield from self._amounts()
        yield from self._cohorts()
        yield self._gauge(
            "build_info",
            ("git_version", "git_commit", "build_date", "go_version", "compiler", "platform"),
            "What runs here.",
            [((f"v{self._version}", "", "", "", "python", ""), 1)],
            has_role=False,
        )

    def _samples(self, one: _Named) -> Iterator[Sample]:
        if one.name in _BY_COHORT:  # one that only queues named ends with the last of them
            for values in [
                each for each in self._counts[one.name] if not self._is_there(one, each)
            ]:
                del self._counts[one.name][values]
        if one.type == "histogram":
            for sample in self._times[one.name].samples():
                if self._is_there(one, tuple(sample.labels[name] for name in one.labels)):
                    yield sample
            return
        for values, count in sorted(self._counts[one.name].items()):
            if self._is_there(one, values):
                labels = dict(zip(one.labels, values, strict=True))
                yield Sample({**labels, "replica_role": self._role}, count)

    def _forget(self, namespace: str, name: str) -> None:
        """Drop what was counted of a queue that is gone: one of its name begins at 0."""
        for one in _COUNTED:
            local = one.labels[:2] == _LQ
            label = "name" if local else next((x for x in one.labels if "cluster_queue" in x), "")
            if not label or local != bool(namespace):
                continue
            at = one.labels.index(label)

            def is_gone(values: Values, at: int = at, *, local: bool = local) -> bool:
                return values[at] == name and (not local or values[1] == namespace)

            if one.type == "histogram":
                self._times[one.name].forget(is_gone)
            else:
                counts = self._counts[one.name]
                for values in [values for values in counts if is_gone(values)]:
                    del counts[values]

    def _forget_cohort(self, name: str) -> None:
        for one in _BY_COHORT:
            counts = self._counts[one]
            for values in [values for values in counts if values[0] == name]:
                del counts[values]

    def _is_there(self, one: _Named, values: Values) -> bool:
        """Say whether the queue of a series is still there."""
        if one.labels[:2] == _LQ:
            return (values[1], values[0]) in self._cache.local_queues
        if one.name in _BY_COHORT:
            return values[0] in self._cohort_names()
        at = one.labels.index("cluster_queue") if "cluster_queue" in one.labels else -1
        if one.labels[0] == "preempting_cluster_queue":
            at = 0
        return at < 0 or values[at] in self._cache.queues

    def _gauge(
        self,
        name: str,
        labels: Values,
        text: str,
        rows: Iterable[tuple[Values, float]],
        *,
        has_role: bool = True,
    ) -> Family:
        role = {"replica_role": self._role} if has_role else {}
        samples = [
            Sample({**dict(zip(labels, values, strict=True)), **role}, value)
            for values, value in rows
        ]
        return Family(f"kueue_{name}", "gauge", text, samples)

    def _states(self) -> Iterator[Family]:
        """Yield counts of workloads, and in which state queues are."""
        cache = self._cache
        queues = sorted(cache.queues)
        locals_ = sorted(cache.local_queues) if self._tells_local_queues() else []
        by_local: dict[tuple[str, str], dict[str, int]] = {}
        by_queue: dict[str, dict[str, int]] = {}
        unadmitted: dict[Values, int] = {}
        unadmitted_local: dict[Values, int] = {}
        for one in cache.workloads.values():
            queue, local = cache.queue_of(one), (one.namespace, one.local_queue)
            state = self._state(one, queue, local)
            for counts in (by_local.setdefault(local, {}), by_queue.setdefault(queue, {})):
                counts[state] = counts.get(state, 0) + 1
            if not one.finished and not one.admitted and queue in cache.queues:
                why = (queue, *one.story.unadmitted)
                unadmitted[why] = unadmitted.get(why, 0) + 1
                named = (one.local_queue, one.namespace, *why)
                unadmitted_local[named] = unadmitted_local.get(named, 0) + 1

        yield self._gauge(
            "pending_workloads",
            (*_CQ, "status"),
            "Workloads that wait, by whether they were tried already.",
            [
                ((name, status), _sum(by_queue.get(name), (status,)))
                for name in queues
                for status in ("active", "inadmissible")
            ],
        )
        yield self._gauge(
            "local_queue_pending_workloads",
            (*_LQ, "status"),
            "Workloads that wait, by whether they were tried already.",
            [
                ((key[1], key[0], status), by_local.get(key, {}).get(status, 0))
                for key in locals_
                for status in ("active", "inadmissible")
            ],
        )
        for name, text, counted in (
            ("reserving_active_workloads", "Workloads that have quota.", _HOLDING),
            ("admitted_active_workloads", "Workloads that are admitted.", ("admitted",)),
            ("finished_workloads", "Finished Workloads that are still there.", ("finished",)),
        ):
            yield self._gauge(
                name, _CQ, text, [((one,), _sum(by_queue.get(one), counted)) for one in queues]
            )
            yield self._gauge(
                f"local_queue_{name}",
                _LQ,
                text,
                [((key[1], key[0]), _sum(by_local.get(key), counted)) for key in locals_],
            )
        statuses = cache.statuses
        yield self._gauge(
            "cluster_queue_status",
            (*_CQ, "status"),
            "1 for the state that a ClusterQueue is in.",
            [
                ((name, state), int(statuses["", name].state == state))
                for name in queues
                for state in _CLUSTER_STATES
            ],
        )
        yield self._gauge(
            "local_queue_status",
            (*_LQ, "active"),
            "1 for the status of the condition Active.",
            [
                ((key[1], key[0], state), int(statuses[key].state == state))
                for key in locals_
                for state in _LOCAL_STATES
            ],
        )
        yield self._gauge(
            "unadmitted_workloads",
            (*_CQ, *_EVICTED),
            "Workloads that are not admitted, by reason.",
            sorted(unadmitted.items()),
        )
        yield self._gauge(
            "local_queue_unadmitted_workloads",
            (*_LQ, "cluster_queue", *_EVICTED),
            "Workloads that are not admitted, by reason.",
            sorted(unadmitted_local.items()) if locals_ else (),
        )
        yield self._gauge(
            "admission_cycle_preemption_skips",
            _CQ,
            "Always 0: a preemptor whose victims another one takes looks for others at once.",
            [((name,), 0) for name in queues],
        )

    def _state(self, one: WorkloadRecord, queue: str, local: tuple[str, str]) -> str:
        """Say where a workload is counted; what a stopped LocalQueue holds is nowhere."""
        if one.finished:
            return "finished"
        if not one.is_waiting:
            return "admitted" if one.admitted else "reserving"
        statuses = self._cache.statuses
        if local in statuses and statuses[local].is_stopped:
            return "held"
        status = statuses.get(("", queue))
        if status is None or status.state != "active":
            return "inadmissible"
        if one.waits.stage == "config":  # its namespace, its requests: it stops no strict queue
            return "inadmissible"
        # A queue in strict order tries its head over and over, and so is a preemptor that waits.
        is_tried_again = status.is_strict or (one.order is not None and not one.order[0])
        return "active" if is_tried_again or one.waits.stage in ("", "order") else "inadmissible"

    def _amounts(self) -> Iterator[Family]:
        """Yield quota and usage of every resource."""
        cache = self._cache
        queues = sorted(cache.queues)
        labels = ("cohort", "cluster_queue", "flavor", "resource")

        def rows(read: Callable[[QuotaAmounts], float | None]) -> Iterator[tuple[Values, float]]:
            for name in queues:
                cohort = cache.queues[name].cohort
                for one in cache.quotas.get(("queue", name), ()):
                    value = read(one)
                    if value is not None:
                        yield (cohort, name, one.flavor, one.resource), value

        unlimited = float("inf")
        yield self._gauge(
            "cluster_queue_nominal_quota",
            labels,
            "Quota of its own.",
            rows(lambda one: one.nominal),
        )
        yield self._gauge(
            "cluster_queue_borrowing_limit",
            labels,
            "Quota that it may borrow.",
            rows(lambda one: unlimited if one.borrowing is None else one.borrowing),
        )
        yield self._gauge(
            "cluster_queue_lending_limit",
            labels,
            "Quota that it may lend.",
            rows(lambda one: one.lending),
        )
        kinds: tuple[tuple[str, str, Callable[[QueueStatus], tuple[Used, ...]]], ...] = (
            ("resource_reservation", "Quota that is reserved.", lambda one: one.reservation),
            ("resource_usage", "Quota that admitted workloads use.", lambda one: one.usage),
        )
        for name, text, read in kinds:
            yield self._gauge(
                f"cluster_queue_{name}",
                labels,
                text,
                [
                    ((cache.queues[queue].cohort, queue, one.flavor, one.resource), one.amount)
                    for queue in queues
                    for one in read(cache.statuses["", queue])
                ],
            )
            yield self._gauge(
                f"local_queue_{name}",
                (*_LQ, "flavor", "resource"),
                text,
                [
                    ((key[1], key[0], one.flavor, one.resource), one.amount)
                    for key in (sorted(cache.local_queues) if self._tells_local_queues() else ())
                    for one in read(cache.statuses[key])
                ],
            )
        yield self._gauge(
            "cluster_queue_resource_pending",
            (*_CQ, "resource"),
            "What pending workloads ask for.",
            self._asked(),
        )
        yield self._gauge(
            "local_queue_admission_fair_sharing_usage",
            (*_LQ, "cluster_queue"),
            "Recent usage that counts against a LocalQueue.",
            [
                ((key[1], key[0], queue), recent)
                for key, queue in sorted(cache.local_queues.items())
                if (recent := cache.statuses[key].recent) is not None
            ],
        )

    def _asked(self) -> list[tuple[Values, float]]:
        found: dict[Values, float] = {
            (name, one.resource): 0.0
            for name in self._cache.queues
            for one in self._cache.quotas.get(("queue", name), ())
        }
        for one in self._cache.workloads.values():
            if one.is_waiting:
                queue = self._cache.queue_of(one)
                for resource, amount in one.story.asks:
                    if (queue, resource) in found or queue in self._cache.queues:
                        key = queue, resource
                        found[key] = found.get(key, 0.0) + amount
        return sorted(found.items())

    # ---- cohorts ---------------------------------------------------------------------------------

    def _cohort_names(self) -> set[str]:
        """Return the cohorts that are there, also those that queues only name."""
        cache = self._cache
        named = {one.cohort for one in cache.queues.values() if one.cohort}
        return named | set(cache.cohorts) | {one for one in cache.cohorts.values() if one}

    def _cohorts(self) -> Iterator[Family]:
        cache, names = self._cache, sorted(self._cohort_names())
        admitted = dict.fromkeys(names, 0)
        reserved: dict[tuple[str, str, str], float] = {}
        for one in cache.workloads.values():
            if one.admitted and not one.finished:
                for cohort in self._above(one.cluster_queue):
                    admitted[cohort] += 1
        for queue, record in sorted(cache.queues.items()):
            above = self._from(record.cohort)
            for used in cache.statuses["", queue].reservation:
                for cohort in above:
                    _add(reserved, (cohort, used.flavor, used.resource), used.amount)
        quota = self._subtree_quota(names)

        def is_there(key: Values) -> bool:
            return key[0] not in cache.gone_cohorts

        labels = ("cohort", "flavor", "resource")
        exact = self.shares()
        shares = {
            one: exact.get(("Cohort", one), cache.cohort_shares.get(one))
            for one in names
            if one in cache.cohort_shares or ("Cohort", one) in exact
        }
        yield self._gauge(
            "cohort_subtree_quota",
            labels,
            "Quota of a cohort and of what is below it, as far as it is lent.",
            sorted((key, value) for key, value in quota.items() if value > 0 and is_there(key)),
        )
        yield self._gauge(
            "cohort_subtree_resource_reservations",
            labels,
            "Quota that is reserved below a cohort.",
            sorted((key, value) for key, value in reserved.items() if value > 0 and is_there(key)),
        )
        yield self._gauge(
            "cohort_subtree_admitted_active_workloads",
            ("cohort",),
            "Admitted workloads below a cohort.",
            [((one,), count) for one, count in admitted.items() if is_there((one,))],
        )
        yield self._gauge(
            "cohort_weighted_share",
            ("cohort",),
            "What a cohort borrows, by its weight.",
            [((one,), share) for one, share in shares.items() if share is not None],
        )
        yield self._gauge(
            "cluster_queue_weighted_share",
            (*_CQ, "cohort"),
            "What a ClusterQueue borrows, by its weight.",
            [
                ((name, record.cohort), share)
                for name, record in sorted(cache.queues.items())
                for share in (exact.get(("ClusterQueue", name), cache.statuses["", name].share),)
                if share is not None
            ],
        )
        parents = ("parent_cohort", "root_cohort")
        yield self._gauge(
            "cohort_info",
            ("cohort", *parents),
            "Where a cohort is in its tree.",
            [((one, cache.cohorts.get(one, ""), self._from(one)[-1]), 1) for one in names],
        )
        yield self._gauge(
            "cluster_queue_info",
            (*_CQ, *parents),
            "Where a ClusterQueue is in its tree.",
            [
                ((name, record.cohort, (self._from(record.cohort) or [""])[-1]), 1)
                for name, record in sorted(cache.queues.items())
            ],
        )

    def _subtree_quota(self, names: Iterable[str]) -> dict[tuple[str, str, str], float]:
        """Return the quota of each cohort: its own, and what its queues and cohorts lend it.

        A lending limit bounds all that a cohort has, not only its own.
        """
        cache = self._cache
        quota: dict[str, dict[tuple[str, str], float]] = {name: {} for name in names}

        def add(cohort: str, key: tuple[str, str], amount: float) -> None:
            quota[cohort][key] = quota[cohort].get(key, 0.0) + amount

        for queue, record in cache.queues.items():
            for one in cache.quotas.get(("queue", queue), ()) if record.cohort else ():
                lent = one.nominal if one.lending is None else min(one.nominal, one.lending)
                add(record.cohort, (one.flavor, one.resource), lent)
        # From the leaves up. A circle of cohorts has no top, and each lends once.
        for cohort in sorted(quota, key=lambda name: -len(self._from(name))):
            limits: dict[tuple[str, str], float] = {}
            for one in cache.quotas.get(("cohort", cohort), ()):
                add(cohort, (one.flavor, one.resource), one.nominal)
                if one.lending is not None:
                    limits[one.flavor, one.resource] = one.lending
            parent = cache.cohorts.get(cohort, "")
            for key, amount in [*quota[cohort].items()] if parent else ():
                add(parent, key, min(amount, limits.get(key, amount)))
        return {
            (cohort, *key): amount
            for cohort, amounts in quota.items()
            for key, amount in amounts.items()
        }


_HOLDING = ("reserving", "admitted")


def _sum(counts: Mapping[str, int] | None, states: Values) -> int:
    return sum((counts or {}).get(one, 0) for one in states)


def _add(into: dict[tuple[str, str, str], float], key: tuple[str, str, str], amount: float) -> None:
    into[key] = into.get(key, 0.0) + amount
