"""What `--json` prints: the fields of Slurm's own form that scripts read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from unisono.slurm.jobs import Row

Json = dict[str, Any]
_META = {"meta": {"plugin": {"type": "unisono", "name": "unisono"}, "Slurm": {"release": "22.05"}}}


def jobs_json(rows: Sequence[Row]) -> str:
    """Return jobs as `squeue --json` does."""
    return json.dumps({**_META, "errors": [], "jobs": [job_form(row) for row in rows]}) + "\n"


def jobs_yaml(rows: Sequence[Row]) -> str:
    """Return the same in YAML."""
    import yaml

    text: str = yaml.safe_dump(json.loads(jobs_json(rows)), sort_keys=False)
    return text


def job_form(row: Row) -> Json:
    """Return one job; times in seconds, memory in MiB, as Slurm has them."""
    code, _, signal = str(row.status.get("exitCode") or "0:0").partition(":")
    return {
        "account": row.account.replace("(null)", ""),
        "array_job_id": row.array_id if row.spec.get("task") or row.array else 0,
        "array_task_id": (row.spec.get("task") or {}).get("index"),
        "array_task_string": row.pending,
        "batch_host": (row.status.get("nodes") or [""])[0],
        "command": row.spec.get("command", ""),
        "comment": row.options.get("comment", ""),
        "cpus": row.cpus,
        "current_working_directory": row.spec.get("workDir", ""),
        "dependency": row.options.get("dependency", ""),
        "eligible_time": int(row.time("eligibleTime") or row.submitted),
        "end_time": int(row.time("endTime")),
        "exit_code": int(code or 0),
        "derived_exit_code": int(signal or 0),
        "gres_detail": [],
        "job_id": row.identity,
        "job_state": row.state,
        "name": row.spec.get("jobName", ""),
        "node_count": row.node_count,
        "nodes": row.nodes,
        "partition": row.partition,
        "priority": row.priority,
        "qos": row.qos,
        "restart_cnt": int(row.status.get("restarts") or 0),
        "start_time": int(row.time("startTime") or row.time("expectedStart")),
        "state_description": row.status.get("message") or "",
        "state_reason": row.reason,
        "submit_time": int(row.submitted),
        "tasks": row.spec.get("tasks", 1),
        "time_limit": (row.limit_seconds or 0) // 60 or None,
        "tres_req_str": tres(row),
        "user_id": row.spec.get("userId", 0),
        "user_name": row.user,
    }


def tres(row: Row) -> str:
    """Return what a job has or wants, as Slurm lists it."""
    from unisono.slurm.formats import size_text
    from unisono.slurm.site import mib_of_quantity

    memory = 0
    for group in row.spec.get("groups") or ():
        containers: Any = ((group.get("template") or {}).get("spec") or {}).get("containers") or (
            {},
        )
        asked = (containers[0].get("resources") or {}).get("requests") or {}
        memory += mib_of_quantity(str(asked.get("memory", "0"))) * int(group["nodes"])
    parts = [f"cpu={row.cpus}"]
    if memory:
        parts.append(f"mem={size_text(memory)}")
    parts += [f"node={row.node_count}", f"billing={row.cpus}"]
    if row.gpus:
        parts.append(f"gres/gpu={row.gpus}")
    return ",".join(parts)
