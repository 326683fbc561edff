"""Usage of a queue as its status has it."""

from __future__ import annotations

from unisono.control.queue_status.tally import Use, flavors_usage, part_of
from unisono.engine.model.names import FlavorName, QueueName, ResourceName
from unisono.engine.model.queue import ClusterQueue, FlavorQuota, ResourceGroup, ResourceQuota
from unisono.kube.form import Key

GPU = ResourceName("gpu")


def quota(nominal: int) -> tuple[ResourceQuota, ...]:
    return (ResourceQuota(resource=GPU, nominal=nominal),)


def cluster_queue(group: ResourceGroup) -> ClusterQueue:
    return ClusterQueue(name=QueueName("q"), groups=(group,))


def totals(queue: ClusterQueue, used: dict[Use, int]) -> dict[str, tuple[str, str]]:
    """Return (total, borrowed) of GPUs by flavor."""
    return {
        flavor["name"]: (flavor["resources"][0]["total"], flavor["resources"][0]["borrowed"])
        for flavor in flavors_usage(queue, used, tells_borrowed=True)
    }


def test_every_flavor_is_listed_and_what_exceeds_its_quota_is_borrowed() -> None:
    flavors = tuple(FlavorQuota(FlavorName(name), quota(4)) for name in ("a", "b"))
    queue = cluster_queue(ResourceGroup(covered=(GPU,), flavors=flavors))
    assert totals(queue, {Use("a", GPU): 6}) == {"a": ("6", "2"), "b": ("0", "0")}


def test_a_flavor_that_is_listed_no_more_is_all_borrowed() -> None:
    flavors = (FlavorQuota(FlavorName("a"), quota(4)),)
    queue = cluster_queue(ResourceGroup(covered=(GPU,), flavors=flavors))
    assert totals(queue, {Use("old", GPU): 3}) == {"a": ("0", "0"), "old": ("3", "3")}


def test_a_pool_puts_what_exceeds_it_down_to_the_later_flavor() -> None:
    flavors = tuple(FlavorQuota(FlavorName(name)) for name in ("a", "b"))
    queue = cluster_queue(ResourceGroup(covered=(GPU,), flavors=flavors, pool=quota(8)))
    used = {Use("a", GPU): 6, Use("b", GPU): 5}
    assert totals(queue, used) == {"a": ("6", "0"), "b": ("5", "3")}


def test_pods_that_are_done_have_given_their_part_back() -> None:
    assignment = {
        "name": "main",
        "count": 4,
        "flavors": {"cpu": "f", "pods": "f"},
        "resourceUsage": {"cpu": "2"},
    }
    workload = {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"queueName": "lq"},
        "status": {
            "admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]},
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
            "reclaimablePods": [{"name": "main", "count": 1}],
        },
    }
    part = part_of(workload)
    assert part is not None
    assert part.local == Key("ns", "lq")
    assert part.state == "reserving"
    assert part.holds == {Use("f", "cpu"): 1500, Use("f", "pods"): 3}
