"""A real Prometheus looks at an embedded cluster: rules, alerts, dashboards."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.monitor.test_rules import expressions, plain
from tests.real.alertmanager import Receiver, alerting, receiving
from tests.real.prometheus import Prometheus, eventually, needs_prometheus, promtool, running
from unisono.monitor.dashboards import dashboards
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import PodRow
from unisono.monitor.ledger.store import LedgerStore
from unisono.monitor.ledger.utilization import measured
from unisono.monitor.prometheus import Prometheus as Asked
from unisono.monitor.rules.files import alertmanager, rule_file

pytestmark = pytest.mark.real

HERE = Path(__file__).resolve().parent
UNIT_TESTS = HERE.parent / "monitor/promtool/alerts.yaml"

# As GPU guides print it.
GUIDE = """
groups:
  - name: gpu-alerts
    rules:
      - alert: GPUHighTemperature
        expr: DCGM_FI_DEV_GPU_TEMP > 85
        for: 5m
        labels:
          severity: warning
        annotations:
          summary: "GPU temperature > 85°C"

      - alert: GPUMemoryExhausted
        expr: DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_TOTAL > 0.95
        for: 5m
        labels:
          severity: critical

      - alert: GPUUnderutilized
        expr: DCGM_FI_DEV_GPU_UTIL < 20
        for: 30m
        labels:
          severity: info
        annotations:
          summary: "GPU underutilized - consider right-sizing"
"""

CLUSTER = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: l40s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: ["nvidia.com/gpu"]
      flavors:
        - name: l40s
          resources: [{name: nvidia.com/gpu, nominalQuota: 8}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: q, namespace: default}
spec: {clusterQueue: cq}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: default, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {annotations: {unisono.dev/run-seconds: forever, unisono.dev/step-seconds: "1"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: 3}}}]
"""
LEAN = ("--gpu-metrics", "lean")
# Panels that have nothing to say about a cluster where nothing of the kind has happened yet.
QUIET = re.compile(
    r"unisono_(preemptions_total|preemption_latency|workload_restarts_total|provision_|nodeclaims"
    r"|offering_unavailable)"
)


