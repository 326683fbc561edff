"""What a scrape costs: the page of simulated GPU telemetry, and that of the scheduler's figures.

Nodes of eight H100, four out of five with a pod on all of their GPUs. An embedded cluster also
writes the names of Kueue and kube-state-metrics; a controller does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from bench.harness import Finding, Note, Scale, repeated, row, seconds, target
from unisono.kube.mapping import POD
from unisono.monitor.cache import NODE, fill
from unisono.monitor.dcgm.exporter import Exporter
from unisono.monitor.exposition import classic
from unisono.monitor.metrics.registry import ALL, Compat, MetricsRegistry

SIZES: dict[Scale, tuple[int, ...]] = {"full": (10, 100, 1_000), "quick": (10, 100), "tiny": (2,)}
NOW = 1_767_571_200.0
LIMIT_S = 1.5
LIMIT_MS = 50.0
LIMIT_BYTES = 25_000_000


def measure(scale: Scale) -> Iterator[Finding]:
    """Scrape larger and larger clusters."""
    for nodes in SIZES[scale]:
        figures = _figures(nodes, ALL)
        exporter = Exporter(figures.cache, dict, clock=lambda: NOW)
        size = len(_telemetry(exporter))
        taken = repeated(partial(seconds, partial(_telemetry, exporter)), samples=5)
        telemetry = row("GPU telemetry", nodes, "nodes", taken, "s")
        yield telemetry
        embedded = partial(seconds, partial(_page, figures))
        yield row("figures, embedded", nodes, "nodes", repeated(embedded, samples=5), "ms")
        of_controller = partial(seconds, partial(_page, _figures(nodes, ())))
        own = row("figures, controller", nodes, "nodes", repeated(of_controller, samples=5), "ms")
        yield own
        yield Note(f"{nodes:,} nodes: {size:,} bytes of telemetry; {LIMIT_BYTES:,} are promised")
        if nodes == SIZES[scale][-1]:
            yield target("scrape of GPUs", telemetry, LIMIT_S, better="below")
            yield target("scrape of a controller", own, LIMIT_MS, better="below")


def _telemetry(exporter: Exporter) -> str:
    return exporter.frame().text()


def _page(figures: MetricsRegistry) -> str:
    return classic(figures.families())


def _figures(nodes: int, compat: Collection[Compat]) -> MetricsRegistry:
    figures = MetricsRegistry(clock=lambda: NOW, version="", mode="bench", compat=compat)
    fill(figures.cache, NODE, (_node(f"p5-48xlarge-{number}") for number in range(nodes)))
    busy = range(max(1, nodes * 4 // 5))
    fill(figures.cache, POD, (_pod(number, f"p5-48xlarge-{number}") for number in busy))
    return figures


def _node(name: str) -> dict[str, Any]:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.memory": "81559",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
    }
    amounts = {"nvidia.com/gpu": "8"}
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def _pod(number: int, node: str) -> dict[str, Any]:
    began = "2026-01-01T10:00:00Z"
    limits = {"limits": {"nvidia.com/gpu": 8}}
    state = {"running": {"startedAt": began}}
    return {
        "metadata": {
            "name": f"train-{number:04}-worker-0-x7k2p",
            "namespace": "team-a",
            "uid": f"pod-{number}",
            "creationTimestamp": began,
        },
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": limits}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]},
    }
