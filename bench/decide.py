"""`unisono decide` end to end: a file of manifests in, a decision out, as a process.

Half of the workloads find room. The same manifests are read as YAML and as JSON; the difference is
what parsing YAML costs.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from bench.harness import Finding, Note, Scale, repeated, row, wall_seconds


@dataclass(frozen=True)
class Sizes:
    """How many manifests, read how often."""

    manifests: tuple[int, ...]
    samples: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes((100, 1_000, 10_000), 3),
    "quick": Sizes((100, 500), 3),
    "tiny": Sizes((4,), 1),
}
QUEUES = 10
KUEUE = "kueue.x-k8s.io/v1beta1"

Manifest = dict[str, object]


def measure(scale: Scale) -> Iterator[Finding]:
    """Decide on more and more manifests."""
    if importlib.util.find_spec("unisono.cli.decide") is None:
        yield Note("there is no `unisono decide` yet")
        return
    sizes = SIZES[scale]
    with tempfile.TemporaryDirectory() as folder:
        for count in sizes.manifests:
            documents = manifests(count)
            for form in ("yaml", "json"):
                path = Path(folder) / f"{count}.{form}"
                path.write_text(_written(documents, form), encoding="utf-8")
                once = partial(wall_seconds, partial(_decide, path, expected=count // 2))
                taken = repeated(once, samples=sizes.samples, budget_s=0)
                yield row(f"decide, {form}", count, "manifests", taken, "s")


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


def _written(documents: list[Manifest], form: str) -> str:
    if form == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump_all(documents, Dumper=dumper, sort_keys=False))


def _decide(path: Path, *, expected: int) -> None:
    """Run the command until nothing changes."""
    command = [sys.executable, "-m", "unisono", "decide", "--until-stable", "-o", "json"]
    done = subprocess.run([*command, "-f", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    admitted = len(json.loads(done.stdout)["admitted"])
    assert admitted == expected, f"{admitted} admitted, not {expected}"
