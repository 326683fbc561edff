"""batch.volcano.sh/v1alpha1 Job, with the two jobs of the GPU scheduling guide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.manifests import job
from unisono.kinds.volcano import Task, VolcanoJobSpec, task_minima

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
        (3, [(1, None), (4, None)], (1, 2)),
        (1, [(2, None), (4, None)], (1, 0)),
        (0, [(8, 2)], (2,)),
        (4, [(8, 2)], (4,)),
        (4, [(8, None)], (4,)),
        (6, [(4, 1), (4, 2)], (4, 2)),
        (0, [], ()),
    ],
)
def test_the_jobs_minimum_is_shared_out(
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
def test_shared_minima_are_always_enough_and_possible(
    tasks: list[tuple[int, int | None]], data: st.DataObject
) -> None:
    total = sum(replicas for replicas, _ in tasks)
    least = data.draw(st.integers(0, total))
    spec = VolcanoJobSpec(
        min_available=least,
        tasks=tuple(Task(replicas=replicas, min_available=own) for replicas, own in tasks),
    )
    minima = task_minima(spec)
    own = [replicas if one is None else one for replicas, one in tasks]
    assert sum(minima) == (least or sum(own))
    assert all(0 <= made <= replicas for made, (replicas, _) in zip(minima, tasks, strict=True))
    if sum(own) <= (least or sum(own)):
        assert all(made >= one for made, one in zip(minima, own, strict=True))


def test_a_smaller_gang_may_start() -> None:
    (worker,) = job(DDP.replace("minAvailable: 4", "minAvailable: 2")).pod_sets
    assert (worker.count, worker.min_count) == (4, 2)


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
        ("minAvailable: 5", "minAvailable: 6", "spec.minAvailable", "is 6; there are 5 pods"),
        (
            "replicas: 4",
            "replicas: 4\n      minAvailable: 5",
            "spec.tasks[1].minAvailable",
            "is 5; the task has only 4 replicas",
        ),
        (
            "name: worker",
            "name: master",
            "spec.tasks[1].template",
            'the name "master" is already used by spec.tasks[0].template',
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
    assert job(head).problems == [("spec.tasks", "is required: there is nothing to run")]
