"""Whether a report's figures say the same: of jobs, teams, users, queues, days and capacity.

The GPU-seconds of pods are added up once more, one pod after the other, from its own times and
those of its node, without anything that the account is made with. Seconds have to be equal. Money
was rounded to millionths of a dollar wherever the price of a node changed, so sums of it may differ
by one millionth for each of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from unisono.monitor.ledger.accounts import Account, Period
from unisono.monitor.ledger.rows import NodeRow, PodRow
from unisono.monitor.report.model import Headline, Reconciliation, Share


def reconcile(
    account: Account,
    pods: Iterable[PodRow],
    nodes: Sequence[NodeRow],
    headline: Headline,
    shares: Mapping[str, Sequence[Share]],
) -> Reconciliation:
    """Compare all of them; `shares` are the tables that the headline is the sum of."""
    held, off_node = _held(account.period, pods, nodes)
    found = [*_of_seconds(account, held, nodes), *_of_money(account), *_of_shares(headline, shares)]
    return Reconciliation(
        is_reconciled=not found,
        differences=tuple(found),
        gpu_hours=held / 3600,
        off_node=off_node / 3600,
    )


def _held(period: Period, pods: Iterable[PodRow], nodes: Iterable[NodeRow]) -> tuple[int, int]:
    """Return the GPU-seconds of pods on nodes that were there, and on others."""
    there = _presence(period, nodes)
    held = off_node = 0
    for pod in pods:
        whole = period.clip(pod.bound, pod.ended)
        inside = sum(
            max(0, min(whole.until, until) - max(whole.since, since))
            for since, until in there.get(pod.node, ())
        )
        held += pod.gpus * inside
        off_node += pod.gpus * (whole.seconds - inside)
    return held, off_node


def _presence(period: Period, nodes: Iterable[NodeRow]) -> dict[str, list[tuple[int, int]]]:
    """Return when each node was there; rows that follow each other are one interval."""
    found: dict[str, list[tuple[int, int]]] = {}
    for row in sorted(nodes, key=lambda one: one.since):
        part = period.clip(row.since, row.until)
        if not part.seconds:
            continue
        intervals = found.setdefault(row.name, [])
        if intervals and part.since <= intervals[-1][1]:
            since, until = intervals.pop()
            intervals.append((since, max(until, part.until)))
        else:
            intervals.append((part.since, part.until))
    return found


def _of_seconds(account: Account, held: int, nodes: Iterable[NodeRow]) -> Iterator[str]:
    jobs = sum(one.spent.allocated for one in account.used.values())
    sorts = account.sorts.values()
    allocated = sum(one.seconds["allocated"] for one in sorts)
    whole = sum(sum(one.seconds.values()) for one in sorts)
    there = sum(one.gpus * account.period.clip(one.since, one.until).seconds for one in nodes)
    yield from _differ("jobs", jobs, "the times of their pods", held)
    yield from _differ("jobs", jobs, "what GPUs were allocated", allocated)
    yield from _differ("jobs", jobs, "the days", sum(account.by_day.values()))
    yield from _differ("the states of GPUs", whole, "the times of their nodes", there)


def _of_money(account: Account) -> Iterator[str]:
    jobs = sum(one.spent.cost for one in account.used.values())
    sorts = account.sorts.values()
    allocated = sum(one.micro_usd["allocated"] for one in sorts)
    seconds = sum(one.spent.allocated for one in account.used.values())
    is_same_time = seconds == sum(one.seconds["allocated"] for one in sorts)
    if is_same_time and abs(jobs - allocated) > account.roundings:
        yield f"jobs cost ${jobs / 1e6:,.2f}, and the GPUs they had ${allocated / 1e6:,.2f}"


def _of_shares(headline: Headline, shares: Mapping[str, Sequence[Share]]) -> Iterator[str]:
    amounts = headline.amounts
    for name, of_name in shares.items():
        seconds = sum(round(one.amounts.allocated * 3600) for one in of_name)
        yield from _differ(name, seconds, "the headline", round(amounts.allocated * 3600))
        for what, cents, total in (
            ("cost", sum(one.amounts.cost_cents for one in of_name), amounts.cost_cents),
            ("waste", sum(one.amounts.wasted_cents for one in of_name), amounts.wasted_cents),
        ):
            if cents != total:
                yield f"{name} {what} ${cents / 100:,.2f}, and the headline ${total / 100:,.2f}"


def _differ(one: str, seconds: int, other: str, others: int) -> Iterator[str]:
    if seconds != others:
        yield (
            f"{one} say {seconds / 3600:,.2f} GPU-hours, {other} {others / 3600:,.2f}"
            f" ({seconds - others:+,} GPU-seconds)"
        )
