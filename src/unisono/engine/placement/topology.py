"""Topology views: nodes in the order of their domains, so that every domain is one slice.

A view belongs to a list of levels (labels, widest first). Its positions are the nodes sorted by
(value at level 0, value at level 1, ..., natural node name); the domains of a level are contiguous
slices of positions. Nodes without a level's label form a domain of their own that no topology
request can use. Spec placement §8.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unisono.engine.model.node import HOSTNAME
from unisono.engine.state.node_table import ABSENT, Integers, NodeTable, Rows, natural


@dataclass(slots=True, frozen=True)
class Level:
    """One level of a view."""

    key: str
    starts: Rows  # where each domain begins; domains are in position order
    ends: Rows
    domain_of: Rows  # the domain of every position
    labelled: np.ndarray[tuple[int], np.dtype[np.bool_]]  # domains whose nodes carry the label


@dataclass(slots=True, frozen=True)
class View:
    """Nodes in topology order."""

    keys: tuple[str, ...]
    rows: Rows  # position -> row of the node table
    position_of: Rows  # row -> position, or -1
    levels: tuple[Level, ...]
    layout: int  # of the node table it was made from

    def name(self, level: int, domain: int, table: NodeTable) -> str:
        """Return a domain's name for people: the label values down to its level."""
        node = table.nodes[int(self.rows[self.levels[level].starts[domain]])]
        if node is None:
            return "?"
        labels = {HOSTNAME: node.name, **dict(node.labels)}
        return "/".join(labels.get(key, "-") for key in self.keys[: level + 1])


def make_view(table: NodeTable, keys: tuple[str, ...]) -> View:
    """Sort all nodes by these levels."""
    rows = table.in_name_order()
    columns = []
    for key in keys:
        codes, meaning = table.label_codes(key)
        ranks = np.zeros(len(meaning) + 1, np.int64)
        for rank, value in enumerate(sorted(meaning, key=natural), start=1):
            ranks[meaning[value]] = rank
        columns.append(ranks[codes[rows]])
    if columns:
        order = np.lexsort(tuple(reversed(columns)))  # stable: ties stay in natural name order
        rows = rows[order]
        columns = [column[order] for column in columns]
    position_of = np.full(len(table), -1, np.intp)
    position_of[rows] = np.arange(rows.shape[0])
    levels = tuple(
        _level(key, columns[: depth + 1], rows.shape[0]) for depth, key in enumerate(keys)
    )
    return View(keys, rows, position_of, levels, table.layout)


def _level(key: str, columns: list[Integers], count: int) -> Level:
    """Cut positions wherever the path down to this level changes."""
    change = np.zeros(count, np.bool_)
    if count:
        change[0] = True
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(change)
    ends = np.append(starts[1:], count)
    domain_of = np.cumsum(change) - 1
    labelled = columns[-1][starts] != ABSENT
    return Level(key, starts, ends, domain_of, labelled)
