"""The rows of `bench.instructions`: run as a program, in this tree or in that of another commit.

    python instructions_row.py ROW work|nothing

`nothing` does all that `work` does before its measured part. Nothing is used here that the commits
compared with do not have, so these rows are a part of what `bench` measures.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from collections.abc import Callable

from bench.worlds import (
    FLAVOR,
    PREEMPTION,
    Layout,
    backlog,
    cycle,
    empty_cluster,
    full_cluster,
    settle,
    submit,
)
from unisono.cli.main import main
from unisono.engine.model.queue import Flavor
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

Work = Callable[[], object]

_ROOM = 1 << 40  # GPUs that a queue owns, where there is room for all


def _simulated(policy: str, *, jobs: int = 400, load: float = 0.8) -> Callable[[], Work]:
    def prepare() -> Work:
        def run(jobs: int) -> None:
            trace = f"lublin:jobs={jobs},processors=128,load={load},seed=1"
            with contextlib.redirect_stdout(io.StringIO()):
                code = main(["sim", "run", "--policy", policy, "--trace", trace])
            assert code == 0, f"sim run ended with {code}"

        run(2)  # imports and parsers are no part of it
        return lambda: run(jobs)

    return prepare


def _drain(queues: int, pending: int) -> Callable[[], Work]:
    def prepare() -> Work:
        state = empty_cluster(Layout(queues, gpus=_ROOM))
        submit(state, backlog(pending, queues))
        return lambda: _until_nothing_waits(state)

    return prepare


def _until_nothing_waits(state: ClusterState) -> None:
    while state.waiting:
        cycle(state)


def _submit() -> Work:
    state = empty_cluster(Layout(100, gpus=_ROOM))
    workloads = backlog(1_000, 100)
    return lambda: submit(state, workloads)


def _finish() -> Work:
    state = empty_cluster(Layout(100, gpus=_ROOM))
    submit(state, backlog(1_000, 100))
    _until_nothing_waits(state)
    keys = [*state.running]

    def finish() -> None:
        for key in keys:
            state.apply(changes.WorkloadGone(key))

    return finish


def _every_head() -> Work:
    state = full_cluster(Layout(50, "deep", rules=PREEMPTION), 1_000)
    state.apply(changes.FlavorSet(Flavor(name=FLAVOR)))
    state.refresh()
    return lambda: settle(state)


def _idle() -> Work:
    state = full_cluster(Layout(50), 1_000)

    def idle() -> None:
        for _ in range(200):
            cycle(state)

    return idle


ROWS: dict[str, Callable[[], Work]] = {
    "sim easy": _simulated("easy"),
    "sim fifo": _simulated("fifo"),
    "sim kueue-fair": _simulated("kueue-fair"),
    "sim multifactor+easy": _simulated("multifactor+easy"),
    "sim conservative": _simulated("conservative"),
    "sim conservative, overloaded": _simulated("conservative", jobs=150, load=3.8),
    "drain, one queue": _drain(1, 1_000),
    "drain, 100 queues": _drain(100, 1_000),
    "submit": _submit,
    "finish": _finish,
    "every head, preempting": _every_head,
    "idle cycles": _idle,
}


if __name__ == "__main__":
    _, name, what = sys.argv
    work = ROWS[name]()
    # The collector runs when it likes, and tearing down costs what is left: neither is the work.
    gc.collect()
    gc.disable()
    if what == "work":
        work()
    os._exit(0)
