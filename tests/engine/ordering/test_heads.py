"""In which order heads are decided: the classical key, and tournaments between sides of a tree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tests.support.effort import effort
from tests.support.quota_builders import ACCOUNT, tree, use
from unisono.engine.model.names import Instant
from unisono.engine.ordering.heads import Tournament, classical_key
from unisono.engine.quota.share import dominant_share
from unisono.engine.state.quota_tree import Cell, Node, charge


@dataclass(eq=False)
class Head:
    """A head with everything that ordering looks at."""

    uid: str
    node: Node
    wants: int = 1
    level: int = 0
    priority: int = 0
    time: Instant = Instant(0)
    goes_first: bool = False
    charges: dict[Cell, int] = field(init=False)

    def __post_init__(self) -> None:
        self.charges = {self.node.cell(ACCOUNT): self.wants}


def drained(tournament: Tournament[Head]) -> Iterator[Head]:
    """Pop heads, booking each one, as the cycle does."""
    while (winner := tournament.pop()) is not None:
        for cell, amount in winner.charges.items():
            charge(cell, amount)
        yield winner


def order(heads: list[Head]) -> list[str]:
    return [head.uid for head in drained(Tournament(heads))]


# --- classical -----------------------------------------------------------------------------------


def test_scenario_13() -> None:
    """The head that borrows less goes first, then priority, then time."""
    node = Node("q", is_queue=True)
    heads = [
        Head("hiBorrow", node, level=1, priority=100, time=Instant(1)),
        Head("midBorrow", node, level=1, priority=50, time=Instant(0)),
        Head("lowNom", node, level=0, priority=0, time=Instant(3)),
    ]
    ordered = [head.uid for head in sorted(heads, key=classical_key)]
    assert ordered == ["lowNom", "hiBorrow", "midBorrow"]


def test_a_preemptor_comes_before_all_others() -> None:
    node = Node("q", is_queue=True)
    waits = Head("waits", node, level=2, time=Instant(9), goes_first=True)
    assert min([Head("other", node, priority=9), waits], key=classical_key) is waits


def test_equal_heads_are_ordered_by_their_identity() -> None:
    node = Node("q", is_queue=True)
    assert [h.uid for h in sorted([Head("b", node), Head("a", node)], key=classical_key)] == [
        "a",
        "b",
    ]


# --- fair sharing --------------------------------------------------------------------------------


def test_scenario_47() -> None:
    """b at 5 of 4 asks for 1 more (166.7), a at 4 of 4 for 3 (250): b goes first."""
    nodes = tree(queues=dict.fromkeys(("a", "b", "bank"), ("4", "all")))
    use(nodes["a"], 4)
    use(nodes["b"], 5)
    heads = [Head("b1", nodes["b"], 1, priority=50), Head("a1", nodes["a"], 3)]
    assert order(heads) == ["b1", "a1"]


def test_scenario_47_with_weights() -> None:
    nodes = tree(queues=dict.fromkeys(("a", "b", "bank"), ("4", "all")))
    nodes["b"].weight_milli = 3000
    use(nodes["a"], 4)
    use(nodes["b"], 5)
    assert order([Head("a1", nodes["a"], 2), Head("b1", nodes["b"], 2)]) == ["b1", "a1"]


def test_a_head_that_does_not_borrow_goes_before_the_smallest_share() -> None:
    """Weight 0 makes a's share nothing while it stays within its quota; b borrows a little."""
    nodes = tree(queues={"a": ("2", "all"), "b": ("0", "all"), "bank": ("90", "all")})
    assert order([Head("b1", nodes["b"], 1, priority=9), Head("a1", nodes["a"], 2)]) == ["a1", "b1"]


def test_a_preemptor_wins_every_round() -> None:
    nodes = tree(queues={"a": ("0", "all"), "b": ("4", "all")})
    waits = Head("a1", nodes["a"], 4, goes_first=True)
    assert order([Head("b1", nodes["b"], 1), waits]) == ["a1", "b1"]


