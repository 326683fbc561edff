"""A minimal sufficient subset: QuickXplain (Junker 2004), then deletion until nothing is left over.

`is_enough` need not be monotone: with less in the way, another workload may start first and take
what came free. QuickXplain only makes a good start then; the deletion afterwards tries every
element that is left, so that what it returns is always enough, and never enough without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from unisono.engine.diagnosis.in_steps import InSteps

T = TypeVar("T")
IsEnough = Callable[[Sequence[T]], InSteps[bool]]


def preferred_subset(
    always: Sequence[T], elements: Sequence[T], is_enough: IsEnough[T]
) -> InSteps[list[T]]:
    """Return a small part of `elements` that, with `always`, is enough; all of them are.

    Elements in front are preferred: the worst one that is needed is as good as possible.

    >>> from unisono.engine.diagnosis.in_steps import finished
    >>> def is_enough(chosen: Sequence[int]) -> InSteps[bool]:
    ...     yield
    ...     return sum(chosen) >= 6
    >>> finished(preferred_subset([], [1, 2, 3, 4, 5, 6], is_enough))
    [1, 2, 3]
    """
    if not elements or (yield from is_enough(always)):
        return []
    return (yield from _explain(list(always), list(elements), is_enough))


def _explain(always: list[T], elements: list[T], is_enough: IsEnough[T]) -> InSteps[list[T]]:
    """Divide: what the front half cannot do needs something of the back half."""
    if len(elements) == 1:
        return elements
    half = len(elements) // 2
    front, back = elements[:half], elements[half:]
    if (yield from is_enough([*always, *front])):
        return (yield from _explain(always, front, is_enough))
    of_back = yield from _explain([*always, *front], back, is_enough)
    if (yield from is_enough([*always, *of_back])):
        return of_back
    of_front = yield from _explain([*always, *of_back], front, is_enough)
    return [*of_front, *of_back]


def without_needless(elements: Sequence[T], is_enough: IsEnough[T]) -> InSteps[list[T]]:
    """Drop elements, the last first, until none can be dropped alone; all are enough to begin with.

    >>> from unisono.engine.diagnosis.in_steps import finished
    >>> def is_enough(chosen: Sequence[int]) -> InSteps[bool]:
    ...     yield
    ...     return 2 in chosen or 4 in chosen
    >>> finished(without_needless([1, 2, 3, 4], is_enough))
    [2]
    """
    kept = list(elements)
    index = len(kept) - 1
    refused = 0  # in a row: after one round without a success it is minimal
    while kept and refused < len(kept):
        fewer = [*kept[:index], *kept[index + 1 :]]
        if (yield from is_enough(fewer)):
            kept, refused = fewer, 0
        else:
            refused += 1
        index = (index or len(kept)) - 1
        if index >= len(kept):
            index = len(kept) - 1
    return kept
