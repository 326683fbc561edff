"""Writing down how far a gang is: Committing before its first pod is released, Committed after all.

    admitted, its pods come later ────────────────────┐
    admitted, its pods are there ──▶ Planned ──────▶ Committing ──every pod on its node──▶ Committed

That a gang is whole may be written a little later than it is: whoever finds it whole without that
word writes it. So it shares a write with the word that its pods are ready, if they are soon.
"""

from __future__ import annotations

from unisono.control.actions import Json, Note, Ref
from unisono.control.admission.record import (
    COMMITTED,
    COMMITTING,
    number_of,
    placement,
    placement_of,
)
from unisono.control.gangs.slots import slots_of
from unisono.control.view import View


def in_phase(conditions: list[Json], phase: str, deadline: float, now: float) -> list[Json]:
    """Return conditions that say how far a gang is; which placement it is stays as it was."""
    _, about = placement_of(conditions)
    return placement(
        conditions,
        phase,
        gen=number_of(about, "gen", 1),
        epoch=number_of(about, "epoch", 1),
        deadline=deadline,
        now=now,
    )


def if_whole(workload: Json, conditions: list[Json], view: View, now: float) -> list[Json]:
    """Return conditions that also say Committed, if that is so and was not said yet."""
    if placement_of(conditions)[0] != COMMITTING or not slots_of(workload, view).is_whole:
        return conditions
    return in_phase(conditions, COMMITTED, now, now)


def told(workload: Json) -> Note:
    """Return what people hear when a gang is on its nodes."""
    admission = workload["status"]["admission"]
    pods = sum(one.get("count", 0) for one in admission.get("podSetAssignments") or ())
    message = f"{pods} pods are on their nodes, with quota in ClusterQueue "
    message += admission["clusterQueue"]
    return Note(Ref.to(workload), "GangCommitted", message, instead_of=("QuotaReserved",))
