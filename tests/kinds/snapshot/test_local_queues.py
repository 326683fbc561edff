"""Which local queue a job goes through (spec quota §16, scenario 62; placement §7)."""

from __future__ import annotations

import pytest

from tests.support.manifests import lines, sound, world
from unisono.engine.model.names import LocalQueueKey, QueueName
from unisono.engine.model.queue import LocalQueue
from unisono.kinds.snapshot.build import World
from unisono.kinds.snapshot.local_queues import UNLIMITED

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


def policy(*rules: str) -> str:
    return f"apiVersion: unisono.dev/v1\nkind: Policy\ndefaultQueues: [{', '.join(rules)}]\n"


@pytest.mark.parametrize(
    ("rules", "queue"),
    [
        (("{queue: lq}",), "lq"),
        (("{namespaces: [other], queue: nope}", "{namespaces: [team], queue: lq}"), "lq"),
        (("{namespaceSelector: {matchLabels: {tier: gold}}, queue: gold}",), "gold"),
        (("{namespaceSelector: {matchLabels: {tier: tin}}, queue: tin}",), "default"),
        (("{queue: none-there}",), "none-there"),
    ],
)
def test_the_policy_gives_a_namespace_its_queue(rules: tuple[str, ...], queue: str) -> None:
    """It comes before the one named `default`; a workload sent to a missing one waits for it."""
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {tier: gold}}\n"
    made = sound(queues("default", "lq"), space, policy(*rules), job(), job("lq", name="k"))
    assert queued(made) == {"team/job-j": f"team/{queue}", "team/job-k": "team/lq"}


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


def test_a_job_of_a_missing_queue_waits_and_the_others_do_not() -> None:
    made = sound(queues("lq"), job("lqq"), job("lq").replace("name: j", "name: other"))
    assert lines(made.warnings) == [
        f'2.yaml: document 1: {LABEL}: there is no LocalQueue "lqq" in namespace team; it waits;'
        ' did you mean "lq"?'
    ]
    assert len(made.snapshot.waiting) == 2


def test_a_queue_in_another_namespace_does_not_count() -> None:
    assert len(sound(queues("lq", namespace="other"), job("lq")).warnings) == 1


def test_a_local_queue_that_leads_nowhere_gets_a_warning() -> None:
    made = sound(queues("lq").replace("clusterQueue: q", "clusterQueue: gone"))
    assert lines(made.warnings) == [
        '1.yaml: document 2: spec.clusterQueue: there is no ClusterQueue "gone"; its workloads wait'
    ]


def test_an_object_that_is_broken_is_not_reported_as_missing() -> None:
    made = world(queues("lq").replace("spec: {namespaceSelector: {}}", "spec: 5"), job("lq"))
    assert [problem.path for problem in made.problems] == ["spec"]


def test_nothing_is_missed_while_a_file_cannot_be_read() -> None:
    made = world(job("lq"), "a: [")
    assert [problem.file for problem in made.problems] == ["2.yaml"]


# ---- queues without an object --------------------------------------------------------------------

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\n"
UNLIMITED_LOCAL_QUEUE = "team/unisono.dev-unlimited"


def volcano_queue(name: str, spec: str = "", status: str = "") -> str:
    return (
        f"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\n"
        f"spec: {{{spec}}}\nstatus: {{{status}}}\n"
    )


def pod(spec: str = "", meta: str = "", name: str = "p") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: team{meta}}}\n"
        f"spec: {{{spec}containers: [{{name: c}}]}}\n"
    )


GROUPS = {
    "coscheduling": (
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n"
        "metadata: {name: g, namespace: team}\nspec: {minMember: 1}\n",
        pod(meta=", labels: {scheduling.x-k8s.io/pod-group: g}"),
    ),
    "volcano": (
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n"
        "metadata: {name: g, namespace: team}\nspec: {minMember: 1}\n",
        pod(meta=", annotations: {scheduling.k8s.io/group-name: g}"),
    ),
    "upstream": (
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\n"
        "metadata: {name: g, namespace: team}\n"
        "spec: {schedulingPolicy: {gang: {minCount: 1}}}\n",
        pod("schedulingGroup: {podGroupName: g}, "),
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_with_nodes_a_gang_needs_no_queue(name: str) -> None:
    made = sound(NODE, *GROUPS[name])
    assert queued(made) == {"team/podgroup-g": UNLIMITED_LOCAL_QUEUE}
    assert made.snapshot.queues == (UNLIMITED,)
    assert made.snapshot.local_queues == (
        LocalQueue(key=LocalQueueKey(UNLIMITED_LOCAL_QUEUE), queue=UNLIMITED.name),
    )
    assert not made.warnings
    assert not made.unmanaged


@pytest.mark.parametrize("name", GROUPS)
def test_without_nodes_it_is_not_managed(name: str) -> None:
    made = sound(*GROUPS[name])
    assert made.unmanaged == ("team/podgroup-g",)
    assert [(one.code, one.path) for one in made.warnings] == [("NotManaged", LABEL)]
    assert not made.snapshot.queues
    assert not made.snapshot.local_queues


def test_there_is_an_implicit_queue_for_every_namespace_in_use() -> None:
    texts = [text.replace("namespace: team", "namespace: b") for text in GROUPS["volcano"]]
    made = sound(NODE, *GROUPS["volcano"], *texts).snapshot
    assert [one.key for one in made.local_queues] == [
        "b/unisono.dev-unlimited",
        "team/unisono.dev-unlimited",
    ]
    assert len(made.queues) == 1


@pytest.mark.parametrize(
    "scheduler",
    ["unisono", "volcano", "scheduler-plugins-scheduler", "coscheduling", "kai-scheduler"],
)
def test_a_pod_of_one_of_our_schedulers_needs_no_queue(scheduler: str) -> None:
    text = pod(f"schedulerName: {scheduler}, ")
    assert queued(sound(NODE, text)) == {"team/pod-p": UNLIMITED_LOCAL_QUEUE}
    without = sound(text)
    assert queued(without) == {}
    assert not without.unmanaged
    assert not without.warnings


@pytest.mark.parametrize("spec", ["", "schedulerName: default-scheduler, "])
def test_other_pods_are_nobodys_business(spec: str) -> None:
    made = sound(NODE, pod(spec))
    assert queued(made) == {}
    assert not made.unmanaged
    assert not made.warnings


def test_a_job_of_one_of_our_schedulers_needs_no_queue() -> None:
    ours = job().replace("restartPolicy", "schedulerName: unisono, restartPolicy")
    assert queued(sound(NODE, ours, volcano_job())) == {
        "team/job-j": UNLIMITED_LOCAL_QUEUE,
        "team/job-v": UNLIMITED_LOCAL_QUEUE,
    }
    assert sound(NODE, job()).unmanaged == ("team/job-j",)
    assert sound(ours).unmanaged == ("team/job-j",)


def test_a_queue_that_is_there_comes_first() -> None:
    alone = pod("schedulerName: unisono, ", name="x")
    made = sound(NODE, queues("default", "lq"), *GROUPS["volcano"], alone)
    assert queued(made) == {"team/podgroup-g": "team/default", "team/pod-x": "team/default"}
    assert [one.name for one in made.snapshot.queues] == ["q"]


def test_the_operator_may_hold_gangs_back_as_well() -> None:
    policy = "apiVersion: unisono.dev/v1\nkind: Policy\nmanageJobsWithoutQueueName: true\n"
    assert queued(sound(NODE, policy, *GROUPS["volcano"])) == {"team/podgroup-g": "team/"}


def test_namespaces_that_are_not_managed_are_left_alone() -> None:
    texts = [
        text.replace("namespace: team", "namespace: kube-system") for text in GROUPS["volcano"]
    ]
    alone = pod("schedulerName: unisono, ", name="x").replace("team", "kube-system")
    made = sound(NODE, *texts, alone)
    assert queued(made) == {}
    assert made.unmanaged == ("kube-system/podgroup-g",)


def test_a_volcano_queue_is_a_queue() -> None:
    capped = volcano_queue("gpu", "capability: {nvidia.com/gpu: 8}")
    for texts in ((capped,), (capped, NODE), (capped, queues("default"))):
        made = sound(*texts, volcano_job("gpu"))
        assert queued(made) == {"team/job-v": "team/volcano/gpu"}
        assert LocalQueue(
            key=LocalQueueKey("team/volcano/gpu"), queue=QueueName("volcano/gpu")
        ) in (made.snapshot.local_queues)
    # A LocalQueue of that name is what its author meant.
    assert queued(sound(capped, queues("gpu"), volcano_job("gpu"))) == {"team/job-v": "team/gpu"}


def test_a_volcano_queue_without_limits_counts_only_where_nodes_do() -> None:
    free = volcano_queue("gpu")
    assert sound(free, volcano_job("gpu")).unmanaged == ("team/job-v",)
    assert queued(sound(free, NODE, volcano_job("gpu"))) == {"team/job-v": "team/volcano/gpu"}


def test_pods_and_groups_name_volcano_queues_as_well() -> None:
    free = volcano_queue("gpu")
    group, member = GROUPS["volcano"]
    named = group.replace("minMember: 1", "minMember: 1, queue: gpu")
    assert queued(sound(NODE, free, named, member)) == {"team/podgroup-g": "team/volcano/gpu"}
    alone = pod(
        "schedulerName: volcano, ", ", annotations: {scheduling.volcano.sh/queue-name: gpu}"
    )
    assert queued(sound(NODE, free, alone)) == {"team/pod-p": "team/volcano/gpu"}
    loose = named.replace("minMember: 1", "minMember: 0")
    bare = member.replace("spec: {", "spec: {schedulerName: volcano, ")
    assert queued(sound(NODE, free, loose, bare)) == {"team/pod-p": "team/volcano/gpu"}


def test_a_volcano_queue_that_does_not_exist_has_no_limits() -> None:
    made = sound(NODE, volcano_job("gpu"))
    assert queued(made) == {"team/job-v": UNLIMITED_LOCAL_QUEUE}
    assert [(one.code, one.path) for one in made.warnings] == [
        ("VolcanoQueueNotFound", "spec.queue")
    ]
    assert sound(NODE, volcano_job("default")).warnings == ()
