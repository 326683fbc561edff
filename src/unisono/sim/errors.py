"""Trouble with what a simulation is given."""

from __future__ import annotations

from unisono.engine.model.errors import InvalidManifest


class BadTrace(InvalidManifest):
    """A trace, a list of nodes or an option that nobody can read: where, and what is wrong."""
