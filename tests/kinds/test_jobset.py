"""jobset.x-k8s.io/v1alpha2 JobSet."""

from __future__ import annotations

from tests.support.manifests import documents, job

JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js}
spec:
  network: {enableDNSHostnames: true, subdomain: js, publishNotReadyAddresses: true}
  successPolicy: {operator: All, targetReplicatedJobs: [worker]}
  failurePolicy: {maxRestarts: 3, restartStrategy: BlockingRecreate, rules: []}
  startupPolicy: {startupPolicyOrder: AnyOrder}
  coordinator: {replicatedJob: driver, jobIndex: 0, podIndex: 0}
  managedBy: jobset.sigs.k8s.io/jobset-controller
  ttlSecondsAfterFinished: 60
  suspend: true
  volumeClaimPolicies: []
  replicatedJobs:
  - name: driver
    template:
      spec:
        template:
          spec:
            containers: [{name: c, resources: {requests: {cpu: 2}}}]
  - name: worker
    groupName: workers
    replicas: 3
    dependsOn: [{name: driver, status: Ready}]
    template:
      metadata: {labels: {a: b}}
      spec:
        parallelism: 4
        completions: 2
        backoffLimit: 0
        template:
          spec:
            priorityClassName: low
            containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]
"""


def test_a_set_per_replicated_job() -> None:
    made = job(JOB_SET)
    assert made.problems == []
    assert made.counts == {"driver": 1, "worker": 6}
    assert made.requests("worker") == {"nvidia.com/gpu": 8}
    assert made.priority_class == "low"


def test_jobs_that_succeeded_give_their_pods_back() -> None:
    status = """
status:
  restarts: 1
  terminalState: ""
  replicatedJobsStatus:
  - {name: driver, succeeded: 0, ready: 1, failed: 0, active: 1, suspended: 0}
  - {name: worker, succeeded: 2, ready: 1, failed: 0, active: 1, suspended: 0}
"""
    assert job(JOB_SET + status).reclaimable == (("worker", 4),)
    impossible = status.replace("succeeded: 2", "succeeded: 9")
    assert job(JOB_SET + impossible).reclaimable == ()


def test_finished() -> None:
    assert not job(JOB_SET).is_finished
    for type_ in ("Completed", "Failed"):
        status = f'status: {{conditions: [{{type: {type_}, status: "True"}}]}}\n'
        assert job(JOB_SET + status).is_finished


def test_faults() -> None:
    assert job(JOB_SET.replace("name: driver, status", "name: drvier, status")).problems == [
        (
            "spec.replicatedJobs[1].dependsOn[0].name",
            'there is no replicated job "drvier" before this one',
        )
    ]
    twice = job(JOB_SET.replace("name: worker\n", "name: driver\n"))
    assert twice.problems == [
        (
            "spec.replicatedJobs[1].template.spec.template",
            'the name "driver" is already used by spec.replicatedJobs[0].template.spec.template',
        )
    ]
    head, _, _ = JOB_SET.partition("  replicatedJobs:")
    assert job(head).problems == [("spec.replicatedJobs", "is required: there is nothing to run")]


def test_pods_have_the_labels_that_the_controller_gives_them() -> None:
    labels = {one.name: dict(one.labels) for one in job(JOB_SET).pod_sets}
    name = job_set_name()
    assert labels["driver"]["jobset.sigs.k8s.io/jobset-name"] == name
    assert labels["driver"]["jobset.sigs.k8s.io/replicatedjob-name"] == "driver"
    assert labels["worker"]["jobset.sigs.k8s.io/replicatedjob-name"] == "worker"


def job_set_name() -> str:
    (raw,) = documents(JOB_SET)
    return str(raw["metadata"]["name"])
