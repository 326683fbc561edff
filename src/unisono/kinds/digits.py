"""Numbers that stand in a text: the one place where a text becomes a number.

Labels, annotations, arguments and conditions come from any client, and Python is generous: `int`
takes digits of all scripts, underscores and spaces, and breaks at 4,300 digits; `float` takes "nan"
and "inf". Loads nothing, because commands use it that start quickly.
"""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False  # as type checkers read it, without loading `typing`
if TYPE_CHECKING:
    from typing import TypeGuard

# Of a number that was written as a text: enough for 64 bits.
MAX_DIGITS = 18
_FLOAT = re.compile(r"(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,3})?")


def whole_number(text: object, most: int = 10**MAX_DIGITS - 1) -> int | None:
    """Return the number that a text says, at most `most`; None if it says none that we count.

    >>> whole_number("0042"), whole_number("-1"), whole_number("9" * 5000), whole_number("70", 60)
    (42, None, None, None)
    >>> whole_number("٣"), whole_number("1_0"), whole_number(" 1"), whole_number("")
    (None, None, None, None)
    """
    if not is_digits(text) or len(text) > MAX_DIGITS:
        return None
    number = int(text)
    return number if number <= most else None


def is_digits(text: object) -> TypeGuard[str]:
    """Say whether a text has digits and nothing else; how many does not matter."""
    return isinstance(text, str) and text.isascii() and text.isdecimal()


def finite_number(text: object, most: float) -> float | None:
    """Return the number of at least 0 and at most `most` that a text says; None if it says none.

    >>> finite_number("0.5", 9), finite_number("1e3", 9), finite_number("nan", 9)
    (0.5, None, None)
    """
    if not isinstance(text, str) or _FLOAT.fullmatch(text) is None:
        return None
    number = float(text)
    return number if math.isfinite(number) and number <= most else None
