"""A cluster at rest hears something: what does it do, and did anybody miss it?"""

from __future__ import annotations

from typing import NamedTuple

from tests.support.laws import awake, settle
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan, evictions
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.changes import Change
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

START = Instant(0)


class Deeds(NamedTuple):
    """Who started and who was told to leave, in order, by the short names of the builders."""

    started: list[str]
    evicted: list[str]


NOTHING = Deeds([], [])


def deeds(made: list[Plan]) -> Deeds:
    """Add up what plans do."""
    return Deeds(
        [admit.workload.removeprefix("ns/") for each in made for admit in each.admissions],
        [out.workload.removeprefix("ns/") for each in made for out in evictions(each)],
    )


def at_rest(world: Snapshot) -> ClusterState:
    """Return a cluster in which everything that could happen has happened."""
    state = restore(world)
    dry_run(state, world.now)
    return state


def hears(state: ClusterState, *changes: Change, now: Instant = START) -> Deeds:
    """Tell a cluster something, let it decide until it rests, and demand that nobody slept on."""
    for change in changes:
        state.apply(change)
    done = deeds(dry_run(state, now))
    late = deeds(settle(awake(snapshot(state)), now))
    assert late == NOTHING, f"asleep it does {done}; awake it would still do {late}"
    return done
