"""How a new leader takes over starting gangs: it marks each, before it decides."""

from __future__ import annotations

from collections.abc import Iterable

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps, Together
from unisono.control.admission import placement
from unisono.control.conditions import find
from unisono.control.view import View
from unisono.kube.errors import Invalid, KubeError, NotFound

ON_ITS_WAY = "on-its-way"
_YES = "yes"

# As many as a client has out at once. One after the other, a thousand gangs took ten seconds, in
# which nothing was admitted.
MOST_AT_ONCE = 64


def on_its_way(workload: Json) -> Iterable[str]:
    """Index gangs that have been sent somewhere and are not there yet."""
    found = find((workload.get("status") or {}).get("conditions"), names.PLACEMENT)
    return () if found is None or found["reason"] == placement.COMMITTED else (_YES,)


def taken_over(view: View, epoch: int) -> Steps:
    """Put our mark on every gang that is on its way.

    One that is gone needs none. One that the API refuses in any form will not be changed by the
    leader before us either; it must not keep all others waiting.
    """
    writes = [
        Patch(Ref.to(workload), changes, "status")
        for workload in view.by(names.WORKLOAD, ON_ITS_WAY, _YES)
        if (changes := placement.stamped(workload, epoch)) is not None
    ]
    for first in range(0, len(writes), MOST_AT_ONCE):
        results = yield Together(writes[first : first + MOST_AT_ONCE], tells=True)
        for result in results:
            if isinstance(result, KubeError) and not isinstance(result, Invalid | NotFound):
                raise result
