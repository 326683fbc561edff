"""The ledger follows a cluster, over restarts, and nothing is counted twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.monitor import objects
from unisono.kinds.views import seconds_of
from unisono.kube.mapping import POD
from unisono.monitor.cache import CLUSTER_QUEUE, LOCAL_QUEUE, NODE, WORKLOAD, ClusterCache, fill
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.recorder import GpuUse, LedgerRecorder
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, WorkloadRow
from unisono.monitor.ledger.settlement import settle
from unisono.monitor.ledger.store import LedgerError, LedgerStore

TEN = int(seconds_of("2026-01-01T10:00:00Z"))


class Site:
    """A cluster's objects, and a ledger of it that can be restarted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.objects: dict[Any, dict[str, Any]] = {}
        self.start()

    def start(self, *, was_off: bool = False) -> None:
        self.store = LedgerStore(self.path)
        self.cache = ClusterCache()
        self.keeper = LedgerRecorder(self.cache)
        self.keeper.resume(
            self.store.open_rows(PodRow),
            self.store.open_rows(WorkloadRow),
            self.store.open_rows(NodeRow),
            self.store.open_rows(QueueRow),
            seen=self.store.seen(),
            off_since=self.store.seen() if was_off else 0,
        )
        for kind, named in self.objects.items():
            fill(self.cache, kind, named.values())

    def restart(self, now: int, *, was_off: bool = False) -> None:
        self.store.close()
        self.start(was_off=was_off)
        self.keeper.settle(now)
        self.keeper.close_missing()
        self.flush(now)

    def put(self, kind: Any, obj: dict[str, Any]) -> None:
        named = self.objects.setdefault(kind, {})
        name = obj["metadata"]["name"]
        self.cache.observe(kind, named.get(name), obj)
        named[name] = obj

    def remove(self, kind: Any, name: str) -> None:
        self.cache.observe(kind, self.objects[kind].pop(name), None)

    def flush(self, now: int) -> None:
        self.keeper.settle(now)
        self.store.write(self.keeper.pending(), now)

    def rows(self, kind: Any) -> list[Any]:
        return list(self.store.within(kind, 0, 1 << 40))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return one with a node and a queue."""
    made = Site(tmp_path / "ledger.db")
    made.put(NODE, objects.node("n1"))
    made.put(CLUSTER_QUEUE, objects.cluster_queue())
    made.put(LOCAL_QUEUE, objects.local_queue())
    made.flush(TEN)
    return made


def running() -> dict[str, Any]:
    return objects.workload(
        "gang",
        QuotaReserved="2026-01-01T10:01:00Z",
        Admitted="2026-01-01T10:01:00Z",
        PodsReady="2026-01-01T10:02:00Z",
    )


def over(pod: dict[str, Any], at: str) -> dict[str, Any]:
    state = {"terminated": {"startedAt": "2026-01-01T10:00:00Z", "finishedAt": at}}
    status = {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": state}]}
    return {**pod, "status": status}


def test_a_job_from_its_wait_to_its_end(site: Site) -> None:
    site.put(WORKLOAD, objects.workload("gang"))
    site.flush(TEN + 10)
    site.put(WORKLOAD, running())
    pod = objects.pod("p", "n1", 8)
    site.put(POD, pod)
    site.flush(TEN + 120)
    site.keeper.used({"uid-p": GpuUse(60.0, 30.0, 100.0, 1, 5000)})
    site.put(POD, over(pod, "2026-01-01T11:00:00Z"))
    done = running()
    done["status"]["conditions"].append(
        {"type": "Finished", "status": "True", "lastTransitionTime": "2026-01-01T11:00:01Z"}
    )
    site.put(WORKLOAD, done)
    site.flush(TEN + 3700)
    (workload,) = site.rows(WorkloadRow)
    assert (workload.since, workload.reserved, workload.ready) == (TEN, TEN + 60, TEN + 120)
    assert (workload.ended, workload.outcome) == (TEN + 3601, "Finished")
    assert (workload.queue, workload.flavor, workload.user) == ("cq", "h100", "kim")
    (row,) = site.rows(PodRow)
    assert (row.started, row.ended, row.outcome) == (TEN, TEN + 3600, "Succeeded")
    assert (row.busy, row.covered, row.peak_mib) == (60.0, 100.0, 5000)
    assert row.workload == "uid-gang"


def test_a_restart_neither_loses_nor_doubles(site: Site) -> None:
    """Scenario 16."""
    pod = objects.pod("p", "n1", 8)
    site.put(WORKLOAD, running())
    site.put(POD, pod)
    site.keeper.settle(TEN + 100)
    site.keeper.used({"uid-p": GpuUse(50.0, 0.0, 60.0, 0, 0)})
    site.flush(TEN + 110)
    before = [site.rows(kind) for kind in (PodRow, WorkloadRow, NodeRow, QueueRow)]
    site.restart(TEN + 200)
    assert [site.rows(kind) for kind in (PodRow, WorkloadRow, NodeRow, QueueRow)] == before
    site.put(POD, over(pod, "2026-01-01T10:30:00Z"))
    site.flush(TEN + 1900)
    site.restart(TEN + 2000)
    site.put(POD, {**over(pod, "2026-01-01T10:30:00Z"), "extra": 1})
    site.flush(TEN + 2100)
    (row,) = site.rows(PodRow)
    assert (row.ended, row.busy) == (TEN + 1800, 50.0)


def test_objects_that_vanished_unobserved_end_at_the_last_look(site: Site) -> None:
    site.put(WORKLOAD, running())
    site.put(POD, objects.pod("p", "n1", 8))
    site.flush(TEN + 300)
    site.objects[POD].clear()
    site.objects[WORKLOAD].clear()
    site.objects[NODE].clear()
    site.restart(TEN + 900)
    (row,) = site.rows(PodRow)
    (workload,) = site.rows(WorkloadRow)
    assert (row.ended, row.outcome) == (TEN + 300, "Gone")
    assert (workload.ended, workload.outcome) == (TEN + 300, "Deleted")
    (node,) = site.rows(NodeRow)
    assert node.until == TEN + 300


def test_an_eviction_begins_another_try(site: Site) -> None:
    site.put(WORKLOAD, running())
    site.flush(TEN + 200)
    evicted = objects.workload("gang", Evicted="2026-01-01T10:10:00Z")
    evicted["status"]["schedulingStats"] = {"evictions": [{"reason": "Preempted", "count": 1}]}
    site.put(WORKLOAD, evicted)
    site.flush(TEN + 700)
    first, second = site.rows(WorkloadRow)
    assert (first.attempt, first.ended, first.outcome) == (1, TEN + 600, "Preempted")
    assert (second.attempt, second.since, second.ended) == (2, TEN + 600, 0)


def test_a_job_that_lived_between_two_looks_is_not_missed(site: Site) -> None:
    pod = objects.pod("p", "n1", 8)
    site.put(POD, pod)
    site.put(POD, over(pod, "2026-01-01T10:00:30Z"))
    site.remove(POD, "p")
    site.flush(TEN + 60)
    (row,) = site.rows(PodRow)
    assert (row.started, row.ended) == (TEN, TEN + 30)


def test_a_node_that_changes_gets_another_row(site: Site) -> None:
    broken = objects.node("n1")
    broken["status"] = {**broken["status"], "conditions": [{"type": "Ready", "status": "False"}]}
    site.put(NODE, broken)
    site.flush(TEN + 50)
    site.remove(NODE, "n1")
    site.flush(TEN + 80)
    first, second = site.rows(NodeRow)
    assert (first.until, first.is_up) == (TEN + 50, True)
    assert (second.since, second.until, second.is_up) == (TEN + 50, TEN + 80, False)
    assert first.micro_usd_hour == 55_040_000


def test_what_is_wrong_with_a_node_is_written_down(site: Site) -> None:
    site.put(NODE, objects.node("n1"))
    site.flush(TEN)
    broken = objects.node("n1")
    problem = {"type": "GPUProblem", "status": "True", "reason": "Xid79"}
    broken["status"]["conditions"].append(problem)
    site.put(NODE, broken)
    site.flush(TEN + 60)
    slow = objects.node("n1", spec={"taints": [{"key": "unisono.dev/suspect", "value": "Slow"}]})
    site.put(NODE, slow)
    site.flush(TEN + 120)
    assert [one.problem for one in site.rows(NodeRow)] == ["", "Xid79", "Slow"]


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_text("no database, certainly not one that SQLite would read")
    with pytest.raises(LedgerError, match="cannot be used as a ledger"):
        LedgerStore(path)


def test_others_cannot_read_it(site: Site) -> None:
    assert site.path.stat().st_mode & 0o077 == 0


def test_a_cluster_that_was_off_had_no_capacity_meanwhile(site: Site) -> None:
    days = 5 * 86_400
    site.flush(TEN + 3600)
    site.restart(TEN + 3600 + days, was_off=True)
    site.flush(TEN + 7200 + days)
    first, second = site.rows(NodeRow)
    assert (first.until, second.since, second.until) == (TEN + 3600, TEN + 3600 + days, 0)
    quotas = sorted(site.rows(QueueRow), key=lambda one: one.since)
    assert (quotas[0].until, quotas[1].since) == (TEN + 3600, TEN + 3600 + days)
    account = settle(Period(TEN, TEN + 7200 + days), [], {}, site.rows(NodeRow))
    (sort,) = account.sorts.values()
    assert sort.seconds["free"] == 8 * 7200


def test_nodes_of_a_cluster_that_runs_on_without_us_are_there_all_the_time(site: Site) -> None:
    site.flush(TEN + 3600)
    site.restart(TEN + 7200)
    (row,) = site.rows(NodeRow)
    assert (row.since, row.until) == (TEN, 0)
