"""Garbage is looked for rarely while a simulation runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Objects that came and stayed: a few megabytes.
COLLECTED_AFTER = 50_000


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for cycles of garbage rarely: values of the engine have none, and there are many."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECTED_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
