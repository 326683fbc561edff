"""The fast path and counted gangs decide what the one loop decides, node by node."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.simulations import random_jobs
from unisono.engine import candidates, cycle
from unisono.engine.backfill import easy
from unisono.engine.backfill.fast_path import fast_path
from unisono.engine.backfill.slot_capacity import SlotCapacity
from unisono.engine.cycle import plan
from unisono.engine.decide import Decisions
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan, Wait
from unisono.engine.model.resources import amounts
from unisono.engine.state.cluster import ClusterState
from unisono.runtime.engine_build import engine_kind
from unisono.sim.loop import simulate
from unisono.sim.outcome import Outcome
from unisono.sim.setup import POLICIES
from unisono.sim.trace import Trace, make_trace

# Compiled modules call the functions of the engine directly (ADR 0024).
interpreted_only = pytest.mark.skipif(
    engine_kind() != "interpreted", reason="watches a function of the engine"
)


def _nodes(seed: int) -> tuple[Node, ...]:
    random_source = random.Random(seed)
    return tuple(
        Node(
            name=NodeName(f"n{number}"),
            allocatable=amounts({"cpu": random_source.choice((2000, 4000))}),
        )
        for number in range(8)
    )


def _encoded(outcome: Outcome) -> tuple[bytes, bytes, bytes]:
    assert outcome.spans is not None
    return outcome.start.tobytes(), outcome.spans.node.tobytes(), outcome.spans.pods.tobytes()


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "conservative"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_counted_gangs_get_the_same_nodes(
    policy: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, nodes = random_jobs(seed), _nodes(seed)
    short = simulate(trace, nodes, POLICIES[policy], spans=True)
    monkeypatch.setattr(Decisions, "offer_counted", lambda *_: None)
    by_counting = simulate(trace, nodes, POLICIES[policy], spans=True)
    assert _encoded(short) == _encoded(by_counting)
    monkeypatch.setattr(candidates, "counted_gang", lambda *_: None)
    monkeypatch.setattr(easy, "counted_gang", lambda *_: None)
    general = simulate(trace, nodes, POLICIES[policy], spans=True)
    assert _encoded(short) == _encoded(general)


@interpreted_only
@pytest.mark.parametrize(
    ("sizes", "takes_fast_path"),
    [((1000,), "always"), ((1000,) * 30 + (2000,), "sometimes"), ((500, 1000), "sometimes")],
)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_fast_path_makes_the_same_plan(
    sizes: tuple[int, ...], takes_fast_path: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, nodes = random_jobs(seed, sizes), _nodes(seed)
    found: list[bool] = []

    def watched(*asked: object) -> tuple[Plan, object] | None:
        made = fast_path(*asked)  # type: ignore[arg-type]  # as the cycle calls it
        found.append(made is not None)
        return made

    monkeypatch.setattr(cycle, "fast_path", watched)
    fast = _plans(trace, nodes)
    monkeypatch.setattr(cycle, "fast_path", lambda *_: None)
    assert fast == _plans(trace, nodes)
    assert any(found)
    assert takes_fast_path == "sometimes" or all(found)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 32), sizes=st.sampled_from(((1000,), (1000, 1000, 1000, 2000))))
def test_the_fast_path_makes_the_same_plans_for_any_jobs_and_nodes(
    seed: int, sizes: tuple[int, ...]
) -> None:
    trace, nodes = _any(seed, sizes)
    fast = _plans(trace, nodes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cycle, "fast_path", lambda *_: None)
        assert fast == _plans(trace, nodes)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 32), sizes=st.sampled_from(((1000,), (1000, 1000, 1000, 2000))))
def test_starts_are_the_same_without_explanations(seed: int, sizes: tuple[int, ...]) -> None:
    trace, nodes = _any(seed, sizes)
    assert _starts(trace, nodes, explains=True)[0] == _starts(trace, nodes, explains=False)[0]


def test_the_fast_path_explains_nothing_unless_requested() -> None:
    trace, nodes = random_jobs(1, (1000,)), _nodes(1)
    assert _starts(trace, nodes, explains=True)[1]
    assert not _starts(trace, nodes, explains=False)[1]


def _starts(
    trace: Trace, nodes: tuple[Node, ...], *, explains: bool
) -> tuple[list[tuple[object, ...]], list[Wait]]:
    """Return admissions and reservations of every plan of a simulation, and all explanations."""
    made: list[tuple[object, ...]] = []
    said: list[Wait] = []

    def decide(state: ClusterState, now: Instant) -> Plan:
        state.explains = explains
        decided = plan(state, now)
        made.append((decided.admissions, decided.reservations))
        said.extend(decided.waits)
        return decided

    simulate(trace, nodes, POLICIES["easy"], decides=decide)
    return made, said


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1 << 32), sizes=st.sampled_from(((1000,), (1000, 1000, 1000, 2000))))
def test_freed_slots_counted_by_pods_equal_those_counted_by_nodes(
    seed: int, sizes: tuple[int, ...]
) -> None:
    trace, nodes = _any(seed, sizes)
    by_pods = _plans(trace, nodes, "conservative")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SlotCapacity, "_is_even", lambda *_: False)
        assert by_pods == _plans(trace, nodes, "conservative")


def _any(seed: int, sizes: tuple[int, ...]) -> tuple[Trace, tuple[Node, ...]]:
    """Draw by hand: lists of Hypothesis are mostly too small, or too even, to make a queue."""
    random_source = random.Random(seed)
    run = [random_source.randint(1, 20) for _ in range(20)]
    trace = make_trace(
        "any",
        submit=sorted(random_source.randint(0, 30) for _ in run),
        run=run,
        request=[each * random_source.choice((1, 1, 2, 7)) for each in run],
        pods=[random_source.randint(1, 9) for _ in run],
        cpu=[random_source.choice(sizes) for _ in run],
        priority=[random_source.choice((0, 0, 0, 1)) for _ in run],
    )
    nodes = tuple(
        Node(
            name=NodeName(f"n{number}"),
            allocatable=amounts({"cpu": random_source.randint(1, 5) * 1000}),
        )
        for number in range(random_source.randint(1, 5))
    )
    return trace, nodes


def _plans(trace: Trace, nodes: tuple[Node, ...], policy: str = "easy") -> list[bytes]:
    """Return every plan of a simulation, to the last byte."""
    made: list[bytes] = []

    def decide(state: ClusterState, now: Instant) -> Plan:
        decided = plan(state, now)
        made.append(msgspec.json.encode(decided))
        return decided

    simulate(trace, nodes, POLICIES[policy], checked=True, decides=decide)
    return made
