"""The hold on a pending job: an annotation of the job, written by commands and by the page.

Light, because programs that have to start at once import it (`unisono scontrol`).
"""

from __future__ import annotations

from typing import Any, Literal

HOLD = "unisono.dev/hold"


def hold_changes(by: Literal["user", "admin"] | None) -> dict[str, Any]:
    """Return the merge patch that puts an object on hold; None takes the hold off.

    >>> hold_changes(None)
    {'metadata': {'annotations': {'unisono.dev/hold': None}}}
    """
    return {"metadata": {"annotations": {HOLD: by}}}
