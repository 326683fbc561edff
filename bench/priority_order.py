"""Multifactor priority: all pending workloads are ordered by all factors, over a thousand accounts.

Accounts form a tree of five levels with a user in each; every user has used something, so that fair
shares differ. Priorities move with every second, so an order holds for one instant: measured is
what it costs once time has passed, to order all (a queue that drains) and to find only the first
(an ordinary cycle). Fair shares alone depend on accounts, not on pending workloads.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

from bench.harness import Finding, Scale, repeated, row, seconds, target
from tests.support.priority_builders import cluster, job, multifactor_rules
from unisono.engine.model.multifactor import ROOT, Association, UsageRecord
from unisono.engine.model.names import Instant
from unisono.engine.ordering.priority_order import multifactor_of
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

ORDER_MS = 150  # 100,000 pending workloads
LEVELS = 5


@dataclass(frozen=True)
class Sizes:
    """How many accounts and pending workloads."""

    accounts: int
    waiting: tuple[int, ...]


SIZES: dict[Scale, Sizes] = {
    "full": Sizes(1_000, (1_000, 10_000, 100_000)),
    "quick": Sizes(100, (1_000, 3_000)),
    "tiny": Sizes(10, (20, 40)),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Order longer and longer queues."""
    sizes = SIZES[scale]
    for waiting in sizes.waiting:
        state = _cluster(sizes.accounts, waiting)
        (book,) = state.queues.values()
        multifactor = multifactor_of(state)
        assert multifactor is not None, "the policy has multifactor priority"
        assert len(book.pending.in_order()) == waiting, "all are in the pending queue"
        gc.collect()
        instants = count(3_600_000, 1_000)
        asked: dict[str, Callable[[], object]] = {
            "order all": book.pending.in_order,
            "find the first": partial(state.head_of, book),
            "fair shares of all accounts": multifactor.fair_shares,
        }
        for what, question in asked.items():
            taken = repeated(partial(_later, state, instants, question), samples=10)
            measured = row(what, waiting, "waiting", taken, "ms")
            yield measured
            if what == "order all" and waiting == max(sizes.waiting):
                yield target(what, measured, ORDER_MS, better="below")


def _later(state: ClusterState, instants: Iterator[int], question: Callable[[], object]) -> float:
    """Ask a question when a second has passed."""
    state.apply(changes.TimePassed(Instant(next(instants))))
    state.refresh()
    return seconds(question)


def _cluster(accounts: int, waiting: int) -> ClusterState:
    dice = random.Random(5)
    state = cluster(multifactor_rules(associations=(*_tree(accounts, dice),)))
    for number in range(accounts):
        record = UsageRecord(owner=f"user/{_name(number)}/u{number}", amount=dice.random() * 1e6)
        state.apply(changes.UsageSet(record))
    for number in range(waiting):
        owner = dice.randrange(accounts)
        asked = job(
            f"job-{number:06}",
            gpu=dice.choice((0, 1, 2, 4, 8)),
            cpu=dice.choice((1, 2, 4, 8)),
            account=_name(owner),
            user=f"u{owner}",
            qos=dice.choice(("low", "normal", "high")),
            number=number,
            created_at=Instant(dice.randrange(3_000_000)),
        )
        state.apply(changes.WorkloadWaits(asked))
    state.refresh()
    return state


def _tree(accounts: int, dice: random.Random) -> Iterator[Association]:
    """Hang every account below one of the level above it; each has one user."""
    for number in range(accounts):
        level = number % LEVELS
        parent = _name(number - 1) if level else ROOT
        yield Association(account=_name(number), parent=parent, shares=dice.randint(1, 50))
        yield Association(account=_name(number), user=f"u{number}")


def _name(number: int) -> str:
    return f"account-{number:04}"
