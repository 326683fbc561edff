"""Placement on a cluster: equal gangs share answers, listeners get searches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.placement_builders import GPU, PORT, demand, gang, node, placer_of
from unisono.engine.cluster import new_cluster
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.node import Node, PodRule, PodSelector
from unisono.engine.model.policy import Placement, Policy
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import LabelSelector
from unisono.engine.placement.gang import Gang
from unisono.engine.placement.placement import ANSWERS_KEPT, Answer, Answers, placement_of
from unisono.engine.state.changes import NodeSet, PolicySet
from unisono.engine.state.occupancy import Members, PodIndex


def asked(answers: Answers, *gangs: Gang, moves: int = 1) -> bool:
    """Say whether all of them got one and the same answer."""
    found = [answers.place(each, moves) for each in gangs]
    return all(each is found[0] for each in found)


def answers_of(*nodes: Node, **options: Any) -> Answers:
    return Answers(placer_of(*nodes, **options))


def test_equal_requests_have_equal_answers() -> None:
    answers = answers_of(node("a"))
    mine = gang(demand(2, namespace="mine", labels=(("app", "x"),)), key="mine/a")
    yours = gang(demand(2, namespace="yours"), key="yours/b")
    assert asked(answers, mine, yours)
    assert (answers.hits, answers.misses) == (1, 1)
    too_large = gang(demand(9), key="mine/c")
    assert asked(answers, too_large, gang(demand(9, namespace="other"), key="other/d"))
    assert isinstance(answers.place(too_large, 1), GangDoesNotFit)


@pytest.mark.parametrize(
    "other",
    [
        gang(demand(3)),
        gang(demand(2, least=1)),
        gang(demand(2, 2)),
        gang(demand(2, name="other")),
        gang(demand(2, mode="preferred")),
        gang(demand(2), min_total=1),
        gang(demand(2), demand(1, name="second")),
    ],
)
def test_what_is_requested_does(other: Gang) -> None:
    assert not asked(answers_of(node("a"), node("b")), gang(demand(2)), other)


def test_an_answer_holds_until_a_pod_moves() -> None:
    answers = answers_of(node("a"))
    before = answers.place(gang(demand(8)), 1)
    answers.placer.feasibility.table.put(node("a", 4))
    assert answers.place(gang(demand(8)), 1) is before
    assert isinstance(answers.place(gang(demand(8)), 2), GangDoesNotFit)


def test_a_gang_with_a_node_of_its_own_has_its_own_answer() -> None:
    answers = answers_of(node("a", 2), node("b", held_for="ns/mine"))
    assert isinstance(answers.place(gang(demand(8), key="ns/yours"), 1), GangDoesNotFit)
    assert not isinstance(answers.place(gang(demand(8), key="ns/mine"), 1), GangDoesNotFit)


def test_rules_between_pods_depend_on_the_request() -> None:
    with_port = gang(demand(2, host_ports=(PORT,)))
    assert not asked(answers_of(node("a"), node("b")), with_port, with_port)
    pod_index = PodIndex()
    keep_off = PodRule(PodSelector(LabelSelector()), "kubernetes.io/hostname")
    pod_index.add("them", Members("ns", {}, (), (keep_off,), {}))
    assert not asked(answers_of(node("a"), pod_index=pod_index), gang(demand(2)), gang(demand(2)))


def test_what_was_learned_of_typical_pods_counts_where_it_is_looked_at() -> None:
    for scoring, is_same in (("fgd", False), ("leftover", True)):
        answers = answers_of(node("a"), scoring=scoring)
        before = answers.place(gang(demand(2)), 1)
        answers.placer.mix.note(amounts({GPU: 3}))
        assert (answers.place(gang(demand(2)), 1) is before) == is_same


def test_only_so_many_are_remembered() -> None:
    answers = answers_of(node("a"))
    for pods in range(1, ANSWERS_KEPT + 10):
        answers.place(gang(demand(pods)), 1)
    assert len(answers._known) <= ANSWERS_KEPT


class Listener:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.received: list[str] = []

    def search_begins(self) -> None:
        self.received.append("begins")

    def search_ends(self, answer: Answer) -> None:
        self.received.append("refused" if isinstance(answer, GangDoesNotFit) else "placed")


def test_a_listener_gets_every_search_and_changes_no_answer() -> None:
    state = new_cluster()
    state.apply(NodeSet(node("a", 4)))
    placement, listener = placement_of(state), Listener()
    alone = [placement.place(gang(demand(pods))) for pods in (4, 5)]
    placement.listener = listener
    assert [placement.place(gang(demand(pods))) for pods in (4, 5)] == alone
    assert listener.received == ["begins", "placed", "begins", "refused"]
    assert placement.hits_and_misses == (2, 2)


def test_another_policy_counts_at_once() -> None:
    state = new_cluster()
    state.apply(NodeSet(node("a", 4)))
    placement = placement_of(state)
    placement.place(gang(demand(4)))
    state.apply(PolicySet(Policy(placement=Placement(scoring="none"))))
    state.refresh()
    assert placement_of(state) is placement
    placement.place(gang(demand(4)))
    assert placement.hits_and_misses == (0, 2), "answers of the old policy are dropped"
