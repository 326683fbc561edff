"""How the nodes of a training job find each other without MPI: variables of the container `node`.

torch     PET_* as torchrun reads them; `tune run` gets its whole command
jax       JAX_*
xgboost   DMLC_*
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.control.actions import Json
from unisono.control.job_kinds.trainjob.parts import (
    Draft,
    add_port,
    add_variables,
    amount,
    containers,
    gpus_of,
    set_variables,
)
from unisono.kinds.trainer.stock import NODE

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
