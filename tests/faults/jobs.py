"""Gangs of every kind that users submit, built from a few numbers, and how each one ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.control.job_kinds.test_kubeflow import kubeflow_job, replica
from tests.control.job_kinds.test_ray_jobs import container
from tests.control.job_kinds.test_volcano_policies import on, task, vcjob
from tests.control.pod_gangs.test_pod_gangs import bare
from tests.control.training_world import job_set, replicated, train_job
from tests.support.control_objects import job
from unisono.control import names
from unisono.control.job_kinds import ray, volcano
from unisono.control.job_kinds.kubeflow import MPI, PYTORCH
from unisono.control.pod_gangs.membership import COSCHEDULING
from unisono.kinds.core.pod_groups import GROUP_NAME, TOTAL_COUNT
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

End = Literal["succeeded", "failed", "runs"] | None
# So often may anything restart: nothing here fails for good because of what we do to it.
_OFTEN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a user wants to run."""

    name: str
    pods: int
    gpus: int  # of each pod
    seconds: int
    queue: str  # empty: none
    priority: str
    fails_once: bool  # one of its pods fails the first time

    @property
    def labels(self) -> dict[str, str]:
        """Where and how urgently it wants to run."""
        found = {names.QUEUE_LABEL: self.queue} if self.queue else {}
        return found | ({names.PRIORITY_LABEL: self.priority} if self.priority else {})

    @property
    def says(self) -> dict[str, str]:
        """What its simulated pods do."""
        found = {"run-seconds": str(self.seconds)}
        if self.fails_once:
            found |= {"fail-after": "4", "fail-times": "1", "fail-index": "0"}
        return found

    @property
    def annotations(self) -> dict[str, str]:
        """The same, as pods carry it."""
        return {f"unisono.dev/{key}": value for key, value in self.says.items()}


@dataclass(frozen=True, slots=True)
class Gang:
    """A job as it is submitted: the object that users look at, and pods that they make."""

    wish: Wish
    sort: str
    kind: Kind
    objects: tuple[Json, ...]
    end: Callable[[Json], End]

    @property
    def name(self) -> str:
        return self.wish.name

    @property
    def pods(self) -> tuple[Json, ...]:
        """The pods that only the user makes."""
        return tuple(obj for obj in self.objects if obj["kind"] == "Pod")


def _named(made: Json, wish: Wish) -> Json:
    metadata = made["metadata"]
    metadata["name"] = wish.name
    metadata["labels"] = {**(metadata.get("labels") or {}), **wish.labels}
    return made


def _by_condition(good: str, bad: str = "Failed") -> Callable[[Json], End]:
    def end(obj: Json) -> End:
        for one in (obj.get("status") or {}).get("conditions") or ():
            if one["status"] == "True" and one["type"] in (good, bad):
                return "succeeded" if one["type"] == good else "failed"
        return None

    return end


def batch(wish: Wish) -> Gang:
    made = job(
        wish.name,
        pods=wish.pods,
        gpus=wish.gpus,
        says=wish.says,
        queue_name="",
        backoffLimit=_OFTEN,
    )
    return Gang(wish, "job", names.JOB, (_named(made, wish),), _by_condition("Complete"))


def jobset(wish: Wish) -> Gang:
    workers = replicated("w", pods=wish.pods, gpus=wish.gpus, says=wish.annotations, backoffLimit=0)
    made = job_set(workers, failurePolicy={"maxRestarts": _OFTEN})
    return Gang(wish, "jobset", names.JOB_SET, (_named(made, wish),), _by_condition("Completed"))


def trainjob(wish: Wish) -> Gang:
    says = {"targetJobs": [{"name": "node"}], "metadata": {"annotations": wish.annotations}}
    made = train_job(
        nodes=wish.pods,
        gpus=wish.gpus,
        queue="",
        podTemplateOverrides=[says],
        annotations={"unisono.dev/max-restarts": str(_OFTEN)},
    )
    return Gang(wish, "trainjob", names.TRAIN_JOB, (_named(made, wish),), _by_condition("Complete"))


def _volcano_end(obj: Json) -> End:
    phase = ((obj.get("status") or {}).get("state") or {}).get("phase")
    if phase in ("Completed", "Completing"):
        return "succeeded" if phase == "Completed" else None
    return "failed" if phase in ("Failed", "Aborted", "Terminated") else None


def volcano_job(wish: Wish) -> Gang:
    says = {key.replace("-", "_"): value for key, value in wish.says.items()}
    made = vcjob(
        task("w", wish.pods, gpus=wish.gpus, **says),
        policies=[on("PodFailed", "RestartJob"), on("PodEvicted", "RestartJob")],
        minAvailable=wish.pods,
        maxRetry=_OFTEN,
        plugins={"svc": [], "env": []},
    )
    return Gang(wish, "vcjob", volcano.JOB, (_named(made, wish),), _volcano_end)


