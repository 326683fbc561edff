"""The bridge's counters as Prometheus metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unisono.monitor.exposition import Family, Sample, single
from unisono.runtime.cluster.health import process_families

if TYPE_CHECKING:
    from unisono.slurm.bridge.daemon import BridgeCounters


def families_of(counters: BridgeCounters) -> Iterator[Family]:
    """Yield all of them."""
    prefix = "unisono_slurm"
    yield single(f"{prefix}_up", "gauge", "1 while Slurm answers.", int(counters.is_slurm_there))
    yield single(f"{prefix}_gangs", "gauge", "Slurm jobs with a gang.", counters.gangs)
    reserved = "Gangs with a node for every pod."
    yield single(f"{prefix}_gangs_reserved", "gauge", reserved, counters.whole)
    for name, text, value in (
        ("looks_total", "Reconciliations of both sides.", counters.cycles),
        ("jobs_started_total", "Jobs released to their nodes.", counters.started),
        ("jobs_taken_back_total", "Jobs whose nodes were revoked.", counters.taken_back),
        ("hooks_refused_total", "Hooks that were refused.", counters.refused),
        ("actions_failed_total", "Actions to be tried again.", counters.failures),
        (
            "deadlocks_resolved_total",
            "Jobs that held nodes for a gang that could not start.",
            counters.deadlocks_resolved,
        ),
    ):
        yield single(f"{prefix}_{name}", "counter", text, value)
    yield Family(
        f"{prefix}_mismatches",
        "gauge",
        "Where Slurm and Kubernetes disagree, by class.",
        [Sample({"class": sort}, count) for sort, count in counters.mismatches.items()],
    )
    yield from process_families()
