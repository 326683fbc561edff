"""What a batch script and its tasks find in their environment (spec slurm §6).

Everything that depends on the job alone; what a process knows only of itself (its node, its rank)
is added where it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

from unisono.slurm.host_list import fold
from unisono.slurm.labels import GPU
from unisono.slurm.lite_typing import ReadOnlyJson
from unisono.slurm.sbatch.arrays import read_array
from unisono.slurm.sbatch.layout import BadRequest, mib_of

# In MiB, however it was asked for.
_MEMORY = {
    "SLURM_MEM_PER_NODE": "mem",
    "SLURM_MEM_PER_CPU": "mem-per-cpu",
    "SLURM_MEM_PER_GPU": "mem-per-gpu",
}


class AllocatedNode(NamedTuple):
    """A node of a job, and what the job has there."""

    node: str
    tasks: int
    cpus: int
    gpus: int


def allocated_nodes(job: ReadOnlyJson, nodes: Mapping[str, Sequence[str]]) -> list[AllocatedNode]:
    """Return the nodes of a job in order; `nodes` has those of each group."""
    found: list[AllocatedNode] = []
    for group in job["spec"].get("groups") or ():
        cpus, gpus = amounts_of(group)
        tasks = int(group.get("tasks", 1))
        found += [AllocatedNode(node, tasks, cpus, gpus) for node in nodes.get(group["name"], ())]
    return found


def environment(job: ReadOnlyJson, allocated: Sequence[AllocatedNode]) -> dict[str, str]:
    """Return the variables of a job that runs on these nodes."""
    spec, options = job["spec"], job["spec"].get("options") or {}
    status = job.get("status") or {}
    identity = str(spec["jobId"])
    cluster = str(spec.get("cluster") or "unisono")
    hosts = fold(node.node for node in allocated)
    tasks = str(spec.get("tasks", 1))
    made = {
        "SLURM_JOB_ID": identity,
        "SLURM_JOBID": identity,
        "SLURM_JOB_NAME": spec.get("jobName", ""),
        "SLURM_JOB_NODELIST": hosts,
        "SLURM_NODELIST": hosts,
        "SLURM_JOB_NUM_NODES": str(len(allocated)),
        "SLURM_NNODES": str(len(allocated)),
        "SLURM_NTASKS": tasks,
        "SLURM_NPROCS": tasks,
        "SLURM_TASKS_PER_NODE": repeated(node.tasks for node in allocated),
        "SLURM_JOB_CPUS_PER_NODE": repeated(node.cpus for node in allocated),
        "SLURM_JOB_PARTITION": options.get("partition", ""),
        "SLURM_JOB_USER": spec.get("user", ""),
        "SLURM_JOB_UID": str(spec.get("userId", 0)),
        "SLURM_JOB_GID": str(spec.get("groupId", 0)),
        "SLURM_JOB_ACCOUNT": options.get("account") or status.get("account", ""),
        "SLURM_JOB_QOS": options.get("qos") or status.get("qos") or "normal",
        "SLURM_CLUSTER_NAME": cluster,
        "SLURM_WORKING_CLUSTER": cluster,
        "SLURM_SUBMIT_DIR": spec.get("workDir", ""),
        "SLURM_SUBMIT_HOST": spec.get("submitHost", ""),
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_GTIDS": "0",
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_EXPORT_ENV": "ALL",
        "SLURM_NODE_ALIASES": "(null)",
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
        "SLURM_CPUS_ON_NODE": str(allocated[0].cpus if allocated else 1),
    }
    for variable, name in (
        ("SLURM_NTASKS_PER_NODE", "ntasks-per-node"),
        ("SLURM_CPUS_PER_TASK", "cpus-per-task"),
        ("SLURM_GPUS", "gpus"),
        ("SLURM_GPUS_PER_NODE", "gpus-per-node"),
        ("SLURM_GPUS_PER_TASK", "gpus-per-task"),
        ("SLURM_DISTRIBUTION", "distribution"),
    ):
        if name in options:
            made[variable] = options[name]
    if allocated and allocated[0].gpus:
        devices = ",".join(map(str, range(allocated[0].gpus)))
        made |= {"SLURM_GPUS_ON_NODE": str(allocated[0].gpus), "SLURM_JOB_GPUS": devices}
        made["GPU_DEVICE_ORDINAL"] = devices
    for variable, name in _MEMORY.items():
        if name in options:
            with suppress(BadRequest):
                made[variable] = str(mib_of(options[name]))
    restarts = status.get("restarts") or 0
    if restarts:
        made["SLURM_RESTART_COUNT"] = str(restarts)
    return made | _array(job)


def _array(job: ReadOnlyJson) -> dict[str, str]:
    task = job["spec"].get("task")
    if not task:
        return {}
    whole = read_array((job["spec"].get("options") or {}).get("array", str(task["index"])))
    return {
        "SLURM_ARRAY_JOB_ID": str(task["arrayJobId"]),
        "SLURM_ARRAY_TASK_ID": str(task["index"]),
        "SLURM_ARRAY_TASK_COUNT": str(whole.size),
        "SLURM_ARRAY_TASK_MIN": str(whole.least),
        "SLURM_ARRAY_TASK_MAX": str(whole.most),
        "SLURM_ARRAY_TASK_STEP": str(whole.step),
    }


def repeated(numbers: Any) -> str:
    """Return numbers with repetitions counted.

    >>> repeated([2, 2, 1]), repeated([8])
    ('2(x2),1', '8')
    """
    runs = [(value, len(list(same))) for value, same in groupby(numbers)]
    return ",".join(f"{value}(x{count})" if count > 1 else str(value) for value, count in runs)


def amounts_of(group: ReadOnlyJson) -> tuple[int, int]:
    """Return cores and GPUs of a pod of a group."""
    containers: Any = ((group.get("template") or {}).get("spec") or {}).get("containers") or ({},)
    resources = containers[0].get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    cpu = str(asked.get("cpu", "1"))
    cpus = -(-int(cpu[:-1]) // 1000) if cpu.endswith("m") else int(float(cpu))
    return cpus, int(asked.get(GPU, 0))
