"""What Kueue's dashboards ask, asked of a real Prometheus that scrapes `unisono up`.

The queries are ours, over the metrics and labels that Kueue's page of common queries uses.
KUEUE_DASHBOARDS names a folder of dashboards as JSON; then each of their queries has to have data,
too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.cluster import until
from tests.real.prometheus import Prometheus, eventually, needs_prometheus, running
from tests.suites.kueue.cluster import Embedded

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]

Json = dict[str, Any]
_CQ = 'cluster_queue="cq"'
QUERIES = (
    # Utilization of quota, of one resource and by resource.
    'sum by (cluster_queue) (kueue_cluster_queue_resource_usage{resource="cpu"})'
    ' / sum by (cluster_queue) (kueue_cluster_queue_nominal_quota{resource="cpu"}) * 100',
    "sum by (cluster_queue, resource) (kueue_cluster_queue_resource_usage)"
    " / sum by (cluster_queue, resource) (kueue_cluster_queue_nominal_quota) * 100",
    "avg_over_time((sum by (cluster_queue)"
    ' (kueue_cluster_queue_resource_usage{resource="cpu"}))[5m:10s])',
    'topk(5, sum by (cluster_queue) (kueue_cluster_queue_resource_reservation{resource="cpu"}))',
    # Workloads by state.
    'sum by (cluster_queue) (kueue_pending_workloads{status="active"})',
    "sum by (cluster_queue, status) (kueue_pending_workloads)",
    "sum by (name, namespace, status) (kueue_local_queue_pending_workloads)",
    f"kueue_admitted_active_workloads{{{_CQ}}} > 0",
    f"kueue_reserving_active_workloads{{{_CQ}}} > 0",
    "sum by (cluster_queue, reason) (kueue_unadmitted_workloads)",
    # Waits and throughput.
    "histogram_quantile(0.95, sum by (le, cluster_queue)"
    " (kueue_admission_wait_time_seconds_bucket))",
    "histogram_quantile(0.5, sum by (le, cluster_queue)"
    " (kueue_quota_reserved_wait_time_seconds_bucket))",
    "histogram_quantile(0.99, sum by (le, result)"
    " (kueue_admission_attempt_duration_seconds_bucket))",
    "sum by (cluster_queue) (kueue_admitted_workloads_total) > 0",
    "sum by (cluster_queue) (kueue_finished_workloads_total) > 0",
    "sum by (cluster_queue, reason) (kueue_evicted_workloads_total) > 0",
    "sum by (preempting_cluster_queue, reason) (kueue_preempted_workloads_total) > 0",
    "sum by (result) (kueue_admission_attempts_total)",
    # States of queues, and their trees.
    'kueue_cluster_queue_status{status="active"} == 1',
    'kueue_local_queue_status{active="True"} == 1',
    'kueue_cluster_queue_info{parent_cohort="all", root_cohort="all"}',
    "kueue_cohort_subtree_quota > 0",
    "kueue_build_info",
)


def _apply(kubeconfig: str, manifest: str) -> None:
    command = ["kubectl", "--kubeconfig", kubeconfig, "apply", "-f", "-"]
    subprocess.run(command, input=manifest, text=True, check=True, capture_output=True, timeout=120)


def _manifests() -> str:
    def made(kind: str, name: str, spec: Json, **place: str) -> Json:
        metadata = {"name": name, **place}
        version = "kueue.x-k8s.io/v1beta2"
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}

    quota = {"name": "cpu", "nominalQuota": 4}
    flavor = {"name": "default", "resources": [quota]}
    group = {"coveredResources": ["cpu"], "flavors": [flavor]}
    queue = {
        "cohortName": "all",
        "namespaceSelector": {},
        "resourceGroups": [group],
        "preemption": {"withinClusterQueue": "LowerPriority"},
    }
    classes = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in (("low", 1), ("high", 9))
    ]
    objects = [
        made("ResourceFlavor", "default", {}),
        made("ClusterQueue", "cq", queue),
        made("LocalQueue", "lq", {"clusterQueue": "cq"}, namespace="default"),
        *classes,
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def _job(name: str, priority: str, seconds: int, cpu: int = 4) -> str:
    container = {
        "name": "main",
        "image": "train:1",
        "command": ["sleep", str(seconds)],
        "resources": {"requests": {"cpu": cpu}},
    }
    labels = {
        "kueue.x-k8s.io/queue-name": "lq",
        "kueue.x-k8s.io/priority-class": priority,
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    return json.dumps(job)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Have a cluster on which all of it happened: one ended, one preempted, one runs, one waits."""
    needs_prometheus()
    folder = tmp_path_factory.mktemp("dashboards")
    cluster = Embedded(folder, nodes="2x{gpu=8,cpu=32,memory=128Gi}")
    try:
        kubeconfig = cluster.begin()

        def has(text: str) -> bool:
            return text in cluster.metrics()

        _apply(kubeconfig, _manifests())
        _apply(kubeconfig, _job("short", "low", 1, cpu=1))
        finished = 'kueue_finished_workloads_total{cluster_queue="cq",priority_class="low"'
        until("one has ended", lambda: has(finished))
        _apply(kubeconfig, _job("victim", "low", 600))
        runs = 'kueue_admitted_active_workloads{cluster_queue="cq",replica_role="standalone"} 1'
        until("the victim runs", lambda: has(runs))
        _apply(kubeconfig, _job("urgent", "high", 600))
        until("one is preempted", lambda: has("kueue_preempted_workloads_total{preempting"))
        config = folder / "prometheus.yml"
        target = cluster.metrics_address
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n"
            f"- {{job_name: unisono, static_configs: [{{targets: [{json.dumps(target)}]}}]}}\n"
        )
        with running(config) as found:
            eventually("it is scraped", lambda: bool(found.query("kueue_build_info")))
            yield found
    finally:
        cluster.end()


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_has_data(prometheus: Prometheus, query: str) -> None:
    eventually(query, lambda: bool(prometheus.query(query)))


def test_dashboards_have_data(prometheus: Prometheus) -> None:
    folder = os.environ.get("KUEUE_DASHBOARDS")
    if not folder:
        pytest.skip("no dashboards of Kueue; name their folder in KUEUE_DASHBOARDS")
    empty = []
    for path in sorted(Path(folder).glob("**/*.json")):
        for query in _queries(json.loads(path.read_text())):
            if not prometheus.query(query):
                empty.append(f"{path.name}: {query}")
    assert empty == []


def _queries(found: Any) -> Iterator[str]:
    """Yield the queries of a dashboard; variables stand for anything, ranges for five minutes."""
    if isinstance(found, list):
        for one in found:
            yield from _queries(one)
    elif isinstance(found, dict):
        query = found.get("expr")
        if isinstance(query, str):
            ranged = re.sub(r"\$__(rate_)?(interval|range)", "5m", query)
            yield re.sub(r'=~?"\$\{?\w+\}?"', '=~".*"', ranged)
        for one in found.values():
            yield from _queries(one)
