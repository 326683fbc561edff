"""What `scontrol update` changes of a job or a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.kinds.digits import whole_number
from unisono.slurm.labels import GRANTED_OPTION
from unisono.slurm.nodes import REASON
from unisono.slurm.sbatch.document import limit_text
from unisono.slurm.sbatch.layout import BadRequest
from unisono.slurm.times import BadMoment, moment, written

Json = dict[str, Any]

# Keys of scontrol that are options of sbatch, and annotations where decisions read them.
_OPTIONS = {
    "account": "account",
    "qos": "qos",
    "nice": "nice",
    "priority": "priority",
    "comment": "comment",
    "dependency": "dependency",
    "features": "constraint",
}
_TURN = ("account", "qos", "nice", "priority")


def job_changes(said: Mapping[str, str], job: Json, now: float) -> Json:
    """Return the patch of a job; raise BadRequest for what cannot be changed."""
    options: Json = {}
    annotations: Json = {}
    spec: Json = {}
    for key, value in said.items():
        if key in ("jobid", "job"):
            continue
        if key in ("timelimit", "time"):
            text = _limit(value, job)
            options["time"] = annotations["unisono.dev/time-limit"] = text
            if "time-min" in (job["spec"].get("options") or {}):  # it is no longer open
                options |= {"time-min": None, GRANTED_OPTION: None}
                annotations["unisono.dev/time-min"] = None
        elif key in ("starttime", "eligibletime", "deadline"):
            name = "deadline" if key == "deadline" else "begin"
            try:
                at = moment(value, now)
            except BadMoment:
                raise BadRequest("Invalid time specification") from None
            options[name] = value
            annotations[f"unisono.dev/{name}"] = written(at)
        elif key in ("jobname", "name"):
            spec["jobName"] = value
        elif key == "partition":
            options["partition"] = annotations["unisono.dev/partition"] = value
            _must_wait(job)
        elif key in ("arraytaskthrottle",):
            at_once = whole_number(value)
            if at_once is None or not job["spec"].get("array"):
                raise BadRequest("Invalid job array specification")
            spec["array"] = {"limit": at_once}
        elif key in _OPTIONS:
            name = _OPTIONS[key]
            if name in ("dependency", "constraint"):
                raise BadRequest(f"{key} cannot be changed once a job is submitted")
            options[name] = value
            if name in _TURN:
                annotations[f"unisono.dev/{name}"] = value
        else:
            raise BadRequest(f"Update of this parameter is not supported: {key}")
    made: Json = {}
    if annotations:
        made["metadata"] = {"annotations": annotations}
        if "unisono.dev/partition" in annotations:
            queue = annotations["unisono.dev/partition"].lower()
            made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    if options:
        spec["options"] = options
    return made | ({"spec": spec} if spec else {})


def _limit(value: str, job: Json) -> str:
    """Return a new time limit; `+10` and `-10` change the one that there is."""
    if value[:1] not in "+-":
        return limit_text(value)
    before = int(limit_text((job["spec"].get("options") or {}).get("time", "0")))
    return str(max(1, before + int(value[0] + limit_text(value[1:]))))


def _must_wait(job: Json) -> None:
    if (job.get("status") or {}).get("state") not in (None, "", "PENDING"):
        raise BadRequest("Job is no longer pending execution")


def node_changes(said: Mapping[str, str], user: str, now: float) -> Json:
    """Return the patch of a node that is drained or resumed; a reason is a must, as in Slurm."""
    state = said.get("state", "").upper()
    if state in ("DRAIN", "DOWN", "FAIL"):
        reason = said.get("reason", "")
        if not reason:
            raise BadRequest("You must specify a reason when DRAINING a node. Request denied")
        note = f"{reason.replace('|', '/')}|{user}|{written(now)}"
        return {"spec": {"unschedulable": True}, "metadata": {"annotations": {REASON: note}}}
    if state in ("RESUME", "IDLE", "UNDRAIN"):
        return {"spec": {"unschedulable": None}, "metadata": {"annotations": {REASON: None}}}
    raise BadRequest(f"Invalid input: State={state}; nodes can be drained and resumed")
