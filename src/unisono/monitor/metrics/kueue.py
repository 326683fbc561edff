"""Names of Kueue's metrics that its dashboards use, with the same meaning, from our books."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.monitor.books import Books
from unisono.monitor.exposition import Family, Sample
from unisono.monitor.metrics.queues import Tally

_GPU = "nvidia.com/gpu"


def families(books: Books, tally: Tally) -> Iterator[Family]:
    """Yield them."""
    queues = [books.queues[name] for name in sorted(books.queues)]
    states = tally.states

    def count(queue: str, *names: str) -> int:
        return sum(states.get((queue, name), 0) for name in names)

    yield Family(
        "kueue_pending_workloads",
        "gauge",
        "Workloads that wait, by whether they were tried already.",
        [
            Sample({"cluster_queue": one.name, "status": status}, count(one.name, state))
            for one in queues
            for status, state in (("active", "pending"), ("inadmissible", "inadmissible"))
        ],
    )
    for name, text in (
        ("kueue_reserving_active_workloads", "Workloads that have quota."),
        ("kueue_admitted_active_workloads", "Workloads that are admitted."),
    ):
        yield Family(
            name,
            "gauge",
            text,
            [
                Sample({"cluster_queue": one.name}, count(one.name, "admitted", "running"))
                for one in queues
            ],
        )
    yield Family(
        "kueue_cluster_queue_status",
        "gauge",
        "1 for the state a queue is in.",
        [
            Sample({"cluster_queue": one.name, "status": status}, int(one.is_active == is_active))
            for one in queues
            for status, is_active in (("active", True), ("pending", False))
        ],
    )
    yield from _resources(books, tally)


def _resources(books: Books, tally: Tally) -> Iterator[Family]:
    usage: list[Sample] = []
    nominal: list[Sample] = []
    borrowing: list[Sample] = []
    lending: list[Sample] = []
    for name in sorted(books.queues):
        one = books.queues[name]
        for quota in one.quotas:
            labels = {
                "cohort": one.cohort,
                "cluster_queue": one.name,
                "flavor": quota.flavor,
                "resource": _GPU,
            }
            usage.append(Sample(labels, tally.used.get((one.name, quota.flavor), 0)))
            nominal.append(Sample(labels, quota.nominal))
            unlimited = float("inf")
            borrowing.append(
                Sample(labels, unlimited if quota.borrowing is None else quota.borrowing)
            )
            if quota.lending is not None:
                lending.append(Sample(labels, quota.lending))
    for name, text, samples in (
        ("kueue_cluster_queue_resource_usage", "GPUs in use.", usage),
        ("kueue_cluster_queue_nominal_quota", "GPUs of a queue's own.", nominal),
        ("kueue_cluster_queue_borrowing_limit", "GPUs it may borrow.", borrowing),
        ("kueue_cluster_queue_lending_limit", "GPUs it may lend.", lending),
    ):
        yield Family(name, "gauge", text, samples)
