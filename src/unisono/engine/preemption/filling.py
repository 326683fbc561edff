"""Filling back: of those who were taken, whoever is not needed stays, and whoever can, in part.

Spec quota §8 and placement §8.7. Both algorithms end here.
"""

from __future__ import annotations

from unisono.engine.preemption.candidates import Target, Wish, most_to_give
from unisono.engine.preemption.shrinking import given_up_already, what_stays
from unisono.engine.state.quota_tree import available, borrows_with
from unisono.engine.state.transaction import Ledger


def fits(wish: Wish, *, allow_borrowing: bool) -> bool:
    """Say whether everything wanted is available now."""
    for cell, wanted in wish.charges.items():
        if wanted > max(0, available(cell)):
            return False
        if not allow_borrowing and wanted and borrows_with(cell, wanted):
            return False
    return wish.has_place is None or wish.has_place()


def fill_back(
    wish: Wish, ledger: Ledger, targets: list[Target], *, allow_borrowing: bool
) -> list[Target]:
    """Put targets back, the most important first, as long as the wish still fits."""
    kept = list(targets)
    for index in range(len(kept) - 2, -1, -1):
        kept[index].put_back(ledger)
        if fits(wish, allow_borrowing=allow_borrowing):
            kept[index] = kept[-1]
            kept.pop()
        else:
            kept[index].take(ledger)
    for index in range(len(kept) - 1, -1, -1):
        kept[index] = _in_part(wish, ledger, kept[index], allow_borrowing=allow_borrowing)
    return kept


def _in_part(wish: Wish, ledger: Ledger, target: Target, *, allow_borrowing: bool) -> Target:
    """Let a target keep as many pods as it can while the wish still fits."""
    running = target.running
    low, high = given_up_already(running.holding), most_to_give(wish, running)
    if running.holding.evicting or not high:
        return target
    target.put_back(ledger)
    best = target
    low = max(low, 1)
    while low <= high:
        # All that it can give up is the first question: mostly it is that, or nothing at all.
        pods = high if best.stays is None else (low + high) // 2
        fewer = Target(running, target.reason, what_stays(running, pods))
        fewer.take(ledger)
        enough = fits(wish, allow_borrowing=allow_borrowing)
        fewer.put_back(ledger)
        if enough:
            best, high = fewer, pods - 1
        elif best.stays is None:
            break  # it has to leave
        else:
            low = pods + 1
    best.take(ledger)
    return best
