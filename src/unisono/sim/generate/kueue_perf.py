"""The load of Kueue's own scheduler test: many small workloads, and nothing random.

Five cohorts of six queues; each queue gets 350 small, 100 medium and 50 large workloads of one pod.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unisono.sim.trace import FINISHED, BadTrace, Trace, make_trace


@dataclass(frozen=True, slots=True)
class Class:
    """Workloads of one class, in every queue."""

    name: str
    count: int
    cpu: int  # cores
    priority: int
    run_s: float
    every_s: float


CLASSES = (
    Class("small", 350, 1, 50, 0.2, 0.1),
    Class("medium", 100, 5, 100, 0.5, 0.5),
    Class("large", 50, 20, 200, 1.0, 1.2),
)
CPU_PER_QUEUE = 20  # nominal quota, cores


def kueue_perf(*, cohorts: int = 5, queues: int = 6, share: float = 1.0) -> Trace:
    """Return the load, or a share of every class of it; queues are called cohort-N-queue-M."""
    if cohorts < 1 or queues < 1 or not 0 < share <= 1:
        raise BadTrace("kueue-perf", "needs cohorts and queues, and a share above 0 and up to 1")
    classes = [replace(one, count=max(1, round(one.count * share))) for one in CLASSES]
    counts = [one.count for one in classes]
    number_in_class = np.concatenate([np.arange(count) for count in counts])
    of_class = np.repeat(np.arange(len(classes)), counts)
    everywhere = cohorts * queues
    columns = np.array([[one.cpu, one.priority, one.run_s, one.every_s] for one in classes])
    cpu, priority, run, every = np.tile(columns[of_class], (everywhere, 1)).T
    queue = np.repeat(np.arange(everywhere), len(number_in_class))
    return make_trace(
        "kueue-perf",
        submit=np.tile(number_in_class, everywhere) * every,
        run=run,
        cpu=(1000 * cpu).astype(np.int64),
        priority=priority.astype(np.int64),
        user=np.tile(np.array([one.name for one in classes])[of_class], everywhere),
        group=np.array([f"cohort-{place // queues}" for place in range(everywhere)])[queue],
        queue=np.array(
            [f"cohort-{place // queues}-queue-{place % queues}" for place in range(everywhere)]
        )[queue],
        status=FINISHED,
        processors=everywhere * CPU_PER_QUEUE,
    )
