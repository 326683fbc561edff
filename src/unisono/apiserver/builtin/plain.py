"""Kinds that are stored as they are written, and the one thing that they do not share.

Most kinds without a spec that somebody acts on do not count generations.
"""

from __future__ import annotations

from unisono.apiserver.strategy import Strategy


class UncountedStrategy(Strategy):
    """A kind whose generations nobody counts."""

    has_generation = False
