"""Pods of kubeflow's jobs, the Services that give them names, and the launcher of MPI."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from unisono.control.actions import Json
from unisono.control.gangs.recovery import ATTEMPT
from unisono.control.job_kinds import kubeflow
from unisono.control.job_kinds.kubeflow import (
    JAX,
    MPI,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    JobKind,
)
from unisono.control.job_kinds.kubeflow.replicas import Replicas, attempt_of, pod_policy
from unisono.control.job_kinds.ssh_keys import KeyPair
from unisono.control.jobs.pods import pod_from, pod_name
from unisono.control.jobs.workload import owner_reference
from unisono.kinds.digits import whole_number
from unisono.kube.mapping import Kind


def new_pod(
    job: Json, job_kind: JobKind, replicas: Sequence[Replicas], one: Replicas, index: int
) -> Json:
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
        labels=labels_of(job, job_kind, one, index),
        annotations={ATTEMPT: attempt},
    )
    pod["spec"]["restartPolicy"] = pod_policy(job, one)
    made = [
        *variables(job, job_kind, replicas, one, index),
        {"name": "UNISONO_RESTART_COUNT", "value": attempt},
    ]
    for part in ("initContainers", "containers"):
        for container in pod["spec"].get(part) or ():
            own = container.get("env") or []
            named = {variable["name"] for variable in own}
            more = [variable for variable in made if variable["name"] not in named]
            container["env"] = [*own, *more]
    if job_kind is MPI:
        _equip_mpi(pod, job, one, index)
    elif job_kind.port:
        _open(pod["spec"]["containers"][0], job_kind, port_of(job_kind, one.template))
    return pod


def labels_of(job: Json, job_kind: JobKind, one: Replicas, index: int) -> dict[str, str]:
    """Return the labels by which a pod is found."""
    labels = {
        kubeflow.JOB_NAME: job["metadata"]["name"],
        kubeflow.OPERATOR: f"{job_kind.kind.kind.lower()}-controller",
        kubeflow.TYPE: one.name,
        kubeflow.INDEX: str(index),
    }
    if one.type in job_kind.leaders:
        labels[kubeflow.ROLE] = one.name
    return labels


def _open(container: Json, job_kind: JobKind, port: int) -> None:
    ports = container.get("ports") or []
    if not any(known.get("containerPort") == port for known in ports):
        container["ports"] = [*ports, {"name": job_kind.port_name, "containerPort": port}]


def services(job: Json, job_kind: JobKind, replicas: Sequence[Replicas]) -> Iterator[Json]:
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
                "selector": labels_of(job, job_kind, one, index),
                "ports": [{"name": job_kind.port_name, "port": port_of(job_kind, one.template)}],
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
    job: Json, job_kind: JobKind, replicas: Sequence[Replicas], one: Replicas, index: int
) -> list[Json]:
    """Return the variables of a pod."""
    makes = _MAKERS.get(job_kind.kind)
    made = makes(job, job_kind, replicas, one, index) if makes is not None else {}
    written: list[Json] = [{"name": name, "value": value} for name, value in made.items()]
    if any(_OWN_ADDRESS in value for value in made.values()):
        source = {"fieldRef": {"fieldPath": "status.podIP"}}
        written.insert(0, {"name": _POD_IP, "valueFrom": source})  # before what it is used in
    return written


def port_of(job_kind: JobKind, template: Json) -> int:
    """Return the port that peers talk to: the one that a container names so, else the usual one."""
    for container in (template.get("spec") or {}).get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == job_kind.port_name:
                return int(port["containerPort"])
    return job_kind.port


def rank_of(replicas: Sequence[Replicas], one: Replicas, index: int) -> int:
    """Return a pod's number among all pods: leaders first."""
    before = 0
    for other in replicas:
        if other is one:
            break
        before += other.count
    return before + index


def _first(job: Json, job_kind: JobKind, replicas: Sequence[Replicas]) -> tuple[str, str]:
    return host(job, replicas[0].type, 0), str(port_of(job_kind, replicas[0].template))


