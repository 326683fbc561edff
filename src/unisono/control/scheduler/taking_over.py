"""How a new leader takes over the gangs that are on their way: it marks each, before it decides."""

from __future__ import annotations

from unisono.control import names
from unisono.control.actions import Patch, Ref, Steps, Together
from unisono.control.scheduler import record
from unisono.control.view import View

# As many as a client has out at once. One after the other, a thousand gangs took ten seconds, in
# which nobody was admitted.
MOST_AT_ONCE = 64


def taken_over(view: View, epoch: int) -> Steps:
    """Put our mark on every gang that is on its way."""
    writes = [
        Patch(Ref.to(workload), changes, "status")
        for workload in view.all(names.WORKLOAD)
        if (changes := record.stamped(workload, epoch)) is not None
    ]
    for first in range(0, len(writes), MOST_AT_ONCE):
        yield Together(writes[first : first + MOST_AT_ONCE])
