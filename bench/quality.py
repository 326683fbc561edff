"""What backfilling makes of published logs, through the whole engine: ours, expected, difference.

Expected figures are those of the plain rules of the literature on one pool of processors: requests
are raised to run times, jobs that cannot run are dropped. First come, first served and EASY leave
no freedom, so a difference of 0.1 % counts as one; conservative backfill may differ by 5 %. Smaller
runs take the beginning of a log, for which the plain rules are asked on the spot.

`python -m bench quality --full` adds logs of 200,000 jobs. GPUs and fragmentation: see `openb`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.harness import Finding, Note, Scale, Unit, figures, target
from bench.sim import KTH, processors
from bench.traces import swf_file
from tests.support.simulations import schedule
from unisono.sim.generators import lublin
from unisono.sim.loop import simulate
from unisono.sim.measures import measure as measures_of
from unisono.sim.outcome import Outcome
from unisono.sim.setup import POLICIES, with_overrun
from unisono.sim.trace import Trace
from unisono.sim.traces.swf import read_swf

EXACT, ROUGHLY = 0.1, 5.0  # percent
BLUE = "SDSC-BLUE-2000-4.2-cln.swf.gz"
HPC2N = "HPC2N-2002-2.1-cln.swf.gz"
LUBLIN = "lublin_256.swf.gz"
# What the plain scheduler calls our policies.
PLAIN = {"fifo": "fcfs", "easy": "easy", "easy-sjbf": "easy-sjbf", "conservative": "conservative"}
FIGURES = ("mean wait", "mean slowdown", "p95 slowdown")  # bounded slowdown


@dataclass(frozen=True)
class Case:
    """A log, a policy, and what is expected: mean wait in s, mean and p95 bounded slowdown."""

    log: str
    policy: str
    expected: tuple[float, float, float]
    perfect: bool = False  # requests are the run times
    is_long: bool = False

    @property
    def name(self) -> str:
        """How tables call it."""
        return f"{self.log.split('-')[0].split('.')[0]} {self.policy}{', perfect' * self.perfect}"


CASES = (
    Case(KTH, "fifo", (218_832, 4_294.5, 29_991)),
    Case(KTH, "easy", (6_351.5, 86.37, 406.0)),
    Case(KTH, "easy", (6_098.6, 71.52, 339.6), perfect=True),
    Case(KTH, "easy-sjbf", (5_623.4, 66.40, 237.5)),
    Case(KTH, "easy-sjbf", (5_225.0, 48.69, 180.3), perfect=True),
    Case(KTH, "conservative", (7_627.9, 97.48, 428.6)),
    Case(LUBLIN, "fifo", (2_388_444, 66_502, 349_361)),
    Case(LUBLIN, "easy", (97_156, 590.05, 3_209)),
    Case(LUBLIN, "easy-sjbf", (73_394, 219.56, 1_285)),
    Case(BLUE, "easy", (7_751.1, 35.21, 181.1), is_long=True),
    Case(BLUE, "easy", (7_569.3, 31.91, 164.5), perfect=True, is_long=True),
    Case(HPC2N, "easy", (10_799.8, 87.10, 119.2), is_long=True),
    Case(HPC2N, "easy", (11_164.5, 78.10, 129.3), perfect=True, is_long=True),
)
PARTS: dict[Scale, int] = {"full": 0, "quick": 500, "tiny": 40}  # jobs; 0: all of them


class _Choice:
    """What the command line chose; one for the whole process."""

    long_logs = False


def choose(*, long_logs: bool) -> None:
    """Take the long logs, too, from now on."""
    _Choice.long_logs = long_logs


def measure(scale: Scale) -> Iterator[Finding]:
    """Replay every log under every policy."""
    yield Note("GPUs and fragmentation beside published figures: see `openb`")
    absent = sorted({case.log for case in CASES if swf_file(case.log) is None})
    for log in absent:
        yield Note(f"{log}: not here; name the folder that has swf/ in UNISONO_TRACES")
    for case in CASES:
        if case.log in absent or (case.is_long and not _Choice.long_logs):
            continue
        path = swf_file(case.log)
        assert path is not None, "it was there a moment ago"
        yield from _compare(case, read_swf(path), scale)
    if len(absent) == len({case.log for case in CASES}) or scale != "full":
        for policy in PLAIN:
            yield from _compare(Case("drawn", policy, (0, 0, 0)), lublin(jobs=200), scale, part=200)


def _compare(case: Case, log: Trace, scale: Scale, *, part: int = 0) -> Iterator[Finding]:
    trace = with_overrun(log, "raise")
    part = part or PARTS[scale]
    if part:
        trace = trace.take(np.arange(min(part, len(trace))))
    if case.perfect:
        trace = trace.perfect()
    ours = _figures(simulate(trace, processors(trace.processors), POLICIES[case.policy]))
    expected = _figures(schedule(trace, PLAIN[case.policy])) if part else case.expected
    tolerance = ROUGHLY if case.policy == "conservative" else EXACT
    for what, mine, theirs in zip(FIGURES, ours, expected, strict=True):
        unit: Unit = "s" if what == "mean wait" else "ratio"
        jobs = len(trace)
        yield figures(f"{case.name}: {what}", jobs, "jobs", [mine], unit)
        apart = 100 * abs(mine - theirs) / theirs if theirs else 100 * mine
        yield Note(f"{case.name}: {what} {mine:,.2f}, expected {theirs:,.2f}, {apart:.3f} % apart")
        difference = figures(f"{case.name}: {what}, apart", jobs, "jobs", [apart], "%")
        yield target(difference.what, difference, tolerance, better="below")


def _figures(outcome: Outcome) -> tuple[float, float, float]:
    found = measures_of(outcome)
    return found.wait.mean, found.slowdown.mean, found.slowdown.p95
