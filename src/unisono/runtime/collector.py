"""Python's garbage collector, set for a program that keeps many objects for long.

The engine holds hundreds of thousands of small objects and makes hardly any cycles. With Python's
defaults the collector walks them again and again; a drain of 50,000 workloads spends a third of its
time there. What was loaded is frozen, and young objects are looked at a hundred times less often.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 70_000  # Python's default is 700


def calm_collector() -> None:
    """Call after loading, and again when what is kept for long is there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)
