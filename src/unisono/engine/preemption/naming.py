"""Victims as a plan names them."""

from __future__ import annotations

from unisono.engine.model.explanation import WaitingForVictims
from unisono.engine.model.plan import Victim
from unisono.engine.model.workload import Admission
from unisono.engine.preemption.candidates import Target


def named(target: Target) -> Victim:
    """Say who has to leave, or what it goes on with, and whether it was told before."""
    holding = target.running.holding
    keeps = target.stays.admission if target.stays is not None else None
    return Victim(
        workload=holding.workload.key,
        reason=target.reason,
        already_evicting=holding.evicting or (keeps is not None and _same(keeps, holding.keeps)),
        keeps=keeps,
    )


def _same(one: Admission, other: Admission | None) -> bool:
    """Say whether two parts of one admission have as many pods of each set."""
    return other is not None and all(
        mine.count == theirs.count
        for mine, theirs in zip(one.pod_sets, other.pod_sets, strict=True)
    )


def waiting_for_victims(victims: tuple[Victim, ...]) -> WaitingForVictims:
    """Say for whom somebody waits: for some to leave, for others to give up pods."""
    return WaitingForVictims(
        victims=tuple(victim.workload for victim in victims if victim.keeps is None),
        shrinking=tuple(victim.workload for victim in victims if victim.keeps is not None),
    )
