"""The dashboard: lines and sums that follow the cache."""

from __future__ import annotations

import random

import pytest

from tests.monitor import objects
from unisono.kube.form import Json
from unisono.kube.mapping import POD
from unisono.monitor.cache import CLUSTER_QUEUE, LOCAL_QUEUE, NODE, WORKLOAD, ClusterCache, fill
from unisono.web.dashboard import Dashboard


@pytest.fixture
def cache() -> ClusterCache:
    """Return a node and a queue."""
    made = ClusterCache()
    fill(made, NODE, (objects.node("n1", 4),))
    fill(made, CLUSTER_QUEUE, (objects.cluster_queue(),))
    fill(made, LOCAL_QUEUE, (objects.local_queue(),))
    return made


def told(dashboard: Dashboard) -> object:
    """Return everything that a dashboard says, in plain values."""
    dashboard.refresh()
    sums = dashboard.sums
    return (
        [one.uid for one in dashboard.waiting],
        {name: [one.uid for one in line] for name, line in dashboard.lines.items() if len(line)},
        [one.uid for one in dashboard.running],
        [one.uid for one in dashboard.over],
        [+each for each in (sums.used, sums.wanted, sums.states, sums.by_user, sums.spaces)],
        # A pod keeps its device, so which one it is depends on the order of arrival.
        {
            name: {**row, "by": sorted(row["by"]), "pods": sorted(row["pods"])}
            for name, row in dashboard.nodes().items()
        },
        {key: sorted(pods) for key, pods in dashboard.pods_of.items()},
    )


def test_what_is_kept_by_changes_is_what_is_counted_anew(cache: ClusterCache) -> None:
    dashboard = Dashboard(cache)
    dice = random.Random(11)
    states: list[dict[str, str]] = [
        {},
        {"QuotaReserved": "2026-01-01T10:01:00Z"},
        {"QuotaReserved": "2026-01-01T10:01:00Z", "PodsReady": "2026-01-01T10:02:00Z"},
        {"Finished": "2026-01-01T10:09:00Z"},
    ]
    there: dict[str, Json] = {}
    for step in range(300):
        name = f"w{dice.randrange(12)}"
        old = there.get(name)
        new = objects.workload(name, gpus=dice.choice((2, 8)), **dice.choice(states))
        if old is not None and dice.random() < 0.3:
            cache.observe(WORKLOAD, old, None)
            del there[name]
        else:
            cache.observe(WORKLOAD, old, new)
            there[name] = new
        pod = objects.pod(f"p{dice.randrange(4)}", dice.choice(("", "n1")), gpus=1)
        cache.observe(POD, pod, None if dice.random() < 0.4 else pod)
        if step == 150:
            cache.observe(LOCAL_QUEUE, objects.local_queue(), None)
        if step == 200:
            cache.observe(LOCAL_QUEUE, None, objects.local_queue())
        if step % 7 == 0:
            assert told(dashboard) == told(Dashboard(cache))


def test_a_node_row_is_the_same_object_until_something_happens_there(cache: ClusterCache) -> None:
    fill(cache, NODE, (objects.node("n2", 4),))
    dashboard = Dashboard(cache)
    dashboard.refresh()
    before = dashboard.nodes()
    cache.observe(POD, None, objects.pod("p0", "n2", 3))
    version = dashboard.version
    assert dashboard.refresh() > version
    after = dashboard.nodes()
    assert after["n1"] is before["n1"]
    assert after["n2"]["held"] == 3
    assert after["n2"]["by"] == [("team-a", "gang")] * 3 + [("", "")]
    quiet = dashboard.version
    assert dashboard.refresh() == quiet


def test_a_pod_that_follows_another_of_its_name_takes_its_place(cache: ClusterCache) -> None:
    dashboard = Dashboard(cache)
    old = objects.pod("p0", "n1", 2)
    cache.observe(POD, None, old)
    dashboard.refresh()
    cache.observe(POD, None, objects.pod("p0", "n1", 1, uid="another"))
    dashboard.refresh()
    cache.observe(POD, old, None)  # late word of the first one
    dashboard.refresh()
    assert dashboard.nodes()["n1"]["held"] == 1


def test_a_place_in_line_is_by_priority_and_age(cache: ClusterCache) -> None:
    early, late, urgent = (objects.workload(name) for name in ("early", "late", "urgent"))
    late["metadata"]["creationTimestamp"] = "2026-01-01T11:00:00Z"
    urgent["spec"]["priority"] = 100
    fill(cache, WORKLOAD, (late, early, urgent))
    dashboard = Dashboard(cache)
    dashboard.refresh()
    assert [one.name for one in dashboard.waiting] == ["urgent", "early", "late"]
    assert [dashboard.position(one) for one in dashboard.waiting] == [1, 2, 3]
