"""The usage ledger of a cluster is kept whatever happens to the process that measures."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.monitor import objects
from unisono.kinds.overriding import override
from unisono.kube.mapping import POD
from unisono.monitor.cache import NODE, WORKLOAD, fill
from unisono.monitor.ledger.recorder import GpuUse
from unisono.monitor.ledger.rows import PodRow
from unisono.monitor.ledger.store import LedgerStore
from unisono.monitor.ledger.utilization import PrometheusError, Series
from unisono.monitor.metrics.registry import MetricsRegistry
from unisono.runtime import usage_ledger as module
from unisono.runtime.usage_ledger import Measured, PrometheusMeter, bookkeeping

TEN = "2026-01-01T10:00:00Z"


class Meter:
    """Says the same whenever it is asked, or fails."""

    def __init__(self, uses: Mapping[str, GpuUse], *, fails: bool = False) -> None:
        self.uses = uses
        self.fails = fails
        self.asked = 0

    async def measure(self, store: LedgerStore, *, has_pods: bool) -> Measured | None:
        self.asked += 1
        if self.fails:
            raise PrometheusError("not there")
        uses, self.uses = self.uses, {}
        return Measured(uses, 777)


def figures() -> MetricsRegistry:
    made = MetricsRegistry(clock=lambda: 0.0, version="1", mode="cluster")
    fill(made.cache, NODE, [objects.node("n1")])
    fill(made.cache, WORKLOAD, [objects.workload("gang", QuotaReserved=TEN)])
    fill(made.cache, POD, [objects.pod("p", "n1")])
    made.cache.refresh()  # as when thousands of objects are there already
    return made


async def synced() -> None:
    """Return at once: everything is there."""


async def kept(path: Path, meter: Meter, complaints: list[str], about: MetricsRegistry) -> None:
    async with bookkeeping(path, about, meter, synced, complain=complaints.append):
        while meter.asked < 3:
            await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look every few milliseconds."""
    monkeypatch.setattr(module, "_EVERY_SECONDS", 0.005)


def rows(path: Path) -> list[PodRow]:
    store = LedgerStore(path, is_read_only=True)
    found = list(store.within(PodRow, 0, 1 << 40))
    store.close()
    return found


def test_what_was_there_before_is_recorded_and_measured(tmp_path: Path) -> None:
    path, complaints = tmp_path / "ledger.db", list[str]()
    there = figures()
    (uid,) = (one.uid for one in there.cache.pods.values())
    use = GpuUse(busy=5.0, tensor=1.0, covered=10.0, idle_devices=0, peak_mib=7)
    asyncio.run(kept(path, Meter({uid: use}), complaints, there))
    (row,) = rows(path)
    assert (row.uid, row.busy, row.covered, row.peak_mib) == (uid, 5.0, 10.0, 7)
    assert row.workload
    assert complaints == []
    store = LedgerStore(path)
    assert store.measured() == 777
    store.close()


def test_a_pod_that_is_over_is_still_measured(tmp_path: Path) -> None:
    path, complaints = tmp_path / "ledger.db", list[str]()
    there = figures()
    (uid,) = (one.uid for one in there.cache.pods.values())
    asyncio.run(kept(path, Meter({}), complaints, there))
    pod = objects.pod("p", "n1")
    there.cache.observe(POD, pod, None)
    use = GpuUse(busy=5.0, tensor=1.0, covered=10.0, idle_devices=0, peak_mib=7)

    class Late(Meter):
        @override
        async def measure(self, store: LedgerStore, *, has_pods: bool) -> Measured | None:
            found = await super().measure(store, has_pods=has_pods)
            return found if self.asked != 2 else Measured({uid: use}, 778)

    asyncio.run(kept(path, Late({}), complaints, there))
    (row,) = rows(path)
    assert row.ended
    assert row.busy == 5.0


def test_trouble_is_told_once_and_the_ledger_goes_on(tmp_path: Path) -> None:
    path, complaints = tmp_path / "ledger.db", list[str]()
    asyncio.run(kept(path, Meter({}, fails=True), complaints, figures()))
    assert complaints == ["GPU utilization is not measured: not there"]
    assert len(rows(path)) == 1


def test_a_ledger_that_cannot_be_used_stops_nothing_else(tmp_path: Path) -> None:
    complaints: list[str] = []

    async def work() -> None:
        path = tmp_path / "missing" / "ledger.db"
        async with bookkeeping(path, figures(), None, synced, complain=complaints.append):
            pass

    asyncio.run(work())
    assert "usage is not recorded" in complaints[0]


def test_the_work_inside_fails_with_its_own_error(tmp_path: Path) -> None:
    async def work() -> None:
        path = tmp_path / "ledger.db"
        async with bookkeeping(path, figures(), None, synced, complain=print):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        asyncio.run(work())


def test_what_was_missed_is_asked_for_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Asks:
        def query(self, expression: str, at: int) -> list[Series]:
            asked.append(at)
            return []

    clock = [100_000.0]
    monkeypatch.setattr(module, "seconds_now", lambda: clock[0])
    store = LedgerStore(tmp_path / "ledger.db")
    meter = PrometheusMeter(Asks())

    def measure() -> Measured | None:
        return asyncio.run(meter.measure(store, has_pods=True))

    assert measure() is None  # nothing is whole yet
    clock[0] += 300
    assert measure() is None  # the last minute may not have been scraped
    clock[0] += 60
    assert measure() == ({}, 100_300)
    store.write([], 0, 100_300)
    clock[0] += 2 * 3600
    assert measure() == ({}, 103_900)
    store.close()
    assert asked == []  # no pod ran