def test_sides_are_compared_before_queues() -> None:
    """Scenario 48's tree: orgA's side uses more, so orgB's head goes first, though b1 is larger."""
    nodes = tree(
        cohorts={"root": ("8", None), "orgA": ("0", "root"), "orgB": ("0", "root")},
        queues={"a1": ("0", "orgA"), "a2": ("0", "orgA"), "b1": ("0", "orgB")},
    )
    use(nodes["a2"], 4)
    use(nodes["b1"], 2)
    assert order([Head("a", nodes["a1"], 1), Head("b", nodes["b1"], 1)]) == ["b", "a"]


def test_another_queue_that_lost_usage_is_judged_again() -> None:
    """A winner's victims leave other queues: their heads rise at once."""
    nodes = tree(
        cohorts={"root": ("20", None)}, queues=dict.fromkeys(("a", "b", "c"), ("0", "root"))
    )
    use(nodes["b"], 6)
    use(nodes["c"], 4)
    tournament = Tournament([Head(name, nodes[name]) for name in ("a", "b", "c")])
    winner = tournament.pop()
    assert winner is not None
    assert winner.uid == "a"
    use(nodes["b"], -5)
    tournament.touch(nodes["b"])
    assert [head.uid for head in drained(tournament)] == ["b", "c"]


# --- against a tournament that remembers nothing -------------------------------------------------


def naive_champion(node: Node, heads: dict[Node, Head]) -> Head | None:
    """Play all matches below a node afresh, with the shares of this moment."""
    if node.is_queue:
        return heads.get(node)
    best: tuple[tuple[object, ...], Head] | None = None
    for child in node.children.values():
        champion = naive_champion(child, heads)
        if champion is None:
            continue
        for cell, amount in champion.charges.items():
            charge(cell, amount)
        cell = child.cells[ACCOUNT]
        key = (
            not champion.goes_first,
            cell.usage > cell.subtree,
            dominant_share(child),
            -champion.priority,
            champion.time,
            champion.uid,
        )
        for cell, amount in champion.charges.items():
            charge(cell, -amount)
        if best is None or key < best[0]:
            best = key, champion
    return best[1] if best else None


@effort(150)
@given(st.randoms(use_true_random=False))
def test_it_equals_a_tournament_that_recomputes_everything(dice: random.Random) -> None:
    def quota() -> str:
        return f"{dice.randint(0, 6)}" + dice.choice(("", "", "/ll1", "/bl2"))

    nodes = tree(
        cohorts={
            "root": (f"{dice.randint(0, 6)}", None),
            "left": (quota(), "root"),
            "right": (quota(), "root"),
            "deep": (quota(), "left"),
        },
        queues={
            name: (quota(), dice.choice(("root", "left", "right", "deep"))) for name in "abcde"
        },
    )
    for node in nodes.values():
        node.weight_milli = dice.choice((1000, 1000, 2000, 250, 0))
    for name in "abcde":
        use(nodes[name], dice.randint(0, 6))
    heads = {
        nodes[name]: Head(
            name,
            nodes[name],
            dice.randint(1, 5),
            priority=dice.randint(0, 1),
            time=Instant(dice.randint(0, 2)),
            goes_first=dice.random() < 0.1,
        )
        for name in "abcde"
        if dice.random() < 0.8
    }
    tournament = Tournament([*heads.values()])
    while heads:
        expected = naive_champion(nodes["root"], heads)
        winner = tournament.pop()
        assert winner is expected
        assert winner is not None
        del heads[winner.node]
        if dice.random() < 0.7:  # admitted
            use(winner.node, winner.wants)
        for name in "abcde":
            if dice.random() < 0.2:  # and a victim leaves for it
                use(nodes[name], -min(1, nodes[name].cells[ACCOUNT].usage))
                tournament.touch(nodes[name])
    assert tournament.pop() is None
