"""Judge the explanations of random clusters.

python -m tests.judge --runs 20000 [--jobs 2] [--seed 0] [--in random|simulator|stories]

Prints how many explanations were judged, by what they are about, and how many are false; every
false one with the seed that shows it again (`--runs 1 --seed N`). Exit status 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.judge.judgement import Judgement, judge
from tests.judge.situations import situation
from tests.judge.states import MOST_PENDING, of_story, simulated
from unisono.cli.demo.command import OFFLINE, TITLES

# Seeds of one task: enough that handing it over costs nothing.
_CHUNK = 50
_MOST_SHOWN = 20
# Those on a living cluster.
STORIES = tuple(name for name in TITLES if name not in OFFLINE)
_TELL_EVERY = 1000


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.judge",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=1000, help="random clusters (1000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster (0)")
    parser.add_argument(
        "--in",
        choices=("random", "simulator", "stories"),
        default="random",
        dest="where",
        help="random clusters (default), states of simulated runs, or of the stories of the demo",
    )
    given = parser.parse_args()
    began = time.monotonic()
    tally = Tally()
    seeds = range(given.seed, given.seed + given.runs)
    source = {"random": _judged, "simulator": _judged_in_a_run, "stories": _judged_in_a_story}
    if given.where == "stories":
        seeds = range(len(STORIES))
    of_each = judged(seeds, given.jobs, source[given.where])
    for number, (seed, judgements) in enumerate(of_each, 1):
        tally.count(seed, judgements)
        if number % _TELL_EVERY == 0:
            told = f"{number} clusters, {tally.explanations} explanations"
            print(f"{told}: {len(tally.shown)} false", file=sys.stderr, flush=True)
    tally.print(len(seeds), time.monotonic() - began)
    return 1 if tally.false else 0


def judged(
    seeds: range, jobs: int, source: Callable[[int], tuple[int, list[Judgement]]]
) -> Iterator[tuple[int, list[Judgement]]]:
    """Yield the judgements of every seed."""
    if jobs == 1:
        yield from map(source, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(source, seeds, chunksize=_CHUNK)


def _judged(seed: int) -> tuple[int, list[Judgement]]:
    return seed, list(judge(situation(seed)))


def _judged_in_a_run(seed: int) -> tuple[int, list[Judgement]]:
    return seed, [one for world in simulated(seed) for one in judge(world, most=MOST_PENDING)]


def _judged_in_a_story(number: int) -> tuple[int, list[Judgement]]:
    return number, [one for world in of_story(STORIES[number]) for one in judge(world)]


class Tally:
    """How many explanations were judged, by kind, and how many of them are false."""

    def __init__(self) -> None:
        self.judged: Counter[tuple[str, str]] = Counter()
        self.false: Counter[tuple[str, str]] = Counter()
        self.explanations = 0
        self.shown: list[str] = []

    def count(self, seed: int, judgements: Iterable[Judgement]) -> None:
        """Count the judgements of one cluster."""
        for one in judgements:
            self.explanations += 1
            kinds = [("verdict", one.verdict), ("reason", one.fact)]
            kinds += [("cause", cause) for cause in one.causes]
            self.judged.update(kinds)
            if one.faults:
                self.false.update(kinds)
                self.shown.append(f"seed {seed}: {one.workload} ({one.verdict}): {one.faults[0]}")

    def print(self, runs: int, seconds: float) -> None:
        """Print the table, and the first false explanations."""
        for of in ("verdict", "reason", "cause"):
            print(f"{of:40} {'judged':>8} {'false':>6}")
            for (_, name), count in sorted(
                (item for item in self.judged.items() if item[0][0] == of),
                key=lambda item: -item[1],
            ):
                print(f"  {name:38} {count:8} {self.false[of, name]:6}")
        for line in self.shown[:_MOST_SHOWN]:
            print(line[:300])
        print(
            f"{self.explanations} explanations of {runs} clusters judged in {seconds:.0f} s:"
            f" {len(self.shown)} false"
        )


if __name__ == "__main__":
    sys.exit(main())
