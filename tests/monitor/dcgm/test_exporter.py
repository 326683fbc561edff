"""The telemetry of simulated GPUs."""

from __future__ import annotations

import re

import pytest

from tests.monitor import objects
from unisono.kinds.views import seconds_of
from unisono.kube.mapping import POD
from unisono.monitor.cache import NODE, ClusterCache, fill
from unisono.monitor.dashboards import dashboards
from unisono.monitor.dcgm import exporter as exporting
from unisono.monitor.dcgm.exporter import LEAN, Exporter, Extent
from unisono.monitor.gpu_faults import Fault, Faults, faults_of, problem_of, text_of
from unisono.monitor.rules.files import rule_file

TEN = seconds_of("2026-01-01T10:00:00Z")
_LINE = re.compile(r"(\w+)\{(.*)\} (\S+)")


class Fleet:
    """An exporter over two nodes, with a clock and faults that tests set."""

    def __init__(self, extent: Extent | None = None) -> None:
        self.now = TEN
        self.faults: dict[str, Faults] = {}
        self.cache = ClusterCache()
        fill(self.cache, NODE, (objects.node("n1", 2), objects.node("n2", 2)))
        self._exporter = Exporter(
            self.cache, lambda: self.faults, clock=lambda: self.now, extent=extent
        )

    def text(self) -> str:
        return self._exporter.frame().text()

    def value(self, name: str, node: str, gpu: int) -> float | None:
        """Return a field of a device; None if there is none."""
        found = [
            float(value)
            for field, labels, value in _LINE.findall(self.text())
            if field == name and f'gpu="{gpu}"' in labels and f'_node="{node}"' in labels
        ]
        return found[0] if found else None

    def run_for(self, seconds: float) -> None:
        """Let time pass, with a scrape every 15 seconds."""
        for _ in range(int(seconds / 15)):
            self.now += 15
            self._exporter.frame()


@pytest.fixture
def fleet() -> Fleet:
    """Return two idle nodes of two GPUs."""
    return Fleet()


