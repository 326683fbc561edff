"""Which victims are enough, and which of them could stay? By trying every subset.

A second opinion for preemption on tiny instances. It knows the formulas of the quota tree and
nothing of candidates, orders, attempts or reprieve: any admitted workload may be evicted, and
then the preemptor fits or does not. Whether a victim was *allowed* is the auditor's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from unisono.engine.audit.quota_tree import QuotaUsage, queue_node
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Admission

# 2^12 subsets with a few tree walks each take well under a second.
MOST_ADMITTED = 12

Keys = frozenset[WorkloadKey]


@dataclass(frozen=True)
class Question:
    """A workload of the snapshot that waits, and how it would start.

    With `may_borrow` off, it has to end up within its queue's own quota (the attempts of spec
    quota §8 that forbid borrowing).
    """

    snapshot: Snapshot
    preemptor: WorkloadKey
    admission: Admission
    may_borrow: bool = True


def is_sufficient(question: Question, victims: Iterable[WorkloadKey]) -> bool:
    """Say whether the preemptor fits once exactly these have left."""
    index = SnapshotIndex(question.snapshot)
    return _fits(question, index, frozenset(victims))


def needless(question: Question, victims: Iterable[WorkloadKey]) -> Keys:
    """Return the victims that could stay: a smaller part of the set, without them, is enough."""
    index = SnapshotIndex(question.snapshot)
    all_victims = frozenset(victims)
    return frozenset(
        spared
        for part in _subsets(all_victims)
        if part != all_victims and _fits(question, index, part)
        for spared in all_victims - part
    )


def smallest_sets(question: Question) -> list[Keys]:
    """Return every minimal set of victims: enough, and none of them could stay."""
    index = SnapshotIndex(question.snapshot)
    enough: list[Keys] = []
    for part in _subsets(frozenset(index.admitted_workloads)):  # small sets come first
        if not any(found <= part for found in enough) and _fits(question, index, part):
            enough.append(part)
    return enough


def _subsets(keys: Keys) -> Iterator[Keys]:
    assert len(keys) <= MOST_ADMITTED, (
        f"{len(keys)} admitted workloads are too many to try all subsets"
    )
    for size in range(len(keys) + 1):
        for part in combinations(sorted(keys), size):
            yield frozenset(part)


def _fits(question: Question, index: SnapshotIndex, gone: Keys) -> bool:
    workload = index.waiting[question.preemptor]
    charge = index.charge(workload, question.admission)
    leaving = gone | ({workload.replaces} & index.admitted_workloads.keys())
    staying = [held for key, held in index.admitted_workloads.items() if key not in leaving]
    usage = QuotaUsage(index.tree, [index.held(each) for each in staying])
    node = queue_node(charge.queue)
    return usage.fits(charge) and (
        question.may_borrow
        or not any(usage.is_borrowing_with(node, *each) for each in charge.amounts.items())
    )
