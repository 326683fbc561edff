"""Pods of kubeflow's jobs, and the Services that give them names."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

from unisono.control.actions import Json
from unisono.control.gangs.recovery import ATTEMPT
from unisono.control.job_kinds.kubeflow import api, mpi
from unisono.control.job_kinds.kubeflow.api import MPI, Sort
from unisono.control.job_kinds.kubeflow.environment import host, port_of, variables
from unisono.control.job_kinds.kubeflow.replicas import Replicas, attempt_of, pod_policy
from unisono.control.jobs.pods import pod_from, pod_name
from unisono.control.jobs.workload import owner_reference


def new_pod(job: Json, sort: Sort, replicas: Sequence[Replicas], one: Replicas, index: int) -> Json:
    """Return one pod of a job."""
    metadata = job["metadata"]
    attempt = str(attempt_of(job))
    name = host(job, one.type, index)
    if one.type == "Launcher":
        name = pod_name(f"{metadata['name']}-launcher", metadata["uid"], attempt)
    pod = pod_from(
        copy.deepcopy(one.template),
        job,
        name,
        labels=labels_of(job, sort, one, index),
        annotations={ATTEMPT: attempt},
    )
    pod["spec"]["restartPolicy"] = pod_policy(job, one)
    made = [
        *variables(job, sort, replicas, one, index),
        {"name": "UNISONO_RESTART_COUNT", "value": attempt},
    ]
    for part in ("initContainers", "containers"):
        for container in pod["spec"].get(part) or ():
            own = container.get("env") or []
            named = {variable["name"] for variable in own}
            more = [variable for variable in made if variable["name"] not in named]
            container["env"] = [*own, *more]
    if sort is MPI:
        mpi.equip(pod, job, one, index)
    elif sort.port:
        _open(pod["spec"]["containers"][0], sort, port_of(sort, one.template))
    return pod


def labels_of(job: Json, sort: Sort, one: Replicas, index: int) -> dict[str, str]:
    """Return the labels by which a pod is found."""
    labels = {
        api.JOB_NAME: job["metadata"]["name"],
        api.OPERATOR: f"{sort.kind.kind.lower()}-controller",
        api.TYPE: one.name,
        api.INDEX: str(index),
    }
    if one.type in sort.leaders:
        labels[api.ROLE] = one.name
    return labels


def _open(container: Json, sort: Sort, port: int) -> None:
    ports = container.get("ports") or []
    if not any(known.get("containerPort") == port for known in ports):
        container["ports"] = [*ports, {"name": sort.port_name, "containerPort": port}]


def services(job: Json, sort: Sort, replicas: Sequence[Replicas]) -> Iterator[Json]:
    """Yield one Service per pod, of the pod's name, that leads to it alone."""
    return (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": host(job, one.type, index),
                "namespace": job["metadata"]["namespace"],
                "ownerReferences": [owner_reference(job)],
            },
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": labels_of(job, sort, one, index),
                "ports": [{"name": sort.port_name, "port": port_of(sort, one.template)}],
            },
        }
        for one in replicas
        for index in range(one.count)
    )
