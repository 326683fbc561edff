"""Which jobs are ours, and in which queue they are (spec quota §16, scenario 62)."""

from __future__ import annotations

from tests.support.findings import lines, sound, world
from unisono.kinds.world import World

LABEL = "metadata.labels[kueue.x-k8s.io/queue-name]"


def queues(*names: str, namespace: str = "team") -> str:
    text = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: q}\n"
        "spec: {namespaceSelector: {}}\n"
    )
    for name in names:
        text += (
            "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\n"
            f"metadata: {{name: {name}, namespace: {namespace}}}\nspec: {{clusterQueue: q}}\n"
        )
    return text


def job(queue: str = "", namespace: str = "team", meta: str = "", name: str = "j") -> str:
    labels = f"labels: {{kueue.x-k8s.io/queue-name: {queue}}}, " if queue else ""
    return (
        "apiVersion: batch/v1\nkind: Job\n"
        f"metadata: {{{labels}name: {name}, namespace: {namespace}{meta}}}\n"
        "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}\n"
    )


def volcano_job(queue: str = "") -> str:
    return (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"
        f"metadata: {{name: v, namespace: team}}\nspec: {{queue: '{queue}', tasks: [{{name: t,"
        " replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}]}\n"
    )


def queued(made: World) -> dict[str, str]:
    return {workload.key: workload.queue for workload in made.snapshot.waiting}


def test_the_label_names_the_queue() -> None:
    assert queued(sound(queues("lq"), job("lq"))) == {"team/job-j": "team/lq"}


def test_a_queue_named_default_takes_jobs_without_a_label() -> None:
    made = sound(queues("default", "lq"), job(), job("lq", name="k"))
    assert queued(made) == {"team/job-j": "team/default", "team/job-k": "team/lq"}
    assert made.unmanaged == ()


def test_a_job_without_a_queue_is_not_managed() -> None:
    made = sound(queues("lq"), job())
    assert queued(made) == {}
    assert made.unmanaged == ("team/job-j",)
    assert [(one.code, one.path) for one in made.warnings] == [("NotManaged", LABEL)]


def test_the_operator_may_hold_such_jobs_back() -> None:
    policy = "apiVersion: unisono.dev/v1\nkind: Policy\nmanageJobsWithoutQueueName: true\n"
    made = sound(queues("lq"), job(), policy)
    assert queued(made) == {"team/job-j": "team/"}
    assert made.unmanaged == ()


def test_a_namespace_that_is_not_managed_is_left_alone() -> None:
    made = sound(queues("lq", "default", namespace="kube-system"), job("lq", "kube-system"))
    assert queued(made) == {}
    assert made.unmanaged == ("kube-system/job-j",)
    assert [(one.code, one.path) for one in made.warnings] == [("NotManaged", LABEL)]


def test_managed_namespaces_are_chosen_by_their_labels() -> None:
    policy = (
        "apiVersion: unisono.dev/v1\nkind: Policy\n"
        "managedJobsNamespaceSelector: {matchLabels: {ml: 'true'}}\n"
    )
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {ml: 'true'}}\n"
    assert queued(sound(queues("lq"), job("lq"), policy, space)) == {"team/job-j": "team/lq"}
    assert queued(sound(queues("lq"), job("lq"), policy)) == {}


def test_a_queue_that_a_kind_names_itself_counts_if_it_exists() -> None:
    assert queued(sound(queues("gpu", "default"), volcano_job("gpu"))) == {"team/job-v": "team/gpu"}
    assert queued(sound(queues("default"), volcano_job())) == {"team/job-v": "team/default"}
    assert sound(queues("lq"), volcano_job("gpu")).unmanaged == ("team/job-v",)


def test_a_missing_queue_is_a_problem() -> None:
    made = world(queues("lq"), job("gone"))
    assert lines(made.problems) == [
        f'2.yaml: document 1: {LABEL}: there is no LocalQueue "gone" in namespace team'
    ]


def test_a_queue_in_another_namespace_does_not_count() -> None:
    assert len(world(queues("lq", namespace="other"), job("lq")).problems) == 1


def test_a_local_queue_that_leads_nowhere_is_a_problem() -> None:
    made = world(queues("lq").replace("clusterQueue: q", "clusterQueue: gone"))
    assert lines(made.problems) == [
        '1.yaml: document 2: spec.clusterQueue: there is no ClusterQueue "gone"'
    ]


def test_an_object_that_is_broken_is_not_reported_as_missing() -> None:
    made = world(queues("lq").replace("spec: {namespaceSelector: {}}", "spec: 5"), job("lq"))
    assert [problem.path for problem in made.problems] == ["spec"]


def test_nothing_is_missed_while_a_file_cannot_be_read() -> None:
    made = world(job("lq"), "a: [")
    assert [problem.file for problem in made.problems] == ["2.yaml"]


OWNED = ", ownerReferences: [{apiVersion: %s, kind: %s, name: %s}]"


def test_what_belongs_to_a_job_is_that_jobs_business() -> None:
    job_set = (
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
        "metadata: {name: s, namespace: team, labels: {kueue.x-k8s.io/queue-name: lq}}\n"
        "spec: {replicatedJobs: [{name: r, template: {spec: {template: {spec:"
        " {containers: [{name: c}]}}}}}]}\n"
    )
    owned = job("lq", meta=OWNED % ("jobset.x-k8s.io/v1alpha2", "JobSet", "s"))
    assert list(queued(sound(queues("lq"), job_set, owned))) == ["team/jobset-s"]
    # An owner that nobody showed us cannot speak for it.
    assert list(queued(sound(queues("lq"), owned))) == ["team/job-j"]
    # A CronJob is an owner, but no job of ours.
    other = job("lq", meta=OWNED % ("batch/v1", "CronJob", "c"))
    assert list(queued(sound(queues("lq"), other))) == ["team/job-j"]
