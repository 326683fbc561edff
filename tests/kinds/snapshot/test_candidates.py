"""Which objects stand for workloads, and under which name."""

from __future__ import annotations

from tests.kinds.snapshot.test_local_queues import job as queued_job
from tests.kinds.snapshot.test_local_queues import queued, queues
from tests.support.manifests import sound
from unisono.kinds.snapshot.build import World

QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec: {namespaceSelector: {}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq}
spec: {clusterQueue: q}
"""
LABELS = "labels: {kueue.x-k8s.io/queue-name: lq}"
POD_SPEC = "{restartPolicy: Never, containers: [{name: c}]}"


def job(name: str = "j", status: str = "{}") -> str:
    return (
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, {LABELS}}}\n"
        f"spec: {{template: {{spec: {POD_SPEC}}}}}\nstatus: {status}\n"
    )


def pod(name: str, group: str = "") -> str:
    more = f", kueue.x-k8s.io/pod-group-name: {group}" if group else ""
    count = ", annotations: {kueue.x-k8s.io/pod-group-total-count: '2'}" if group else ""
    labels = LABELS.replace("}", more + "}")
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, {labels}{count}}}\n"
        f"spec: {POD_SPEC}\n"
    )


def workload(owner: str) -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Workload\n"
        f"metadata: {{name: job-j-12345, ownerReferences: [{owner}]}}\n"
        "spec: {queueName: lq, podSets: [{template: {spec: {containers: [{name: c}]}}}]}\n"
    )


def names(made: World) -> list[str]:
    return [one.key for one in made.snapshot.waiting]


def test_jobs_are_named_after_their_kind() -> None:
    assert names(sound(QUEUES, job("b"), job("a"))) == ["default/job-b", "default/job-a"]


def test_two_kinds_of_one_name_do_not_collide() -> None:
    volcano = (
        f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: j, {LABELS}}}\n"
        f"spec: {{tasks: [{{name: t, replicas: 1, template: {{spec: {POD_SPEC}}}}}]}}\n"
    )
    assert names(sound(QUEUES, job(), volcano)) == [
        "default/job-j",
        "default/job.batch.volcano.sh-j",
    ]


def test_pods_of_a_group_are_one_workload() -> None:
    made = sound(QUEUES, pod("a", "g"), pod("single"), pod("b", "g"))
    assert names(made) == ["default/g", "default/pod-single"]
    assert sum(one.count for one in made.snapshot.waiting[0].pod_sets) == 2


def test_a_job_whose_workload_is_given_counts_once() -> None:
    owner = "{apiVersion: batch/v1, kind: Job, name: j}"
    assert names(sound(QUEUES, job(), workload(owner))) == ["default/job-j-12345"]
    other = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j}"
    assert len(names(sound(QUEUES, job(), workload(other)))) == 2


def test_pods_whose_workload_is_given_count_once() -> None:
    owner = "{apiVersion: v1, kind: Pod, name: b}"
    made = sound(QUEUES, pod("a", "g"), pod("b", "g"), workload(owner))
    assert names(made) == ["default/job-j-12345"]


def test_a_finished_job_is_gone() -> None:
    done = "{conditions: [{type: Complete, status: 'True'}]}"
    made = sound(QUEUES, job(status=done))
    assert names(made) == []
    assert made.unmanaged == ()


NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\n"


def group(api: str, spec: str) -> str:
    return f"apiVersion: {api}\nkind: PodGroup\nmetadata: {{name: g}}\nspec: {{{spec}}}\n"


def member(name: str, meta: str = "", spec: str = "") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{meta}}}\n"
        f"spec: {{{spec}restartPolicy: Never, containers: [{{name: c}}]}}\n"
    )


COSCHEDULED = (
    group("scheduling.x-k8s.io/v1alpha1", "minMember: 1"),
    member("a", ", labels: {scheduling.x-k8s.io/pod-group: g}"),
)


def test_groups_of_one_name_and_different_apis_do_not_collide() -> None:
    made = sound(
        NODE,
        *COSCHEDULED,
        group("scheduling.volcano.sh/v1beta1", "minMember: 1"),
        group("scheduling.k8s.io/v1beta1", "schedulingPolicy: {gang: {minCount: 1}}"),
        member("b", ", annotations: {scheduling.k8s.io/group-name: g}"),
        member("c", spec="schedulingGroup: {podGroupName: g}, "),
    )
    assert names(made) == [
        "default/podgroup-g",
        "default/podgroup.scheduling.volcano.sh-g",
        "default/podgroup.scheduling.k8s.io-g",
    ]


def test_a_kueue_group_of_the_same_name_does_not_collide_either() -> None:
    made = sound(QUEUES, NODE, *COSCHEDULED, pod("x", "podgroup-g"), pod("z", "podgroup-g"))
    assert len(set(names(made))) == 2


def test_a_kueue_group_comes_before_any_other() -> None:
    both = pod("x", "g").replace("labels: {", "labels: {scheduling.x-k8s.io/pod-group: g, ")
    made = sound(QUEUES, NODE, COSCHEDULED[0], both, pod("z", "g"))
    assert names(made) == ["default/g"]


def test_pods_of_a_job_are_the_jobs_even_if_they_name_a_group() -> None:
    owned = ", ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j}]"
    of_job = member("a", owned, "schedulerName: volcano, schedulingGroup: {podGroupName: g}, ")
    assert names(sound(QUEUES, NODE, job(), of_job)) == ["default/job-j"]
    # Also where the objects between a pod and its job are missing.
    by_label = member("a", ", labels: {job-name: j}", "schedulerName: unisono, ")
    assert names(sound(QUEUES, NODE, job(), by_label)) == ["default/job-j"]


def test_a_group_of_a_job_is_the_jobs() -> None:
    volcano = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\n"
        f"spec: {{tasks: [{{name: t, replicas: 1, template: {{spec: {POD_SPEC}}}}}]}}\n"
    )
    owner = "ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: v}]"
    owned = group("scheduling.volcano.sh/v1beta1", "minMember: 1").replace(
        "name: g", f"name: g, {owner}"
    )
    pods = member("a", f", annotations: {{scheduling.k8s.io/group-name: g}}, {owner}")
    assert names(sound(NODE, volcano, owned, pods)) == ["default/job-v"]


def test_pods_that_the_api_server_has_to_name_are_different_pods() -> None:
    text = member("x", spec="schedulerName: unisono, ").replace("name: x", "generateName: x-")
    assert names(sound(NODE, text, text)) == ["default/pod-x-00001", "default/pod-x-00002"]


def test_a_workload_of_the_gang_counts_instead_of_it() -> None:
    owner = "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, name: g}"
    assert names(sound(QUEUES, NODE, *COSCHEDULED, workload(owner))) == ["default/job-j-12345"]
    named = member(
        "p0", ", annotations: {kueue.x-k8s.io/workload: job-j-12345}", "schedulerName: unisono, "
    )
    other = "{apiVersion: v1, kind: Pod, name: other}"
    assert names(sound(QUEUES, NODE, named, workload(other))) == ["default/job-j-12345"]


OWNED = ", ownerReferences: [{apiVersion: %s, kind: %s, name: %s}]"


def test_what_belongs_to_a_job_is_that_jobs_business() -> None:
    job_set = (
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
        "metadata: {name: s, namespace: team, labels: {kueue.x-k8s.io/queue-name: lq}}\n"
        "spec: {replicatedJobs: [{name: r, template: {spec: {template: {spec:"
        " {containers: [{name: c}]}}}}}]}\n"
    )
    owned = queued_job("lq", meta=OWNED % ("jobset.x-k8s.io/v1alpha2", "JobSet", "s"))
    assert list(queued(sound(queues("lq"), job_set, owned))) == ["team/jobset-s"]
    # An owner that is not given cannot stand for it.
    assert list(queued(sound(queues("lq"), owned))) == ["team/job-j"]
    # A CronJob is an owner, but no job of ours.
    other = queued_job("lq", meta=OWNED % ("batch/v1", "CronJob", "c"))
    assert list(queued(sound(queues("lq"), other))) == ["team/job-j"]
