"""batch/v1 Job."""

from __future__ import annotations

import pytest

from tests.support.manifests import ReadJob, job
from unisono.engine.model.workload import TopologyRequest

MIN = "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]"


# The job of the GPU scheduling guide, as printed there.
TRAINING_JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: training-job
  namespace: ml-training
  labels:
    kueue.x-k8s.io/queue-name: ml-team-queue
spec:
  parallelism: 4
  completions: 4
  suspend: true  # Kueue manages it
  template:
    spec:
      containers:
        - name: trainer
          image: pytorch-training:latest
          resources:
            requests:
              nvidia.com/gpu: 1
              cpu: 8
              memory: 32Gi
            limits:
              nvidia.com/gpu: 1
      restartPolicy: Never
"""


def manifest(
    spec: str = "", *, annotations: str = "", status: str = "", restart: str = "Never"
) -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: j, annotations: {{{annotations}}}}}
spec:
  template:
    spec:
      restartPolicy: {restart}
      containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]
  {spec}
status: {{{status}}}
"""


def read_job(spec: str = "", *, annotations: str = "", status: str = "") -> ReadJob:
    return job(manifest(spec, annotations=annotations, status=status))


def test_the_guides_job() -> None:
    made = job(TRAINING_JOB)
    assert (made.problems, made.warnings, made.misconfigured) == ([], [], [])
    assert made.counts == {"main": 4}
    assert made.requests("main") == {"cpu": 8000, "memory": 32 * 2**30, "nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ("", 1),
        ("parallelism: 4", 4),
        ("{parallelism: 4, completions: 6}", 4),
        ("{parallelism: 4, completions: 2}", 2),
        ("completions: 5", 1),
    ],
)
def test_pods_at_once(spec: str, count: int) -> None:
    inner = spec.strip("{}").replace(", ", "\n  ")
    made = read_job(inner)
    assert made.counts == {"main": count}
    assert made.problems == []


def test_a_job_of_no_pods_wants_nothing() -> None:
    assert read_job("parallelism: 0").pod_sets == ()


def test_partial_admission() -> None:
    least = "kueue.x-k8s.io/job-min-parallelism: '2'"
    (main,) = read_job("parallelism: 4", annotations=least).pod_sets
    assert main.min_count == 2
    elastic = f"{least}, kueue.x-k8s.io/elastic-job: 'true'"
    (main,) = read_job("parallelism: 4", annotations=elastic).pod_sets
    assert main.min_count is None


@pytest.mark.parametrize(
    ("least", "message"),
    [
        ("0", '"0" must be a number of pods, at least 1'),
        ("many", '"many" must be a number of pods, at least 1'),
        ("5", "is 5; the job runs only 4 pods at once"),
    ],
)
def test_a_wrong_minimum(least: str, message: str) -> None:
    annotation = f"kueue.x-k8s.io/job-min-parallelism: '{least}'"
    assert read_job("parallelism: 4", annotations=annotation).problems == [(MIN, message)]


@pytest.mark.parametrize(
    ("spec", "status", "free"),
    [
        # Spec quota, scenario 59.
        ("parallelism: 4\n  completions: 6", "succeeded: 3", 1),
        ("parallelism: 4\n  completions: 6", "succeeded: 2", 0),
        ("parallelism: 4\n  completions: 6", "succeeded: 6", 4),
        ("parallelism: 4\n  completions: 6", "succeeded: 9", 4),
        ("parallelism: 4\n  completions: 2", "succeeded: 1", 1),
        ("parallelism: 4", "succeeded: 1", 1),
        ("parallelism: 1\n  completions: 2", "succeeded: 1", 0),
        ("parallelism: 4\n  completions: 4", "succeeded: 0", 0),
    ],
)
def test_pods_that_are_done_for_good(spec: str, status: str, free: int) -> None:
    assert read_job(spec, status=status).reclaimable == ((("main", free),) if free else ())


