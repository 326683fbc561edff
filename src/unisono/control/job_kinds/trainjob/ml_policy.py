"""The `mlPolicy` of a TrainJob: how its nodes find each other (jobs §1.4).

torch     PET_* as torchrun reads them; `tune run` gets its whole command
jax       JAX_*
xgboost   DMLC_*
mpi       a launcher that reaches the nodes by ssh

The first three are variables of the container `node`. With MPI, a Secret holds one key pair for all
nodes, a ConfigMap their list. The key is made when the Secret is created, never again: a TrainJob
keeps it as long as it lives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.job_kinds.ssh_keys import KeyPair
from unisono.control.job_kinds.trainjob.parts import (
    Draft,
    add_port,
    add_variables,
    amount,
    change_pods,
    containers,
    gpus_of,
    set_variables,
)
from unisono.control.jobs.pods import nameable
from unisono.control.jobs.workload import owner_reference
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.digits import whole_number
from unisono.kinds.trainer.stock import LAUNCHER, NODE

PORT = 29500
_RANK = {
    "fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
}
# Without it torchrun's agents do not agree on how often they restarted, and meet at different
# addresses (jobs §7.2, pytorch#135712).
_SEPARATE_STORE = {"name": "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "value": "1"}

_TUNE = ["tune", "run"]
# What a recipe of the runtime decides; taken over from its command into the TrainJob's.
_TUNE_KEPT = (
    "output_dir",
    "tokenizer.path",
    "tokenizer.merges_file",
    "checkpointer.checkpoint_dir",
)
_MODELS: Mapping[str, str] = {
    "llama3.2-1b": "llama3_2/1B",
    "llama3.2-3b": "llama3_2/3B",
    "llama3.3-70b": "llama3_3/70B",
    "qwen2.5-1.5b": "qwen2_5/1.5B",
}


def apply_torch(draft: Draft) -> None:
    """Tell every node how many there are, which one it is, and where the first one is."""
    for replicated in draft.trainers():
        count = draft.counts[replicated["name"]]
        address = draft.host(replicated["name"])
        for container in containers(replicated):
            processes = _processes(draft, container)
            variables: list[Json] = [
                {"name": "PET_NNODES", "value": str(count)},
                {"name": "PET_NPROC_PER_NODE", "value": processes},
                {"name": "PET_NODE_RANK", "valueFrom": _RANK},
            ]
            if draft.trainer.get("command") == _TUNE:
                own = _runtime_command(draft, replicated["name"])
                container["command"] = _tune(draft, own, count, processes, address)
            else:
                variables += [
                    {"name": "PET_MASTER_ADDR", "value": address},
                    {"name": "PET_MASTER_PORT", "value": str(PORT)},
                ]
            set_variables(container, variables)
            add_variables(container, [_SEPARATE_STORE])
            add_port(container, PORT)


def _processes(draft: Draft, container: Json) -> str:
    """Return how many processes each node starts, as torchrun reads it."""
    wanted = draft.trainer.get("numProcPerNode")
    if wanted is None:
        wanted = draft.policy["torch"].get("numProcPerNode")
    if wanted is None:
        wanted = "auto"
    if wanted == "cpu" or (wanted == "auto" and gpus_of(container) == 0):
        cpus = amount(container.get("resources") or {}, lambda name: name == "cpu")
        return str(max(1, cpus.units if cpus is not None else 0))
    return str(wanted)


def _runtime_command(draft: Draft, job: str) -> Sequence[str]:
    for one in (draft.runtime.get("template") or {}).get("spec", {}).get("replicatedJobs") or ():
        if one["name"] == job:
            pod = one["template"]["spec"]["template"]["spec"]
            for container in pod.get("containers") or ():
                if container["name"] == NODE:
                    return [*(container.get("command") or ()), *(container.get("args") or ())]
    return ()


def _tune(
    draft: Draft, runtime_command: Sequence[str], count: int, processes: str, address: str
) -> list[str]:
    """Return the whole command line of torchtune."""
    is_alone = count == 1 and processes == "1"
    recipe, suffix = "full_finetune_distributed", "_full.yaml"
    if is_alone:
        recipe, suffix = "full_finetune_single_device", "_full_single_device.yaml"
    elif count > 1:
        suffix = "_full_multinode.yaml"
    where = [] if is_alone else [f"--rdzv_endpoint={address}:{PORT}"]
    model = _MODELS.get(draft.runtime_name.removeprefix("torchtune-"), "")
    kept = [one for one in runtime_command if one.partition("=")[0] in _TUNE_KEPT]
    return [*_TUNE, *where, recipe, "--config", f"{model}{suffix}", *kept]


def apply_jax(draft: Draft) -> None:
    """Give every process of JAX the address of the coordinator."""
    for replicated in draft.trainers():
        name = replicated["name"]
        for container in containers(replicated):
            add_variables(
                container,
                [
                    {"name": "JAX_NUM_PROCESSES", "value": str(draft.counts[name])},
                    {"name": "JAX_PROCESS_ID", "valueFrom": _RANK},
                    {"name": "JAX_COORDINATOR_ADDRESS", "value": f"{draft.host(name)}:{PORT}"},
                ],
            )
            add_port(container, PORT)


def apply_xgboost(draft: Draft) -> None:
    """Tell every worker of XGBoost where the tracker is."""
    for replicated in draft.trainers():
        name = replicated["name"]
        for container in containers(replicated):
            add_variables(
                container,
                [
                    {"name": "DMLC_TRACKER_URI", "value": draft.host(name)},
                    {"name": "DMLC_TRACKER_PORT", "value": str(PORT)},
                    {"name": "DMLC_TASK_ID", "valueFrom": _RANK},
                    {"name": "DMLC_NUM_WORKER", "value": str(draft.counts[name])},
                ],
            )
            add_port(container, PORT)


# ---- MPI -----------------------------------------------------------------------------------------

SSH_AUTH = "kubernetes.io/ssh-auth"
_HOSTS_FOLDER = "/etc/mpi"
_KEY_FOLDER = "/root/.ssh"
_KEY_MODE = 0o600
_KEY_FILES = (
    ("ssh-privatekey", "id_rsa"),
    ("ssh-publickey", "id_rsa.pub"),
    ("ssh-publickey", "authorized_keys"),
)


def _secret_name(train_job: str) -> str:
    """Return the name of the Secret with the keys."""
    return f"{train_job}-mpi-ssh-auth"


def _hosts_name(train_job: str) -> str:
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
    secret = {"secretName": _secret_name(draft.name), "items": items, "defaultMode": _KEY_MODE}
    _mount(replicated, "mpi-ssh-auth", {"secret": secret}, folder)


def _mount_hosts(draft: Draft, launcher: Json) -> None:
    items = [{"key": "hostfile", "path": "hostfile"}]
    source = {"configMap": {"name": _hosts_name(draft.name), "items": items}}
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
        "metadata": _metadata(draft, _secret_name(draft.name)),
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
        "metadata": _metadata(draft, _hosts_name(draft.name)),
        "data": {"hostfile": "".join(lines)},
    }


def _metadata(draft: Draft, name: str) -> Json:
    owner = owner_reference(draft.train_job)
    return {"name": name, "namespace": draft.namespace, "ownerReferences": [owner]}
