"""Flavor assignment: which flavor each pod set takes, and whether it fits now (spec quota §7).

For every choice the eligible flavors are tried in order. Each gets a verdict: it fits, it would
fit after preemption, or it does not. Fungibility rules say when to stop and which verdict is best.

    verdicts, worst first:  NO_FIT < NO_VICTIMS < PREEMPT < RECLAIM < FIT
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

from unisono.engine.model.explanation import Blocker, ExceedsMaximum, FlavorMismatch, QuotaExhausted
from unisono.engine.model.names import FlavorName, QueueName, ResourceName
from unisono.engine.model.queue import FlavorFungibility
from unisono.engine.model.resources import FlavorResource
from unisono.engine.model.workload import Admission
from unisono.engine.quota.flavors import Choice, EligibleFlavors, Option
from unisono.engine.state.gang_request import GangRequest
from unisono.engine.state.quota_tree import (
    Cell,
    available,
    borrow_level,
    borrows_with,
    potential,
    reclaim_gap,
)
from unisono.engine.state.transaction import Charges


class Verdict(IntEnum):
    """How well a flavor serves, worst first."""

    NO_FIT = 0
    NO_VICTIMS = 1  # would need victims, and there are no suitable ones
    PREEMPT = 2  # fits once workloads of the own queue leave
    RECLAIM = 3  # fits once workloads of other queues leave
    FIT = 4


@dataclass(slots=True, frozen=True)
class Simulated:
    """How one flavor-resource could be had if others left."""

    verdict: Verdict
    level: int
    # Without victims: how much has to be freed before another search can find any. None: that
    # depends on more than this flavor-resource.
    gap: int | None = None


class Preemption(Protocol):
    """What assignment must know about making others leave."""

    @property
    def has_rules(self) -> bool:
        """Say whether the queue has any rule by which others may be displaced."""
        ...

    def may_try(self, cell: Cell, wanted: int, *, may_reclaim: bool) -> bool:
        """Say whether the rules allow looking for victims at all."""
        ...

    def simulate(self, cell: Cell, wanted: int) -> Simulated:
        """Say how `wanted` of one flavor-resource could be had if others left."""
        ...


@dataclass(slots=True)
class Assignment:
    """Flavors for all pod sets, and what they charge."""

    counts: tuple[int, ...]
    verdict: Verdict = Verdict.FIT
    level: int = 0
    flavors: dict[tuple[int, ResourceName], FlavorName] = field(default_factory=dict)
    charges: dict[Cell, int] = field(default_factory=dict)
    needs_victims: dict[Cell, None] = field(default_factory=dict)
    blockers: list[Blocker] = field(default_factory=list)
    # Under what to wake it again; None: whenever anything is freed in its tree.
    shortages: dict[FlavorResource, int] | None = field(default_factory=dict)

    def as_charges(self) -> Charges:
        """Return the charges in booking form."""
        return tuple(self.charges.items())


# A flavor that is not to be taken for a choice: its nodes are full.
Banned = tuple[int, FlavorName]
# Which flavors may be taken (a recomputation, or an elastic slice that must stay where it is).
Allowed = Mapping[tuple[int, ResourceName], FlavorName]


def assign(
    request: GangRequest,
    eligible: EligibleFlavors,
    counts: tuple[int, ...],
    *,
    fungibility: FlavorFungibility,
    preemption: Preemption,
    queue: QueueName,
    allowed: Allowed | None = None,
    banned: frozenset[Banned] = frozenset(),
) -> Assignment:
    """Find flavors for every pod set, or say why there are none."""
    result = Assignment(counts)
    failures: list[tuple[int, list[Blocker]]] = []
    if eligible.refusals:
        result.verdict = Verdict.NO_FIT
        failures.append((_NO_MATCH, list(eligible.refusals)))
    for number, choice in enumerate(eligible.choices):
        if banned:
            options = tuple(o for o in choice.options if (number, o.flavor) not in banned)
            choice = Choice(choice.pod_sets, choice.resources, options)
        best, refused = _choose(request, choice, result, fungibility, preemption, queue, allowed)
        if best is None:
            result.verdict = Verdict.NO_FIT
            failures.append(_milder_first(refused))
            continue
        result.verdict = min(result.verdict, best.verdict)
        result.level = max(result.level, best.level)
        for cell, wanted in best.wanted.items():
            result.charges[cell] = wanted
        for cell in best.short:
            result.needs_victims[cell] = None
        for place in choice.resources:
            result.flavors[place] = best.option.flavor
        result.blockers.extend(best.facts)
    if failures:
        failures.sort(key=lambda failure: -failure[0])
        result.blockers = [fact for _, facts in failures for fact in facts]
    return result


def resized(
    assignment: Assignment, eligible: EligibleFlavors, counts: tuple[int, ...]
) -> Assignment:
    """Return the same flavors for other (fewer) pods; fewer than what fits always fit."""
    charges: dict[Cell, int] = {}
    level = 0
    for choice in eligible.choices:
        taken = assignment.flavors[choice.resources[0]]
        option = next(option for option in choice.options if option.flavor == taken)
        for index, cell, per_pod in option.per_pod:
            if counts[index]:
                charges[cell] = charges.get(cell, 0) + per_pod * counts[index]
    for cell, total in charges.items():
        level = max(level, borrow_level(cell, total)[0])
    return Assignment(
        counts,
        verdict=assignment.verdict,
        level=level,
        flavors=assignment.flavors,
        charges=charges,
        needs_victims={cell: None for cell in assignment.needs_victims if cell in charges},
        blockers=assignment.blockers,
        shortages=assignment.shortages,
    )


# How bad a refusal is, for choosing which reason to show (spec quota §7).
_WAITING, _TOO_BIG, _NO_MATCH = 1, 2, 3


@dataclass(slots=True)
class _Tried:
    """One flavor's verdict."""

    option: Option
    wanted: dict[Cell, int]  # totals a cell, earlier pod sets included
    verdict: Verdict = Verdict.FIT
    level: int = 0
    short: list[Cell] = field(default_factory=list)
    facts: list[Blocker] = field(default_factory=list)
    severity: int = _WAITING


