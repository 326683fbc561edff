"""May it make others leave at all, and does it need every one of them? (spec quota §7–§9, §18)

Each victim on its own is judged in `victims`. That the preemptor can start afterwards is checked
in `quota`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unisono.engine.audit.case import Case, cases_of
from unisono.engine.audit.nodes import has_room, is_plain
from unisono.engine.audit.parties import alone
from unisono.engine.audit.portions import is_told, less_would_be
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.victims import check_victims
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.plan import Plan
from unisono.engine.model.workload import Holding


def check_preemptions(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every preemption of a known workload."""
    for case in cases_of(index, plan):
        yield from _check_right(case)
        yield from check_victims(case)
        yield from _check_needless(case)


def _broken(rule: Rule, case: Case, message: str) -> Violation:
    return Violation(rule=rule, workload=case.workload.key, queue=case.queue.name, message=message)


def _check_right(case: Case) -> Iterator[Violation]:
    """May this workload, with this shortage, preempt?"""
    policy = case.index.policy
    if not case.preemption.victims:
        yield _broken("no-victims", case, "it preempts and names nobody")
    backoff = case.workload.may_preempt_at
    tells_somebody = any(
        not is_told(victim, case.victims[victim.workload])
        for victim in case.preemption.victims
        if victim.workload in case.victims
    )
    if policy.anti_thrash and not policy.strict and backoff is not None:
        if backoff > case.now and tells_somebody:
            message = f"may preempt from {backoff} on, and now is {case.now}"
            yield _broken("preemption-backoff", case, message)
    rules = case.queue.preemption
    if rules.borrow.policy != "Never" or (policy.fair_sharing and rules.reclaim != "Never"):
        return
    for account in sorted(case.lacked()):
        amount = case.charge.amounts[account]
        nominal = case.index.tree.limits(case.node, account).nominal
        _, may_reclaim = case.earlier.level(case.node, account, amount)
        if nominal < amount and not may_reclaim:
            message = (
                f"lacks {account.resource} of {account.flavor} and wants {amount}, more than "
                f"its nominal quota {nominal}, and may not preempt while borrowing"
            )
            yield _broken("preemption-forbidden", case, message)


def _check_needless(case: Case) -> Iterator[Violation]:
    """Would the preemptor start with one victim still there?

    Fill-back (§8, §9) leaves no victim that could stay, given the books that the preemptor was
    judged with. Those are unknown, so a victim is called needless only if it was so at every
    moment at which that may have been.

    An attempt that forbids borrowing (§8) also ends only when the queue does not borrow. Which
    attempt succeeded is not in the plan. If the queue borrows even with all victims of the plan
    gone, or shares are fair, it was one that allows it; otherwise a victim is called needless
    only if the preemptor would fit without it and without borrowing. Those already leaving are
    not counted: sparing them spares nobody.

    A victim may be needed for its nodes alone. One that could do with fewer pods must not leave
    whole, or give up more, if less of it would have been enough (placement §8.7).
    """
    if case.is_hidden:
        return
    may_borrow = case.index.policy.fair_sharing is not None or case.borrows(case.vacated)
    for victim in case.preemption.victims:
        if victim.workload not in case.victims or is_told(victim, case.victims[victim.workload]):
            continue
        others = {key: each for key, each in case.victims.items() if key != victim.workload}
        if _would_do(case, others, may_borrow=may_borrow):
            message = f"{victim.workload} could stay: {len(others)} other victims are enough"
            yield _broken("victim-needless", case, message)
            continue
        less = less_would_be(victim, case.index.holdings[victim.workload])
        if case.index.policy.strict or less is None:
            continue
        if _would_do(case, {**others, victim.workload: less}, may_borrow=may_borrow):
            message = f"{victim.workload} could keep more of its pods"
            yield _broken("victim-needless", case, message)


def _would_do(case: Case, leaving: Mapping[WorkloadKey, Holding], *, may_borrow: bool) -> bool:
    """Say whether the preemptor would surely have started if only these had left."""
    if not _finds_place(case, leaving):
        return False
    left = [case.without(books, leaving=leaving.values()) for books in case.moments]
    return all(
        books.fits(case.charge) and (may_borrow or not case.borrows(books)) for books in left
    )


def _finds_place(case: Case, leaving: Mapping[WorkloadKey, Holding]) -> bool:
    """Say whether the preemptor surely had a place with only these off their nodes.

    Its own nodes prove it, if they would have had room in the snapshot. Only a single set without
    rules between pods is judged: where placing is a search, the proof may have been out of reach.
    """
    seated = [
        assigned.nodes
        for key in case.victims
        for assigned in case.index.holdings[key].admission.pod_sets
        if key not in leaving or leaving[key] != case.victims[key]
    ]
    if not any(seated):
        return True
    if len(case.workload.pod_sets) > 1 or not is_plain(case.workload.pod_sets[0]):
        return False
    floor = alone(case.index, case.preemption, leaving)
    return not floor.repelling and all(
        has_room(floor, case.workload, party)
        for party in floor.newcomers.get(case.workload.key, ())
    )
