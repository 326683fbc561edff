"""The board: lines and sums that follow the books."""

from __future__ import annotations

import random

import pytest

from tests.monitor import objects
from unisono.kube.mapping import POD
from unisono.monitor.books import CLUSTER_QUEUE, LOCAL_QUEUE, NODE, WORKLOAD, Books, fill
from unisono.web.board import Board


@pytest.fixture
def books() -> Books:
    """Return a node and a queue."""
    made = Books()
    fill(made, NODE, (objects.node("n1", 4),))
    fill(made, CLUSTER_QUEUE, (objects.cluster_queue(),))
    fill(made, LOCAL_QUEUE, (objects.local_queue(),))
    return made


def told(board: Board) -> object:
    """Return everything that a board says, in plain values."""
    board.refresh()
    sums = board.sums
    return (
        [one.uid for one in board.waiting],
        {name: [one.uid for one in line] for name, line in board.lines.items() if len(line)},
        [one.uid for one in board.running],
        [one.uid for one in board.over],
        [+each for each in (sums.used, sums.wanted, sums.states, sums.by_user, sums.spaces)],
        # Whoever has a device keeps it, so which one it is depends on who came first.
        {name: {**row, "by": sorted(row["by"])} for name, row in board.nodes().items()},
        {key: sorted(pods) for key, pods in board.pods_of.items()},
    )


def test_what_is_kept_by_changes_is_what_is_counted_anew(books: Books) -> None:
    board = Board(books)
    dice = random.Random(11)
    states: list[dict[str, str]] = [
        {},
        {"QuotaReserved": "2026-01-01T10:01:00Z"},
        {"QuotaReserved": "2026-01-01T10:01:00Z", "PodsReady": "2026-01-01T10:02:00Z"},
        {"Finished": "2026-01-01T10:09:00Z"},
    ]
    there: dict[str, objects.Json] = {}
    for step in range(300):
        name = f"w{dice.randrange(12)}"
        old = there.get(name)
        new = objects.workload(name, gpus=dice.choice((2, 8)), **dice.choice(states))
        if old is not None and dice.random() < 0.3:
            books.heard(WORKLOAD, old, None)
            del there[name]
        else:
            books.heard(WORKLOAD, old, new)
            there[name] = new
        pod = objects.pod(f"p{dice.randrange(4)}", dice.choice(("", "n1")), gpus=1)
        books.heard(POD, pod, None if dice.random() < 0.4 else pod)
        if step == 150:
            books.heard(LOCAL_QUEUE, objects.local_queue(), None)
        if step == 200:
            books.heard(LOCAL_QUEUE, None, objects.local_queue())
        if step % 7 == 0:
            assert told(board) == told(Board(books))


def test_a_node_row_is_the_same_object_until_something_happens_there(books: Books) -> None:
    fill(books, NODE, (objects.node("n2", 4),))
    board = Board(books)
    board.refresh()
    before = board.nodes()
    books.heard(POD, None, objects.pod("p0", "n2", 3))
    version = board.version
    assert board.refresh() > version
    after = board.nodes()
    assert after["n1"] is before["n1"]
    assert after["n2"]["held"] == 3
    assert after["n2"]["by"] == [("team-a", "gang")] * 3 + [("", "")]
    quiet = board.version
    assert board.refresh() == quiet


def test_a_pod_that_follows_another_of_its_name_takes_its_place(books: Books) -> None:
    board = Board(books)
    old = objects.pod("p0", "n1", 2)
    books.heard(POD, None, old)
    board.refresh()
    books.heard(POD, None, objects.pod("p0", "n1", 1, uid="another"))
    board.refresh()
    books.heard(POD, old, None)  # late word of the first one
    board.refresh()
    assert board.nodes()["n1"]["held"] == 1


def test_a_place_in_line_is_by_priority_and_age(books: Books) -> None:
    early, late, urgent = (objects.workload(name) for name in ("early", "late", "urgent"))
    late["metadata"]["creationTimestamp"] = "2026-01-01T11:00:00Z"
    urgent["spec"]["priority"] = 100
    fill(books, WORKLOAD, (late, early, urgent))
    board = Board(books)
    board.refresh()
    assert [one.name for one in board.waiting] == ["urgent", "early", "late"]
    assert [board.place(one) for one in board.waiting] == [1, 2, 3]