def test_an_idle_device_is_cool_and_a_training_one_is_not(fleet: Fleet) -> None:
    fill(fleet.cache, POD, (objects.pod("p0", "n1", 1),))
    fleet.run_for(600)
    busy, idle = (
        [
            fleet.value(f"DCGM_FI_{name}", "n1", gpu)
            for name in ("DEV_GPU_UTIL", "DEV_GPU_TEMP", "DEV_POWER_USAGE", "DEV_FB_USED")
        ]
        for gpu in (0, 1)
    )
    assert idle == [0, 36, 84, 0]
    assert busy[0] == pytest.approx(95, abs=4)
    assert busy[1] == pytest.approx(71, abs=3)
    assert busy[3] == int(0.8 * 81559)
    assert fleet.value("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "n1", 0) == pytest.approx(0.45, abs=0.02)


def test_labels_name_the_pod_only_where_there_is_one(fleet: Fleet) -> None:
    fill(fleet.cache, POD, (objects.pod("p0", "n1", 1),))
    held, free = (
        labels
        for field, labels, _ in _LINE.findall(fleet.text())
        if field == "DCGM_FI_DEV_GPU_TEMP" and 'Hostname="n1"' in labels
    )
    assert held.endswith('container="main",namespace="team-a",pod="p0"')
    assert "pod=" not in free
    for name in ("UUID", "pci_bus_id", "modelName", "kubernetes_node", "DCGM_FI_DRIVER_VERSION"):
        assert f"{name}=" in free


def test_devices_of_different_nodes_do_not_collide(fleet: Fleet) -> None:
    """Scenario 27."""
    uuids = re.findall(r'DCGM_FI_DEV_GPU_TEMP\{gpu="0",UUID="([^"]+)"', fleet.text())
    assert len(set(uuids)) == 2


def test_pods_keep_their_devices_while_other_pods_start_and_end(fleet: Fleet) -> None:
    first, second = objects.pod("a", "n1", 1), objects.pod("b", "n1", 1)
    fill(fleet.cache, POD, (first, second))
    fleet.text()
    fleet.cache.observe(POD, first, None)
    fill(fleet.cache, POD, (objects.pod("c", "n1", 1),))
    holders = re.findall(
        r'DCGM_FI_DEV_GPU_TEMP\{gpu="(\d)".*Hostname="n1".*pod="(\w)"', fleet.text()
    )
    assert holders == [("0", "c"), ("1", "b")]


@pytest.mark.parametrize(
    ("fault", "field", "expected"),
    [
        (Fault(xid=79), "DCGM_FI_DEV_XID_ERRORS", 79),
        (Fault(ecc=3), "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 3),
        (Fault(row_remap_failed=True), "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1),
        (Fault(memory=0.98), "DCGM_FI_DEV_FB_USED", int(0.98 * 81559)),
        (Fault(hot=60), "DCGM_FI_DEV_GPU_TEMP", 96),
        (Fault(slow=0.5), "DCGM_FI_DEV_SM_CLOCK", 198),
        (Fault(fallen_off=True), "DCGM_FI_DEV_GPU_TEMP", None),
        (Fault(silent=True), "DCGM_FI_DEV_GPU_TEMP", None),
    ],
)
def test_faults_show(fleet: Fleet, fault: Fault, field: str, expected: float | None) -> None:
    fleet.faults = {"n2": {"1": fault}}
    fleet.run_for(900)
    assert fleet.value(field, "n2", 1) == expected
    assert fleet.value(field, "n2", 0) not in (None, expected)


def test_heat_costs_clock_and_is_counted(fleet: Fleet) -> None:
    fill(fleet.cache, POD, (objects.pod("p0", "n1", 1),))
    fleet.faults = {"n1": {"*": Fault(hot=30)}}
    fleet.run_for(600)
    assert fleet.value("DCGM_FI_DEV_SM_CLOCK", "n1", 0) == round(0.6 * 1980)
    assert (fleet.value("DCGM_FI_DEV_THERMAL_VIOLATION", "n1", 0) or 0) > 300e9
    assert 'clock_event="hw_thermal"' in fleet.text()


def test_an_error_counts_for_five_minutes(fleet: Fleet) -> None:
    fleet.faults = {"n1": {"0": Fault(xid=31, at=int(TEN))}}
    assert fleet.value("DCGM_EXP_XID_ERRORS_COUNT", "n1", 0) == 1
    fleet.run_for(330)
    assert fleet.value("DCGM_EXP_XID_ERRORS_COUNT", "n1", 0) is None
    assert fleet.value("DCGM_FI_DEV_XID_ERRORS", "n1", 0) == 31


def test_a_stock_exporter_lacks_what_it_lacks() -> None:
    stock = Fleet("default")
    text = stock.text()
    for name in ("FB_TOTAL", "PROF_SM_ACTIVE", "DCGM_EXP_", "ECC_DBE", "THERMAL_VIOLATION"):
        assert name not in text
    assert "DCGM_FI_DEV_FB_RESERVED" in text


def test_counters_go_on_when_nodes_come_and_go(fleet: Fleet) -> None:
    fleet.run_for(300)
    before = fleet.value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "n2", 0)
    fleet.cache.observe(NODE, objects.node("n1"), None)
    fill(fleet.cache, NODE, (objects.node("n3", 1),))
    after = fleet.value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "n2", 0)
    assert before == after
    assert fleet.value("DCGM_FI_DEV_GPU_TEMP", "n1", 0) is None
    assert fleet.value("DCGM_FI_DEV_GPU_TEMP", "n3", 0) == 36


def test_the_same_run_gives_the_same_text() -> None:
    texts = []
    for _ in range(2):
        fleet = Fleet()
        fill(fleet.cache, POD, (objects.pod("p0", "n1", 1),))
        fleet.run_for(60)
        texts.append(fleet.text())
    assert texts[0] == texts[1]


def test_faults_are_written_and_read() -> None:
    faults = {"0": Fault(xid=79, at=5), "1": Fault(at=7)}
    text = text_of(faults)
    assert text == '{"0":{"xid":79,"at":5}}'
    assert faults_of({"unisono.dev/gpu-faults": text}) == {"0": Fault(xid=79, at=5)}
    assert text_of({"0": Fault(at=5)}) is None
    assert faults_of({"unisono.dev/gpu-faults": "no json"}) == {}


def test_the_worst_fault_is_reported() -> None:
    faults = {"0": Fault(xid=31), "3": Fault(xid=79)}
    assert problem_of(faults) == ("Xid79", "GPU 3 reports Xid79")
    assert problem_of({"*": Fault(hot=10)}) == ("", "")


def test_a_lean_page_has_what_rules_and_dashboards_look_at() -> None:
    lean = Fleet("lean")
    fill(lean.cache, POD, (objects.pod("p0", "n1", 1),))
    lines = _LINE.findall(lean.text())
    assert {name for name, _, _ in lines} == LEAN
    looked_at = {
        name
        for some in (rule_file(), *map(str, dashboards().values()))
        for name in re.findall(r"DCGM_FI_[A-Z_]+", some)
    }
    # Older or poorer exporters are understood as well; a lean one has the better measure of each.
    others = {"DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"}
    others.add("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")  # tells of a reset where ECC errors do not
    assert looked_at - others <= LEAN
    assert {labels.count('",') for _, labels, _ in lines} == {2, 5}


def test_the_page_of_a_large_cluster_is_lean_and_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_MOST_IN_FULL", 4)
    fleet = Fleet()
    assert "DCGM_FI_DEV_ENC_UTIL" in fleet.text()
    fill(fleet.cache, NODE, (objects.node("n3", 1),))
    assert "DCGM_FI_DEV_ENC_UTIL" not in fleet.text()
    fleet.cache.observe(NODE, objects.node("n3", 1), None)
    assert "DCGM_FI_DEV_ENC_UTIL" not in fleet.text()
