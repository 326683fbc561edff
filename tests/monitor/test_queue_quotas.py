"""The GPUs of a ClusterQueue, however its quota is written."""

from __future__ import annotations

from unisono.kinds import views
from unisono.kube.form import Json
from unisono.monitor.records import Quota, queue_record


def quotas(*groups: Json) -> tuple[Quota, ...]:
    metadata = {"name": "q", "uid": "1"}
    return queue_record(
        views.ClusterQueue({"metadata": metadata, "spec": {"resourceGroups": list(groups)}})
    ).quotas


def test_a_quota_per_flavor() -> None:
    gpus = {"name": "nvidia.com/gpu", "nominalQuota": "8", "borrowingLimit": "2"}
    cpus = {"name": "cpu", "nominalQuota": "100"}
    assert quotas({"flavors": [{"name": "a100", "resources": [cpus, gpus]}]}) == (
        Quota("a100", 8, 2, None),
    )


def test_one_quota_for_flavors_that_are_only_named() -> None:
    group = {
        "flavors": ["flavor-gpu-nvidia", "flavor-gpu-nvidia-efa"],
        "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 100}],
    }
    assert quotas(group) == (Quota("flavor-gpu-nvidia", 100, None, None),)
    assert quotas({"flavors": ["only-named"]}) == ()


def test_a_queue_of_the_older_version_is_in_its_cohort() -> None:
    queue = {"metadata": {"name": "q", "uid": "1"}, "spec": {"cohort": "research"}}
    assert queue_record(views.ClusterQueue(queue)).cohort == "research"
