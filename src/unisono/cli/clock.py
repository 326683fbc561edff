"""The real clock. Everybody else is handed an instant."""

from __future__ import annotations

import time

from unisono.engine.model.names import Instant


def now() -> Instant:
    """Return the current time in milliseconds since the epoch."""
    return Instant(time.time_ns() // 1_000_000)
