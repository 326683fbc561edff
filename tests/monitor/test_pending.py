"""Windows of the pending workloads of a queue, with positions in both of its queues."""

from __future__ import annotations

import pytest

from unisono.kinds.kueue.visibility import Window, window_of
from unisono.kube.form import Json
from unisono.monitor.cache import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD, ClusterCache
from unisono.monitor.pending import PendingWorkloads

_API = "kueue.x-k8s.io/v1beta2"


def workload(name: str, queue: str, priority: int, second: int, namespace: str = "team") -> Json:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "creationTimestamp": f"2026-01-01T00:00:{second:02}Z",
        "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{name}", "uid": f"job-{name}"}
            | {"controller": True, "blockOwnerDeletion": True}
        ],
    }
    spec = {"queueName": queue, "priority": priority, "podSets": []}
    return {"apiVersion": _API, "kind": "Workload", "metadata": metadata, "spec": spec}


def local_queue(name: str, namespace: str = "team", cluster_queue: str = "cq") -> Json:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    spec = {"clusterQueue": cluster_queue}
    return {"apiVersion": _API, "kind": "LocalQueue", "metadata": metadata, "spec": spec}


class Cluster:
    """The records of a cluster, and its objects."""

    def __init__(self, *workloads: Json) -> None:
        self.objects: dict[tuple[str, str], Json] = {}
        self.cache = ClusterCache()
        metadata = {"name": "cq", "uid": "uid-cq"}
        queue = {"apiVersion": _API, "kind": "ClusterQueue", "metadata": metadata, "spec": {}}
        self.cache.observe(CLUSTER_QUEUE, None, queue)
        for name in ("a", "b"):
            self.cache.observe(LOCAL_QUEUE, None, local_queue(name))
        for one in workloads:
            self.put(one)
        self.lists = PendingWorkloads(
            self.cache, lambda kind, name, namespace: self.objects.get((namespace, name))
        )

    def put(self, one: Json) -> None:
        """Have a workload, as it is now."""
        key = one["metadata"]["namespace"], one["metadata"]["name"]
        self.cache.observe(WORKLOAD, self.objects.get(key), one)
        self.objects[key] = one


def places(items: list[Json] | None) -> list[tuple[str, int, int]]:
    assert items is not None
    return [
        (one["metadata"]["name"], one["positionInClusterQueue"], one["positionInLocalQueue"])
        for one in items
    ]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(
        workload("a-high", "a", 100, 1),
        workload("a-low", "a", 50, 1),
        workload("b-high", "b", 100, 2),
        workload("b-low", "b", 50, 2),
    )


def test_positions_are_counted_in_both_queues(cluster: Cluster) -> None:
    assert places(cluster.lists.of_cluster_queue("cq", Window())) == [
        ("a-high", 0, 0),
        ("b-high", 1, 0),
        ("a-low", 2, 1),
        ("b-low", 3, 1),
    ]
    assert places(cluster.lists.of_local_queue("team", "b", Window())) == [
        ("b-high", 1, 0),
        ("b-low", 3, 1),
    ]


def test_a_window_keeps_the_positions_of_the_whole_queue(cluster: Cluster) -> None:
    lists = cluster.lists
    assert places(lists.of_cluster_queue("cq", Window(2, 1))) == [
        ("b-high", 1, 0),
        ("a-low", 2, 1),
    ]
    assert places(lists.of_local_queue("team", "a", Window(5, 1))) == [("a-low", 2, 1)]
    assert places(lists.of_local_queue("team", "a", Window(5, 9))) == []


def test_queues_that_are_not_there(cluster: Cluster) -> None:
    assert cluster.lists.of_cluster_queue("other", Window()) is None
    assert cluster.lists.of_local_queue("other", "a", Window()) is None


def test_what_is_admitted_or_finished_is_not_pending(cluster: Cluster) -> None:
    admitted = workload("a-high", "a", 100, 1)
    admitted["status"] = {
        "admission": {"clusterQueue": "cq", "podSetAssignments": []},
        "conditions": [
            {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""}
            | {"lastTransitionTime": "2026-01-01T00:01:00Z"}
        ],
    }
    assert len(cluster.lists.of_cluster_queue("cq", Window()) or ()) == 4
    cluster.put(admitted)
    assert places(cluster.lists.of_cluster_queue("cq", Window()))[0] == ("b-high", 0, 0)
    assert places(cluster.lists.of_local_queue("team", "a", Window())) == [("a-low", 1, 0)]


def test_a_local_queue_that_leads_elsewhere_takes_its_workloads_along(cluster: Cluster) -> None:
    assert len(cluster.lists.of_cluster_queue("cq", Window()) or ()) == 4
    moved = local_queue("a", cluster_queue="elsewhere")
    cluster.cache.observe(LOCAL_QUEUE, local_queue("a"), moved)
    found = places(cluster.lists.of_cluster_queue("cq", Window()))
    assert found == [("b-high", 0, 0), ("b-low", 1, 1)]


def test_an_item_names_the_workload_and_its_owners(cluster: Cluster) -> None:
    items = cluster.lists.of_cluster_queue("cq", Window(limit=1)) or []
    assert items == [
        {
            "metadata": {
                "name": "a-high",
                "namespace": "team",
                "creationTimestamp": "2026-01-01T00:00:01Z",
                "ownerReferences": [
                    {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "name": "job-a-high",
                        "uid": "job-a-high",
                    }
                ],
            },
            "priority": 100,
            "localQueueName": "a",
            "positionInClusterQueue": 0,
            "positionInLocalQueue": 0,
        }
    ]


@pytest.mark.parametrize(
    ("query", "window"),
    [
        ({}, Window(1000, 0)),
        ({"limit": "0"}, Window(1000, 0)),
        ({"limit": "-1"}, Window(0, 0)),
        ({"limit": "9999999", "offset": "7"}, Window(100_000, 7)),
        ({"limit": "", "offset": "-7"}, Window(1000, 0)),
    ],
)
def test_windows(query: dict[str, str], window: Window) -> None:
    assert window_of(query) == window


@pytest.mark.parametrize("text", ["x", "1.5", "--1", "9" * 40, "٣"])
def test_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        window_of({"limit": text})