@pytest.mark.parametrize(
    ("status", "free"),
    [
        ('completedIndexes: "0-1,3"', 1),
        ('completedIndexes: "0-1,3", failedIndexes: "1-2"', 2),
        ('completedIndexes: "5-99999999"', 0),
        ('completedIndexes: "0-99999999"', 4),
        ('completedIndexes: "0-2,nonsense,4-3"', 1),
        ("succeeded: 5", 0),
    ],
)
def test_indexes_that_are_done_for_good(status: str, free: int) -> None:
    spec = "parallelism: 4\n  completions: 6\n  completionMode: Indexed"
    if "99999999" in status:
        spec = "parallelism: 4\n  completions: 4\n  completionMode: Indexed"
    expected = (("main", free),) if free else ()
    assert read_job(spec, status=status).reclaimable == expected


def test_finished_jobs() -> None:
    assert not read_job().is_finished
    assert read_job(status='conditions: [{type: Complete, status: "True"}]').is_finished
    assert read_job(status='conditions: [{type: Failed, status: "True"}]').is_finished
    assert not read_job(status='conditions: [{type: Failed, status: "False"}]').is_finished


def test_a_missing_restart_policy_is_only_a_warning() -> None:
    text = manifest(restart='""')
    lenient, strict = job(text), job(text, strict=True)
    assert lenient.warnings == [("RestartPolicyMissing", "spec.template.spec.restartPolicy")]
    assert lenient.counts == {"main": 1}
    assert [path for path, _ in strict.problems] == ["spec.template.spec.restartPolicy"]


def test_faults_of_the_template_have_paths() -> None:
    text = manifest().replace("cpu: 1", "cpu: -1")
    assert job(text).problems == [
        (
            "spec.template.spec.containers[0].resources.requests[cpu]",
            "is -1; it must not be negative",
        )
    ]
    assert job(manifest("parallelism: -1")).problems == [
        ("spec.parallelism", "is -1; it must be at least 0")
    ]
    assert job(manifest("paralelism: 1")).problems == [
        ("spec.paralelism", 'unknown field; did you mean "parallelism"?')
    ]


def test_the_priority_class_is_that_of_the_pods() -> None:
    text = manifest().replace("restartPolicy", "priorityClassName: high\n      restartPolicy")
    assert job(text).priority_class == "high"


def test_a_request_above_its_limit_is_kept_and_explained() -> None:
    text = manifest().replace("requests: {cpu: 1}", "requests: {cpu: 3}, limits: {cpu: 2}")
    made = job(text)
    assert made.problems == []
    assert made.misconfigured == [
        "resources validation failed: pod set main: container c requests 3 cpu; its limit is 2 cpu"
    ]


# ---- spec.scheduling (Kubernetes 1.37) -----------------------------------------------------------


def scheduled(body: str) -> ReadJob:
    return read_job(f"parallelism: 4\n  scheduling: {{{body}}}")


def test_a_job_may_say_how_its_pods_start() -> None:
    (made,) = scheduled("schedulingPolicy: {gang: {minCount: 2}}").pod_sets
    assert (made.count, made.min_count) == (4, 2)
    for body in (
        "",
        "schedulingPolicy: {gang: {}}",
        "schedulingPolicy: {gang: {minCount: 4}}",
        "schedulingPolicy: {basic: {}}, disruptionMode: {all: {}}, resourceClaims: []",
    ):
        found = scheduled(body)
        assert found.problems == []
        assert (found.pod_sets[0].min_count, found.pod_sets[0].topology) == (None, None)


def test_a_job_may_have_to_be_in_one_place() -> None:
    (made,) = scheduled("schedulingConstraints: {topology: [{key: rack}]}").pod_sets
    assert made.topology == TopologyRequest("required", "rack")


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ("schedulingPolicy: {}", "schedulingPolicy", "needs exactly one of basic and gang"),
        (
            "schedulingPolicy: {gang: {minCount: 5}}",
            "schedulingPolicy.gang.minCount",
            "is 5; the job runs only 4 pods at once",
        ),
        (
            "schedulingConstraints: {topology: [{key: -}]}",
            "schedulingConstraints.topology[0].key",
            "must be the key of a node label",
        ),
    ],
)
def test_faults_of_scheduling(body: str, path: str, message: str) -> None:
    ((found, said),) = scheduled(body).problems
    assert found == f"spec.scheduling.{path}"
    assert said.startswith(message)


def test_pods_have_the_labels_that_the_controller_gives_them() -> None:
    labels = dict(read_job().pod_sets[0].labels)
    assert labels == {"job-name": "j", "batch.kubernetes.io/job-name": "j"}
