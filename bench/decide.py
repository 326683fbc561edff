"""`unisono decide` end to end: a file of manifests in, a decision out, as a process.

One cycle admits the head of every queue; until nothing changes, half of the workloads find room.
The same manifests are read as YAML and as JSON; the difference is what parsing YAML costs.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import yaml

from bench.harness import Finding, Note, Scale, repeated, row, wall_seconds

SIZES: dict[Scale, tuple[int, ...]] = {
    "full": (100, 1_000, 10_000),
    "quick": (100, 500),
    "tiny": (4,),
}
QUEUES = 10
KUEUE = "kueue.x-k8s.io/v1beta1"

Manifest = dict[str, object]


def measure(scale: Scale) -> Iterator[Finding]:
    """Decide on more and more manifests."""
    if importlib.util.find_spec("unisono.cli.decide") is None:
        yield Note("there is no `unisono decide` yet")
        return
    with tempfile.TemporaryDirectory() as folder:
        for count in SIZES[scale]:
            documents = manifests(count)
            in_yaml, in_json = Path(folder) / f"{count}.yaml", Path(folder) / f"{count}.json"
            dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
            in_yaml.write_text(yaml.dump_all(documents, Dumper=dumper), encoding="utf-8")
            together = {"apiVersion": "v1", "kind": "List", "items": documents}
            in_json.write_text(json.dumps(together), encoding="utf-8")
            for name, decide in (
                ("one cycle, yaml", partial(_decide, in_yaml)),
                ("one cycle, json", partial(_decide, in_json)),
                ("until stable, json", partial(_decide_all, in_json, expected=count // 2)),
            ):
                yield row(name, count, "manifests", _repeated(decide, scale), "s")


def _repeated(decide: Callable[[], object], scale: Scale) -> list[float]:
    """Run a process up to three times, but only once if that takes long."""
    samples = 3 if scale == "full" else 1
    return repeated(partial(wall_seconds, decide), samples=samples, fewest=1)


def manifests(count: int) -> list[Manifest]:
    """Make workloads, and queues with room for half of them."""
    queues = min(QUEUES, count // 2)
    quota = count // queues // 2
    documents: list[Manifest] = [
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "h100"}}
    ]
    for index in range(queues):
        documents += _queue(f"team-{index}", quota)
    return documents + [_workload(number, f"team-{number % queues}") for number in range(count)]


def _queue(name: str, gpus: int) -> list[Manifest]:
    flavor = {"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]}
    return [
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [flavor]}],
            },
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"clusterQueue": name},
        },
    ]


def _workload(number: int, queue: str) -> Manifest:
    container = {
        "name": "train",
        "image": "registry.example/train:1",
        "resources": {"requests": {"nvidia.com/gpu": "1"}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": f"train-{number:06}", "namespace": "default"},
        "spec": {
            "queueName": queue,
            "priority": number % 3,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
    }


def _decide(path: Path, *options: str) -> int:
    """Run the command; return how many were admitted, in one cycle the head of every queue."""
    command = [sys.executable, "-m", "unisono", "decide", "-f", str(path), "-o", "json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return len(json.loads(done.stdout)["admitted"])


def _decide_all(path: Path, *, expected: int) -> None:
    """Run the command until nothing changes."""
    admitted = _decide(path, "--until-stable")
    assert admitted == expected, f"{admitted} admitted, not {expected}"
