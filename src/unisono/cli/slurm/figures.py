"""The bridge's figures, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unisono.cli.controller_metrics import family, process_lines

if TYPE_CHECKING:
    from unisono.slurm.bridge.daemon import Figures


def lines_of(figures: Figures) -> Iterator[str]:
    """Yield all of them."""
    prefix = "unisono_slurm"
    for name, kind, text, value in (
        ("up", "gauge", "1 while Slurm answers.", int(figures.is_slurm_there)),
        ("gangs", "gauge", "Jobs of Slurm that have a gang.", figures.gangs),
        ("gangs_reserved", "gauge", "Gangs whose pods all have a node.", figures.whole),
        ("looks_total", "counter", "Looks at both sides.", figures.cycles),
        ("jobs_started_total", "counter", "Jobs released to their nodes.", figures.started),
        ("jobs_taken_back_total", "counter", "Jobs whose nodes were taken.", figures.taken_back),
        ("hooks_refused_total", "counter", "Hooks that heard a no.", figures.refused),
        ("actions_failed_total", "counter", "Actions to be tried again.", figures.failures),
        (
            "deadlocks_resolved_total",
            "counter",
            "Jobs that held nodes for a gang that could not start.",
            figures.deadlocks_resolved,
        ),
    ):
        yield from family(f"{prefix}_{name}", kind, text, {"": value})
    yield from family(
        f"{prefix}_mismatches",
        "gauge",
        "Where Slurm and Kubernetes disagree, by class.",
        {f'{{class="{sort}"}}': count for sort, count in figures.mismatches.items()},
    )
    yield from process_lines()
