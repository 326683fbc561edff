"""Names of objects in requests: nothing else may become a part of an address of the API."""

from __future__ import annotations

LONGEST = 253
_MORE = frozenset("-.:")


def is_name(text: str) -> bool:
    """Say whether a text can be the name of an object.

    >>> [is_name(one) for one in ("a-1.b", "system:node", "..", "a/b", "", "a%2fb")]
    [True, True, False, False, False, False]
    """
    if not 0 < len(text) <= LONGEST or not text.isascii() or text in (".", ".."):
        return False
    return all(one.isalnum() or one in _MORE for one in text)
