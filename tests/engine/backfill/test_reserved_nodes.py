"""On which nodes pending jobs would start, as `squeue --start` shows it."""

from __future__ import annotations

import msgspec

from tests.engine.backfill.test_estimates import NOW, SECOND, limited
from tests.support.quota_builders import job, pods, queue, running
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.estimates import MOST_NAMED, estimates
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.policy import Policy
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import AdmittedWorkload


def held(node: str, seconds: int) -> AdmittedWorkload:
    """Return a running job that has a whole node for so long."""
    admitted = running(job(f"on-{node}", "q", pod_sets=(pods(1, {"gpu": 4}),)))
    placed = tuple(
        msgspec.structs.replace(one, nodes=((NodeName(node), 1),))
        for one in admitted.admission.pod_sets
    )
    return msgspec.structs.replace(
        admitted,
        workload=limited(admitted.workload, seconds),
        admission=msgspec.structs.replace(admitted.admission, pod_sets=placed),
    )


def reserved(
    held_for: dict[str, int], *jobs: tuple[str, int, int, int]
) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return when and where jobs (name, pods, GPUs of each, seconds) would start."""
    waiting = tuple(
        msgspec.structs.replace(
            limited(job(name, "q", pod_sets=(pods(count, {"gpu": gpus}),)), seconds),
            created_at=Instant(place),
        )
        for place, (name, count, gpus, seconds) in enumerate(jobs)
    )
    nodes = tuple(Node(name=NodeName(one), allocatable=amounts({"gpu": 4})) for one in held_for)
    state = restore(
        world(
            queue("q", str(4 * len(held_for))),
            policy=Policy(),
            nodes=nodes,
            admitted_workloads=tuple(held(node, seconds) for node, seconds in held_for.items()),
            waiting=waiting,
        )
    )
    dry_run(state, NOW)
    return {
        key.removeprefix("ns/"): (fact.start // SECOND, fact.nodes)
        for key, fact in estimates(state, NOW).items()
    }


def test_equal_pods_take_nodes_that_are_free_by_then() -> None:
    found = reserved({"n1": 100, "n2": 200, "n3": 50}, ("a", 2, 4, 60), ("b", 1, 4, 30))
    assert found == {"a": (100, ("n1", "n3")), "b": (50, ("n3",))}


def test_no_two_reservations_have_the_same_nodes() -> None:
    found = reserved({"n1": 100, "n2": 100}, ("a", 1, 4, 60), ("b", 1, 4, 60), ("c", 2, 4, 10))
    assert found == {"a": (100, ("n1",)), "b": (100, ("n2",)), "c": (160, ("n1", "n2"))}


def test_reservations_that_end_together_are_no_tie() -> None:
    found = reserved({"n1": 100, "n2": 150}, ("a", 1, 4, 60), ("b", 1, 4, 10))
    assert found == {"a": (100, ("n1",)), "b": (150, ("n2",))}


def test_names_the_nodes_of_reservations_that_have_their_own() -> None:
    found = reserved({"n1": 100, "n2": 200}, ("a", 1, 3, 60), ("b", 2, 1, 30))
    assert found["a"] == (100, ("n1",))
    start, nodes = found["b"]
    assert (start, set(nodes)) == (160, {"n1"})


def test_names_no_nodes_of_very_large_gangs() -> None:
    many = {f"n{place:04}": 100 for place in range(MOST_NAMED + 1)}
    assert reserved(many, ("a", MOST_NAMED + 1, 4, 60)) == {"a": (100, ())}
    assert len(reserved(many, ("a", MOST_NAMED, 4, 60))["a"][1]) == MOST_NAMED
