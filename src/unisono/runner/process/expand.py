"""`$(NAME)` in commands, arguments and values (spec jobs §8).

`$$` is a plain `$`; a name that nobody knows and a bracket that nobody closes stay as they are, so
`$(date)` reaches the shell untouched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(\$|\(([^)]*)\))")


def expand(text: str, known: Mapping[str, str]) -> str:
    """Return a text with what is known put in; what was put in is not looked at again.

    >>> expand("$(A) $$(A) $$$(A) $(date) $A ${A} $$ $(A", {"A": "x$(A)"})
    'x$(A) $(A) $x$(A) $(date) $A ${A} $ $(A'
    """

    def put(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        return known.get(found[2], found[0])

    return _REFERENCE.sub(put, text)
