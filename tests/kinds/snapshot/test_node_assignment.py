"""Which pods are on which node: those of admitted workloads, and all others."""

from __future__ import annotations

import pytest

from tests.support.manifests import sound, world
from unisono.engine.model.names import CPU, NodeName
from unisono.engine.model.node import HostPort, NodePod, PodRule, PodSelector
from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import AdmittedWorkload

QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 64}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq}
spec: {clusterQueue: q}
"""
NODES = "---\n".join(
    f"apiVersion: v1\nkind: Node\n"
    f"metadata: {{name: n{n}, labels: {{kubernetes.io/hostname: host{n}}}}}\n"
    for n in range(3)
)


def pod(
    name: str, node: str, *, meta: str = "", spec: str = "", cpu: int = 1, phase: str = "Running"
) -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{meta}}}\n"
        f"spec: {{nodeName: '{node}', {spec}containers: [{{name: c, resources: {{requests:"
        f" {{cpu: {cpu}}}}}}}]}}\nstatus: {{phase: {phase}}}\n"
    )


def read(*texts: str) -> Snapshot:
    return sound(QUEUE, NODES, *texts).snapshot


def places(admitted: AdmittedWorkload) -> dict[str, dict[str, int]]:
    return {one.name: dict(one.nodes) for one in admitted.admission.pod_sets}


def other_pods(snapshot: Snapshot) -> list[tuple[str, str]]:
    return [(one.key, one.node) for one in snapshot.pods]


# ---- all other pods ------------------------------------------------------------------------------


def test_a_pod_of_no_workload_is_listed() -> None:
    meta = ", labels: {app: x}"
    spec = (
        "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
        " [{topologyKey: rack, labelSelector: {}, namespaceSelector: {}}]}}, "
        "initContainers: [{name: i, restartPolicy: Always, resources: {requests: {cpu: 500m}},"
        " ports: [{containerPort: 5, hostPort: 5}]}], overhead: {cpu: 250m}, "
    )
    (found,) = read(pod("x", "n1", meta=meta, spec=spec)).pods
    assert found == NodePod(
        key="default/x",
        node=NodeName("n1"),
        requests=((CPU, 1750),),
        labels=(("app", "x"),),
        host_ports=(HostPort(5),),
        anti_affinity=(PodRule(PodSelector(LabelSelector(), every_namespace=True), "rack"),),
    )


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_over_takes_nothing(phase: str) -> None:
    assert read(pod("x", "n1", phase=phase)).pods == ()


def test_a_pod_without_a_node_takes_nothing() -> None:
    assert read(pod("x", "")).pods == ()


def test_a_pod_that_is_being_deleted_still_counts() -> None:
    leaving = ", deletionTimestamp: '1970-01-01T00:00:00Z'"
    assert other_pods(read(pod("x", "n1", meta=leaving))) == [("default/x", "n1")]


def test_another_pod_uses_what_it_requests_not_what_quota_would_count() -> None:
    policy = (
        "apiVersion: unisono.dev/v1\nkind: Policy\nresources: {excludeResourcePrefixes: [cpu]}\n"
    )
    (found,) = read(policy, pod("x", "n1")).pods
    assert found.requests == ((CPU, 1000),)


# ---- jobs ----------------------------------------------------------------------------------------

JOB = (
    "apiVersion: batch/v1\nkind: Job\n"
    "metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: lq}}\n"
    "spec: {parallelism: 3, template: {spec: {restartPolicy: Never, containers: [{name: c,"
    " resources: {requests: {cpu: 1}}}]}}}\n"
)
OF_JOB = ", ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j}]"


def test_the_pods_of_an_admitted_workload_are_counted_there() -> None:
    found = read(JOB, *(pod(f"p{n}", f"n{n // 2}", meta=OF_JOB) for n in range(3)))
    assert places(found.admitted_workloads[0]) == {"main": {"n0": 2, "n1": 1}}
    assert found.pods == ()


def test_the_pods_of_a_job_that_is_not_managed_are_listed() -> None:
    unmanaged = JOB.replace(", labels: {kueue.x-k8s.io/queue-name: lq}", "")
    assert other_pods(read(unmanaged, pod("p0", "n0", meta=OF_JOB))) == [("default/p0", "n0")]


def test_a_replacement_counts_and_the_old_pod_is_listed() -> None:
    old = pod("old", "n2", meta=OF_JOB + ", deletionTimestamp: '1970-01-01T00:00:00Z'")
    found = read(JOB, old, *(pod(f"p{n}", "n0", meta=OF_JOB) for n in range(3)))
    assert places(found.admitted_workloads[0]) == {"main": {"n0": 3}}
    assert other_pods(found) == [("default/old", "n2")]


JOB_SET = (
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
    "metadata: {name: s, labels: {kueue.x-k8s.io/queue-name: lq}}\n"
    "spec: {replicatedJobs: [%s]}\n"
)
REPLICATED = (
    "{name: %s, template: {spec: {parallelism: 2, template: {spec: {containers: [{name: c,"
    " resources: {requests: {cpu: %d}}}]}}}}}"
)


def of_set(role: str = "") -> str:
    more = f", jobset.sigs.k8s.io/replicatedjob-name: {role}" if role else ""
    return f", labels: {{jobset.sigs.k8s.io/jobset-name: s{more}}}"


def test_pods_find_their_set_by_name_then_by_what_they_ask_for() -> None:
    job_set = JOB_SET % f"{REPLICATED % ('a', 1)}, {REPLICATED % ('b', 1)}"
    found = read(job_set, pod("x", "n0", meta=of_set("b")), pod("w", "n1", meta=of_set("b"), cpu=3))
    # Two pods of the second job, although one was resized since.
    assert places(found.admitted_workloads[0]) == {"a": {}, "b": {"n0": 1, "n1": 1}}
    job_set = JOB_SET % f"{REPLICATED % ('a', 1)}, {REPLICATED % ('b', 2)}"
    found = read(
        job_set,
        pod("x", "n0", meta=of_set(), cpu=2),
        pod("w", "n1", meta=of_set(), cpu=1),
        pod("z", "n2", meta=of_set(), cpu=3),
    )
    assert places(found.admitted_workloads[0]) == {"a": {"n1": 1}, "b": {"n0": 1}}
    assert other_pods(found) == [("default/z", "n2")]


def test_the_only_set_takes_any_pod() -> None:
    found = read(JOB, pod("p0", "n0", meta=OF_JOB, cpu=5))
    assert places(found.admitted_workloads[0]) == {"main": {"n0": 1}}


# ---- gangs ---------------------------------------------------------------------------------------

GROUP = (
    "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n"
    "spec: {schedulingPolicy: {gang: {minCount: 2}}}\n"
)
LINK = "schedulingGroup: {podGroupName: g}, "


def test_a_gang_holds_what_its_bound_pods_show() -> None:
    found = read(GROUP, *(pod(f"p{n}", "n0" if n < 3 else "", spec=LINK) for n in range(4)))
    (admitted,) = found.admitted_workloads
    assert admitted.workload.key == "default/podgroup-g"
    # Four may run and two are enough: three do.
    assert [one.count for one in admitted.admission.pod_sets] == [3]
    assert places(admitted) == {"main": {"n0": 3}}
    assert not found.waiting
    assert not found.pods


def test_a_gang_below_its_minimum_still_starts() -> None:
    found = read(GROUP, *(pod(f"p{n}", "n0" if n < 1 else "", spec=LINK) for n in range(4)))
    assert [one.count for one in found.admitted_workloads[0].admission.pod_sets] == [4]
    assert places(found.admitted_workloads[0]) == {"main": {"n0": 1}}


def test_a_gang_on_its_way_out_holds_its_nodes_until_it_is_gone() -> None:
    leaving = ", deletionTimestamp: '1970-01-01T00:00:00Z'"
    found = read(GROUP, *(pod(f"p{n}", "n0", meta=leaving, spec=LINK) for n in range(2)))
    assert places(found.admitted_workloads[0]) == {"main": {"n0": 2}}
    assert found.admitted_workloads[0].evicting
    # One that is replaced does not count twice.
    old = pod("old", "n1", meta=leaving, spec=LINK)
    found = read(GROUP, old, *(pod(f"p{n}", "n0", spec=LINK) for n in range(2)))
    assert places(found.admitted_workloads[0]) == {"main": {"n0": 2}}
    assert other_pods(found) == [("default/old", "n1")]


def test_a_single_pod_of_ours_is_admitted_and_not_listed() -> None:
    found = read(pod("x", "n1", spec="schedulerName: unisono, "))
    assert [one.workload.key for one in found.admitted_workloads] == ["default/pod-x"]
    assert found.admitted_workloads[0].admission.queue == "unisono.dev/unlimited"
    assert found.pods == ()


# ---- Workloads -----------------------------------------------------------------------------------


def workload(assignment: str = "", meta: str = "", version: str = "v1beta2", count: int = 3) -> str:
    where = f", topologyAssignment: {assignment}" if assignment else ""
    return (
        f"apiVersion: kueue.x-k8s.io/{version}\nkind: Workload\nmetadata: {{name: w{meta}}}\n"
        "spec: {queueName: lq, podSets: [{count: 3, template: {spec: {containers: [{name: c,"
        " resources: {requests: {cpu: 1}}}]}}}]}\n"
        "status: {admission: {clusterQueue: q, podSetAssignments: [{name: main, flavors: {cpu: f},"
        f" count: {count}{where}}}]}}}}\n"
    )


SLICES = (
    "{levels: [rack, kubernetes.io/hostname], slices: [{domainCount: 2, valuesPerLevel:"
    " [{universal: r0}, {individual: {prefix: host, roots: ['0', '1']}}],"
    " podCounts: {individual: [2, 1]}}]}"
)
DOMAINS = (
    "{levels: [kubernetes.io/hostname], domains: [{values: [host0], count: 2},"
    " {values: [host1], count: 1}]}"
)
OF_WORKLOAD = ", annotations: {kueue.x-k8s.io/workload: w}"


@pytest.mark.parametrize(("assignment", "version"), [(SLICES, "v1beta2"), (DOMAINS, "v1beta1")])
def test_a_workload_says_where_its_pods_go(assignment: str, version: str) -> None:
    # Hosts are known by their label, nodes by their name.
    found = read(workload(assignment, version=version))
    assert places(found.admitted_workloads[0]) == {"main": {"n0": 2, "n1": 1}}


def test_an_unknown_host_keeps_its_name() -> None:
    found = read(workload(DOMAINS.replace("host1", "gone"), version="v1beta1"))
    assert places(found.admitted_workloads[0]) == {"main": {"gone": 1, "n0": 2}}


def test_racks_say_nothing_about_nodes() -> None:
    racks = "{levels: [rack], domains: [{values: [r0], count: 3}]}"
    assert places(read(workload(racks, version="v1beta1")).admitted_workloads[0]) == {"main": {}}
    assert places(read(workload()).admitted_workloads[0]) == {"main": {}}


@pytest.mark.parametrize(
    "meta",
    [
        OF_WORKLOAD,
        ", annotations: {kueue.x-k8s.io/pod-group-total-count: '3'},"
        " labels: {kueue.x-k8s.io/pod-group-name: w, kueue.x-k8s.io/queue-name: lq}",
    ],
)
def test_bound_pods_are_where_they_are(meta: str) -> None:
    found = read(workload(), pod("p0", "n2", meta=meta), pod("p1", "n2", meta=meta))
    assert places(found.admitted_workloads[0]) == {"main": {"n2": 2}}
    assert found.pods == ()
    assert found.waiting == ()


def test_a_workload_has_the_pods_of_the_job_that_owns_it() -> None:
    owned = ", ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j}]"
    found = read(JOB, workload(meta=owned), pod("p0", "n2", meta=OF_JOB))
    assert places(found.admitted_workloads[0]) == {"main": {"n2": 1}}
    by_pod = ", ownerReferences: [{apiVersion: v1, kind: Pod, name: x}]"
    found = read(workload(meta=by_pod), pod("x", "n1"))
    assert places(found.admitted_workloads[0]) == {"main": {"n1": 1}}


def test_what_is_not_bound_yet_goes_where_it_was_assigned() -> None:
    assigned = workload(DOMAINS, version="v1beta1")
    as_planned = read(assigned, pod("p0", "n0", meta=OF_WORKLOAD))
    assert places(as_planned.admitted_workloads[0]) == {"main": {"n0": 2, "n1": 1}}
    elsewhere = read(assigned, pod("p0", "n2", meta=OF_WORKLOAD))
    assert places(elsewhere.admitted_workloads[0]) == {"main": {"n0": 2, "n2": 1}}
    all_elsewhere = read(assigned, *(pod(f"p{n}", "n2", meta=OF_WORKLOAD) for n in range(4)))
    assert places(all_elsewhere.admitted_workloads[0]) == {"main": {"n2": 3}}
    assert len(all_elsewhere.pods) == 1


def test_pods_of_a_workload_that_waits_are_listed() -> None:
    waits = workload().partition("status:")[0]
    found = read(waits, pod("p0", "n0", meta=OF_WORKLOAD))
    assert len(found.waiting) == 1
    assert other_pods(found) == [("default/p0", "n0")]


@pytest.mark.parametrize(
    ("assignment", "version"),
    [
        ("{levels: [a], domains: [{values: [x]}]}", "v1beta1"),
        ("{levels: [a], domains: [{values: [x, y], count: 1}]}", "v1beta1"),
        ("{domains: []}", "v1beta1"),
        ("{levels: [a]}", "v1beta2"),
        ("{levels: [a], slices: [{domainCount: 2, podCounts: {universal: 1}}]}", "v1beta2"),
        ("[x]", "v1beta2"),
    ],
)
def test_an_assignment_that_makes_no_sense_is_a_problem(assignment: str, version: str) -> None:
    made = world(QUEUE, NODES, workload(assignment, version=version))
    assert [one.path for one in made.problems] == [
        "status.admission.podSetAssignments[0].topologyAssignment"
    ]
