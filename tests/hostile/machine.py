"""Many cases, each on a cluster as new, side by side.

A worker brings up one cluster and forks for every case: the child finds everything ready, cannot
harm the next case, and may die of it. One that was refused and wrote nothing leaves the cluster as
it was, so that the child goes on with the next.

    worker ── fork ──▶ child: case 17 (refused), 18 (refused), 19 (stored: judged, and the end)
           ── fork ──▶ child: case 20 …
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from functools import cache, partial
from pathlib import Path

from tests.hostile.cases import Case, case_of
from tests.hostile.fields import kinds
from tests.hostile.named import named
from tests.hostile.stage import Stage
from tests.hostile.trial import Outcome, is_live, tried

# A child that is stuck where no step is counted ends by one of these; none comes near otherwise.
_MOST_MEMORY_BYTES = 2 * 1024**3
_MOST_CPU_S = 30
_MOST_WALL_S = 600
# A child goes on for so many cases; what an earlier one took of memory must not hide the next.
_MOST_IN_A_ROW = 100
_GROWN_BYTES = 4 * 1024 * 1024
_CHUNK = 50  # cases that a worker is handed at a time


class Rehearsed:
    """A cluster that is ready, in a process that may be forked."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self.stage = Stage()
        self._loop.run_until_complete(self._set_up())
        for kind in kinds():  # what is worked out once and kept is no case's doing
            is_live(kind)
        gc.collect()
        gc.freeze()

    async def _set_up(self) -> None:
        await self._stack.enter_async_context(self.stage.running())
        await self.stage.set_up()

    def outcomes(self, cases: Sequence[Callable[[], Case]]) -> Iterator[Outcome]:
        """Try cases, each on the cluster as it is now; they are made where they are tried."""
        done = 0
        while done < len(cases):
            found, ended = self._forked(cases[done : done + _MOST_IN_A_ROW])
            yield from found
            done += len(found)
            if ended and done < len(cases):
                case = cases[done]()
                yield Outcome(case.title, verdict="killed", broken=[f"its process {ended}"])
                done += 1

    def _forked(self, cases: Sequence[Callable[[], Case]]) -> tuple[list[Outcome], str]:
        """Try cases in a child until one has changed the cluster; say if the child died of one."""
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            return self._in_folder(cases, Path(folder))

    def _in_folder(
        self, cases: Sequence[Callable[[], Case]], folder: Path
    ) -> tuple[list[Outcome], str]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._in_child(cases, writing, folder)
        os.close(writing)
        found = []
        with os.fdopen(reading, "rb") as pipe:
            while True:
                try:
                    found.append(pickle.load(pipe))
                except EOFError:
                    break
                except pickle.UnpicklingError:
                    break  # it died while it wrote
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return found, ""
        return found, f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exits {code}"

    def _in_child(self, cases: Sequence[Callable[[], Case]], writing: int, folder: Path) -> None:
        code = 1
        try:
            _limit()
            self.stage.write_to(folder / "state.db")
            with os.fdopen(writing, "wb") as pipe:
                for make in cases:
                    signal.alarm(_MOST_WALL_S)
                    outcome = self._loop.run_until_complete(tried(self.stage, make()))
                    pickle.dump(outcome, pipe)
                    pipe.flush()
                    if not outcome.is_clean or outcome.grown_bytes > _GROWN_BYTES:
                        break
            code = 0
        finally:
            os._exit(code)


def _limit() -> None:
    with open("/proc/self/statm", encoding="ascii") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + _MOST_MEMORY_BYTES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, resource.RLIM_INFINITY))


@cache
def _rehearsed() -> Rehearsed:
    """Return the cluster of this process."""
    return Rehearsed()


def run_cases(cases: Sequence[Callable[[], Case]]) -> list[Outcome]:
    """Try cases in this process's children."""
    return list(_rehearsed().outcomes(cases))


def run_numbers(numbers: Sequence[int], kind: str = "") -> list[Outcome]:
    """Try the cases of some numbers."""
    found = run_cases([partial(case_of, number, kind) for number in numbers])
    for number, outcome in zip(numbers, found, strict=True):
        outcome.number = number
    return found


def run_named(names: Sequence[str]) -> list[Outcome]:
    """Try cases by their names."""
    return run_cases([partial(named, name) for name in names])


def run_many(numbers: Sequence[int], *, jobs: int, kind: str = "") -> Iterator[Outcome]:
    """Try the cases of many numbers with several workers, in order."""
    chunks = [numbers[at : at + _CHUNK] for at in range(0, len(numbers), _CHUNK)]
    if jobs == 1:
        for chunk in chunks:
            yield from run_numbers(chunk, kind)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(partial(run_numbers, kind=kind), chunks):
            yield from found
