"""Times as objects have them."""

from __future__ import annotations

from datetime import UTC, datetime


def text(at: float) -> str:
    """Write a time."""
    return datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z")