def _ray_spec(wish: Wish) -> Json:
    workers: Json = {
        "groupName": "gpu",
        "replicas": wish.pods,
        "minReplicas": wish.pods,
        "maxReplicas": wish.pods,
        "template": {"spec": {"containers": [container(wish.gpus)]}},
    }
    head = {"template": {"spec": {"containers": [container()]}}}
    return {"headGroupSpec": head, "workerGroupSpecs": [workers]}


def _ray_cluster_end(obj: Json) -> End:
    return "runs" if (obj.get("status") or {}).get("state") == "ready" else None


def raycluster(wish: Wish) -> Gang:
    made = {
        "apiVersion": ray.CLUSTER.api_version,
        "kind": ray.CLUSTER.kind,
        "metadata": {"name": wish.name, "namespace": "default"},
        "spec": _ray_spec(wish),
    }
    return Gang(wish, "raycluster", ray.CLUSTER, (_named(made, wish),), _ray_cluster_end)


def _ray_job_end(obj: Json) -> End:
    status = (obj.get("status") or {}).get("jobDeploymentStatus")
    if status == "Complete":
        return "succeeded"
    return "failed" if status == "Failed" else None


def rayjob(wish: Wish) -> Gang:
    made = {
        "apiVersion": ray.JOB.api_version,
        "kind": ray.JOB.kind,
        "metadata": {"name": wish.name, "namespace": "default"},
        "spec": {
            "entrypoint": f"sleep {wish.seconds}",
            "shutdownAfterJobFinishes": True,
            "backoffLimit": _OFTEN,
            "rayClusterSpec": _ray_spec(wish),
        },
    }
    return Gang(wish, "rayjob", ray.JOB, (_named(made, wish),), _ray_job_end)


def pytorch(wish: Wish) -> Gang:
    says = {key.replace("-", "_"): value for key, value in wish.says.items()}
    replicas = {"Master": replica(gpus=wish.gpus, run_seconds=str(wish.seconds))}
    if wish.pods > 1:
        replicas["Worker"] = replica(wish.pods - 1, gpus=wish.gpus, **says)
    made = kubeflow_job(PYTORCH, replicas, run={"backoffLimit": _OFTEN})
    end = _by_condition("Succeeded")
    return Gang(wish, "pytorchjob", PYTORCH.kind, (_named(made, wish),), end)


def mpi(wish: Wish) -> Gang:
    replicas = {
        "Launcher": replica(gpus=0, run_seconds=str(wish.seconds)),
        "Worker": replica(wish.pods, gpus=wish.gpus),
    }
    made = kubeflow_job(MPI, replicas, run={"backoffLimit": _OFTEN})
    return Gang(wish, "mpijob", MPI.kind, (_named(made, wish),), _by_condition("Succeeded"))


def _pod_group_end(obj: Json) -> End:
    phase = (obj.get("status") or {}).get("phase")
    if phase == "Finished":
        return "succeeded"
    return "failed" if phase == "Failed" else None


def coscheduling(wish: Wish) -> Gang:
    group: Json = {
        "apiVersion": COSCHEDULING.api_version,
        "kind": COSCHEDULING.kind,
        "metadata": {"name": wish.name, "namespace": "default"},
        "spec": {"minMember": wish.pods},
    }
    labels = {"scheduling.x-k8s.io/pod-group": wish.name}
    pods = _bare_pods(wish, labels, {})
    return Gang(wish, "podgroup", COSCHEDULING, (_named(group, wish), *pods), _pod_group_end)


def kueue_group(wish: Wish) -> Gang:
    labels = {**wish.labels, GROUP_NAME: wish.name}
    pods = _bare_pods(wish, labels, {TOTAL_COUNT: str(wish.pods)})
    end = _by_condition("Finished")
    return Gang(wish, "kueuegroup", names.WORKLOAD, tuple(pods), end)


def _bare_pods(wish: Wish, labels: dict[str, str], says: dict[str, str]) -> list[Json]:
    runs = {**says, "unisono.dev/run-seconds": str(wish.seconds)}
    return [
        bare(f"{wish.name}-{number}", gpus=wish.gpus, labels=labels, says=runs)
        for number in range(wish.pods)
    ]


JOB_KINDS: Mapping[str, Callable[[Wish], Gang]] = {
    "job": batch,
    "jobset": jobset,
    "trainjob": trainjob,
    "vcjob": volcano_job,
    "raycluster": raycluster,
    "rayjob": rayjob,
    "podgroup": coscheduling,
    "kueuegroup": kueue_group,
    "pytorchjob": pytorch,
    "mpijob": mpi,
}
# Pods of no queue form no group: Kueue's groups need one.
NEEDS_QUEUE = ("kueuegroup",)
