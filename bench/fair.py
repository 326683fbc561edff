"""A fair-sharing cycle: one cohort owns all quota and the heads of many queues compete for it.

Each decision changes the shares that the next one is made with. Half the heads find room; the
classical order on the same cluster is shown beside it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import partial

from bench.harness import Finding, Scale, repeated, row, seconds
from bench.worlds import Layout, empty_cluster, pods, submit, workload
from unisono.engine.cycle import plan
from unisono.engine.model.policy import FairSharing, Policy

SIZES: dict[Scale, tuple[int, ...]] = {
    "full": (10, 100, 500, 2_000),
    "quick": (10, 100, 500),
    "tiny": (4, 8),
}
POLICIES = {"fair": Policy(fair_sharing=FairSharing()), "classical": Policy()}


def measure(scale: Scale) -> Iterator[Finding]:
    """Let more and more heads compete."""
    for name, policy in POLICIES.items():
        for heads in SIZES[scale]:
            layout = Layout(heads, cohort_size=heads, gpus=0, cohort_gpus=heads // 2)
            state = empty_cluster(layout, policy)
            submit(state, (workload(number, number, pods(1, 1)) for number in range(heads)))
            assert len(plan(state, state.now).admissions) == heads // 2, "half of them fit"
            gc.collect()
            taken = repeated(partial(seconds, partial(plan, state, state.now)), samples=10)
            yield row(f"plan, {name}", heads, "heads", taken, "ms")
