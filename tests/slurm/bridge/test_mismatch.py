"""Where Slurm and Kubernetes disagree, and what ends it."""

from __future__ import annotations

import msgspec

from tests.slurm.bridge.worlds import cluster_view, gang, job, pods, slurm_view
from unisono.slurm.bridge import actions
from unisono.slurm.bridge.cluster_view import ClusterView, Pod
from unisono.slurm.bridge.decide import Timeouts
from unisono.slurm.bridge.mismatch import Mismatch, mismatches, remedies
from unisono.slurm.bridge.nodes import sync
from unisono.slurm.bridge.slurm_view import SlurmView

NOW = 1_000_000.0


def found(slurm: SlurmView, kubernetes: ClusterView) -> list[Mismatch]:
    """Compare both."""
    return mismatches(slurm, kubernetes, bind_s=60, now=NOW)


def cures(one: Mismatch, slurm: SlurmView, kubernetes: ClusterView) -> list[type]:
    """Return what would be done about one."""
    return [type(each) for each in remedies(one, slurm, kubernetes, Timeouts(), NOW)]


def test_nothing_differs() -> None:
    runs = job(on=("n1",), gpus_per_node=8, started=NOW - 600)
    assert found(slurm_view(runs), cluster_view(gang(runs, "n1"))) == []


def test_over_belief() -> None:
    other = Pod(namespace="ml", name="x", node="n1", gpus=7)
    slurm, kubernetes = slurm_view(), cluster_view(others=(other,))
    (one,) = found(slurm, kubernetes)
    assert (one.kind, one.node, one.slurm, one.kubernetes) == ("over-belief", "n1", 8, 1)
    assert list(remedies(one, slurm, kubernetes, Timeouts(), NOW)) == [
        actions.SubmitPlaceholder("n1", 7)
    ]


def test_the_seed_s_deadlock_is_named_with_all_jobs_in_it() -> None:
    holder = job("1", on=("n1",), state="CONFIGURING", started=NOW - 90, gpus_per_node=8)
    waits = job("2", priority=5, reason="Resources", comment="")
    also = job("3", priority=4, reason="Priority", comment="")
    elsewhere = job("4", priority=4, reason="Priority", partition="cpu", comment="")
    slurm = slurm_view(holder, waits, also, elsewhere)
    kubernetes = cluster_view(others=pods("1", "", gpus=8))
    deadlock, phantom, *_ = found(slurm, kubernetes)
    assert (deadlock.kind, deadlock.jobs) == ("deadlock", ("1", "2", "3"))
    assert (phantom.kind, phantom.jobs) == ("phantom", ("1",))
    assert cures(deadlock, slurm, kubernetes) == [actions.RevokeNodes, actions.DeletePod]


def test_a_job_that_is_still_starting_is_no_phantom() -> None:
    young = job(on=("n1",), state="CONFIGURING", started=NOW - 10)
    assert found(slurm_view(young), cluster_view(others=pods("1", ""))) == []


def test_pods_of_a_job_that_is_over() -> None:
    over = job(state="COMPLETED", comment="")
    slurm, kubernetes = slurm_view(over), cluster_view(gang(over, "n1"))
    (one,) = found(slurm, kubernetes)
    assert (one.kind, one.jobs, one.kubernetes) == ("orphan", ("1",), 1)
    assert cures(one, slurm, kubernetes) == [actions.DropGang, actions.DeletePod]


def test_gpus_that_two_jobs_have_go_to_the_older_one() -> None:
    old = job("1", on=("n1",), gpus_per_node=8, started=NOW - 600)
    new = job("2", on=("n1",), gpus_per_node=4, started=NOW - 5)
    slurm = slurm_view(old, new)
    kubernetes = cluster_view(gang(old, "n1"), gang(new, "n1"), gpus=16)
    one = next(each for each in found(slurm, kubernetes) if each.kind == "double")
    (cure,) = remedies(one, slurm, kubernetes, Timeouts(), NOW)
    assert isinstance(cure, actions.RevokeNodes)
    assert cure.job.key == "2"


def _lost(kubernetes: ClusterView, name: str) -> ClusterView:
    nodes = dict(kubernetes.nodes)
    nodes[name] = msgspec.structs.replace(nodes[name], is_ready=False)
    return msgspec.structs.replace(kubernetes, nodes=nodes)


def _synced(slurm: SlurmView, kubernetes: ClusterView, **said: bool) -> list[actions.Action]:
    wishes = {"has_features": False, "has_placeholders": False, **said}
    return list(sync(slurm, kubernetes, **wishes))


def test_a_lost_node_is_drained_in_our_name_and_resumed_when_it_is_back() -> None:
    slurm, kubernetes = slurm_view(), cluster_view()
    (drain,) = _synced(slurm, _lost(kubernetes, "n2"))
    assert drain == actions.Drain("n2", "unisono: not ready in Kubernetes")
    (one,) = found(slurm, _lost(kubernetes, "n2"))
    assert (one.kind, one.node) == ("state", "n2")
    ours = slurm_view(
        states=frozenset(("IDLE", "DRAIN")), reason="unisono: not ready in Kubernetes"
    )
    assert _synced(ours, kubernetes) == [actions.Resume("n1"), actions.Resume("n2")]


def test_an_administrator_s_drain_is_never_undone() -> None:
    theirs = slurm_view(states=frozenset(("IDLE", "DRAIN")), reason="admin: fan")
    assert _synced(theirs, cluster_view()) == []
    assert _synced(theirs, _lost(cluster_view(), "n1")) == []


def test_features_follow_what_is_free_and_others_stay() -> None:
    other = Pod(namespace="ml", name="x", node="n1", gpus=5)
    slurm = slurm_view(features=("big", "gpu_avail:8"))
    labels = _synced(slurm, cluster_view(others=(other,)), has_features=True)
    assert labels == [actions.SetFeatures("n1", ("big", "gpu_avail:3"))]


def test_placeholders_follow_the_gpus_of_other_pods() -> None:
    other = Pod(namespace="ml", name="x", node="n1", gpus=5)
    (made,) = _synced(slurm_view(), cluster_view(others=(other,)), has_placeholders=True)
    assert made == actions.SubmitPlaceholder("n1", 5)
    stands = job("9", on=("n1",), comment="unisono:placeholder", gpus_per_node=5)
    assert _synced(slurm_view(stands), cluster_view(others=(other,)), has_placeholders=True) == []
    assert _synced(slurm_view(stands), cluster_view(), has_placeholders=True) == [
        actions.CancelPlaceholder(stands)
    ]
