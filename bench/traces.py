"""Published traces, if there are any here: the Alibaba GPU cluster of 2023 (openb), and HPC logs.

They come from a folder that the variable UNISONO_TRACES names, or from `shared/traces` beside the
project. Files may be plain or compressed with gzip.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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


def pod_list(folder: Path, name: str) -> Path:
    """Return a list of pods, plain or packed."""
    plain = folder / f"openb_pod_list_{name}.csv"
    return plain if plain.exists() else plain.with_name(f"{plain.name}.gz")


def read_published(folder: Path, metric: str, name: str, policy: str) -> dict[int, float]:
    """Return a published mean over ten seeds, by percent of demand that has arrived."""
    with (folder / "fgd_published_means.csv").open(encoding="utf-8", newline="") as file:
        lines = [*csv.DictReader(file)]
    for line in lines:
        if (line["metric"], line["workload"], line["policy"]) == (metric, name, policy):
            marks = {key: value for key, value in line.items() if key.startswith("mean_at_")}
            return {int(key.removeprefix("mean_at_")): float(value) for key, value in marks.items()}
    return {}
