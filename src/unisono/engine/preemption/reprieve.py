"""Reprieve: drop victims that are not needed, and shrink instead of evicting where that is enough.

Spec quota §8 and placement §8.7. Both algorithms end here.
"""

from __future__ import annotations

from unisono.engine.preemption.candidates import PreemptionRequest, Target, most_to_give
from unisono.engine.preemption.shrinking import given_up_already, what_stays
from unisono.engine.state.quota_tree import available, borrows_with
from unisono.engine.state.transaction import Transaction


def fits(request: PreemptionRequest, *, allow_borrowing: bool) -> bool:
    """Say whether the request fits now, as things are on the transaction."""
    for cell, wanted in request.charges.items():
        if wanted > max(0, available(cell)):
            return False
        if not allow_borrowing and wanted and borrows_with(cell, wanted):
            return False
    return request.has_place is None or request.has_place()


def reprieve(
    request: PreemptionRequest,
    transaction: Transaction,
    targets: list[Target],
    *,
    allow_borrowing: bool,
) -> list[Target]:
    """Drop victims, the most important first, as long as the request still fits.

    The last one is never dropped: without it the request did not fit, or it would not be here.
    """
    kept = list(targets)
    for index in range(len(kept) - 2, -1, -1):
        kept[index].put_back(transaction)
        if fits(request, allow_borrowing=allow_borrowing):
            kept[index] = kept[-1]
            kept.pop()
        else:
            kept[index].take(transaction)
    for index in range(len(kept) - 1, -1, -1):
        kept[index] = _in_part(request, transaction, kept[index], allow_borrowing=allow_borrowing)
    return kept


def _in_part(
    request: PreemptionRequest, transaction: Transaction, target: Target, *, allow_borrowing: bool
) -> Target:
    """Let a victim keep as many pods as it can while the request still fits."""
    running = target.running
    low, high = given_up_already(running.admitted), most_to_give(request, running)
    if running.admitted.evicting or not high:
        return target
    target.put_back(transaction)
    best = target
    low = max(low, 1)
    while low <= high:
        # All that it can give up is the first question: mostly it is that, or nothing at all.
        pods = high if best.stays is None else (low + high) // 2
        fewer = Target(running, target.reason, what_stays(running, pods))
        fewer.take(transaction)
        enough = fits(request, allow_borrowing=allow_borrowing)
        fewer.put_back(transaction)
        if enough:
            best, high = fewer, pods - 1
        elif best.stays is None:
            break  # all of it is needed
        else:
            low = pods + 1
    best.take(transaction)
    return best
