"""What a real API server stores without asking us: it never reaches the engine, and says why.

The controllers read from a view; here it holds objects that the embedded API would have refused.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from tests.control.job_kinds.test_kubeflow import torch
from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.training_world import job_set, replicated
from tests.kinds.test_known import WORKLOAD, poked_at
from tests.support.control_objects import job, node, queue
from unisono.cli.why.answer import answer
from unisono.cli.why.read import Found
from unisono.cli.why.text import text
from unisono.control import names
from unisono.control.actions import Action, Create, Note, Patch
from unisono.control.assembly import EMBEDDED_KINDS, INDEXES
from unisono.control.job_kinds.batch.adapter import BatchJobs
from unisono.control.job_kinds.jobset.adapter import JobSets
from unisono.control.job_kinds.kubeflow import PYTORCH
from unisono.control.job_kinds.kubeflow.adapter import KubeflowJobs
from unisono.control.job_kinds.volcano.adapter import VolcanoJobs
from unisono.control.jobs.controller import INVALID, JobController
from unisono.control.jobs.queues import Queues
from unisono.control.manifests import Manifests
from unisono.control.queue_status.cluster_queue import ClusterQueueStatus
from unisono.control.queue_status.local_queue import LocalQueueStatus
from unisono.control.queue_status.tally import Tally
from unisono.control.scheduler.translate import Translator
from unisono.control.view import KindStore, View
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.state import changes
from unisono.kinds.kueue.workloads import MOST_SETS
from unisono.kinds.policy.settings import DEFAULTS
from unisono.kube.form import Json, Key
from unisono.kube.mapping import Kind

GPU = "nvidia.com~gpu"
LIMITS = "template/spec/containers/0/resources/limits"
FLAVOR, CLUSTER_QUEUE, LOCAL_QUEUE = queue()


def stored(*objects: Json) -> View:
    """Return a view of objects as an API server shows them."""
    view = View({kind: KindStore.of(kind, INDEXES.get(kind, {})) for kind in EMBEDDED_KINDS})
    for number, obj in enumerate(objects):
        shown = copy.deepcopy(obj)
        shown["metadata"] |= {"uid": f"u{number}", "resourceVersion": "1", "generation": 1}
        view.upsert(Kind(obj["apiVersion"], obj["kind"]), shown)
    return view


def heard(obj: Json) -> list[changes.Change]:
    """Return what the engine hears of an object."""
    read = Translator(stored(obj), DEFAULTS, places_strays=True, left_out=())
    metadata = obj["metadata"]
    key = Key(metadata.get("namespace", ""), metadata["name"])
    return list(read.translate(Kind(obj["apiVersion"], obj["kind"]), key))


@pytest.mark.parametrize(
    ("obj", "path", "value"),
    [
        (node("n"), "status/allocatable/nvidia.com~gpu", "-8"),
        (CLUSTER_QUEUE, "spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "-1"),
        (FLAVOR, "spec/nodeLabels", {"a": 1}),
        (LOCAL_QUEUE, "spec/clusterQueue", 7),
        (WORKLOAD, f"spec/podSets/0/{LIMITS}/{GPU}", "-8"),
        (WORKLOAD, "spec/podSets/0/count", -1),
        (WORKLOAD, "spec/podSets/0/count", 2**31),
        (WORKLOAD, f"status/admission/podSetAssignments/0/resourceUsage/{GPU}", "-48"),
        (WORKLOAD, "status/admission/podSetAssignments/0/count", -1),
    ],
)
def test_nothing_of_it_is_heard(obj: Json, path: str, value: object) -> None:
    assert heard(obj), "the object itself is fine"
    with pytest.raises(InvalidManifest) as error:
        heard(poked_at(obj, path, value))
    last = path.rpartition("/")[2].replace("~", "/")
    assert last in error.value.path


def test_a_status_is_checked_although_the_sets_are_known() -> None:
    view = stored(WORKLOAD)
    read = Translator(view, DEFAULTS, places_strays=True, left_out=())
    key = Key("default", "w")
    assert any(
        isinstance(one, changes.WorkloadHolds) for one in read.translate(names.WORKLOAD, key)
    )
    path = f"status/admission/podSetAssignments/0/resourceUsage/{GPU}"
    worse = poked_at(view.get(names.WORKLOAD, "w", "default") or {}, path, "-48")
    worse["metadata"]["resourceVersion"] = "2"
    view.upsert(names.WORKLOAD, worse)
    with pytest.raises(InvalidManifest, match="must not be negative"):
        list(read.translate(names.WORKLOAD, key))


def test_what_is_over_holds_nothing_whatever_it_is() -> None:
    over = poked_at(WORKLOAD, "spec/podSets/0/count", -1)
    over["status"]["conditions"] = [{"type": "Finished", "status": "True", "reason": "Succeeded"}]
    assert [type(one) for one in heard(over)] == [changes.WorkloadGone]


QUEUED = {"kueue.x-k8s.io/queue-name": "lq-cq"}


@pytest.mark.parametrize(
    ("adapter", "made", "path", "value"),
    [
        (BatchJobs(), job("j"), f"spec/{LIMITS}/{GPU}", "-8"),
        (BatchJobs(), job("j"), "spec/parallelism", -1),
        (VolcanoJobs(), vcjob(task("w", 2), labels=QUEUED), f"spec/tasks/0/{LIMITS}/{GPU}", "-8"),
        (VolcanoJobs(), vcjob(task("w", 2), labels=QUEUED), "spec/tasks/0/replicas", -6),
        (
            JobSets(),
            job_set(replicated(gpus=1), name="j", queue="lq-cq"),
            f"spec/replicatedJobs/0/template/spec/{LIMITS}/{GPU}",
            "-8",
        ),
        (
            JobSets(),
            job_set(replicated(gpus=1), name="j", queue="lq-cq"),
            "spec/replicatedJobs/0/replicas",
            2**31 - 1,  # of two pods each
        ),
        (
            KubeflowJobs(PYTORCH),
            torch(labels=QUEUED),
            "spec/pytorchReplicaSpecs/Worker/replicas",
            -1,
        ),
    ],
)
def test_a_job_is_not_queued_and_an_event_says_why(
    adapter: Any, made: Json, path: str, value: object
) -> None:
    def steps(obj: Json) -> Sequence[Action]:
        controller = JobController(adapter, Queues(DEFAULTS, frozenset))
        found: list[Action] = []
        going = controller.reconcile(Key("default", "j"), stored(obj), 0.0)
        result: Any = None
        try:
            while True:
                found.append(going.send(result))
                result = found[-1].obj if isinstance(found[-1], Create) else None
        except StopIteration:
            return found

    assert any(isinstance(one, Create) for one in steps(made)), "the job itself is queued"
    found = steps(poked_at(made, path, value))
    assert not any(isinstance(one, Create) for one in found)
    (note,) = [one for one in found if isinstance(one, Note)]
    assert note.reason == INVALID
    assert "Not queued: spec." in note.message


def test_why_says_what_is_wrong_with_a_job_that_is_not_queued() -> None:
    made = poked_at(vcjob(task("w", 2), labels=QUEUED), f"spec/tasks/0/{LIMITS}/{GPU}", "-8")
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    said = " ".join(text(answer(Found(asked=made, job=made)), 1.8e9).split())
    assert "it is not queued as written: spec.tasks[0].template.spec.containers[0]" in said
    assert "is -8; it must not be negative" in said


def test_a_queue_that_cannot_be_read_says_so_and_nothing_crashes() -> None:
    path = "spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
    view = stored(poked_at(CLUSTER_QUEUE, path, "-1"), LOCAL_QUEUE)
    told = (Tally(view), Manifests(view), DEFAULTS.policy)
    (patch,) = ClusterQueueStatus(*told).reconcile(Key("", "cq"), view, 0.0)
    assert isinstance(patch, Patch)
    (active,) = patch.changes["status"]["conditions"]
    assert (active["status"], active["reason"]) == ("False", "InvalidSpec")
    assert "nominalQuota: is -1; it cannot be negative" in active["message"]
    assert list(LocalQueueStatus(*told).reconcile(Key("default", "lq-cq"), view, 0.0))


def test_more_kinds_of_pods_than_a_workload_has_are_not_queued() -> None:
    kinds = [replicated(f"w{number}", gpus=1) for number in range(MOST_SETS + 1)]
    made = job_set(*kinds, name="j", queue="lq-cq", suspend=True)
    controller = JobController(JobSets(), Queues(DEFAULTS, frozenset))
    (note,) = controller.reconcile(Key("default", "j"), stored(made), 0.0)
    assert isinstance(note, Note)
    assert note.reason == INVALID
    assert "it has 19 kinds of pods" in note.message
