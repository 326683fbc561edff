"""What belongs to another job is that job's business (spec quota §16)."""

from __future__ import annotations

from tests.kinds.snapshot.test_local_queues import job, queued, queues
from tests.support.manifests import sound

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
