"""Objects as a real API server stores them."""

from __future__ import annotations

from tests.support.control_objects import queue
from unisono.control import names
from unisono.control.manifests import Manifests
from unisono.control.view import KindStore, View
from unisono.kinds.kueue.queue_rules import queue_of


def test_names_of_an_older_version_are_understood_in_the_stored_one() -> None:
    view = View({names.CLUSTER_QUEUE: KindStore.of(names.CLUSTER_QUEUE, {})})
    old = next(one for one in queue() if one["kind"] == "ClusterQueue")
    old["spec"]["cohort"] = "root"
    old["spec"]["flavorFungibility"] = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}
    read = Manifests(view).read(old)
    assert read is not None
    assert queue_of(read, strict=False).cohort == "root"
    assert old["spec"]["cohort"] == "root"  # what the view holds is not changed
