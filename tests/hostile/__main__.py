"""Runs hostile cases by hand.

    python -m tests.hostile --cases 20000 --jobs 2   many, with progress
    python -m tests.hostile --seed 1234              one of them, and all that is known of it
    python -m tests.hostile --kind ClusterQueue      those of one kind
    python -m tests.hostile --named                  those that have a name, or some of them

Exits with 1 if a promise was broken. A case is the same every time while the schemas are.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.hostile.cases import case_of, every_field
from tests.hostile.machine import run_many, run_named, run_numbers
from tests.hostile.named import NAMED
from tests.hostile.trial import Outcome

_PROGRESS_EVERY = 500
_MOST_SHOWN = 100_000  # bytes of a body
_MOST_ALIKE = 3  # violations of one sort that are told in full


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--cases", type=int, default=1000, help="so many, from the first on")
    parser.add_argument("--first", type=int, default=0, help="begin with this number")
    parser.add_argument("--seed", type=int, help="run this one alone")
    parser.add_argument("--kind", default="", help="only fields of this kind: Job, or Job.batch")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--body", action="store_true", help="with --seed: print what is sent")
    parser.add_argument("--named", nargs="*", metavar="NAME", help="run these, or all, by name")
    asked = parser.parse_args(arguments)
    if asked.named is not None:
        return _named(asked.named or [*NAMED])
    if not every_field(asked.kind):
        parser.error(f"no kind is called {asked.kind}")
    if asked.seed is not None:
        return _one(asked.seed, asked.kind, body=asked.body)
    numbers = range(asked.first, asked.first + asked.cases)
    found = run_many(numbers, jobs=asked.jobs, kind=asked.kind)
    return _many(found, len(numbers), asked.kind)


def _named(names: Sequence[str]) -> int:
    unknown = [name for name in names if name not in NAMED]
    if unknown:
        print(f"there is no case {unknown[0]!r}; `--named` alone runs all of them", file=sys.stderr)
        return 2
    broken = 0
    for name in names:
        (outcome,) = run_named([name])
        broken += bool(outcome.broken)
        print(f"{name}\n  {outcome.verdict} ({_cost(outcome)}): {outcome.said}", flush=True)
        for line in outcome.broken:
            print(f"  BROKEN: {line}", flush=True)
    print(f"{len(names)} hostile cases, {broken} broken")
    return 1 if broken else 0


def _one(seed: int, kind: str, *, body: bool) -> int:
    if body:
        for send in case_of(seed, kind).hostile:
            print(f"{send.method} {send.path}\n{send.body[:_MOST_SHOWN].decode()}")
    (outcome,) = run_numbers([seed], kind)
    print(f"{outcome.title}\n{outcome.verdict}: {outcome.said}\n{_cost(outcome)}")
    for line in outcome.broken:
        print(f"BROKEN: {line}")
    return 1 if outcome.broken else 0


def _many(found: Iterator[Outcome], count: int, kind: str) -> int:
    verdicts: Counter[str] = Counter()
    worst: dict[str, Outcome] = {}
    alike: Counter[str] = Counter()
    broken = 0
    for number, outcome in enumerate(found, 1):
        verdicts[outcome.verdict] += 1
        for what in ("steps", "cpu_s", "grown_bytes"):
            if what not in worst or getattr(outcome, what) > getattr(worst[what], what):
                worst[what] = outcome
        if outcome.broken:
            broken += 1
            sort = outcome.broken[0].rpartition(" at ")[2][:60]
            alike[sort] += 1
            if alike[sort] <= _MOST_ALIKE:
                print(f"{outcome.title}\n  {_repeat(outcome, kind)}", flush=True)
                print("\n".join(f"  BROKEN: {line}" for line in outcome.broken), flush=True)
        if number % _PROGRESS_EVERY == 0:
            print(f"{number} of {count} cases, {broken} broken", flush=True)
    print(f"{count} hostile cases, {broken} broken: ", end="")
    print(", ".join(f"{times} {what}" for what, times in verdicts.most_common()))
    for what, told in (("steps", "steps"), ("cpu_s", "CPU"), ("grown_bytes", "memory")):
        if what in worst:
            print(f"most {told}: {_cost(worst[what])}; {_repeat(worst[what], kind)}")
    for sort, times in alike.most_common():
        print(f"{times:6} × {sort}")
    return 1 if broken else 0


def _cost(outcome: Outcome) -> str:
    grown = outcome.grown_bytes / 1024**2
    return f"{outcome.steps:,} steps, {outcome.cpu_s:.2f} s of CPU, {grown:.1f} MB"


def _repeat(outcome: Outcome, kind: str) -> str:
    narrowed = f" --kind {kind}" if kind else ""
    return f"python -m tests.hostile --seed {outcome.number}{narrowed}"


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.hostile", *sys.argv[1:]])
    sys.exit(main(sys.argv[1:]))
