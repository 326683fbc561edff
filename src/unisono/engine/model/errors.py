"""Exceptions. A workload that cannot start is never one of these: it gets an `Explanation`."""

from __future__ import annotations


class UnisonoError(Exception):
    """Base of everything we raise on purpose."""


class InvalidManifest(UnisonoError):
    """The user can fix it: which field, and what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem
