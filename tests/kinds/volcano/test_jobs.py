"""batch.volcano.sh/v1alpha1 Job, with the two jobs of the GPU scheduling guide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.manifests import job, sound
from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.volcano.jobs import Task, VolcanoJobSpec, least_pods, task_minima

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"

DDP = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: pytorch-ddp-training
spec:
  minAvailable: 4
  schedulerName: volcano
  plugins:
    svc: ["--publish-not-ready-addresses"]
    ssh: []
    env: []
  policies:
    - event: PodEvicted
      action: RestartJob
  queue: default
  tasks:
    - replicas: 4
      name: worker
      template:
        spec:
          containers:
            - name: pytorch
              image: pytorch-ddp:latest
              command:
                - torchrun
                - --rdzv_endpoint=$(VC_WORKER_0_SVC):29500
                - train.py
              ports:
                - containerPort: 29500
                  name: rdzv
              resources:
                limits:
                  nvidia.com/gpu: 1
              env:
                - name: NCCL_DEBUG
                  value: INFO
          restartPolicy: OnFailure
"""

HOROVOD = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: horovod-training
spec:
  minAvailable: 5
  schedulerName: volcano
  plugins:
    ssh: []
    svc: []
  tasks:
    - replicas: 1
      name: master
      policies:
        - event: TaskCompleted
          action: CompleteJob
      template:
        spec:
          containers:
            - name: horovod
              image: horovod-training:latest
    - replicas: 4
      name: worker
      template:
        spec:
          containers:
            - name: horovod
              image: horovod-training:latest
              resources:
                limits:
                  nvidia.com/gpu: 1