def _pytorch(
    job: Json, job_kind: JobKind, replicas: Sequence[Replicas], one: Replicas, index: int
) -> dict[str, str]:
    pods = sum(other.count for other in replicas)
    processes = str(job["spec"].get("nprocPerNode") or "auto")
    address, port = _first(job, job_kind, replicas)
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
    job: Json, job_kind: JobKind, replicas: Sequence[Replicas], one: Replicas, index: int
) -> dict[str, str]:
    if sum(other.count for other in replicas) == 1:
        return {}
    namespace = job["metadata"]["namespace"]
    cluster = {
        other.name: [
            f"{host(job, other.type, number)}.{namespace}.svc:{port_of(job_kind, other.template)}"
            for number in range(other.count)
        ]
        for other in replicas
        if other.type != "Evaluator"
    }
    task = {"type": one.name, "index": index}
    made = {"cluster": cluster, "task": task, "environment": "cloud"}
    return {"TF_CONFIG": json.dumps(made, separators=(",", ":"))}


def _xgboost(
    job: Json, job_kind: JobKind, replicas: Sequence[Replicas], one: Replicas, index: int
) -> dict[str, str]:
    address, port = _first(job, job_kind, replicas)
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
    job: Json, job_kind: JobKind, replicas: Sequence[Replicas], one: Replicas, index: int
) -> dict[str, str]:
    address, port = _first(job, job_kind, replicas)
    return {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_ADDRESS": address,
        "COORDINATOR_PORT": port,
        "NUM_PROCESSES": str(sum(other.count for other in replicas)),
        "PROCESS_ID": str(index),
    }


# Paddle's launcher knows the leader by its address: the leader itself gets the one that it has.
_POD_IP = "POD_IP_DUMMY"
_OWN_ADDRESS = f"$({_POD_IP})"


def _paddle(
    job: Json, job_kind: JobKind, replicas: Sequence[Replicas], one: Replicas, index: int
) -> dict[str, str]:
    address, port = _first(job, job_kind, replicas)
    if rank_of(replicas, one, index) == 0:
        address = _OWN_ADDRESS
    made = {
        "PYTHONUNBUFFERED": "0",
        "PADDLE_JOB_ID": job["metadata"]["name"],
        "PADDLE_NNODES": str(sum(other.count for other in replicas)),
        "PADDLE_MASTER": f"{address}:{port}",
    }
    if replicas[0].type == "Master":  # parameter servers and trainers; else all are alike
        made["PADDLE_SERVER_NUM" if one.type == "Master" else "PADDLE_TRAINER_NUM"] = "1"
    return made


_Maker = Callable[[Json, JobKind, Sequence[Replicas], Replicas, int], dict[str, str]]
_MAKERS: Mapping[Kind, _Maker] = {
    PYTORCH.kind: _pytorch,
    TENSORFLOW.kind: _tensorflow,
    XGBOOST.kind: _xgboost,
    JAX.kind: _jax,
    PADDLE.kind: _paddle,
}


# ---- MPI -----------------------------------------------------------------------------------------
#
# MPI: a launcher that reaches the workers by ssh, and a file that lists them.

_CONFIG_AT = "/etc/mpi"
_ROOT_SSH = "/root/.ssh"
_CONFIG, _KEYS = "mpi-job-config", "ssh-auth"
_FILES = (
    ("ssh-privatekey", "id_rsa"),
    ("ssh-publickey", "id_rsa.pub"),
    ("ssh-publickey", "authorized_keys"),
)
_LAUNCHERS = {
    "OpenMPI": {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": f"{_CONFIG_AT}/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    },
    "Intel": {
        "I_MPI_HYDRA_HOST_FILE": f"{_CONFIG_AT}/hostfile",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
    },
    "MPICH": {"HYDRA_HOST_FILE": f"{_CONFIG_AT}/hostfile"},
}


def mpi_keys_name(job: Json) -> str:
    """Return the name of the Secret of keys."""
    return f"{job['metadata']['name']}-ssh"


def mpi_hosts_name(job: Json) -> str:
    """Return the name of the ConfigMap with the hosts."""
    return f"{job['metadata']['name']}-config"


