"""JSON that stands in a text of any client's: an annotation, the message of a condition.

Python's reader raises RecursionError at a thousand nested lists, and readers of annotations expect
ValueError. One annotation that raises anything else would end what reads the objects of all
tenants. A number may be infinite or NaN (a loss that diverged): a reader that makes whole numbers
expects OverflowError, too.
"""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str) -> Any:
    """Read a text; ValueError if it is no JSON, or is nested too deep.

    >>> read_json('{"step": 7}')
    {'step': 7}
    >>> read_json("[" * 5000)
    Traceback (most recent call last):
    ...
    ValueError: nested too deep
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
