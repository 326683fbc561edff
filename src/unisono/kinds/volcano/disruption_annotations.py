"""How many pods of a Volcano job may be disrupted, as annotations of a pod.

Volcano's webhook refuses values that are none; nothing here acts upon the sound ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from unisono.kinds.decode import Problem
from unisono.kinds.digits import whole_number

MIN_AVAILABLE = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
BUDGETS = (MIN_AVAILABLE, MAX_UNAVAILABLE)
_PERCENT = re.compile(r"([0-9]{1,9})%")


def wrong_with_budget(annotations: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what Volcano refuses: a number that is none, and two numbers at once."""
    given = [name for name in BUDGETS if name in annotations]
    for name in given:
        text = str(annotations[name])
        percent, count = _PERCENT.fullmatch(text), whole_number(text, 2**31 - 1)
        if percent is not None and not 1 <= int(percent[1]) <= 99:
            why = "it must be a valid percentage which between 1% ~ 99%"
        elif percent is None and not count:
            why = "it must be a positive integer, or a percentage such as 50%"
        else:
            continue
        yield Problem(f"metadata.annotations[{name}]", f'"{text}" is invalid; {why}')
    if len(given) > 1:
        path = f"metadata.annotations[{given[1]}]"
        why = f"not allow configure multiple annotations at same time: {given[0]} is there, too"
        yield Problem(path, why)
