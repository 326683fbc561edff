"""Judge one explanation: what it marks must be sufficient, minimal, and there.

later, never   with all marked causes gone the workload starts; with any one left it does not,
               and neither with one node, or one unit of quota, less
never          it does not start even alone on the empty, healthy cluster, at no known instant
starts-now     the next cycles start it
unknown        always wrong: so is a wait without a cause
a way          that is called impossible does not start it on the empty cluster with its flavors
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from tests.judge.counterfactual import (
    UntrueCause,
    alone,
    starts,
    starts_without,
    with_flavors,
)
from unisono.engine.cluster import restore
from unisono.engine.diagnosis import diagnose
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.diagnosis import (
    Cause,
    Condition,
    Diagnosis,
    MissingNodes,
    MissingQuota,
    Until,
)
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.snapshot import Snapshot

Diagnoses = Callable[[Snapshot, WorkloadKey], Diagnosis | None]


@dataclass(frozen=True)
class Judgement:
    """One explanation, and what is wrong with it."""

    workload: WorkloadKey
    fact: str  # the kind of blocker that the last cycle recorded first
    verdict: str
    causes: tuple[str, ...]  # kinds
    faults: tuple[str, ...]


def judge(
    world: Snapshot, *, diagnoses: Diagnoses = diagnose, most: int | None = None
) -> Iterator[Judgement]:
    """Judge the explanations of all pending workloads of a cluster, or of the first of them."""
    state = restore(world)
    for workload in world.waiting[:most]:
        found = diagnoses(world, workload.key)
        why = explanation(state, workload.key)
        yield Judgement(
            workload=workload.key,
            fact=type(why.blockers[0]).__name__ if why is not None and why.blockers else "none",
            verdict=found.verdict if found is not None else "none",
            causes=tuple(sorted({kind_of(cause) for cause in found.in_the_way})) if found else (),
            faults=tuple(_faults(world, workload.key, found)),
        )


def kind_of(cause: Cause) -> str:
    """Name the kind of a cause."""
    match cause:
        case Condition(blocker=fact):
            return f"Condition {type(fact).__name__}"
        case Until(what=what):
            return f"Until {what}"
        case _:
            return type(cause).__name__


def _faults(world: Snapshot, key: WorkloadKey, found: Diagnosis | None) -> Iterator[str]:
    """Yield what is wrong with one explanation."""
    if found is None or found.verdict == "unknown":
        yield "not explained"
        return
    yield from _ways(world, key, found)
    if found.verdict == "starts-now":
        if found.in_the_way or not starts(world, key):
            yield "does not start now"
        return
    if not found.in_the_way:
        yield "nothing is marked"
        return
    ground = world
    if found.verdict == "never":
        ground = alone(world, key)
        for instant in _instants(world):
            if starts(ground, key, instant):
                yield f"it can start on the empty cluster (at {instant - world.now} ms)"
                return
    try:
        yield from _marked(ground, key, found)
    except UntrueCause as error:
        yield str(error)


def _ways(world: Snapshot, key: WorkloadKey, found: Diagnosis) -> Iterator[str]:
    """Yield the ways that are called impossible and are not."""
    for way in found.ways:
        by_pod_set = {name: flavor for name, _, flavor in way.flavors}
        if way.possible or len(set(by_pod_set.values())) > 1 < len(by_pod_set):
            continue  # pod sets could change their flavors with each other
        ground = with_flavors(alone(world, key), key, {name for _, _, name in way.flavors})
        if ground is not None and any(starts(ground, key, at) for at in _instants(world)):
            yield f"it can start with {way.flavors} on the empty cluster"


def _marked(ground: Snapshot, key: WorkloadKey, found: Diagnosis) -> Iterator[str]:
    marked = found.in_the_way
    if not starts_without(ground, key, marked):
        yield "not sufficient"
        return
    for index, cause in enumerate(marked):
        left = (*marked[:index], *marked[index + 1 :])
        if starts_without(ground, key, left):
            yield f"not minimal: without {cause}"
        less = _less(cause)
        if less is None:
            continue
        if starts_without(ground, key, (*marked[:index], less, *marked[index + 1 :])):
            yield f"less is enough: {cause}"


def _less(cause: Cause) -> Cause | None:
    """Return a little less of what is missing."""
    match cause:
        case MissingNodes(count=count) if count > 1:
            return msgspec.structs.replace(cause, count=count - 1)
        case MissingQuota(amount=amount) if amount > 1:
            return msgspec.structs.replace(cause, amount=amount - 1)
        case _:
            return None


def _instants(world: Snapshot) -> list[Instant]:
    """Return now, and all later instants at which the empty cluster is different."""
    found = {world.now}
    for one in world.policy.reservations:
        times = one.times_from(world.now)
        found |= {times[1]} if times is not None else set()
    if world.offerings is not None:
        for outage in world.offerings.outages:
            found |= {outage.until, outage.fewer_from}
    return sorted(instant for instant in found if instant >= world.now)