def _choose(
    request: GangRequest,
    choice: Choice,
    result: Assignment,
    rules: FlavorFungibility,
    preemption: Preemption,
    queue: QueueName,
    allowed: Allowed | None,
) -> tuple[_Tried | None, list[_Tried]]:
    """Try the flavors of one choice; return the one to take, or all that refused."""
    best: _Tried | None = None
    refused: list[_Tried] = []
    for option in choice.options:
        tried = _try(request, choice, option, result, preemption, queue, allowed)
        if tried.verdict is Verdict.NO_FIT:
            refused.append(tried)
            continue
        if best is None or _rank(tried, rules) > _rank(best, rules):
            best = tried
        if _may_stop(tried, rules):
            break
    return best, refused


def _may_stop(tried: _Tried, rules: FlavorFungibility) -> bool:
    """Say whether the search ends here although other flavors are left."""
    if tried.verdict is Verdict.NO_VICTIMS:
        return False
    if tried.verdict is not Verdict.FIT and rules.when_can_preempt == "TryNextFlavor":
        return False
    return not (tried.level > 0 and rules.when_can_borrow == "TryNextFlavor")


def _rank(tried: _Tried, rules: FlavorFungibility) -> tuple[bool, int, int]:
    """Order verdicts: the best mode first, or the lowest borrow level first."""
    real = tried.verdict is not Verdict.NO_VICTIMS
    if rules.preference == "PreemptionOverBorrowing":
        return real, -tried.level, tried.verdict
    return real, tried.verdict, -tried.level


