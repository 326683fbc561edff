"""Parts of purchases that need no cluster: budgets, clouds, claims."""

from __future__ import annotations

import pytest

from tests.support.provisioning_world import cloud, pool
from unisono.engine.model.names import NodeName
from unisono.engine.model.provisioning import NodeClaim
from unisono.provision.claims import claim_of, wanted_of
from unisono.provision.disruption_budgets import is_active, most
from unisono.provision.simulated_cloud import Cloud, Failures, Latency, cloud_of

_DAY = 86_400.0


@pytest.mark.parametrize(
    ("schedule", "hour", "active"),
    [
        ("0 9 * * *", 9.5, True),
        ("0 9 * * *", 11.0, False),
        ("0 9 * * 1-5", 9.5, True),  # the epoch began on a Thursday
        ("0 9 * * 0", 9.5, False),
        ("*/15 * * * *", 20.0, True),
        ("0 9 2 * *", 9.5, False),
        ("0 9 1 1 *", 9.5, True),
    ],
)
def test_a_budget_is_active_for_a_while_after_a_hit(
    schedule: str, hour: float, active: bool
) -> None:
    assert is_active(schedule, "1h", hour * 3600) is active


@pytest.mark.parametrize("schedule", ["soon", "61 * * * *", "* * *", "a b c d e"])
def test_an_unreadable_schedule_allows_no_disruption(schedule: str) -> None:
    budgets = [{"nodes": "5", "schedule": schedule, "duration": "1h"}]
    assert most(pool(disruption={"budgets": budgets}), "Empty", 10, _DAY) == 0


def test_without_budgets_a_tenth_may_go() -> None:
    assert most(pool(), "Empty", 19, 0.0) == 2
    assert most(pool(), "Empty", 1, 0.0) == 1


def test_draws_depend_on_the_machine_the_step_and_the_seed_alone() -> None:
    one, other = Cloud(seed=1), Cloud(seed=2)
    assert one.draw("boot", "a") == one.draw("boot", "a")
    assert len({one.draw("boot", "a"), one.draw("boot", "b"), other.draw("boot", "a")}) == 3
    varied = Cloud(latency=Latency(spread=1.0))
    taken = sorted(varied.seconds("boot", f"m{number}") for number in range(400))
    assert 50 < taken[200] < 70, "the median"
    assert 120 < taken[380] < 190, "one in twenty"
    failing = Cloud(failures=Failures(register=0.5))
    assert 150 < sum(failing.fails("register", f"m{number}") for number in range(400)) < 250


def test_stock_is_set_by_type_zone_and_capacity_type() -> None:
    made = Cloud(stock={"a": 1, "a:z": 2, "a:z:spot": 3})
    assert made.left("a", "z", "spot") == 3
    assert made.left("a", "z", "on-demand") == 2
    assert made.left("a", "y", "spot") == 1
    assert made.left("b", "z", "spot") is None


def test_a_cloud_that_cannot_be_read_is_like_any_other() -> None:
    assert cloud_of(cloud(seed=7)).seed == 7
    assert cloud_of({"data": {"cloud.yaml": "stock: ["}}) == Cloud()
    assert cloud_of({"data": {"cloud.yaml": "stock: 5"}}) == Cloud()
    assert cloud_of(None) == Cloud()


def test_a_claim_is_what_karpenter_reads() -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    made = pool(template={"taints": [taint], "expireAfter": "720h"})
    made["metadata"] |= {"uid": "u", "annotations": {"karpenter.sh/nodepool-hash": "42"}}
    node_claim = NodeClaim(
        node=NodeName("gpu-x"),
        pool="gpu",
        machine="g6e.48xlarge",
        zone="ap-northeast-2a",
        capacity_type="on-demand",
        price_micro=37_044_700,
        pods=(("main", 1),),
    )
    requests = {"nvidia.com/gpu": "8"}
    claim = claim_of(node_claim, made, plan="p", size=2, holder="ml/train", requests=requests)
    assert [wanted_of(claim, one["key"]) for one in claim["spec"]["requirements"]] == [
        "g6e.48xlarge",
        "ap-northeast-2a",
        "on-demand",
    ]
    assert claim["spec"]["taints"] == [
        taint,
        {"key": "unisono.dev/gang", "value": "p", "effect": "NoSchedule"},
    ]
    annotations = claim["metadata"]["annotations"]
    assert annotations["karpenter.sh/nodepool-hash"] == "42"
    assert annotations["unisono.dev/price-usd-hour"] == "37.0447"
    assert claim["metadata"]["ownerReferences"][0]["name"] == "gpu"