def mpi_objects(job: Json, replicas: Sequence[Replicas], keys: KeyPair | None) -> list[Json]:
    """Return what an MPI job has besides pods; no Secret without keys."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]

    def metadata(of: str) -> Json:
        return {"name": of, "namespace": namespace, "ownerReferences": [owner_reference(job)]}

    made: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(name),
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": {kubeflow.JOB_NAME: name},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata(mpi_hosts_name(job)),
            "data": _mpi_files(job, replicas),
        },
    ]
    if keys is not None:
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/ssh-auth",
                "metadata": metadata(mpi_keys_name(job)),
                "stringData": {"ssh-privatekey": keys.private, "ssh-publickey": keys.public},
            }
        )
    return made


def _mpi_files(job: Json, replicas: Sequence[Replicas]) -> Json:
    """Return the host file, and the script that elastic programs ask for hosts."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    slots = job["spec"].get("slotsPerWorker") or 1
    hosts = [
        f"{name}-worker-{number}.{name}.{namespace}.svc"
        for one in replicas
        if one.type == "Worker"
        for number in range(one.count)
    ]
    if job["spec"].get("runLauncherAsWorker"):
        hosts.insert(0, f"{name}-launcher.{name}.{namespace}.svc")
    is_open = job["spec"].get("mpiImplementation", "OpenMPI") == "OpenMPI"
    lines = [f"{one} slots={slots}" if is_open else f"{one}:{slots}" for one in hosts]
    script = "".join(f"echo {one}:{slots}\n" for one in hosts)
    return {"hostfile": "\n".join(lines) + "\n", "discover_hosts.sh": f"#!/bin/sh\n{script}"}


def _equip_mpi(pod: Json, job: Json, one: Replicas, index: int) -> None:
    """Add to a new pod what MPI needs; the pod is ours to change."""
    spec, name = pod["spec"], job["metadata"]["name"]
    is_launcher = one.type == "Launcher"
    spec["hostname"] = f"{name}-launcher" if is_launcher else f"{name}-worker-{index}"
    spec["subdomain"] = name
    container = spec["containers"][0]
    container["env"] = [
        *(container.get("env") or ()),
        *_mpi_variables(job, is_launcher=is_launcher),
    ]
    if not is_launcher and not container.get("command") and not container.get("args"):
        container["command"] = ["/usr/sbin/sshd", "-De"]
    folder = job["spec"].get("sshAuthMountPath") or _ROOT_SSH
    mode = 0o600 if folder == _ROOT_SSH else 0o644
    items = [{"key": key, "path": path, "mode": mode} for key, path in _FILES]
    volumes: list[tuple[Json, str]] = [
        ({"name": _KEYS, "secret": {"secretName": mpi_keys_name(job), "items": items}}, folder)
    ]
    if is_launcher:
        files = [
            {"key": "hostfile", "path": "hostfile", "mode": 0o444},
            {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
        ]
        config = {"name": mpi_hosts_name(job), "items": files}
        volumes.append(({"name": _CONFIG, "configMap": config}, _CONFIG_AT))
    for volume, path in volumes:
        spec["volumes"] = [*(spec.get("volumes") or ()), volume]
        mount = {"name": volume["name"], "mountPath": path}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def _mpi_variables(job: Json, *, is_launcher: bool) -> list[Json]:
    if not is_launcher:
        return [{"name": "K_MPI_JOB_ROLE", "value": "worker"}]
    kind = job["spec"].get("mpiImplementation") or "OpenMPI"
    slots = str(job["spec"].get("slotsPerWorker") or 1)
    made = {"K_MPI_JOB_ROLE": "launcher", **_LAUNCHERS.get(kind, {})}
    if kind == "OpenMPI":
        made["OMPI_MCA_orte_set_default_slots"] = slots
    if kind == "Intel":
        made["I_MPI_PERHOST"] = slots
    if not job["spec"].get("runLauncherAsWorker"):
        made |= {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    return [{"name": name, "value": value} for name, value in made.items()]


def waits_for_workers(job: Json) -> bool:
    """Say whether the launcher is made only when all workers are ready."""
    return bool(job["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady")