def _try(
    request: GangRequest,
    choice: Choice,
    option: Option,
    result: Assignment,
    preemption: Preemption,
    queue: QueueName,
    allowed: Allowed | None,
) -> _Tried:
    """Give one flavor its verdict."""
    wanted: dict[Cell, int] = {}
    tried = _Tried(option, wanted)
    mismatch = option.mismatch
    if mismatch is None and allowed is not None:
        if any(allowed.get(place) != option.flavor for place in choice.resources):
            name = request.pod_sets[choice.pod_sets[0]].name
            mismatch = FlavorMismatch(pod_set=name, flavor=option.flavor, why="not-allowed")
            result.shortages = None  # the slice that ties it to its flavors may end first
    if mismatch is not None:
        tried.verdict, tried.severity, tried.facts = Verdict.NO_FIT, _NO_MATCH, [mismatch]
        return tried
    owner: dict[Cell, int] = {}
    for index, cell, per_pod in option.per_pod:
        amount = per_pod * result.counts[index]
        wanted[cell] = wanted.get(cell, 0) + amount
        owner.setdefault(cell, index)
    for cell in wanted:
        wanted[cell] += result.charges.get(cell, 0)
    for cell, total in wanted.items():
        if total == 0:
            continue
        left = available(cell)
        if total <= left:
            if borrows_with(cell, total):
                tried.level = max(tried.level, borrow_level(cell, total)[0])
            continue
        pod_set = request.pod_sets[owner[cell]].name
        _short(tried, cell, total, max(0, left), preemption, queue, pod_set, result)
    return tried


def _short(
    tried: _Tried,
    cell: Cell,
    total: int,
    left: int,
    preemption: Preemption,
    queue: QueueName,
    pod_set: str,
    result: Assignment,
) -> None:
    """One flavor-resource has not enough: can it ever, and could others leave?"""
    flavor_resource = cell.flavor_resource
    flavor, resource = tried.option.flavor, flavor_resource.resource
    maximum = potential(cell)
    if total > maximum:
        if cell in result.charges:
            result.shortages = None  # earlier pod sets may choose otherwise another time
        tried.verdict = Verdict.NO_FIT
        tried.severity = max(tried.severity, _TOO_BIG)
        tried.facts.append(
            ExceedsMaximum(
                queue=queue,
                pod_set=pod_set,
                flavor=flavor,
                resource=resource,
                wanted=total,
                maximum=maximum,
            )
        )
        return
    level, may_reclaim = borrow_level(cell, total)
    verdict, tried_preemption = Verdict.NO_FIT, False
    gap: int | None = total - left
    if preemption.may_try(cell, total, may_reclaim=may_reclaim):
        tried_preemption = preemption.has_rules
        simulated = preemption.simulate(cell, total)
        verdict, level = simulated.verdict, simulated.level
        gap = simulated.gap
        tried.short.append(cell)
    elif preemption.has_rules:
        # Less than the whole shortage may be enough to be allowed to reclaim the rest.
        gap = min(total - left, reclaim_gap(cell, total))
    tried.verdict = min(tried.verdict, verdict)
    tried.level = max(tried.level, level)
    tried.facts.append(
        QuotaExhausted(
            queue=queue,
            pod_set=pod_set,
            flavor=flavor,
            resource=resource,
            wanted=total,
            available=left,
            tried_preemption=tried_preemption,
        )
    )
    if cell in result.charges or gap is None:
        # Earlier pod sets share it and may choose otherwise, or it counts what runs where.
        result.shortages = None
    elif result.shortages is not None:
        result.shortages[flavor_resource] = min(result.shortages.get(flavor_resource, gap), gap)


def _milder_first(refused: list[_Tried]) -> tuple[int, list[Blocker]]:
    """Order the refusals of one choice so that the mildest speaks first."""
    ordered = sorted(refused, key=lambda tried: tried.severity)
    severity = ordered[0].severity if ordered else _NO_MATCH
    return severity, [fact for tried in ordered for fact in tried.facts]


def next_ban(
    eligible: EligibleFlavors, assignment: Assignment, banned: frozenset[Banned]
) -> Banned | None:
    """Choose the flavor that gives way: that of the last choice that has others left."""
    for number in range(len(eligible.choices) - 1, -1, -1):
        choice = eligible.choices[number]
        taken = assignment.flavors[choice.resources[0]]
        left = [
            option.flavor
            for option in choice.options
            if option.mismatch is None and (number, option.flavor) not in banned
        ]
        if len(left) > 1 and taken in left:
            return number, taken
    return None


def flavors_kept(admission: Admission, request: GangRequest) -> Allowed:
    """Return the flavors an elastic slice must stay on."""
    by_name = {assigned.name: dict(assigned.flavors) for assigned in admission.pod_sets}
    return {
        (index, resource): flavor
        for index, pod_set in enumerate(request.pod_sets)
        for resource, flavor in by_name.get(pod_set.name, {}).items()
    }
