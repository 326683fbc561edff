"""Work in steps: a generator that pauses where its caller may do something else.

A diagnosis takes up to some tenths of a second. Between two trials it yields, so that a control
plane whose loop it is on attends to everything else; without one, `finished` goes straight through.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
InSteps = Generator[None, None, T]


def finished(work: InSteps[T]) -> T:
    """Go through all steps at once.

    >>> def work() -> InSteps[int]:
    ...     yield
    ...     return 7
    >>> finished(work())
    7
    """
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
