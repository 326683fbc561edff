"""Published traces, if there are any here: the Alibaba GPU cluster of 2023 (openb), and HPC logs.

They come from a folder that the variable UNISONO_TRACES names, or from `shared/traces` beside the
project. Files may be plain or compressed with gzip.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from pathlib import Path

from bench.device_table import SharedNode, SharedPod

ROOT = Path(__file__).resolve().parents[1]
MIB = 1 << 20
LISTS = (
    *("default", "cpu050", "cpu100", "cpu200", "gpushare40", "gpushare60", "gpushare100"),
    *("gpuspec10", "gpuspec20", "gpuspec33", "multigpu20", "multigpu30", "multigpu50"),
)
NO_TRACES = "there are no traces; name the folder that has openb/ in UNISONO_TRACES"


def openb_folder() -> Path | None:
    """Return where the openb files are; None if they are not here."""
    folder = _folder() / "openb"
    return folder if folder.is_dir() else None


def swf_file(name: str) -> Path | None:
    """Return a log in the Standard Workload Format; None if it is not here."""
    path = _folder() / "swf" / name
    return path if path.is_file() else None


def _folder() -> Path:
    named = os.environ.get("UNISONO_TRACES")
    return Path(named) if named else ROOT.parent / "shared" / "traces"


def read_nodes(folder: Path) -> list[SharedNode]:
    """Return the nodes with GPUs."""
    return [
        SharedNode(
            name=line["sn"],
            cpu_milli=int(line["cpu_milli"]),
            memory_bytes=int(line["memory_mib"]) * MIB,
            gpus=int(line["gpu"]),
            model=line["model"],
        )
        for line in _lines(folder / "openb_node_list_gpu_node.csv")
    ]


def read_pods(folder: Path, name: str) -> list[SharedPod]:
    """Return the pods of one list; some lists have no column for GPU models."""
    return [
        SharedPod(
            cpu_milli=int(line["cpu_milli"]),
            memory_bytes=int(line["memory_mib"]) * MIB,
            gpus=int(line["num_gpu"]),
            gpu_milli=int(line["gpu_milli"]),
            models=tuple(sorted(filter(None, line.get("gpu_spec", "").split("|")))),
        )
        for line in _lines(folder / f"openb_pod_list_{name}.csv")
    ]


def read_published(folder: Path, metric: str, name: str, policy: str) -> dict[int, float]:
    """Return a published mean over ten seeds, by percent of demand that has arrived."""
    for line in _lines(folder / "fgd_published_means.csv"):
        if (line["metric"], line["workload"], line["policy"]) == (metric, name, policy):
            marks = {key: value for key, value in line.items() if key.startswith("mean_at_")}
            return {int(key.removeprefix("mean_at_")): float(value) for key, value in marks.items()}
    return {}


def _lines(path: Path) -> Iterator[dict[str, str]]:
    if path.exists():
        with path.open(encoding="utf-8", newline="") as plain:
            yield from csv.DictReader(plain)
    else:
        with gzip.open(f"{path}.gz", "rt", encoding="utf-8", newline="") as packed:
            yield from csv.DictReader(packed)
