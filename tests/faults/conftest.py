"""Says at the end how many seeds and points were run: a number is part of the evidence."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up what tests recorded, wherever they ran."""
    found: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in getattr(report, "user_properties", ()):
            if report.when == "call" and name in ("points", "runs"):
                found[f"{report.nodeid.partition('[')[0]}: {name}"] += int(str(value))
    for name, value in sorted(found.items()):
        terminalreporter.write_line(f"{name} {value}")
