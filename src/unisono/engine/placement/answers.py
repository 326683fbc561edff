"""Answers that still hold: gangs of one shape share one for as long as nobody moves.

The heads of many queues often want the same: then one of them is placed, or refused, and the others
get the same answer. Who asks makes no difference unless a node is held for somebody or pods have
rules about each other; such gangs are placed every time. Spec placement §8.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.placement.demand import Demand, anonymised
from unisono.engine.placement.fragmentation import Typical
from unisono.engine.placement.gang import Gang, Placer, Spot

# The heads of so many queues are answered before somebody is decided upon and moves.
ANSWERS_KEPT = 1024

# Everything that an answer depends on, besides the nodes.
Question = tuple[int | None, tuple[Demand, ...], tuple[Typical, ...]]
Answer = tuple[Spot, ...] | GangDoesNotFit


@dataclass(slots=True)
class Counts:
    """How often an answer was known already, and how often it was not."""

    hits: int = 0
    misses: int = 0


@dataclass(slots=True)
class Answers:
    """What a placer answered since somebody last moved."""

    placer: Placer
    counts: Counts
    _known: dict[Question, Answer] = field(default_factory=dict)
    _moves: int = 0

    def place(self, gang: Gang, moves: int) -> Answer:
        """Find nodes for a gang; `moves` is a number that grows when anything changes on nodes."""
        if moves != self._moves or len(self._known) >= ANSWERS_KEPT:
            self._known.clear()
            self._moves = moves
        question = self._question(gang)
        known = self._known.get(question) if question is not None else None
        if known is not None:
            self.counts.hits += 1
            return known
        self.counts.misses += 1
        found = self.placer.place(gang)
        if question is not None:
            self._known[question] = found
        return found

    def _question(self, gang: Gang) -> Question | None:
        """Return what is asked, without who asks; None if that matters."""
        placer = self.placer
        if placer.feasibility.table.has_held_rows or placer.crowd.has_rules:
            return None
        if not all(demand.is_plain for demand in gang.demands):
            return None
        demands = gang.anonymous or tuple(map(anonymised, gang.demands))
        typical = placer.mix.typical if placer.placement.scoring == "fgd" else ()
        return gang.min_total, demands, typical
