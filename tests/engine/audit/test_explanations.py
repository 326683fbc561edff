"""A "no" whose numbers do not say no is caught."""

from __future__ import annotations

import pytest

from tests.support.audit_plans import breaks, machine, passes, replace
from tests.support.quota_builders import GPU, group, job, plan, pool, queue, snapshot
from unisono.engine.model.explanation import (
    Blocker,
    Deactivated,
    ExceedsMaximum,
    Explanation,
    GangDoesNotFit,
    QuotaExhausted,
)
from unisono.engine.model.names import FlavorName, QueueName
from unisono.engine.model.plan import Plan, Wait
from unisono.engine.model.snapshot import Snapshot

JOB = job("a", "a", 5)
WORLD = snapshot(queue("a", "4/bl2", "k"), queue("b", "6", "k"), waiting=(JOB,))


def waits(*blockers: Blocker) -> Plan:
    explanation = Explanation(workload=JOB.key, queue=QueueName("a"), blockers=blockers)
    return plan(waits=(Wait(outcome="park", explanation=explanation),))


def exhausted(wanted: int, available: int, where: str = "a", flavor: str = "f") -> QuotaExhausted:
    return QuotaExhausted(
        queue=QueueName(where),
        pod_set="main",
        flavor=FlavorName(flavor),
        resource=GPU,
        wanted=wanted,
        available=available,
    )


def exceeds(wanted: int, maximum: int, flavor: str = "f") -> ExceedsMaximum:
    return ExceedsMaximum(
        queue=QueueName("a"),
        pod_set="main",
        flavor=FlavorName(flavor),
        resource=GPU,
        wanted=wanted,
        maximum=maximum,
    )


def test_every_wait_has_a_reason() -> None:
    passes(WORLD, waits(Deactivated()))
    breaks("explanation", WORLD, waits())


@pytest.mark.parametrize("fact", [exhausted(5, 4), exhausted(6, 0), exceeds(7, 6)])
def test_numbers_that_say_no(fact: Blocker) -> None:
    passes(WORLD, waits(fact))


@pytest.mark.parametrize(
    "fact",
    [
        exhausted(5, 5),  # that fits
        exhausted(7, 4),  # that never fits: the maximum is 6
        exhausted(5, 4, where="none"),
        exceeds(7, 5),  # the maximum is 6
        exceeds(6, 6),
    ],
)
def test_numbers_that_do_not(fact: Blocker) -> None:
    breaks("explanation", WORLD, waits(Deactivated(), fact))


def test_a_pool_has_one_maximum_by_either_name() -> None:
    pooled = snapshot(queue("a", groups=(pool(["f", "g"], "4"),)), waiting=(JOB,))
    passes(pooled, waits(exceeds(5, 4, "g")))
    passes(pooled, waits(exceeds(5, 4, "pool:f+g")))


def test_what_is_not_metered_cannot_be_short() -> None:
    loose: Snapshot = snapshot(
        queue("a", groups=(group({"f": {"cpu": "4"}}, covered=("cpu", "gpu")),)), waiting=(JOB,)
    )
    breaks("explanation", loose, waits(exhausted(5, 0)))


def misfit(placeable: int, nodes: int = 2, refused: int = 1) -> GangDoesNotFit:
    return GangDoesNotFit(
        pod_set="main",
        pods=4,
        pods_placeable=placeable,
        nodes=nodes,
        refusals=(("selector", refused),),
    )


def test_a_gang_that_lacks_nodes_lacks_at_least_one() -> None:
    cluster = replace(WORLD, nodes=(machine("n1"), machine("n2")))
    passes(cluster, waits(misfit(3)))
    breaks("explanation", cluster, waits(misfit(4)))
    breaks("explanation", cluster, waits(misfit(3, nodes=3)))
    breaks("explanation", cluster, waits(misfit(3, refused=3)))
    breaks("explanation", WORLD, waits(misfit(3)))
