"""Workloads: rules, history, and what they hold."""

from __future__ import annotations

import pytest

from tests.support.manifests import problems, sound
from unisono.engine.model import workload as engine

QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec: {namespaceSelector: {}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq, namespace: team}
spec: {clusterQueue: q}
"""
TEMPLATE = "template: {spec: {containers: [{name: c, resources: {requests: {gpu: 2}}}]}}"


def workload(
    spec: str = "", status: str = "", meta: str = "", sets: str = f"[{{count: 4, {TEMPLATE}}}]"
) -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\n"
        "metadata: {name: w, namespace: team, creationTimestamp: '1970-01-01T00:00:01Z'"
        f"{meta}}}\nspec: {{queueName: lq, podSets: {sets}{spec}}}\nstatus: {{{status}}}\n"
    )


def waiting(text: str) -> engine.Workload:
    (made,) = sound(QUEUES, text).snapshot.waiting
    return made


def admitted(text: str) -> engine.AdmittedWorkload:
    snapshot = sound(QUEUES, text).snapshot
    assert snapshot.waiting == ()
    (made,) = snapshot.admitted_workloads
    return made


def test_a_plain_workload_waits() -> None:
    made = waiting(workload())
    assert made == engine.Workload(
        key=made.key,
        uid=made.uid,
        queue=made.queue,
        pod_sets=(engine.PodSet(count=4, requests=made.pod_sets[0].requests),),
        created_at=made.created_at,
    )
    assert (made.key, made.queue, made.created_at) == ("team/w", "team/lq", 1000)
    assert made.pod_sets[0].requests == (("gpu", 2),)


def test_everything_that_a_spec_can_say() -> None:
    made = waiting(
        workload(
            ", priority: -5, active: false, maximumExecutionTimeSeconds: 60",
            "requeueState: {count: 3, requeueAt: '1970-01-01T00:01:00Z'},"
            " reclaimablePods: [{name: main, count: 1}],"
            " admissionChecks: [{name: prov, state: Retry}],"
            " accumulatedPastExecutionTimeSeconds: 7",
            ", uid: u, annotations: {kueue.x-k8s.io/admission-gated-by: boss,"
            " kueue.x-k8s.io/workload-slice-replacement-for: team/old}",
            f"[{{name: main, count: 4, minCount: 2, {TEMPLATE}}}]",
        )
    )
    assert (made.uid, made.priority, made.active, made.gated_by) == ("u", -5, False, "boss")
    assert made.pod_sets[0].min_count == 2
    assert (made.requeues, made.requeue_at) == (3, 60_000)
    assert made.reclaimable == (("main", 1),)
    assert made.checks == (engine.CheckState("prov", "Retry"),)
    assert made.replaces == "team/old"
    assert (made.max_execution_ms, made.past_execution_ms) == (60_000, 7000)


def test_a_slice_replaces_one_of_its_own_namespace() -> None:
    meta = ", annotations: {kueue.x-k8s.io/workload-slice-replacement-for: old}"
    assert waiting(workload(meta=meta)).replaces == "team/old"


# ---- topology ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("{required: rack}", engine.TopologyRequest("required", "rack")),
        ("{preferred: rack}", engine.TopologyRequest("preferred", "rack")),
        ("{unconstrained: true}", engine.TopologyRequest("unconstrained")),
        (
            "{required: block, podSetSliceRequiredTopology: rack, podSetSliceSize: 2}",
            engine.TopologyRequest("required", "block", "rack", 2),
        ),
    ],
)
def test_topology_requests(request_: str, expected: engine.TopologyRequest) -> None:
    sets = f"[{{count: 4, topologyRequest: {request_}, {TEMPLATE}}}]"
    assert waiting(workload(sets=sets)).pod_sets[0].topology == expected


def test_a_topology_group() -> None:
    sets = f"[{{count: 1, topologyRequest: {{required: rack, podSetGroupName: g}}, {TEMPLATE}}}]"
    assert waiting(workload(sets=sets)).pod_sets[0].group == "g"


# ---- rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (workload(sets="[]"), "spec.podSets"),
        (workload(sets="[" + f"{{count: 1, {TEMPLATE}}}, " * 19 + "]"), "spec.podSets"),
        (
            workload(sets=f"[{{count: 1, {TEMPLATE}}}, {{count: 1, {TEMPLATE}}}]"),
            "spec.podSets[1].template",
        ),
        (workload(sets=f"[{{count: -1, {TEMPLATE}}}]"), "spec.podSets[0].count"),
        (workload(sets=f"[{{count: 1, minCount: 2, {TEMPLATE}}}]"), "spec.podSets[0].minCount"),
        (workload(sets="[{count: 1}]"), "spec.podSets[0].template.spec.containers"),
        (
            workload(sets=f"[{{topologyRequest: {{required: a, preferred: b}}, {TEMPLATE}}}]"),
            "spec.podSets[0].topologyRequest",
        ),
        (
            workload(sets=f"[{{topologyRequest: {{podSetSliceSize: 1}}, {TEMPLATE}}}]"),
            "spec.podSets[0].topologyRequest",
        ),
        (workload(", priority: 2147483648"), "spec.priority"),
        (workload(", maximumExecutionTimeSeconds: 0"), "spec.maximumExecutionTimeSeconds"),
        (
            workload(", priorityClassRef: {group: kueue.x-k8s.io, kind: PriorityClass, name: a}"),
            "spec.priorityClassRef.kind",
        ),
        (
            workload(status="reclaimablePods: [{name: x, count: 1}]"),
            "status.reclaimablePods[0].name",
        ),
        (
            workload(status="admission: {clusterQueue: q, podSetAssignments: [{name: x}]}"),
            "status.admission.podSetAssignments[0].name",
        ),
        (
            workload(status="admissionChecks: [{name: a, state: Maybe}]"),
            "status.admissionChecks[0].state",
        ),
    ],
)
def test_what_is_refused(text: str, path: str) -> None:
    assert [found for found, _ in problems(text)] == [path]


# ---- admitted workloads ------------------------------------------------------------------------

ADMISSION = (
    "admission: {clusterQueue: q, podSetAssignments:"
    " [{name: main, count: 3, flavors: {gpu: h100}, resourceUsage: {gpu: 6}, newer: field}]}"
)


def conditions(*listed: str) -> str:
    return f"conditions: [{', '.join(listed)}]"


def fact(type_: str, status: str, reason: str = "R", second: int = 5) -> str:
    return (
        f"{{type: {type_}, status: '{status}', reason: {reason}, message: m,"
        f" lastTransitionTime: '1970-01-01T00:00:{second:02d}Z'}}"
    )


def test_an_admission_makes_an_admitted_workload() -> None:
    made = admitted(workload(status=ADMISSION))
    assert made.admission == engine.Admission(
        queue=made.admission.queue,
        pod_sets=(
            engine.PodSetAssignment(
                name="main", count=3, flavors=made.admission.pod_sets[0].flavors
            ),
        ),
    )
    assert made.admission.queue == "q"
    assert made.admission.pod_sets[0].flavors == (("gpu", "h100"),)
    assert made.may_start
    assert made.ready
    assert not made.evicting
    assert made.reserved_at == 1000  # its creation, for want of a condition


def test_conditions_tell_how_far_it_is() -> None:
    text = workload(
        status=f"{ADMISSION}, "
        + conditions(
            fact("QuotaReserved", "True", second=7),
            fact("Admitted", "False", second=8),
            fact("PodsReady", "False", "WaitForStart", second=9),
            fact("Evicted", "True", second=10),
        )
    )
    made = admitted(text)
    assert made.reserved_at == 7000
    assert not made.may_start
    assert made.admitted_at == 8000
    assert not made.ready
    assert made.unready_since is None
    assert made.evicting


def test_readiness_that_was_lost_has_a_time() -> None:
    status = f"{ADMISSION}, {conditions(fact('PodsReady', 'False', 'WaitForRecovery', 9))}"
    assert admitted(workload(status=status)).unready_since == 9000


def test_a_reservation_that_was_taken_back_is_none() -> None:
    status = f"{ADMISSION}, {conditions(fact('QuotaReserved', 'False'))}"
    assert waiting(workload(status=status)).key == "team/w"


def test_recorded_usage_stands_in_for_requests_that_are_not_there() -> None:
    sets = "[{count: 4, template: {spec: {containers: [{name: c}]}}}]"
    made = admitted(workload(status=ADMISSION, sets=sets))
    assert made.workload.pod_sets[0].requests == (("gpu", 2),)


def test_sets_without_pods_are_left_out_everywhere() -> None:
    sets = f"[{{count: 4, {TEMPLATE}}}, {{name: none, count: 0, {TEMPLATE}}}]"
    made = admitted(workload(status=ADMISSION, sets=sets))
    assert [one.name for one in made.workload.pod_sets] == ["main"]
    assert [one.name for one in made.admission.pod_sets] == ["main"]


def test_a_finished_workload_is_gone() -> None:
    status = f"{ADMISSION}, {conditions(fact('Finished', 'True'))}"
    snapshot = sound(QUEUES, workload(status=status)).snapshot
    assert not snapshot.admitted_workloads
    assert not snapshot.waiting


# ---- history -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "queued_at"),
    [("PodsReadyTimeout", 5000), ("AdmissionCheck", 5000), ("Preempted", None), ("Other", None)],
)
def test_some_evictions_change_the_place_in_the_queue(reason: str, queued_at: int | None) -> None:
    status = conditions(fact("Evicted", "True", reason))
    assert waiting(workload(status=status)).queued_at == queued_at


def test_the_operator_may_keep_the_place_after_a_time_out() -> None:
    policy = (
        "apiVersion: unisono.dev/v1\nkind: Policy\n"
        "waitForPodsReady: {requeuingStrategy: {timestamp: Creation}}\n"
    )
    status = conditions(fact("Evicted", "True", "PodsReadyTimeout"))
    (made,) = sound(QUEUES, workload(status=status), policy).snapshot.waiting
    assert made.queued_at is None


def test_on_hold() -> None:
    assert waiting(workload(status=conditions(fact("Requeued", "False")))).on_hold
    assert not waiting(workload(status=conditions(fact("Requeued", "True")))).on_hold


@pytest.mark.parametrize(
    ("times", "seconds"), [(0, 60), (1, 60), (2, 120), (3, 240), (7, 3600), (1000, 3600)]
)
def test_a_preempted_workload_may_not_preempt_for_a_while(times: int, seconds: int) -> None:
    stats = f"schedulingStats: {{evictions: [{{reason: Preempted, count: {times}}}]}}"
    made = waiting(workload(status=f"{conditions(fact('Preempted', 'True'))}, {stats}"))
    assert made.preemptions == max(times, 1)
    assert made.may_preempt_at == 5000 + seconds * 1000


def test_other_evictions_do_not_hold_it_back() -> None:
    stats = "schedulingStats: {evictions: [{reason: PodsReadyTimeout, count: 3}]}"
    made = waiting(workload(status=stats))
    assert (made.preemptions, made.may_preempt_at) == (0, None)


def test_strict_mode_has_no_such_rule() -> None:
    policy = "apiVersion: unisono.dev/v1\nkind: Policy\ncompat: {strict: true}\n"
    text = workload(status=conditions(fact("Preempted", "True")))
    (made,) = sound(QUEUES, text, policy).snapshot.waiting
    assert (made.preemptions, made.may_preempt_at) == (1, None)
