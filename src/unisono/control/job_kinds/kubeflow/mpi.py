"""MPI: a launcher that reaches the workers by ssh, and a file that lists them."""

from __future__ import annotations

from collections.abc import Sequence

from unisono.control.actions import Json
from unisono.control.job_kinds import kubeflow
from unisono.control.job_kinds.kubeflow.replicas import Replicas
from unisono.control.job_kinds.ssh_keys import KeyPair
from unisono.control.jobs.workload import owner_reference

CONFIG_AT = "/etc/mpi"
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
        "OMPI_MCA_orte_default_hostfile": f"{CONFIG_AT}/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    },
    "Intel": {
        "I_MPI_HYDRA_HOST_FILE": f"{CONFIG_AT}/hostfile",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
    },
    "MPICH": {"HYDRA_HOST_FILE": f"{CONFIG_AT}/hostfile"},
}


def keys_name(job: Json) -> str:
    """Return the name of the Secret of keys."""
    return f"{job['metadata']['name']}-ssh"


def hosts_name(job: Json) -> str:
    """Return the name of the ConfigMap with the hosts."""
    return f"{job['metadata']['name']}-config"


def objects(job: Json, replicas: Sequence[Replicas], keys: KeyPair | None) -> list[Json]:
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
            "metadata": metadata(hosts_name(job)),
            "data": _files(job, replicas),
        },
    ]
    if keys is not None:
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/ssh-auth",
                "metadata": metadata(keys_name(job)),
                "stringData": {"ssh-privatekey": keys.private, "ssh-publickey": keys.public},
            }
        )
    return made


def _files(job: Json, replicas: Sequence[Replicas]) -> Json:
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


def equip(pod: Json, job: Json, one: Replicas, index: int) -> None:
    """Add to a new pod what MPI needs; the pod is ours to change."""
    spec, name = pod["spec"], job["metadata"]["name"]
    is_launcher = one.type == "Launcher"
    spec["hostname"] = f"{name}-launcher" if is_launcher else f"{name}-worker-{index}"
    spec["subdomain"] = name
    container = spec["containers"][0]
    container["env"] = [*(container.get("env") or ()), *_variables(job, is_launcher=is_launcher)]
    if not is_launcher and not container.get("command") and not container.get("args"):
        container["command"] = ["/usr/sbin/sshd", "-De"]
    folder = job["spec"].get("sshAuthMountPath") or _ROOT_SSH
    mode = 0o600 if folder == _ROOT_SSH else 0o644
    items = [{"key": key, "path": path, "mode": mode} for key, path in _FILES]
    volumes: list[tuple[Json, str]] = [
        ({"name": _KEYS, "secret": {"secretName": keys_name(job), "items": items}}, folder)
    ]
    if is_launcher:
        files = [
            {"key": "hostfile", "path": "hostfile", "mode": 0o444},
            {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
        ]
        config = {"name": hosts_name(job), "items": files}
        volumes.append(({"name": _CONFIG, "configMap": config}, CONFIG_AT))
    for volume, path in volumes:
        spec["volumes"] = [*(spec.get("volumes") or ()), volume]
        mount = {"name": volume["name"], "mountPath": path}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def _variables(job: Json, *, is_launcher: bool) -> list[Json]:
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