def unisono(*arguments: str, folder: Path, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "unisono", *arguments],
        env={**os.environ, "UNISONO_DATA_DIR": str(folder / "data")},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with a cluster that runs: one gang trains, another waits."""
    needs_prometheus()
    folder = tmp_path_factory.mktemp("monitoring")
    process = subprocess.Popen(
        # Lean telemetry: whatever works with it works with more.
        [sys.executable, "-m", "unisono", "up", "--nodes", "2xg6e.48xlarge", *LEAN],
        env={**os.environ, "UNISONO_DATA_DIR": str(folder / "data")},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert any(line.startswith("ready") for line in process.stdout)
        objects = "---".join((CLUSTER, JOB.replace("NAME", "j1"), JOB.replace("NAME", "j2")))
        unisono("apply", "-f", "-", folder=folder, text=objects)
        yield folder
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """Return the receiver of notifications."""
    with receiving() as made:
        yield made


@pytest.fixture(scope="module")
def alerts_go_to(folder: Path, receiver: Receiver) -> Iterator[str]:
    """Return the address of an Alertmanager with our routing, quickened."""
    config = yaml.safe_load(alertmanager(receiver.url))
    for route in (config["route"], *config["route"]["routes"]):
        route["group_wait"] = route["group_interval"] = "1s"
    path = folder / "alertmanager.yml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    with alerting(path) as address:
        yield address


@pytest.fixture(scope="module")
def prometheus(folder: Path, alerts_go_to: str) -> Iterator[Prometheus]:
    """Return one that scrapes it every second, with the guide's rules and ours, quickened."""
    into = folder / "prometheus"
    unisono("monitor", "scrape-config", "--out", str(into), folder=folder)
    rules = (into / "unisono-rules.yaml").read_text(encoding="utf-8")
    (into / "unisono-rules.yaml").write_text(quick(rules), encoding="utf-8")
    (into / "guide.yaml").write_text(GUIDE, encoding="utf-8")
    promtool("check", "rules", "guide.yaml", folder=into)
    (into / "guide.yaml").write_text(quick(GUIDE), encoding="utf-8")
    config = yaml.safe_load((into / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"].append("guide.yaml")
    (sent_to,) = config["alerting"]["alertmanagers"]
    sent_to["static_configs"] = [{"targets": [alerts_go_to]}]
    (into / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    promtool("check", "config", "prometheus.yml", folder=into)
    with running(into / "prometheus.yml") as made:
        yield made


def quick(rules: str) -> str:
    """Let alerts fire after two seconds, and rules be evaluated every second."""
    return re.sub(r"(for|interval): (?!0s)\w+", r"\1: 2s", rules)


def test_rules_are_checked_and_unit_tested(tmp_path: Path) -> None:
    """Scenarios 1 to 6, 8, 9, 19 and 23."""
    needs_prometheus()
    (tmp_path / "rules.yaml").write_text(rule_file(), encoding="utf-8")
    shutil.copy(UNIT_TESTS, tmp_path / "alerts.yaml")
    promtool("check", "rules", "rules.yaml", folder=tmp_path)
    promtool("test", "rules", "alerts.yaml", folder=tmp_path)


def test_six_unit_tests_of_every_alert_pass(tmp_path: Path) -> None:
    needs_prometheus()
    into = str(tmp_path)
    unisono("monitor", "scrape-config", "--out", into, folder=tmp_path)
    promtool("test", "rules", "unisono-rule-tests.yaml", folder=tmp_path)


def test_the_routing_is_one_that_alertmanager_takes(tmp_path: Path) -> None:
    if shutil.which("amtool") is None:
        pytest.skip("amtool is not installed (Debian: prometheus-alertmanager)")
    (tmp_path / "alertmanager.yml").write_text(
        alertmanager("http://127.0.0.1:1/"), encoding="utf-8"
    )
    command = ["amtool", "check-config", str(tmp_path / "alertmanager.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_dashboard_has_data(prometheus: Prometheus) -> None:
    _until_answered(prometheus, "unisono:gpu_busy:by_workload > 0.5")
    _until_answered(prometheus, "unisono_gang_pending_seconds > 0")
    empty = [
        (name, expression)
        for name, board in dashboards().items()
        for expression in expressions(board)
        if not QUIET.search(expression)
    ]

    def has_data() -> bool:
        empty[:] = [one for one in empty if not prometheus.query(plain(one[1]))]
        return not empty

    with contextlib.suppress(AssertionError):
        eventually("every panel has data", has_data, 120.0)
    assert empty == []


def _until_answered(prometheus: Prometheus, expression: str) -> None:
    eventually(expression, lambda: bool(prometheus.query(expression)), 120.0)


def test_a_ledger_asks_it_how_busy_gpus_were(folder: Path, prometheus: Prometheus) -> None:
    _until_answered(prometheus, "count_over_time(DCGM_FI_DEV_GPU_TEMP[1m]) > 25")
    store = LedgerStore(folder / "data/ledger.db", is_read_only=True)
    eventually("pods are in the ledger", lambda: bool(list(store.open_rows(PodRow))))
    rows = [one for one in store.open_rows(PodRow) if one.started]
    store.close()
    now = int(time.time())
    asked = Asked(prometheus.url)
    found = measured(asked, Period(now - 30, now), rows)
    assert len(found) == 2
    for use in found.values():
        assert use.covered == pytest.approx(3 * 30, abs=3 * 15)
        assert 0.8 < use.busy / use.covered <= 1
        assert 0.3 < use.tensor / use.covered < 0.6
        assert use.peak_mib > 10_000
        assert use.idle_devices == 0


def test_injected_conditions_fire_the_guides_alerts(
    folder: Path, prometheus: Prometheus, receiver: Receiver
) -> None:
    """Scenarios 6 and 26; and receivers are notified, also when it is over."""
    nodes = ("g6e-48xlarge-1", "g6e-48xlarge-2")
    unisono("gpu", "inject", nodes[0], "0", "--memory", "0.98", folder=folder)
    unisono("gpu", "inject", nodes[1], "1", "--hot", "100", folder=folder)
    guide = {"GPUHighTemperature", "GPUMemoryExhausted", "GPUUnderutilized"}
    eventually("the guide's alerts fire", lambda: guide <= prometheus.firing(), 120.0)
    unisono("gpu", "inject", nodes[1], "0", "--xid", "79", folder=folder)
    eventually("ours fires", lambda: "GPUXidCritical" in prometheus.firing())
    listed = unisono("gpu", folder=folder)
    assert re.search(rf"{nodes[1]} +0 .* xid=79", listed)
    eventually("the node is shut", lambda: "Quarantine" in unisono("nodes", folder=folder))
    unisono("gpu", "heal", nodes[1], folder=folder)
    eventually("ours is over", lambda: "GPUXidCritical" not in prometheus.firing())
    eventually("people are told", lambda: guide <= set(receiver.told))
    told = receiver.told
    eventually("of the end, too", lambda: told.get("GPUXidCritical", [""])[-1] == "resolved", 120.0)
    assert receiver.told["GPUXidCritical"][0] == "firing"


# Of each kind of fault, what has to fire: for the device, or for its node.
FAULTS = {
    0: (("--xid", "79"), "GPUXidCritical"),
    1: (("--xid", "31"), "GPUXidOther"),
    2: (("--ecc", "2"), "GPUEccUncorrectable"),
    3: (("--row-remap-failed",), "GPURowRemapFailure"),
    4: (("--hot", "100"), "GPUHighTemperature"),
    5: (("--fall-off",), "GPULost"),
    6: (("--silent",), "GPUMetricsMissing"),
}
ABOUT_DEVICES = "GPUXid.*|GPUEcc.*|GPURow.*|GPUHigh.*|GPULost|GPUMetricsMissing"


def test_each_fault_is_one_alert_as_long_as_it_stands(folder: Path, prometheus: Prometheus) -> None:
    node = "g6e-48xlarge-1"
    unisono("gpu", "heal", node, folder=folder)
    for index, (fault, _) in FAULTS.items():
        unisono("gpu", "inject", node, str(index), *fault, folder=folder)
    wanted = {name: str(index) for index, (_, name) in FAULTS.items()}

    def firing() -> list[tuple[str, str]]:
        # The guide's rules are loaded as well; their alerts carry the labels of the target.
        asked = f'ALERTS{{alertstate="firing", job="", alertname=~"{ABOUT_DEVICES}"}}'
        labels = [one["metric"] for one in prometheus.query(asked)]
        here = [one for one in labels if node in (one.get("kubernetes_node"), one.get("node"))]
        return sorted((one["alertname"], one.get("gpu", "")) for one in here)

    of_nodes = ("GPULost", "GPUMetricsMissing")
    every = sorted((name, "" if name in of_nodes else gpu) for name, gpu in wanted.items())
    eventually("each fault is one alert", lambda: firing() == every, 180.0)
    # Pods leave the node and others come: the alerts stay, and stay one each.
    unisono("delete", "job", "j1", folder=folder)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        assert firing() == every
        time.sleep(1)
    unisono("gpu", "heal", node, folder=folder)
    eventually("all are over", lambda: firing() == [], 120.0)
