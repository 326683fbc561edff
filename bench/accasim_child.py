"""Run AccaSim on one workload file, as a process of its own: FILE, SYSTEM, FOLDER for its results.

It knows nothing of us. AccaSim 1.1.3 asks `collections` for a name that moved long ago; the name is
put back in this process only. Prints jobs, processor seconds of the simulation alone and the mean
wait, as JSON on the last line.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import sys
from importlib import import_module
from time import process_time


def main(workload: str, system: str, results: str) -> None:
    """Simulate with EASY backfilling and first fit, and write nothing but the figures."""
    collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]  # as it once was
    base = "accasim.base."
    scheduler = import_module(base + "scheduler_class").EASYBackfilling(
        import_module(base + "allocator_class").FirstFit()
    )
    simulator = import_module(base + "simulator_class").Simulator(
        workload,
        system,
        scheduler,
        scheduling_output=False,
        statistics_output=False,
        show_statistics=False,
        RESULTS_FOLDER_PATH=results,
        LOG_LEVEL="ERROR",
    )
    before = process_time()
    simulator.start_simulation()
    spent = process_time() - before
    waits = simulator.mapper.wtimes
    figures = {"jobs": simulator.loaded_jobs, "cpu_s": spent, "wait_s": sum(waits) / len(waits)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
