"""What the stories of faults have shown, in figures, at the end of a run.

    fault stories: 15 told to the end, 71 gangs of 169 pods, 1,204 looks at all of them in 612 s
      faults: 160 conflicts, 40 expired watches, 23 refusals (429), 2 leaders killed, …
      in pieces beyond 90 s: 0 gangs (longest 8.4 s); double bookings: 0; lost workloads: 0

A story adds its figures to its own report, so that they also arrive from other processes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

_PROPERTY = "verdict"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen in one story."""

    faults: dict[str, int]  # by what they are called
    gangs: int
    pods: int
    looks: int  # how often everything was looked at
    longest_partial_s: float
    most_partial_s: float  # that is allowed
    too_long: int  # gangs that were in pieces for longer
    double_bookings: int
    lost: int  # workloads that did not come to their end
    seconds: float


def record(item: pytest.Item, verdict: Verdict) -> None:
    """Add a verdict to the report of a test."""
    item.user_properties.append((_PROPERTY, msgspec.to_builtins(verdict)))


class Verdicts:
    """Gathers verdicts, and sums them up."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: list[Verdict] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a story recorded; its last report has all of it."""
        if report.when == "teardown":
            self._found += [
                msgspec.convert(made, Verdict)
                for name, made in report.user_properties
                if name == _PROPERTY
            ]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what all of them come to."""
        if self._found:
            terminalreporter.write_line(told(self._found))


def told(verdicts: list[Verdict]) -> str:
    """Sum stories up, in three lines."""
    faults: Counter[str] = Counter()
    for one in verdicts:
        faults.update(one.faults)
    kinds = ", ".join(f"{count:,} {name}" for name, count in faults.most_common())
    longest = max(one.longest_partial_s for one in verdicts)
    return "\n".join(
        (
            f"fault stories: {len(verdicts)} told to the end, "
            f"{_sum(verdicts, 'gangs')} gangs of {_sum(verdicts, 'pods')} pods, "
            f"{_sum(verdicts, 'looks')} looks at all of them "
            f"in {sum(one.seconds for one in verdicts):.0f} s",
            f"  faults: {kinds or 'none'}",
            f"  in pieces beyond {max(one.most_partial_s for one in verdicts):.0f} s: "
            f"{_sum(verdicts, 'too_long')} gangs (longest {longest:.1f} s); "
            f"double bookings: {_sum(verdicts, 'double_bookings')}; "
            f"lost workloads: {_sum(verdicts, 'lost')}",
        )
    )


def _sum(verdicts: list[Verdict], name: str) -> str:
    return f"{sum(getattr(one, name) for one in verdicts):,}"
