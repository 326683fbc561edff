"""The laws that every state of the engine obeys, each as one check that says what is wrong.

They are written against the public values (snapshots, plans) and against the plain tree of the
auditor; only `cells_of` looks at the engine's own numbers, because comparing those is its point.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from unisono.engine.audit import audit
from unisono.engine.audit.quota_tree import Node, QuotaUsage, cohort_node, queue_node
from unisono.engine.audit.snapshot_index import SnapshotIndex, started_by
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.names import CohortName, Instant, QueueName
from unisono.engine.model.plan import Await, Plan, Preempt, evictions
from unisono.engine.model.resources import FlavorResource
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload
from unisono.engine.quota.share import PER_MILLE, dominant_share
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import Change
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.quota_tree import Node as EngineNode
from unisono.engine.state.quota_tree import available, potential
from unisono.engine.state.snapshots import snapshot

# With victims that never leave, a tiny cluster is decided in a few dozen cycles. Parking a kind
# takes one each, an admission one each.
MOST_CYCLES = 300

Numbers = tuple[int, ...]


def nodes_of(state: ClusterState) -> dict[Node, EngineNode]:
    """Return every queue and every cohort above one, named as the auditor names them."""
    found: dict[Node, EngineNode] = {}
    for name in sorted(state.queues):
        for node in state.queues[name].node.path():
            named = QueueName(node.name), CohortName(node.name)
            found[queue_node(named[0]) if node.is_queue else cohort_node(named[1])] = node
    return found


def cells_of(state: ClusterState) -> dict[tuple[Node, FlavorResource], Numbers]:
    """Return the engine's own numbers; cells that say nothing are left out."""
    return {
        (name, flavor_resource): (cell.nominal, cell.subtree, cell.local, cell.usage)
        for name, node in nodes_of(state).items()
        for flavor_resource, cell in node.cells.items()
        if cell.nominal or cell.subtree or cell.local or cell.usage
    }


def check_tree(state: ClusterState) -> None:
    """Demand that the incremental numbers equal those worked out from their definitions."""
    state.refresh()
    index = SnapshotIndex(snapshot(state))
    tree, usage = index.tree, index.usage
    for name, node in nodes_of(state).items():
        if tree.is_in_cycle(name):  # nothing is admitted there; either reading will do
            continue
        assert node.height() == tree.height(name), f"height of {name}"
        for flavor_resource, cell in node.cells.items():
            found = {
                "usage": cell.usage,
                "subtree": cell.subtree,
                "available": available(cell),
                "potential": potential(cell),
                # A root lends to no node above it.
                "local": cell.local if node.parent is not None else 0,
            }
            expected = {
                "usage": usage.used(name, flavor_resource),
                "subtree": tree.subtree(name, flavor_resource),
                "available": usage.available(name, flavor_resource),
                "potential": tree.potential(name, flavor_resource),
                "local": tree.local(name, flavor_resource),
            }
            assert found == expected, f"{flavor_resource} at {name}"
        check_share(node, name, usage)


def check_share(node: EngineNode, name: Node, usage: QuotaUsage) -> None:
    """Demand that the share is the exact fraction, cut off after the last digit kept."""
    share = usage.share(name)
    expected = int(share.is_infinite), int(share.value * PER_MILLE)
    assert dominant_share(node) == expected, f"share of {name}"


def check_explanations(state: ClusterState) -> None:
    """Demand a reason for every pending workload."""
    for key in state.waiting:
        why = explanation(state, key)
        assert why is not None, f"{key} is pending without an explanation"
        assert why.blockers, f"{key} waits without a reason"


def decided(state: ClusterState, now: Instant) -> Plan:
    """Decide one cycle and demand that deciding is pure, repeatable and passes the audit."""
    state.refresh()
    before = cells_of(state)
    made = plan(state, now)
    assert cells_of(state) == before, "deciding left something booked"
    again = plan(state, now)
    assert msgspec.json.encode(made) == msgspec.json.encode(again), "the same state, another plan"
    found = audit(snapshot(state), made)
    assert not found, "\n".join(f"{each.rule}: {each.message}" for each in found)
    return made


def carried_out(state: ClusterState, made: Plan) -> bool:
    """File a plan and demand that no queue or cohort is newly over what it may use."""
    before = _rooms(state)
    changed = apply_plan(state, made)
    for place, room in _rooms(state).items():
        assert room >= min(0, before.get(place, 0)), f"{place} is {-room} over its limit"
    return changed


def _rooms(state: ClusterState) -> dict[tuple[Node, FlavorResource], int]:
    return {
        (name, flavor_resource): available(cell)
        for name, node in nodes_of(state).items()
        for flavor_resource, cell in node.cells.items()
    }


def settle(state: ClusterState, now: Instant) -> list[Plan]:
    """Run cycles until nothing changes; return the plans that changed something."""
    made: list[Plan] = []
    while True:
        current = decided(state, now)
        if not carried_out(state, current):
            return made
        made.append(current)
        assert len(made) < MOST_CYCLES, "the cycles do not end although nothing changes"


def awake(recorded: Snapshot) -> ClusterState:
    """Restore a snapshot without its verdicts: every pending workload is evaluated again."""
    return restore(msgspec.structs.replace(recorded, verdicts=(), asleep=()))


def check_nothing_was_missed(state: ClusterState, now: Instant, *, grown: set[Node]) -> None:
    """No lost wake-up: after a settled state, one without verdicts does nothing either.

    One difference is on purpose: an admission wakes no workload (spec quota §5). It may make its
    queue borrow and so expose it to a preemptor that found no victims before, and it may push the
    first of several choices to another flavor, which leaves room for the second. In trees that have
    `grown` since all workloads were last evaluated, those two are no surprise.
    """
    index = SnapshotIndex(snapshot(state))
    for made in settle(awake(snapshot(state)), now):
        for decision in started_by(made):
            root = index.tree.root(queue_node(decision.admission.queue))
            if isinstance(decision, Await):
                excused = decision.workload in snapshot(state).preemptors  # it waits already
            elif isinstance(decision, Preempt):
                excused = all(victim.already_evicting for victim in decision.victims)
                excused |= root in grown
            else:
                excused = root in grown and _has_choices(index.waiting[decision.workload])
            assert excused, f"everything sleeps, but awake there would be {decision}"


def _has_choices(workload: Workload) -> bool:
    """Say whether what one part of the workload takes may get in the way of another part."""
    first, *rest = workload.pod_sets
    return bool(rest) or len(first.requests) > 1 or first.min_count is not None


def check_snapshot(state: ClusterState, now: Instant) -> None:
    """Demand that a restored state is recorded alike and decides alike, byte for byte."""
    recorded = snapshot(state)
    restored = restore(recorded)
    assert snapshot(restored) == recorded
    found, expected = plan(restored, now), plan(state, now)
    assert msgspec.json.encode(found) == msgspec.json.encode(expected)


START = Instant(0)


class Deeds(NamedTuple):
    """Admissions and evictions in order, by the short names of the builders."""

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


def reactions(state: ClusterState, *changes: Change, now: Instant = START) -> Deeds:
    """Apply changes, run cycles until nothing changes, and demand that no wake-up was lost."""
    for change in changes:
        state.apply(change)
    done = deeds(dry_run(state, now))
    late = deeds(settle(awake(snapshot(state)), now))
    assert late == NOTHING, f"asleep it does {done}; awake it would still do {late}"
    return done
