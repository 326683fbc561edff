"""What about a workload itself keeps it out of every pending queue."""

from __future__ import annotations

import msgspec

from tests.support.quota_builders import pods, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.dry_run import one_cycle
from unisono.engine.explain.messages import message_of
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.explanation import Held
from unisono.engine.model.multifactor import SubmitOptions
from unisono.engine.model.names import LocalQueueKey, WorkloadKey
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import WorkloadWaits

KEY = WorkloadKey("ns/a")


def test_a_hold_needs_no_scheduling_policy() -> None:
    state = restore(world(queue("q", "4")))
    held = Workload(
        key=KEY,
        uid="a",
        queue=LocalQueueKey("ns/q"),
        pod_sets=(pods(1, {"gpu": 1}),),
        submit_options=SubmitOptions(hold="admin"),
    )
    state.apply(WorkloadWaits(held))
    assert not one_cycle(state, state.now)[0].admissions
    found = explanation(state, KEY)
    assert found is not None
    assert found.blockers == (Held(by="admin"),)
    assert message_of(found).endswith(
        "an administrator releases it: remove the annotation unisono.dev/hold"
    )
    state.apply(WorkloadWaits(msgspec.structs.replace(held, submit_options=SubmitOptions())))
    assert [admit.workload for admit in one_cycle(state, state.now)[0].admissions] == [KEY]
