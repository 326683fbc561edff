"""Alerts without a Prometheus: the same names, times and severities."""

from __future__ import annotations

import msgspec
import pytest

from tests.monitor import objects
from unisono.kinds.views import seconds_of
from unisono.kube.mapping import POD
from unisono.monitor.active_alerts import about
from unisono.monitor.alerting import (
    AlertEvaluator,
    Gangs,
    Observation,
    devices_that,
    timers_of,
    what_holds,
)
from unisono.monitor.cache import CLUSTER_QUEUE, LOCAL_QUEUE, NODE, WORKLOAD, ClusterCache, fill
from unisono.monitor.dcgm.exporter import Exporter
from unisono.monitor.gpu_faults import Fault, Faults
from unisono.monitor.metrics.nodes import IdleNodes
from unisono.monitor.metrics.scheduler import SchedulerHealth
from unisono.monitor.rules.alerts import ALERTS

TEN = seconds_of("2026-01-01T10:00:00Z")
RESERVED = "2026-01-01T10:00:00Z"


class Site:
    """A cluster of two nodes that is looked at every 15 seconds."""

    def __init__(self) -> None:
        self.now = TEN
        self.faults: dict[str, Faults] = {}
        self.cache = ClusterCache()
        self.watch = AlertEvaluator()
        self.idle = IdleNodes()
        self.health = SchedulerHealth()
        fill(self.cache, NODE, (objects.node("n1", 2), objects.node("n2", 2)))
        fill(self.cache, CLUSTER_QUEUE, (objects.cluster_queue(),))
        fill(self.cache, LOCAL_QUEUE, (objects.local_queue(),))
        self.exporter = Exporter(self.cache, lambda: self.faults, clock=lambda: self.now)

    def run_for(self, seconds: int) -> None:
        for _ in range(seconds // 15):
            self.now += 15
            frame = self.exporter.frame()
            idle = self.idle.of(self.cache, self.now)
            self.watch.look(Observation(self.cache, frame, idle, self.now, self.health))

    def firing(self, name: str) -> list[str]:
        found = [one for one in self.watch.active() if one.state == "firing"]
        return [about({**one.labels}) for one in found if one.rule.name == name]


@pytest.fixture
def site() -> Site:
    """Return one where nothing runs."""
    return Site()


def test_heat_fires_after_five_minutes_and_resolves(site: Site) -> None:
    site.faults = {"n1": {"1": Fault(hot=70)}}
    site.run_for(120)  # it takes a while to get hot
    site.watch = AlertEvaluator()
    site.run_for(285)
    assert site.firing("GPUHighTemperature") == []
    site.run_for(60)
    assert site.firing("GPUHighTemperature") == ["n1 GPU 1"]
    site.faults = {}
    site.run_for(600)
    assert site.firing("GPUHighTemperature") == []


def test_a_critical_xid_fires_at_once(site: Site) -> None:
    site.faults = {"n2": {"0": Fault(xid=79)}, "n1": {"0": Fault(xid=31)}}
    site.run_for(15)
    assert site.firing("GPUXidCritical") == ["n2 GPU 0, XID 79"]
    assert site.firing("GPUXidOther") == ["n1 GPU 0, XID 31"]


def test_the_workload_of_an_idle_gpu_is_named(site: Site) -> None:
    idle = {"unisono.dev/sim-profile": "idle"}
    fill(site.cache, WORKLOAD, (objects.workload("gang", gpus=2, QuotaReserved=RESERVED),))
    fill(site.cache, POD, (objects.pod("p", "n1", 1, annotations=idle),))
    site.run_for(1785)
    assert site.firing("GPUAllocatedIdle") == []
    site.run_for(30)
    assert site.firing("GPUAllocatedIdle") == ["n1 GPU 0, pod team-a/p of kim"]
    assert len(site.firing("GPUUnderutilized")) == 4


def test_an_idle_gpu_that_goes_to_another_pod_begins_anew_and_its_neighbours_do_not(
    site: Site,
) -> None:
    idle = {"unisono.dev/sim-profile": "idle"}
    pods = [objects.pod(name, "n1", 1, annotations=idle) for name in ("p", "q")]
    fill(site.cache, POD, pods)
    site.run_for(1500)
    site.cache.observe(POD, pods[0], None)
    fill(site.cache, POD, (objects.pod("r", "n1", 1, annotations=idle),))
    fill(site.cache, NODE, (objects.node("n0", 2),))  # sorted before the others
    site.run_for(600)
    assert site.firing("GPUAllocatedIdle") == ["n1 GPU 1, pod team-a/q"]
    site.run_for(1500)
    assert len(site.firing("GPUAllocatedIdle")) == 2


def test_a_gang_that_waits_too_long_and_its_starved_queue(site: Site) -> None:
    fill(site.cache, WORKLOAD, (objects.workload("gang"),))
    site.run_for(1800)
    assert site.firing("GangWaitingTooLong") == []
    site.run_for(120)
    assert site.firing("GangWaitingTooLong") == ["team-a/gang (order), queue cq"]
    assert site.firing("QuotaStarvation") == ["queue cq"]


def test_workloads_that_can_never_start_are_counted_by_reason(site: Site) -> None:
    waits = objects.workload("gang")
    condition = {"type": "QuotaReserved", "status": "False", "message": "too large"}
    waits["status"] = {"conditions": [{**condition, "reason": "ExceedsMaxQuota"}]}
    fill(site.cache, WORKLOAD, (waits, objects.workload("other")))
    site.run_for(90)
    assert site.firing("WorkloadCannotStart") == ["queue cq, ExceedsMaxQuota"]
    waits["status"] = {"conditions": [{**condition, "reason": "Pending"}]}
    fill(site.cache, WORKLOAD, (waits,))
    site.run_for(15)
    assert site.firing("WorkloadCannotStart") == []


def test_a_partly_placed_gang_fires_and_one_that_ends_does_not(site: Site) -> None:
    fill(site.cache, WORKLOAD, (objects.workload("gang", QuotaReserved=RESERVED),))
    fill(site.cache, POD, (objects.pod("p0", "n1"),))
    site.run_for(150)
    assert site.firing("GangPartiallyRunning") == ["team-a/gang, queue cq"]
    fill(site.cache, POD, (objects.pod("p1", "n1", phase="Succeeded"),))
    site.run_for(150)
    assert site.firing("GangPartiallyRunning") == []


def test_an_elastic_gang_is_whole_with_the_pods_that_were_admitted(site: Site) -> None:
    grows = objects.workload("gang", QuotaReserved=RESERVED)
    grows["spec"]["podSets"][0]["count"] = 2**31 - 1
    (assigned,) = grows["status"]["admission"]["podSetAssignments"]
    assigned["count"] = 2
    fill(site.cache, WORKLOAD, (grows,))
    fill(site.cache, POD, (objects.pod("p0", "n1"),))
    site.run_for(150)
    assert site.firing("GangPartiallyRunning") == ["team-a/gang, queue cq"]
    fill(site.cache, POD, (objects.pod("p1", "n1"),))
    site.run_for(150)
    assert site.firing("GangPartiallyRunning") == []


def test_a_paid_node_without_work_and_one_that_lost_a_gpu(site: Site) -> None:
    broken = objects.node("n2", 2)
    broken["status"]["allocatable"] = {"nvidia.com/gpu": "1"}
    fill(site.cache, NODE, (broken,))
    site.run_for(1200)
    assert site.firing("PaidNodeIdle") == []
    assert site.firing("GPULost") == ["node n2"]
    site.run_for(720)
    assert sorted(site.firing("PaidNodeIdle")) == ["node n1", "node n2"]


def test_alerts_have_the_form_of_prometheus_and_names_of_rules(site: Site) -> None:
    site.faults = {"n2": {"0": Fault(xid=79)}}
    site.run_for(15)
    frame = site.exporter.frame()
    held = what_holds(Observation(site.cache, frame, {}, site.now, site.health))
    of_gangs = Gangs().hold(site.cache, site.now)
    assert {*held, *of_gangs, *devices_that(frame)} <= {one.name for one in ALERTS}
    first, *_ = site.watch.told()["data"]["alerts"]
    assert first["state"] == "firing"
    assert first["labels"]["alertname"] == "GPUXidCritical"
    assert first["labels"]["severity"] == "critical"
    assert first["activeAt"] == "2026-01-01T10:00:15+00:00"


def test_scheduler_alerts_fire_at_once(site: Site) -> None:
    site.run_for(15)
    assert not site.firing("ObjectsQuarantined")
    site.health = SchedulerHealth(
        quarantined={("Workload", "audit"): 2}, behind_s=61, unwritten_s=61, unexplained_s=301
    )
    site.run_for(15)
    for name in ("ObjectsQuarantined", "SchedulerNotPlanning", "SchedulerNotWriting"):
        assert site.firing(name), name
    assert site.firing("WorkloadUnexplained")
    site.health = SchedulerHealth()
    site.run_for(15)
    assert not site.firing("ObjectsQuarantined")
    assert not site.firing("SchedulerNotPlanning")


# ---- devices, whatever pods they have; restarts --------------------------------------------------


def test_a_hot_gpu_whose_pods_change_every_four_minutes_fires_once(site: Site) -> None:
    site.faults = {"n1": {"0": Fault(hot=60, xid=79, ecc=1, row_remap_failed=True, at=int(TEN))}}
    known = None
    for number in range(4):
        pod = objects.pod(f"p{number}", "n1", 1)
        fill(site.cache, POD, (pod,))
        if known is not None:
            site.cache.observe(POD, known, None)
        known = pod
        site.run_for(240)
    for name in ("GPUHighTemperature", "GPUXidCritical", "GPUEccUncorrectable"):
        (one,) = [one for one in site.watch.active() if one.rule.name == name]
        assert one.state == "firing"
        assert site.now - one.since > 600, name
        assert one.labels["pod"] == "p3"


def test_the_pod_of_a_device_is_joined_and_no_label(site: Site) -> None:
    fill(site.cache, POD, (objects.pod("p", "n1", 1),))
    site.faults = {"n1": {"0": Fault(xid=79)}}
    site.run_for(30)
    found = {one["labels"]["alertname"]: one for one in site.watch.told()["data"]["alerts"]}
    critical = found["GPUXidCritical"]
    assert set(critical["labels"]) == {"alertname", "severity", "kubernetes_node", "gpu", "UUID"}
    assert (critical["annotations"]["pod"], critical["annotations"]["xid"]) == ("p", "79")


def restarted(site: Site, away: int) -> None:
    """Let another evaluator go on after a while."""
    known = timers_of(msgspec.json.encode(site.watch.timers()))
    assert known is not None
    site.watch = AlertEvaluator()
    site.now += away
    site.watch.restore(known, site.now)


def test_a_restart_does_not_forget_since_when_alerts_hold(site: Site) -> None:
    site.faults = {"n1": {"0": Fault(hot=60)}}
    fill(site.cache, WORKLOAD, (objects.workload("gang"),))
    site.run_for(1920)
    assert len(site.firing("GangWaitingTooLong")) == 1
    hot, idle = site.firing("GPUHighTemperature"), site.firing("GPUUnderutilized")
    assert len(hot) == 1
    assert len(idle) == 4
    began = {(one.rule.name, one.labels.get("gpu")): one.since for one in site.watch.active()}
    restarted(site, away=120)
    site.run_for(15)
    assert site.firing("GPUHighTemperature") == hot
    assert site.firing("GPUUnderutilized") == idle
    assert len(site.firing("GangWaitingTooLong")) == 1
    assert {
        (one.rule.name, one.labels.get("gpu")): one.since for one in site.watch.active()
    } == began


def test_what_was_pending_goes_on_and_what_is_over_does_not(site: Site) -> None:
    site.faults = {"n1": {"0": Fault(hot=60)}}
    site.run_for(240)
    restarted(site, away=600)
    site.run_for(30)
    assert site.firing("GPUHighTemperature") == []
    site.run_for(240)
    assert len(site.firing("GPUHighTemperature")) == 1
    site.faults = {}
    restarted(site, away=30)
    site.run_for(600)
    assert site.firing("GPUHighTemperature") == []


def test_timers_of_long_ago_or_without_sense_are_not_taken(site: Site) -> None:
    site.faults = {"n1": {"0": Fault(hot=60)}}
    site.run_for(600)
    restarted(site, away=86_400)
    site.run_for(15)
    assert site.firing("GPUHighTemperature") == []
    assert timers_of(b"[]") is None
    assert timers_of(b"{") is None
