"""The figures that tables and pages show: their names, how they are written, what is better."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from unisono.sim.form import dollars, duration, number, percent
from unisono.sim.measures import Measures

LOWER, HIGHER, NEITHER = -1, 1, 0


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of an outcome."""

    key: str  # where it is in Measures
    label: str
    form: Callable[[float], str]
    better: int  # LOWER, HIGHER or NEITHER

    def of(self, measures: Measures) -> float:
        """Return its value; NaN where there is nothing to measure."""
        return float(attrgetter(self.key)(measures))


FIGURES = (
    Figure("jobs", "jobs", number, NEITHER),
    Figure("completed", "completed", number, HIGHER),
    Figure("wait.mean", "wait, mean", duration, LOWER),
    Figure("wait.median", "wait, median", duration, LOWER),
    Figure("wait.p95", "wait, 95th percentile", duration, LOWER),
    Figure("wait.largest", "wait, largest", duration, LOWER),
    # Where most jobs wait less, more of the others wait ten times as long: no verdict on this one.
    Figure("starving", "starving jobs", number, NEITHER),
    Figure("total_wait.mean", "total wait, mean", duration, LOWER),
    Figure("response.mean", "response, mean", duration, LOWER),
    Figure("slowdown.mean", "bounded slowdown, mean", number, LOWER),
    Figure("slowdown.median", "bounded slowdown, median", number, LOWER),
    Figure("slowdown.p95", "bounded slowdown, 95th percentile", number, LOWER),
    Figure("slowdown_per_processor.mean", "per-processor slowdown, mean", number, LOWER),
    Figure("makespan", "makespan", duration, LOWER),
    Figure("utilisation", "utilisation", percent, HIGHER),
    Figure("utilisation_window", "utilisation while jobs arrive", percent, HIGHER),
    Figure("gpu_allocation", "GPUs allocated, mean", percent, HIGHER),
    Figure("gpu_allocation_peak", "GPUs allocated, peak", percent, HIGHER),
    Figure("goodput", "goodput", percent, HIGHER),
    Figure("gang_waste", "gang waste, GPU-seconds", number, LOWER),
    Figure("fragmentation", "fragmented, of all GPUs", percent, LOWER),
    Figure("fragmentation_of_idle", "fragmented, of idle GPUs", percent, LOWER),
    Figure("fairness.jain", "Jain index", number, HIGHER),
    Figure("fairness.jain_hourly", "Jain index, hourly mean", number, HIGHER),
    Figure("fairness.jain_worst_hour", "Jain index, worst hour", number, HIGHER),
    Figure("fairness.shortfall", "largest share shortfall", percent, LOWER),
    Figure("fairness.finish_time_ratio", "finish-time ratio, mean", number, LOWER),
    Figure(
        "fairness.finish_time_ratio_worst_queue", "finish-time ratio, worst queue", number, LOWER
    ),
    Figure("preemptions", "preemptions", number, LOWER),
    Figure("reclaims", "reclaims", number, NEITHER),
    Figure("interruptions", "interrupted by nodes that failed", number, LOWER),
    Figure("lost", "work lost, seconds", number, LOWER),
    Figure("queue_mean", "queue length, mean", number, LOWER),
    Figure("queue_largest", "queue length, largest", number, LOWER),
    Figure("cost", "cost", dollars, LOWER),
    Figure("cost_of_work", "cost of an hour of work", dollars, LOWER),
    Figure("machine_hours", "machine hours paid", number, LOWER),
    Figure("machines_peak", "machines, peak", number, NEITHER),
    Figure("paid_used", "paid for and used", percent, HIGHER),
    Figure("decisions", "decisions", number, NEITHER),
    Figure("policy_cpu", "CPU of the simulation", duration, LOWER),
    Figure("speed", "simulated s per s", number, HIGHER),
)

# Where nothing happened there is nothing to say: these are left out of tables while all are zero.
_ONLY_IF_ANY = frozenset(
    {
        "preemptions",
        "reclaims",
        "interruptions",
        "lost",
        "gang_waste",
        "decisions",
        "policy_cpu",
        "starving",
    }
)


def is_worth_showing(figure: Figure, values: list[float]) -> bool:
    """Say whether a row of these values tells anything."""
    if all(math.isnan(value) for value in values):
        return False
    return figure.key not in _ONLY_IF_ANY or any(value != 0 for value in values)