"""


def test_the_ddp_job() -> None:
    made = job(DDP)
    assert made.problems == []
    assert made.warnings == []
    assert made.counts == {"worker": 4}
    assert made.requests("worker") == {"nvidia.com/gpu": 1}
    assert made.pod_sets[0].min_count is None
    assert made.queue == "default"


def test_the_horovod_job_is_accepted_with_a_warning_per_task() -> None:
    made = job(HOROVOD)
    assert made.problems == []
    assert made.warnings == [
        ("RestartPolicyMissing", "spec.tasks[0].template.spec.restartPolicy"),
        ("RestartPolicyMissing", "spec.tasks[1].template.spec.restartPolicy"),
    ]
    assert made.counts == {"master": 1, "worker": 4}
    assert made.requests("master") == {}
    assert made.queue == "default"


@pytest.mark.parametrize(
    ("least", "tasks", "minima"),
    [
        (0, [(1, None), (4, None)], (1, 4)),
        (5, [(1, None), (4, None)], (1, 4)),
        # Three of five, whichever: the tasks' own minima add up to more and are ignored.
        (3, [(1, None), (4, None)], (0, 2)),
        (1, [(2, None), (4, None)], (0, 0)),
        (0, [(8, 2)], (2,)),
        (4, [(8, 2)], (4,)),
        (4, [(8, None)], (4,)),
        (6, [(4, 1), (4, 2)], (2, 2)),
        (0, [], ()),
    ],
)
def test_every_task_has_a_minimum(
    least: int, tasks: list[tuple[int, int | None]], minima: tuple[int, ...]
) -> None:
    spec = VolcanoJobSpec(
        min_available=least,
        tasks=tuple(Task(replicas=replicas, min_available=own) for replicas, own in tasks),
    )
    assert task_minima(spec) == minima


@given(
    st.lists(
        st.integers(0, 6).flatmap(
            lambda replicas: st.tuples(st.just(replicas), st.none() | st.integers(0, replicas))
        ),
        max_size=4,
    ),
    st.data(),
)
def test_minima_follow_from_what_volcano_demands(
    tasks: list[tuple[int, int | None]], data: st.DataObject
) -> None:
    total = sum(replicas for replicas, _ in tasks)
    given_least = data.draw(st.integers(0, total))
    spec = VolcanoJobSpec(
        min_available=given_least,
        tasks=tuple(Task(replicas=replicas, min_available=own) for replicas, own in tasks),
    )
    minima, least = task_minima(spec), least_pods(spec)
    own = [replicas if one is None else one for replicas, one in tasks]
    assert least == (given_least or sum(own))
    for made, (replicas, _), demanded in zip(minima, tasks, own, strict=True):
        # Neither more than the demands imply, nor less.
        implied = max(0, least - (total - replicas))
        assert made == (max(implied, demanded) if sum(own) <= least else implied)
        assert made <= replicas


def test_a_smaller_gang_may_start() -> None:
    (worker,) = job(DDP.replace("minAvailable: 4", "minAvailable: 2")).pod_sets
    assert (worker.count, worker.min_count) == (4, 2)


def test_the_gang_may_be_smaller_than_the_job() -> None:
    made = minimum_of(HOROVOD.replace("minAvailable: 5", "minAvailable: 3"))
    assert made == (3, {"master": 0, "worker": 2})
    assert minimum_of(HOROVOD) == (None, {"master": None, "worker": None})
    assert minimum_of(DDP.replace("  minAvailable: 4\n", "")) == (None, {"worker": None})


def minimum_of(text: str) -> tuple[int | None, dict[str, int | None]]:
    (made,) = sound(text, NODE).snapshot.waiting
    return made.min_total, {one.name: one.min_count for one in made.pod_sets}


def test_pods_have_the_labels_that_volcano_gives_them() -> None:
    labels = dict(job(DDP).pod_sets[0].labels)
    assert labels["volcano.sh/job-name"] == "pytorch-ddp-training"
    assert labels["volcano.sh/task-spec"] == "worker"


# ---- network topology ----------------------------------------------------------------------------


def hypernode(name: str, tier: int) -> str:
    return (
        f"apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\n"
        f"spec: {{tier: {tier}, tierName: t{tier}, members: []}}\n"
    )


def topologies(text: str, topology: str) -> dict[str, tuple[TopologyRequest | None, str]]:
    changed = text.replace("spec:", f"spec:\n  networkTopology: {topology}", 1)
    made = job(changed, hypernode("leaf", 1), hypernode("spine", 2))
    assert made.problems == []
    return {one.name: (one.topology, one.group) for one in made.pod_sets}


def test_all_tasks_go_to_one_domain() -> None:
    required = TopologyRequest("required", "unisono.dev/hypernode-tier-1")
    wish = "{mode: hard, highestTierAllowed: 1}"
    assert topologies(DDP, wish) == {"worker": (required, "")}
    assert topologies(HOROVOD, wish) == {"master": (required, "job"), "worker": (required, "job")}


def partitioned(policy: str) -> str:
    return DDP.replace(
        "    - replicas: 4", f"    - partitionPolicy: {{{policy}}}\n      replicas: 4"
    )


def test_a_task_may_come_in_blocks() -> None:
    wish = "networkTopology: {mode: hard, highestTierAllowed: 1}"
    text = partitioned(f"totalPartitions: 2, partitionSize: 2, {wish}")
    level = "unisono.dev/hypernode-tier-1"
    assert job(text, hypernode("leaf", 1)).pod_sets[0].topology == TopologyRequest(
        "preferred", level, level, 2
    )
    assert topologies(text, "{mode: hard, highestTierAllowed: 2}") == {
        "worker": (TopologyRequest("required", "unisono.dev/hypernode-tier-2", level, 2), "")
    }
    (fewer,) = job(
        partitioned("totalPartitions: 2, partitionSize: 2, minPartitions: 1").replace(
            "minAvailable: 4", "minAvailable: 1"
        )
    ).pod_sets
    assert (fewer.min_count, fewer.topology) == (2, None)


@pytest.mark.parametrize(
    ("policy", "path", "message"),
    [
        (
            "totalPartitions: 3, partitionSize: 2",
            "",
            "makes 6 pods; the task has 4 replicas",
        ),
        (
            "totalPartitions: 2, partitionSize: 2, minPartitions: 3",
            ".minPartitions",
            "is 3; there are only 2 partitions",
        ),
        (
            "totalPartitions: 2, partitionSize: 2,"
            " networkTopology: {highestTierAllowed: 1, highestTierName: t}",
            ".networkTopology.highestTierName",
            "and highestTierAllowed exclude each other",
        ),
        ("totalPartitions: 0, partitionSize: 4", ".totalPartitions", "is 0; it must be at least 1"),
    ],
)
def test_faults_of_partitions(policy: str, path: str, message: str) -> None:
    at = f"spec.tasks[0].partitionPolicy{path}"
    assert job(partitioned(policy)).problems == [(at, message)]


def test_the_jobs_own_priority_class_comes_first() -> None:
    pods = DDP.replace("restartPolicy:", "priorityClassName: pods\n          restartPolicy:")
    assert job(pods).priority_class == "pods"
    assert job(pods.replace("queue:", "priorityClassName: job\n  queue:")).priority_class == "job"


def test_nameless_tasks_are_numbered() -> None:
    assert job(DDP.replace("      name: worker\n", "")).counts == {"default0": 4}


def test_phases() -> None:
    def finished(phase: str) -> bool:
        return job(DDP + f"status: {{state: {{phase: {phase}}}}}\n").is_finished

    assert [
        phase for phase in ("Pending", "Running", "Restarting", "Aborting") if finished(phase)
    ] == []
    assert finished("Completed")
    assert finished("Aborted")


def test_succeeded_pods_give_their_quota_back() -> None:
    status = "status: {taskStatusCount: {worker: {phase: {Succeeded: 3, Running: 1}}}}\n"
    assert job(DDP + status).reclaimable == (("worker", 3),)


@pytest.mark.parametrize(
    ("before", "after", "path", "message"),
    [
        (
            "minAvailable: 5",
            "minAvailable: 6",
            "spec.minAvailable",
            "is 6: job 'minAvailable' should not be greater than total replicas, 5",
        ),
        (
            "replicas: 4",
            "replicas: 4\n      minAvailable: 5",
            "spec.tasks[1].minAvailable",
            "is 5: 'minAvailable' is greater than 'replicas' in task; it has only 4",
        ),
        (
            "name: worker",
            "name: master",
            "spec.tasks[1].name",
            'duplicated task name "master": it is the name of spec.tasks[0]',
        ),
        (
            "replicas: 1",
            "replicas: 1\n      dependsOn: {name: [boss]}",
            "spec.tasks[0].dependsOn.name",
            'there is no task "boss"',
        ),
        ("  tasks:", "  taks: []\n  tasks:", "spec.taks", 'unknown field; did you mean "tasks"?'),
    ],
)
def test_faults(before: str, after: str, path: str, message: str) -> None:
    assert job(HOROVOD.replace(before, after)).problems == [(path, message)]


def test_tasks_must_not_wait_for_each_other() -> None:
    circle = HOROVOD.replace(
        "replicas: 1", "replicas: 1\n      dependsOn: {name: [worker], iteration: any}"
    ).replace("replicas: 4", "replicas: 4\n      dependsOn: {name: [master]}")
    assert job(circle).problems == [
        ("spec.tasks", "these tasks wait for each other in a circle: master, worker")
    ]


def test_a_job_has_tasks() -> None:
    head, _, _ = DDP.partition("  tasks:")
    assert job(head).problems == [("spec.tasks", "is required: No task specified in job spec")]
