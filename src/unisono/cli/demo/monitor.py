"""GPU telemetry, a broken GPU, and the usage report of a week."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from unisono.cli.demo.stage import Stage, stage
from unisono.cli.demo.stories import queue
from unisono.cli.tables import table
from unisono.control.names import NODE
from unisono.control.reconciling.workers import Crashes
from unisono.engine.cycle import plan
from unisono.kube.form import Json
from unisono.monitor.gpu_faults import ANNOTATION, Fault, text_of
from unisono.runtime.clock import seconds_now
from unisono.runtime.embedded.monitoring import exporter_of
from unisono.runtime.scheduler_metrics import Timed, metrics_of

_LINE = re.compile(r'^(DCGM_\w+)\{gpu="(\d+)".*?Hostname="([^"]+)".*\} (\S+)$', re.MULTILINE)
_SHOWN = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE")
_WEEK = "gpu:jobs=1500,gpus=64,teams=3,load=0.8,seed=5"


async def tell() -> None:
    """Tell it."""
    async with stage("GPU metrics, and a broken GPU", "4xp5.48xlarge") as on:
        view, driver = on.at_work.view, on.at_work.driver
        exporter = exporter_of(metrics_of(view, driver, Timed(plan), Crashes(), mode="demo"))
        on.say(
            "Every simulated GPU has the telemetry of NVIDIA's dcgm-exporter. One job trains on "
            "all GPUs of a node; another holds a node and idles."
        )
        await on.create(*queue("32"))
        await on.create(_job("train", "training"), _job("notebook", "idle"))
        await on.until("both run", lambda: on.running("train") + on.running("notebook") == 2)
        for _ in range(12):
            await asyncio.sleep(0.25)
            exporter.frame()
        text = exporter.frame().text()
        _show_devices(text)
        broken = _free_node(on)
        on.say(f"Now a GPU of {broken} falls off the bus: XID 79.")
        faults = text_of({"0": Fault(xid=79, at=int(seconds_now()))})
        patch = {"metadata": {"annotations": {ANNOTATION: faults}}}
        await on.client.patch(NODE, broken, "", patch)
        await on.until("the node is cordoned", lambda: _is_closed(on, broken))
        on.note(f"{broken} is in quarantine; it gets no new pods until the GPU is repaired")
        await on.create(_job("next", "training"))
        await on.until("the next job runs", lambda: on.running("next") == 1)
        on.note("the next job starts on the remaining node")
    _tell_of_a_week()


def _tell_of_a_week() -> None:
    """Simulate a week of three teams and print the headlines of its report."""
    from unisono.cli.sim.usage import write_ledger
    from unisono.monitor.ledger.accounts import Period
    from unisono.monitor.report.formats import headline_lines
    from unisono.runtime import usage_reports

    sys.stdout.write("\nThe usage report of a simulated week: three teams on eight nodes\n\n")
    now = int(seconds_now())
    outcome, nodes = _simulated_week()
    with tempfile.TemporaryDirectory(prefix="unisono-report-") as folder:
        ledger = Path(folder) / "ledger.db"
        write_ledger(outcome, nodes, ledger, now)
        made = usage_reports.read(ledger, Period(now - 7 * 86_400, now))
    lines = [(name, value, note) for name, value, note in headline_lines(made)]
    sys.stdout.write(table(["", "", ""], lines).lstrip("\n"))
    if made.waste:
        worst = made.waste[0]
        advice = worst.advice[0] if worst.advice else "ask its owner"
        sys.stdout.write(f"\n\n  Largest waste: {worst.name} of {worst.user}: {advice}.\n")
    sys.stdout.write(
        "\n  `unisono report --format html --out DIR` writes it for your own cluster.\n"
    )


def _simulated_week() -> tuple[Any, Any]:
    from unisono.cli.sim.inputs import cluster_nodes
    from unisono.sim.loop import simulate
    from unisono.sim.setup import POLICIES
    from unisono.sim.sources import open_trace

    nodes = cluster_nodes(["8xp5.48xlarge"])
    return simulate(open_trace(_WEEK), nodes, POLICIES["easy"], spans=True), nodes


def _job(name: str, profile: str) -> Json:
    limits = {"nvidia.com/gpu": "8"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "research"},
        },
        "spec": {
            "template": {
                "metadata": {
                    "annotations": {
                        "unisono.dev/run-seconds": "forever",
                        "unisono.dev/sim-profile": profile,
                    }
                },
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {"name": "main", "image": "train", "resources": {"limits": limits}}
                    ],
                },
            }
        },
    }


def _show_devices(text: str) -> None:
    """Print the first GPU of every node."""
    found: dict[str, dict[str, str]] = {}
    for name, gpu, node, value in _LINE.findall(text):
        if gpu == "0" and name in _SHOWN:
            found.setdefault(node, {})[name] = value
    rows = [
        (node, f"{one[_SHOWN[0]]} %", f"{one[_SHOWN[1]]} °C", f"{float(one[_SHOWN[2]]):.0f} W")
        for node, one in sorted(found.items())
    ]
    sys.stdout.write("\n  $ curl -s http://127.0.0.1:9400/metrics   (GPU 0 of every node)\n")
    sys.stdout.write(table(["NODE", "BUSY", "TEMPERATURE", "POWER"], rows) + "\n")


def _free_node(on: Stage) -> str:
    taken = {one["spec"].get("nodeName") for one in on.every("/pods")}
    names = sorted(str(one["metadata"]["name"]) for one in on.every("/nodes"))
    return next(name for name in names if name not in taken)


def _is_closed(on: Stage, name: str) -> bool:
    for node in on.every("/nodes"):
        if node["metadata"]["name"] == name:
            taints = node["spec"].get("taints") or ()
            return any(one["key"] == "unisono.dev/quarantine" for one in taints)
    return False
