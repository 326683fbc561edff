"""What the columns of a foreign CSV mean: `submit=submit_time,run=duration,gpus=gpu_request*0.01`.

    MAP    = PART [, PART …]
    PART   = FIELD = COLUMN [* FACTOR] [{ TEXT:NUMBER [| TEXT:NUMBER …] }]
           | PRESET                     a known archive; later parts overrule it

| field | means |
| --- | --- |
| `submit` | when: seconds, or a UTC time like 2020-04-01 12:00:00; this or nothing is required |
| `run` | run time in seconds; without it `end` minus `start` |
| `start`, `end` | when it started and ended |
| `request` | requested seconds |
| `workers` | pods of the gang |
| `cpu`, `memory`, `gpus` | of one pod: cores, MiB, GPUs (a fraction shares one) |
| `total_cpu`, `total_gpus` | of all pods together |
| `models` | GPU models that will do, joined by a bar |
| `number`, `name`, `user`, `group`, `queue`, `priority` | as they say |
| `status` | how it ended: any common word for finished, failed or cancelled |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from unisono.sim.errors import BadTrace

FIELDS = (
    *("submit", "run", "start", "end", "request", "workers", "cpu", "memory", "gpus"),
    *("total_cpu", "total_gpus", "models", "number", "name", "user", "group", "queue"),
    *("priority", "status"),
)

# Archives whose column names are known, by what their files are called.
PRESETS = {
    "spot": "name=job_name,group=organization,models=gpu_model,cpu=cpu_request,gpus=gpu_request,"
    "workers=worker_num,submit=submit_time,run=duration,queue=organization,"
    "priority=job_type{HP:100|Spot:0}",
    "helios": "name=job_id,user=user,queue=vc,total_gpus=gpu_num,total_cpu=cpu_num,"
    "workers=node_num,status=state,submit=submit_time,run=duration",
    "acme": "name=job_id,user=user,group=type,queue=queue,total_gpus=gpu_num,total_cpu=cpu_num,"
    "workers=node_num,status=state,submit=submit_time,run=duration",
    "pai": "name=job_name,user=user,workers=inst_num,cpu=plan_cpu*0.01,gpus=plan_gpu*0.01,"
    "memory=plan_mem*1024,models=gpu_type,submit=start_time,start=start_time,end=end_time,"
    "status=status",
}

_PART = re.compile(
    r"(?P<field>\w+)=(?P<column>[^,*{}=]+)(?:\*(?P<factor>[0-9.eE+-]+))?(?:\{(?P<table>[^{}]*)\})?"
)


@dataclass(frozen=True, slots=True)
class Column:
    """Where a field comes from: a column, what to multiply it by, what its words are worth."""

    name: str
    factor: float = 1.0
    worth: Mapping[str, float] = field(default_factory=dict)


def parse_map(text: str) -> dict[str, Column]:
    """Return the column of each field that a text names.

    >>> parse_map("submit=at,gpus=plan_gpu*0.01")["gpus"]
    Column(name='plan_gpu', factor=0.01, worth={})
    """
    found: dict[str, Column] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if part in PRESETS:
            found |= parse_map(PRESETS[part])
        else:
            name, column = _part(part)
            found[name] = column
    return found


def _part(text: str) -> tuple[str, Column]:
    match = _PART.fullmatch(text)
    if match is None:
        raise BadTrace("--map", f'"{text}" is not FIELD=COLUMN; presets: {", ".join(PRESETS)}')
    name = match["field"]
    if name not in FIELDS:
        raise BadTrace("--map", f'there is no field "{name}"; there are {", ".join(FIELDS)}')
    try:
        factor = float(match["factor"] or 1)
        pairs = [piece.rpartition(":") for piece in (match["table"] or "").split("|") if piece]
        worth = {key: float(value) for key, _, value in pairs}
    except ValueError as trouble:
        raise BadTrace("--map", f'"{text}": {trouble}') from trouble
    return name, Column(match["column"].strip(), factor, worth)
