"""Runs seeds by hand.

    python -m tests.faults --seed 1234 --trace       one run, with everything that was written
    python -m tests.faults --range 0-2000 --jobs 2   many runs, side by side

Exits with 1 if a promise was broken. A failure is the same every time under the same
PYTHONHASHSEED; without one, 0 is taken.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.faults.run import Outcome, run

_PROGRESS_EVERY = 50


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--range", default="0-100", help="run these seeds, the last one not")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--trace", action="store_true", help="print all that happened")
    parser.add_argument("--stop", action="store_true", help="stop at the first failure")
    asked = parser.parse_args(arguments)
    if asked.seed is not None:
        return _one(asked.seed, trace=asked.trace)
    first, _, last = asked.range.partition("-")
    seeds = range(int(first), int(last))
    return _many(_outcomes(seeds, asked.jobs), len(seeds), stop=asked.stop)


def _one(seed: int, *, trace: bool) -> int:
    outcome = run(seed)
    if trace:
        print("\n".join(outcome.trace))
    print(outcome.story if outcome.broken and not trace else _summary([outcome]))
    if outcome.broken:
        print(f"BROKEN: {outcome.broken}")
    return 1 if outcome.broken else 0


def _outcomes(seeds: Iterable[int], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(_bounded, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_bounded, seeds, chunksize=5)


def _bounded(seed: int) -> Outcome:
    """Run a seed and forget its story unless it matters."""
    outcome = run(seed)
    if not outcome.broken:
        outcome.trace = []
    return outcome


def _many(outcomes: Iterator[Outcome], count: int, *, stop: bool) -> int:
    done: list[Outcome] = []
    broken = 0
    for outcome in outcomes:
        done.append(outcome)
        if outcome.broken:
            broken += 1
            print(f"seed {outcome.seed}: {outcome.broken}\n  {outcome.line}", flush=True)
            if stop:
                break
        if len(done) % _PROGRESS_EVERY == 0:
            print(f"{len(done)} of {count} runs, {broken} broken", flush=True)
    print(_summary(done))
    return 1 if broken else 0


def _summary(done: Sequence[Outcome]) -> str:
    longest: Counter[str] = Counter()
    for outcome in done:
        for what, seconds in outcome.longest.items():
            longest[what] = max(longest[what], int(seconds))
    lasted = "; ".join(f"{what}: {seconds} s" for what, seconds in sorted(longest.items()))
    return (
        f"{len(done)} runs, {sum(1 for one in done if one.broken)} broken; "
        f"{sum(one.gangs for one in done)} gangs, {sum(one.writes for one in done)} writes, "
        f"{sum(one.deaths for one in done)} deaths, {sum(one.checks for one in done)} changes "
        f"checked; longest: {lasted or 'nothing'}"
    )


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.faults", *sys.argv[1:]])
    sys.exit(main(sys.argv[1:]))
