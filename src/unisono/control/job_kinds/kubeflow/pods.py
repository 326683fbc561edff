"""Pods of kubeflow's jobs, and the Services that give them names."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from unisono.control.actions import Json
from unisono.control.gangs.recovery import ATTEMPT
from unisono.control.job_kinds import kubeflow
from unisono.control.job_kinds.kubeflow import JAX, MPI, PYTORCH, TENSORFLOW, XGBOOST, Sort, mpi
from unisono.control.job_kinds.kubeflow.replicas import Replicas, attempt_of, pod_policy
from unisono.control.jobs.pods import pod_from, pod_name
from unisono.control.jobs.workload import owner_reference
from unisono.kinds.digits import whole_number
from unisono.kube.mapping import Kind


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
        kubeflow.JOB_NAME: job["metadata"]["name"],
        kubeflow.OPERATOR: f"{sort.kind.kind.lower()}-controller",
        kubeflow.TYPE: one.name,
        kubeflow.INDEX: str(index),
    }
    if one.type in sort.leaders:
        labels[kubeflow.ROLE] = one.name
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


# ---- environment ---------------------------------------------------------------------------------
#
# What a pod has to know to find its peers, kind by kind.


def host(job: Json, type_: str, index: int) -> str:
    """Return the name of a pod, and of the Service that leads to it."""
    return f"{job['metadata']['name']}-{type_.lower()}-{index}"


def variables(
    job: Json, sort: Sort, replicas: Sequence[Replicas], one: Replicas, index: int
) -> list[Json]:
    """Return the variables of a pod."""
    makes = _MAKERS.get(sort.kind)
    made = makes(job, sort, replicas, one, index) if makes is not None else {}
    return [{"name": name, "value": value} for name, value in made.items()]


def port_of(sort: Sort, template: Json) -> int:
    """Return the port that peers talk to: the one that a container names so, else the usual one."""
    for container in (template.get("spec") or {}).get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == sort.port_name:
                return int(port["containerPort"])
    return sort.port


def rank_of(replicas: Sequence[Replicas], one: Replicas, index: int) -> int:
    """Return a pod's number among all pods: leaders first."""
    before = 0
    for other in replicas:
        if other is one:
            break
        before += other.count
    return before + index


def _first(job: Json, sort: Sort, replicas: Sequence[Replicas]) -> tuple[str, str]:
    return host(job, replicas[0].type, 0), str(port_of(sort, replicas[0].template))


def _pytorch(
    job: Json, sort: Sort, replicas: Sequence[Replicas], one: Replicas, index: int
) -> dict[str, str]:
    pods = sum(other.count for other in replicas)
    processes = str(job["spec"].get("nprocPerNode") or "auto")
    address, port = _first(job, sort, replicas)
    rank = str(rank_of(replicas, one, index))
    made = {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(pods * (whole_number(processes) or 1)),
        "RANK": rank,
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": port,
        "PET_NPROC_PER_NODE": processes,
        "PET_NNODES": str(pods),
        "PET_NODE_RANK": rank,
    }
    elastic = job["spec"].get("elasticPolicy")
    if elastic is not None:
        made |= _elastic(job, elastic, pods, port)
    return made


def _elastic(job: Json, elastic: Json, pods: int, port: str) -> dict[str, str]:
    least, most = elastic.get("minReplicas") or pods, elastic.get("maxReplicas") or pods
    host_ = elastic.get("rdzvHost") or host(job, "worker", 0)
    made = {
        "PET_NNODES": f"{least}:{most}",
        "PET_RDZV_BACKEND": elastic.get("rdzvBackend") or "c10d",
        "PET_RDZV_ENDPOINT": f"{host_}:{elastic.get('rdzvPort') or port}",
        "PET_RDZV_ID": elastic.get("rdzvId") or job["metadata"]["name"],
    }
    if elastic.get("maxRestarts") is not None:
        made["PET_MAX_RESTARTS"] = str(elastic["maxRestarts"])
    if elastic.get("nProcPerNode"):
        made["PET_NPROC_PER_NODE"] = str(elastic["nProcPerNode"])
    return made


def _tensorflow(
    job: Json, sort: Sort, replicas: Sequence[Replicas], one: Replicas, index: int
) -> dict[str, str]:
    if sum(other.count for other in replicas) == 1:
        return {}
    namespace = job["metadata"]["namespace"]
    cluster = {
        other.name: [
            f"{host(job, other.type, number)}.{namespace}.svc:{port_of(sort, other.template)}"
            for number in range(other.count)
        ]
        for other in replicas
        if other.type != "Evaluator"
    }
    task = {"type": one.name, "index": index}
    made = {"cluster": cluster, "task": task, "environment": "cloud"}
    return {"TF_CONFIG": json.dumps(made, separators=(",", ":"))}


def _xgboost(
    job: Json, sort: Sort, replicas: Sequence[Replicas], one: Replicas, index: int
) -> dict[str, str]:
    address, port = _first(job, sort, replicas)
    workers = [
        host(job, other.type, number)
        for other in replicas
        if other.type == "Worker"
        for number in range(other.count)
    ]
    return {
        "PYTHONUNBUFFERED": "0",
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(sum(other.count for other in replicas)),
        "RANK": str(rank_of(replicas, one, index)),
        "WORKER_PORT": port,
        "WORKER_ADDRS": ",".join(workers),
    }


def _jax(
    job: Json, sort: Sort, replicas: Sequence[Replicas], one: Replicas, index: int
) -> dict[str, str]:
    address, port = _first(job, sort, replicas)
    return {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_ADDRESS": address,
        "COORDINATOR_PORT": port,
        "NUM_PROCESSES": str(sum(other.count for other in replicas)),
        "PROCESS_ID": str(index),
    }


_Maker = Callable[[Json, Sort, Sequence[Replicas], Replicas, int], dict[str, str]]
_MAKERS: Mapping[Kind, _Maker] = {
    PYTORCH.kind: _pytorch,
    TENSORFLOW.kind: _tensorflow,
    XGBOOST.kind: _xgboost,
    JAX.kind: _jax,
}
