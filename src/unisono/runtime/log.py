"""The log of a program that runs for long: one line per event on stderr, as text or as JSON.

The event is a fixed phrase; what differs from time to time are the facts beside it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, TextIO

Fact = str | int | float | bool
Style = Literal["json", "text"]


def warn(text: str) -> None:
    """Print a warning for the person at the terminal of an embedded cluster or of a command."""
    sys.stderr.write(f"unisono: warning: {text}\n")


class Journal:
    """Writes events."""

    def __init__(self, out: TextIO, now: Callable[[], float], style: Style = "json") -> None:
        """Write to a stream; `now` is in seconds since 1970."""
        self._out = out
        self._now = now
        self._style = style

    def info(self, event: str, **facts: Fact) -> None:
        """Tell what an operator wants to know."""
        self._write("info", event, facts)

    def warning(self, event: str, **facts: Fact) -> None:
        """Tell what went wrong and is mended, or will be by itself."""
        self._write("warning", event, facts)

    def error(self, event: str, **facts: Fact) -> None:
        """Tell what a person must look at."""
        self._write("error", event, facts)

    def _write(self, level: str, event: str, facts: dict[str, Fact]) -> None:
        time = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        time = time.replace("+00:00", "Z")
        if self._style == "json":
            line = json.dumps({"time": time, "level": level, "event": event, **facts})
        else:
            pairs = "".join(f" {key}={json.dumps(value)}" for key, value in facts.items())
            line = f"{time} {level:<7} {event}{pairs}"
        print(line, file=self._out, flush=True)
