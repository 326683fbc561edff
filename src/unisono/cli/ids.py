"""Chance, as the real world gives it. Everybody else is handed a maker of ids."""

from __future__ import annotations

import random
import uuid


def new_uid() -> str:
    """Return a new unique id for an object."""
    return str(uuid.uuid4())


def chance() -> random.Random:
    """Return a source of chance that nobody can predict."""
    return random.SystemRandom()
