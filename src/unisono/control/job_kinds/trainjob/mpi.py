"""MPI: a launcher that reaches the nodes by ssh (jobs §1.4).

A Secret holds one key pair for all of them, a ConfigMap the list of hosts. The key is made when the
Secret is created, never again: a TrainJob keeps it as long as it lives.
"""

from __future__ import annotations

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.job_kinds.pod_limit import nameable
from unisono.control.job_kinds.ssh_keys import KeyPair
from unisono.control.job_kinds.trainjob.parts import (
    Draft,
    change_pods,
    containers,
    gpus_of,
    set_variables,
)
from unisono.control.jobs.workload import owner_reference
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.digits import whole_number
from unisono.kinds.trainer.stock import LAUNCHER, NODE

SSH_AUTH = "kubernetes.io/ssh-auth"
_HOSTS_FOLDER = "/etc/mpi"
_KEY_FOLDER = "/root/.ssh"
_KEY_MODE = 0o600
_KEY_FILES = (
    ("ssh-privatekey", "id_rsa"),
    ("ssh-publickey", "id_rsa.pub"),
    ("ssh-publickey", "authorized_keys"),
)


def secret_name(train_job: str) -> str:
    """Return the name of the Secret with the keys."""
    return f"{train_job}-mpi-ssh-auth"


def hosts_name(train_job: str) -> str:
    """Return the name of the ConfigMap with the hosts."""
    return f"{train_job}-mpi-hostfile"


def new_mpi_keys() -> KeyPair:
    """Return a new key pair, on the curve that the upstream operator uses."""
    from cryptography.hazmat.primitives import serialization  # late, as in `ssh_keys`
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return KeyPair(private.decode(), public.decode() + "\n")


def with_keys(secret: Json, keys: KeyPair) -> Json:
    """Return a Secret of this kind with its keys."""
    return {
        **secret,
        "stringData": {"ssh-privatekey": keys.private, "ssh-publickey": keys.public},
    }


def apply_mpi(draft: Draft) -> None:
    """Give the launcher its hosts, and all pods the keys."""
    policy = draft.policy["mpi"]
    slots = _slots(draft)
    folder = policy.get("sshAuthMountPath") or _KEY_FOLDER
    for replicated in draft.jobs:
        if replicated["name"] in (LAUNCHER, NODE):
            _mount_keys(draft, replicated, folder)
    launcher = draft.job(LAUNCHER)
    if launcher is not None:
        _mount_hosts(draft, launcher)
        for container in containers(launcher):
            set_variables(
                container,
                [
                    {
                        "name": "OMPI_MCA_orte_default_hostfile",
                        "value": f"{_HOSTS_FOLDER}/hostfile",
                    },
                    {"name": "OMPI_MCA_orte_keep_fqdn_hostnames", "value": "true"},
                    {"name": "OMPI_MCA_orte_set_default_slots", "value": str(slots)},
                    {"name": "OMPI_MCA_plm_rsh_args", "value": "-o ConnectionAttempts=10"},
                ],
            )
    draft.extras += [_secret(draft), _hosts(draft, slots)]


def _slots(draft: Draft) -> int:
    """Return how many processes each node takes."""
    wanted = draft.trainer.get("numProcPerNode")
    if isinstance(wanted, int):
        return wanted
    number = whole_number(wanted, MAX_COUNT)
    if number is not None:
        return number
    written = int(draft.policy["mpi"].get("numProcPerNode") or 1)
    if written != 1:
        return written
    for replicated in draft.jobs:
        if replicated["name"] == NODE:
            for container in containers(replicated):
                return max(1, gpus_of(container))
    return 1


def _mount_keys(draft: Draft, replicated: Json, folder: str) -> None:
    items = [{"key": key, "path": path} for key, path in _KEY_FILES]
    secret = {"secretName": secret_name(draft.name), "items": items, "defaultMode": _KEY_MODE}
    _mount(replicated, "mpi-ssh-auth", {"secret": secret}, folder)


def _mount_hosts(draft: Draft, launcher: Json) -> None:
    items = [{"key": "hostfile", "path": "hostfile"}]
    source = {"configMap": {"name": hosts_name(draft.name), "items": items}}
    _mount(launcher, "mpi-hostfile", source, _HOSTS_FOLDER)


def _mount(replicated: Json, name: str, source: Json, folder: str) -> None:
    mount = {"name": name, "mountPath": folder}
    change_pods(
        replicated,
        {
            "spec": {
                "volumes": [{"name": name, **source}],
                "containers": [{"name": NODE, "volumeMounts": [mount]}],
            }
        },
    )


def _secret(draft: Draft) -> Json:
    """Return the Secret without its keys: the operator adds them when it creates it."""
    return {
        "apiVersion": names.SECRET.api_version,
        "kind": names.SECRET.kind,
        "metadata": _metadata(draft, secret_name(draft.name)),
        "type": SSH_AUTH,
        "immutable": True,
    }


def _hosts(draft: Draft, slots: int) -> Json:
    jobs = [NODE]
    if draft.policy["mpi"].get("runLauncherAsNode"):
        jobs.insert(0, LAUNCHER)
    lines = [
        f"{draft.host(job, pod)} slots={slots}\n"
        for job in jobs
        for count in (draft.counts.get(job, 0),)
        for pod in range(nameable(count, len(draft.host(job, count))))
    ]
    return {
        "apiVersion": names.CONFIG_MAP.api_version,
        "kind": names.CONFIG_MAP.kind,
        "metadata": _metadata(draft, hosts_name(draft.name)),
        "data": {"hostfile": "".join(lines)},
    }


def _metadata(draft: Draft, name: str) -> Json:
    owner = owner_reference(draft.train_job)
    return {"name": name, "namespace": draft.namespace, "ownerReferences": [owner]}
