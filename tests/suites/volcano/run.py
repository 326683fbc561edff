"""Volcano's specs, run package by package against `unisono up`, and what came of each.

Every package has a cluster of its own with simulated nodes. As on a real one, pods take some
seconds to start and a second to stop: the specs wait for phases that they have to see.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.suites.kueue.cluster import Embedded
from tests.suites.kueue.run import Spec, read_report
from tests.suites.volcano.build import PACKAGES, programs, vcctl

_DATA = Path(__file__).with_name("out_of_scope.yaml")
_SECONDS = 5400
_NODES, _CPUS = 4, 4
_TIERS = "tiers:\n- plugins:\n  - name: gang\n  - name: proportion\n"
_SCHEDULER = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}},
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "integration-scheduler-configmap", "namespace": "volcano-system"},
        "data": {"volcano-scheduler-ci.conf": f'actions: "enqueue, allocate"\n{_TIERS}'},
    },
)


def reasons() -> dict[str, dict[str, str]]:
    """Return why some specs are not run, by package and by a part of their names."""
    found: dict[str, dict[str, str]] = {}
    for entry in yaml.safe_load(_DATA.read_text()):
        for spec in entry["specs"]:
            package, _, name = spec.partition(": ")
            found.setdefault(package, {})[name] = entry["reason"]
    return found


def run(names: Sequence[str], *, focus: str = "", keeps: Path | None = None) -> Iterator[Spec]:
    """Build and run packages; yield what came of each spec."""
    tool = vcctl()
    for name in names:
        built = programs([name])
        left_out = reasons().get(name, {})
        with tempfile.TemporaryDirectory(prefix="unisono-suite-") as folder:
            nodes = Path(folder) / "nodes.yaml"
            nodes.write_text(yaml.safe_dump_all(_node(number) for number in range(_NODES)))
            cluster = Embedded(Path(folder), str(nodes))
            report = Path(folder) / "report.json"
            flags = [f"-ginkgo.json-report={report}", "-ginkgo.no-color", "-ginkgo.timeout=85m"]
            flags += [f"-ginkgo.skip={re.escape(one)}" for one in left_out]
            flags += [f"-ginkgo.focus={focus}"] if focus else []
            log = (keeps or Path(folder)) / f"{name}-up.log"
            try:
                kubeconfig = cluster.begin()
                _apply(kubeconfig, Path(folder) / "scheduler.yaml")
                with log.open("wb") as out:
                    subprocess.run(
                        [str(built[name]), "-test.timeout=0", "-ginkgo.v", *flags],
                        cwd=built[name].parent / "source" / PACKAGES[name],
                        env={**os.environ, "KUBECONFIG": kubeconfig, "VC_BIN": str(tool.parent)},
                        stdout=out,
                        stderr=out,
                        timeout=_SECONDS,
                        check=False,
                    )
            finally:
                cluster.end()
            if not report.exists():
                yield Spec(name, "(the whole package)", "failed", log.read_text()[-2000:])
                continue
            yield from read_report(name, json.loads(report.read_text()), left_out)


def _apply(kubeconfig: str, file: Path) -> None:
    """Store the configuration of Volcano's scheduler: specs change it, nothing here reads it."""
    file.write_text(yaml.safe_dump_all(_SCHEDULER))
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "apply", "-f", str(file)],
        env={**os.environ, "KUBECONFIG": kubeconfig},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)


def _node(number: int) -> dict[str, Any]:
    name = f"node-{number + 1}"
    amounts = {"cpu": str(_CPUS), "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": {
                "unisono.dev/start-seconds": "2",
                "unisono.dev/stop-seconds": "1",
            },
        },
        "status": {"allocatable": amounts, "capacity": amounts},
    }
