"""How large a gang would fit now, in one domain of every level of the topologies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from unisono.engine.state.cluster import ClusterState
from unisono.monitor.metrics.nodes import SIZES
from unisono.monitor.metrics.placement import Largest

_EVERYWHERE = "cluster"


def largest_gangs(state: ClusterState | None) -> Iterator[Largest]:
    """Yield how many pods of one, two, four and eight GPUs fit; nothing before the first look."""
    if state is None:
        return
    table = state.nodes.table
    rows = np.flatnonzero(table.usable)
    free = [np.maximum(table.free_of(column)[rows], 0) for column in table.gpu_columns()]
    levels = dict(_levels(state, rows))
    for size in SIZES:
        pods = sum((one // size for one in free), np.zeros(len(rows), np.int64))
        yield Largest(_EVERYWHERE, size, int(pods.sum()))
        for level, domains in levels.items():
            in_domain = np.bincount(domains, weights=pods, minlength=1)
            yield Largest(level, size, int(in_domain.max()))


def _levels(state: ClusterState, rows: NDArray[np.intp]) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Yield every level with the number of each row's domain in it.

    A rack of one block is another than the rack of the same name in the next: a domain is what has
    the same labels at its own level and at all above.
    """
    seen: set[str] = set()
    for _, topology in sorted(state.config.topologies.items()):
        domains = np.zeros(len(rows), np.int64)
        for level in topology.levels:
            codes = state.nodes.table.label_codes(level)[0][rows].astype(np.int64)
            pairs = domains * (int(codes.max(initial=0)) + 1) + codes
            domains = np.unique(pairs, return_inverse=True)[1].astype(np.int64).reshape(-1)
            if level not in seen:
                seen.add(level)
                yield level, domains
