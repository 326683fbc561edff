"""Kueue's metrics: every name with its type, labels and buckets, and values of a small cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from unisono.kinds.views import seconds_of
from unisono.monitor.cache import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE, WORKLOAD, fill
from unisono.monitor.exposition import Family
from unisono.monitor.metrics.kueue import MOST_LOCAL_QUEUES
from unisono.monitor.metrics.registry import ON_CLUSTERS, MetricsRegistry

Json = dict[str, Any]
_API = "kueue.x-k8s.io/v1beta2"
TEN = seconds_of("2026-01-01T10:00:00Z")

# What Kueue 0.19 has: name, type, labels, buckets.
NAMES = Path(__file__).with_name("kueue_names.txt")
BOUNDS = {
    "default": (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    "latency": tuple(0.01 * 2**at for at in range(11)),
    "waits 14": (1.0, *(2.5 * 2**at for at in range(13))),
    "waits 16": (1.0, *(2.5 * 2**at for at in range(15))),
}


class Known(NamedTuple):
    """One metric of Kueue."""

    name: str
    type: str
    labels: frozenset[str]
    bounds: tuple[float, ...]


def known() -> list[Known]:
    found = []
    for line in NAMES.read_text().splitlines():
        name, kind, labels, *buckets = (part.strip() for part in line.split("|"))
        bounds = BOUNDS[buckets[0]] if buckets else ()
        found.append(Known(f"kueue_{name}", kind, frozenset(labels.split()), bounds))
    return found


def condition(
    kind: str, second: int, reason: str = "", status: str = "True", text: str = ""
) -> Json:
    at = f"2026-01-01T10:00:{second:02}Z"
    found = {"type": kind, "status": status, "reason": reason or kind, "message": text}
    return found | {"lastTransitionTime": at}


def workload(name: str, *conditions: Json, queue: str = "lq", **status: Any) -> Json:
    requests = {"cpu": "500m", "nvidia.com/gpu": "2"}
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"j-{name}"}
    template = {"spec": {"containers": [container]}}
    return {
        "apiVersion": _API,
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"u-{name}",
            "creationTimestamp": "2026-01-01T10:00:00Z",
            "ownerReferences": [owner],
        },
        "spec": {
            "queueName": queue,
            "priority": 7,
            "priorityClassRef": {"name": "high"},
            "podSets": [{"name": "main", "count": 2, "template": template}],
        },
        "status": {"conditions": [*conditions], **status},
    }


ADMISSION = {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": 2}]}


def cluster_queue() -> Json:
    def quota(name: str, nominal: str, **more: str) -> Json:
        return {"name": name, "nominalQuota": nominal, **more}

    resources = [quota("cpu", "1500m"), quota("nvidia.com/gpu", "8", lendingLimit="2")]
    flavor = {"name": "f", "resources": resources}
    group = {"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": [flavor]}
    total = [{"name": "cpu", "total": "1"}, {"name": "nvidia.com/gpu", "total": "4"}]
    usage = [{"name": "f", "resources": total}]
    return {
        "apiVersion": _API,
        "kind": "ClusterQueue",
        "metadata": {"name": "cq", "uid": "u-cq"},
        "spec": {"cohortName": "low", "resourceGroups": [group]},
        "status": {
            "conditions": [condition("Active", 0, "Ready")],
            "flavorsUsage": usage,
            "flavorsReservation": usage,
            "fairSharing": {"weightedShare": 125},
        },
    }


def cohort() -> Json:
    flavor = {"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "3"}]}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [flavor]}
    return {
        "apiVersion": _API,
        "kind": "Cohort",
        "metadata": {"name": "low", "uid": "u-low"},
        "spec": {"parentName": "top", "resourceGroups": [group]},
        "status": {"fairSharing": {"weightedShare": 50}},
    }


def local_queue(name: str = "lq") -> Json:
    consumed = {"consumedResources": {"cpu": "2500m"}}
    return {
        "apiVersion": _API,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": "team", "uid": f"u-{name}"},
        "spec": {"clusterQueue": "cq"},
        "status": {
            "conditions": [condition("Active", 0, "Ready")],
            "flavorsUsage": [{"name": "f", "resources": [{"name": "cpu", "total": "500m"}]}],
            "flavorsReservation": [{"name": "f", "resources": [{"name": "cpu", "total": "1"}]}],
            "fairSharing": {"admissionFairSharingStatus": consumed},
        },
    }


@pytest.fixture
def metrics() -> MetricsRegistry:
    made = MetricsRegistry(clock=lambda: TEN, version="1", mode="cluster", compat=ON_CLUSTERS)
    fill(made.cache, CLUSTER_QUEUE, (cluster_queue(),))
    fill(made.cache, COHORT, (cohort(),))
    fill(made.cache, LOCAL_QUEUE, (local_queue(),))
    return made


def tell(metrics: MetricsRegistry, *versions: Json) -> None:
    """Have a workload change, one version after the other, each seen."""
    old = None
    for one in versions:
        metrics.cache.observe(WORKLOAD, old, one)
        metrics.cache.refresh()
        old = one


def families(metrics: MetricsRegistry) -> dict[str, Family]:
    found = {one.name: one for one in metrics.families() if one.name.startswith("kueue_")}
    return {name: one._replace(samples=list(one.samples)) for name, one in found.items()}


def value(metrics: MetricsRegistry, name: str, suffix: str = "", /, **labels: str) -> list[float]:
    return [
        one.value
        for one in families(metrics)[f"kueue_{name}"].samples
        if one.suffix == suffix and labels.items() <= one.labels.items()
    ]


def ended(name: str) -> tuple[Json, ...]:
    """Return the versions of a workload that does everything that is counted."""
    reserved, admitted = condition("QuotaReserved", 5), condition("Admitted", 15)
    checks: Json = {"admissionChecks": [{"name": "check", "state": "Ready"}]}
    runs: Json = {**checks, "admission": ADMISSION}
    text = "Preempted to accommodate a workload (UID: u, JobUID: j) due to prioritization in the "
    text += "ClusterQueue; preemptor path: /top/low/cq; preemptee path: /top/low/cq"
    eviction = {"reason": "Preempted", "underlyingCause": "", "count": 1}
    evicted = (
        condition("Evicted", 40, "Preempted", text=text),
        condition("Preempted", 40, "InClusterQueue", text=text),
    )
    stats: Json = {"schedulingStats": {"evictions": [eviction]}}
    pending = condition("QuotaReserved", 42, "Pending", "False")
    again = condition("QuotaReserved", 50), condition("Admitted", 50), condition("Requeued", 45)
    return (
        workload(name, condition("QuotaReserved", 1, "Pending", "False")),
        workload(name, reserved, **runs),
        workload(name, reserved, admitted, **runs),
        workload(name, reserved, admitted, condition("PodsReady", 20), **runs),
        workload(name, reserved, admitted, condition("PodsReady", 20), *evicted, **runs, **stats),
        workload(name, pending, *evicted, **checks, **stats),
        workload(name, *again, *evicted, **runs, **stats),
        workload(name, *again, condition("Finished", 59, "WorkloadSliceReplaced"), **runs, **stats),
    )


def test_every_metric_of_kueue_is_there_with_its_labels_and_buckets(
    metrics: MetricsRegistry,
) -> None:
    metrics.kueue.job_created = lambda kind, namespace, name: TEN
    metrics.kueue.attempt(admitted=True, seconds=0.1)
    tell(metrics, *ended("one"))
    tell(metrics, workload("two", condition("QuotaReserved", 1, "Pending", "False")))
    found = families(metrics)
    assert set(found) == {one.name for one in known()}
    for one in known():
        family = found[one.name]
        assert family.type == one.type, one.name
        samples = list(family.samples)
        if not samples:
            # Pods lose their gates; the test below tells of that.
            assert one.name == "kueue_pod_scheduling_gate_removal_seconds"
            continue
        assert {frozenset(sample.labels) - {"le"} for sample in samples} == {one.labels}, one.name
        bounds = [float(sample.labels["le"]) for sample in samples if "le" in sample.labels]
        assert set(bounds) == ({*one.bounds, float("inf")} if one.bounds else set()), one.name


def test_what_becomes_of_a_workload_is_counted_once(metrics: MetricsRegistry) -> None:
    tell(metrics, *ended("one"))
    queue = {"cluster_queue": "cq", "priority_class": "high", "replica_role": "leader"}
    local = {"name": "lq", "namespace": "team", "priority_class": "high"}
    for name in ("quota_reserved_workloads_total", "admitted_workloads_total"):
        assert value(metrics, name, **queue) == [2]
        assert value(metrics, f"local_queue_{name}", **local) == [2]
    assert value(metrics, "finished_workloads_total", **queue) == [1]
    assert value(metrics, "replaced_workload_slices_total") == [1]
    assert value(metrics, "quota_reserved_wait_time_seconds", "_sum", **queue) == [5 + 5]
    assert value(metrics, "admission_wait_time_seconds", "_sum", **queue) == [15 + 5]
    assert value(metrics, "admission_checks_wait_time_seconds", "_sum", **queue) == [10 + 0]
    assert value(metrics, "ready_wait_time_seconds", "_sum", **queue) == [20]
    assert value(metrics, "admitted_until_ready_wait_time_seconds", "_sum", **queue) == [5]
    reason = {"cluster_queue": "cq", "reason": "Preempted", "underlying_cause": ""}
    assert value(metrics, "evicted_workloads_total", **reason) == [1]
    assert value(metrics, "evicted_workloads_once_total", **reason) == [1]
    assert value(metrics, "pods_ready_to_evicted_time_seconds", "_sum", **reason) == [20]
    assert value(metrics, "workload_eviction_latency_seconds", "_sum", reason="Preempted") == [2]
    preempted = {"preempting_cluster_queue": "cq", "reason": "InClusterQueue"}
    assert value(metrics, "preempted_workloads_total", **preempted) == [1]
    for cohort_name in ("low", "top"):
        name = "cohort_subtree_admitted_workloads_total"
        assert value(metrics, name, cohort=cohort_name, priority_class="high") == [2]


def test_what_was_before_us_is_not_counted_again() -> None:
    made = MetricsRegistry(clock=lambda: TEN + 300, version="1", mode="", compat=ON_CLUSTERS)
    fill(made.cache, CLUSTER_QUEUE, (cluster_queue(),))
    fill(made.cache, LOCAL_QUEUE, (local_queue(),))
    tell(made, ended("one")[-1])
    assert value(made, "admitted_workloads_total") == []
    assert value(made, "finished_workloads", cluster_queue="cq") == [1]


def test_quota_and_usage_of_every_resource(metrics: MetricsRegistry) -> None:
    about = {"cohort": "low", "cluster_queue": "cq", "flavor": "f"}
    assert value(metrics, "cluster_queue_nominal_quota", **about, resource="cpu") == [1.5]
    assert value(metrics, "cluster_queue_lending_limit", **about) == [2]
    assert value(metrics, "cluster_queue_borrowing_limit", **about) == [float("inf")] * 2
    assert value(metrics, "cluster_queue_resource_usage", **about, resource="nvidia.com/gpu") == [4]
    assert value(metrics, "cluster_queue_weighted_share", cohort="low") == [125]
    assert value(metrics, "cohort_weighted_share", cohort="low") == [50]
    local = {"name": "lq", "namespace": "team", "flavor": "f", "resource": "cpu"}
    assert value(metrics, "local_queue_resource_usage", **local) == [0.5]
    assert value(metrics, "local_queue_resource_reservation", **local) == [1]
    # Below `low`: 3 of its own and 2 that the queue lends.
    gpu = {"flavor": "f", "resource": "nvidia.com/gpu"}
    assert value(metrics, "cohort_subtree_quota", cohort="low", **gpu) == [5]
    assert value(metrics, "cohort_subtree_quota", cohort="top", **gpu) == [5]
    assert value(metrics, "cohort_subtree_resource_reservations", cohort="top", **gpu) == [4]
    assert value(metrics, "local_queue_admission_fair_sharing_usage", name="lq") == [2.5]
    place = {"parent_cohort": "top", "root_cohort": "top"}
    assert value(metrics, "cohort_info", cohort="low", **place) == [1]
    assert value(metrics, "cluster_queue_info", parent_cohort="low", root_cohort="top") == [1]


def test_pending_workloads_and_what_they_ask_for(metrics: MetricsRegistry) -> None:
    tell(metrics, workload("new"))
    why = condition("QuotaReserved", 1, "WaitingForQuota", "False")
    told = condition("unisono.dev/Explanation", 1, "Quota")
    tell(metrics, workload("tried", why, condition("Admitted", 1, "NoReservation", "False"), told))
    assert value(metrics, "pending_workloads", status="active") == [1]
    assert value(metrics, "local_queue_pending_workloads", status="inadmissible") == [1]
    assert value(metrics, "cluster_queue_resource_pending", resource="nvidia.com/gpu") == [8]
    assert value(metrics, "cluster_queue_resource_pending", resource="cpu") == [2]
    reason = {"reason": "NoReservation", "underlying_cause": "WaitingForQuota"}
    assert value(metrics, "unadmitted_workloads", cluster_queue="cq", **reason) == [1]


def test_the_series_of_a_queue_end_with_it(metrics: MetricsRegistry) -> None:
    tell(metrics, *ended("one"))
    assert value(metrics, "admitted_workloads_total") == [2]
    metrics.cache.observe(CLUSTER_QUEUE, cluster_queue(), None)
    metrics.cache.observe(LOCAL_QUEUE, local_queue(), None)
    left = {
        name
        for name, one in families(metrics).items()
        for sample in one.samples
        if "cq" in sample.labels.values() or "lq" in sample.labels.values()
    }
    assert left == set()


def test_many_local_queues_are_left_out(metrics: MetricsRegistry) -> None:
    fill(metrics.cache, LOCAL_QUEUE, (local_queue(f"q{at}") for at in range(MOST_LOCAL_QUEUES)))
    assert value(metrics, "local_queue_status") == []
    assert value(metrics, "cluster_queue_status", status="active") == [1]


def test_a_queue_of_the_same_name_begins_at_zero(metrics: MetricsRegistry) -> None:
    tell(metrics, *ended("one"))
    metrics.cache.observe(CLUSTER_QUEUE, cluster_queue(), None)
    metrics.cache.observe(LOCAL_QUEUE, local_queue(), None)
    metrics.cache.refresh()
    fill(metrics.cache, CLUSTER_QUEUE, (cluster_queue(),))
    fill(metrics.cache, LOCAL_QUEUE, (local_queue(),))
    assert value(metrics, "admitted_workloads_total") == []
    assert value(metrics, "local_queue_ready_wait_time_seconds", "_count") == []
    assert value(metrics, "cluster_queue_status", status="active") == [1]


def test_shares_are_exact_where_the_scheduler_knows_them(metrics: MetricsRegistry) -> None:
    metrics.kueue.shares = lambda: {("ClusterQueue", "cq"): 666.6, ("Cohort", "low"): 0.5}
    assert value(metrics, "cluster_queue_weighted_share") == [666.6]
    assert value(metrics, "cohort_weighted_share") == [0.5]


def test_what_happens_between_two_scrapes_is_counted(metrics: MetricsRegistry) -> None:
    old = None
    for one in ended("one"):
        metrics.cache.observe(WORKLOAD, old, one)
        old = one
    assert value(metrics, "admitted_workloads_total", cluster_queue="cq") == [2]
    assert value(metrics, "pods_ready_to_evicted_time_seconds", "_sum", reason="Preempted") == [20]


def test_what_is_tried_again_and_what_a_queue_holds_back(metrics: MetricsRegistry) -> None:
    why = condition("QuotaReserved", 1, "WaitingForQuota", "False")
    told = condition("unisono.dev/Explanation", 1, "Quota")
    tell(metrics, workload("blocked", why, told))
    assert value(metrics, "pending_workloads", status="inadmissible") == [1]
    strict = cluster_queue()
    strict["spec"]["queueingStrategy"] = "StrictFIFO"
    fill(metrics.cache, CLUSTER_QUEUE, (strict,))
    assert value(metrics, "pending_workloads", status="active") == [1]
    elsewhere = condition("QuotaReserved", 1, "Misconfigured", "False")
    text = '{"stage": "config", "facts": []}'
    told = condition("unisono.dev/Explanation", 1, "Config", text=text)
    tell(metrics, workload("elsewhere", elsewhere, told))  # its namespace is not selected
    assert value(metrics, "pending_workloads", status="inadmissible") == [1]
    assert value(metrics, "pending_workloads", status="active") == [1]
    stopped = local_queue()
    stopped["spec"]["stopPolicy"] = "Hold"
    fill(metrics.cache, LOCAL_QUEUE, (stopped,))
    assert value(metrics, "pending_workloads") == [0, 0]


def test_a_deleted_cohort_that_queues_still_name_has_no_quota(metrics: MetricsRegistry) -> None:
    assert value(metrics, "cohort_subtree_quota", cohort="low") != []
    metrics.cache.observe(COHORT, cohort(), None)
    assert value(metrics, "cohort_subtree_quota", cohort="low") == []


def test_a_cohort_of_the_same_name_begins_at_zero(metrics: MetricsRegistry) -> None:
    tell(metrics, *ended("one"))
    name = "cohort_subtree_admitted_workloads_total"
    assert value(metrics, name, cohort="low") == [2]
    metrics.cache.observe(COHORT, cohort(), None)
    metrics.cache.refresh()
    fill(metrics.cache, COHORT, (cohort(),))
    assert value(metrics, name, cohort="low") == []


def test_a_cohort_lends_no_more_of_its_whole_subtree_than_its_limit(
    metrics: MetricsRegistry,
) -> None:
    gpu = {"flavor": "f", "resource": "nvidia.com/gpu"}
    limited = cohort()
    quota = limited["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    quota["lendingLimit"] = "1"
    fill(metrics.cache, COHORT, (limited,))
    assert value(metrics, "cohort_subtree_quota", cohort="low", **gpu) == [5]
    assert value(metrics, "cohort_subtree_quota", cohort="top", **gpu) == [1]


def test_a_parent_that_no_cohort_names_for_a_while_begins_at_zero(
    metrics: MetricsRegistry,
) -> None:
    tell(metrics, *ended("one"))
    moved = cohort()
    moved["spec"]["parentName"] = "other"
    metrics.cache.observe(COHORT, cohort(), moved)
    metrics.cache.refresh()
    metrics.cache.observe(COHORT, moved, cohort())
    name = "cohort_subtree_admitted_workloads_total"
    assert value(metrics, name, cohort="top") == []
    assert value(metrics, name, cohort="low") == [2]


def test_names_of_deleted_cohorts_are_not_kept_for_ever(metrics: MetricsRegistry) -> None:
    metrics.cache.observe(COHORT, cohort(), None)
    metrics.cache.refresh()
    assert metrics.cache.gone_cohorts == {"low"}
    metrics.cache.observe(CLUSTER_QUEUE, cluster_queue(), None)
    metrics.cache.refresh()
    assert metrics.cache.gone_cohorts == set()


def test_a_queue_that_takes_its_cohort_along_ends_that_count(metrics: MetricsRegistry) -> None:
    alone = cluster_queue()
    alone["spec"]["cohortName"] = "implicit"
    fill(metrics.cache, CLUSTER_QUEUE, (alone,))
    tell(metrics, *ended("one"))
    name = "cohort_subtree_admitted_workloads_total"
    assert value(metrics, name, cohort="implicit") == [2]
    metrics.cache.observe(CLUSTER_QUEUE, alone, None)
    metrics.cache.refresh()
    again = {**alone, "metadata": {"name": "cq", "uid": "u-other"}}
    metrics.cache.observe(CLUSTER_QUEUE, None, again)
    assert value(metrics, name, cohort="implicit") == []


def test_a_deleted_cohort_does_not_count_active_workloads(metrics: MetricsRegistry) -> None:
    tell(metrics, *ended("one")[:-1])
    name = "cohort_subtree_admitted_active_workloads"
    before = value(metrics, name, cohort="low")
    assert before
    metrics.cache.observe(COHORT, cohort(), None)
    assert value(metrics, name, cohort="low") == []
