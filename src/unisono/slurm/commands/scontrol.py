"""`scontrol`: hold, release, requeue and update jobs, update nodes, write a job's script.

`scontrol show` is in `scontrol_show`.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence

from unisono.kinds.digits import whole_number
from unisono.kinds.holds import HOLD, hold_changes
from unisono.slurm.client import ApiClient
from unisono.slurm.commands.context import (
    COMMON,
    VERSION,
    Context,
    Outcome,
    PrintAndEnd,
    Refused,
    parse_arguments,
    path_of,
)
from unisono.slurm.commands.job_lookup import called, find
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.host_list import expand
from unisono.slurm.labels import GRANTED_OPTION
from unisono.slurm.listing import decoded
from unisono.slurm.lite_typing import Json
from unisono.slurm.nodes import REASON
from unisono.slurm.sbatch.document import limit_text
from unisono.slurm.sbatch.layout import BadRequest
from unisono.slurm.states import is_over
from unisono.slurm.times import BadTime, parse_time, written

_OPTIONS = options_table(
    Option("oneliner", "o", "nothing"),
    Option("details", "d", "nothing"),
    Option("all", "a", "nothing"),
    Option("quiet", "Q", "nothing"),
    Option("verbose", "v", "nothing"),
    Option("help", "h", "nothing"),
    *COMMON,
)
# What Slurm can do and this cannot, and what to do instead.
_ELSEWHERE = {
    "suspend": "pods cannot be suspended; use requeuehold, and release later",
    "resume": "nothing is ever suspended; use release",
    "top": "use update JobId=… Priority=… (operators), or Nice=…",
    "create": "reservations are set in the Policy, partitions in slurm.conf",
    "delete": "reservations are set in the Policy; use scancel for jobs",
    "reboot": "machines are managed outside; use update NodeName=… State=DRAIN",
    "shutdown": "use unisono down",
}
_INVALID = "Invalid job id specified"


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """Do what the first word says."""
    given = parse_arguments("scontrol", arguments, _OPTIONS)
    if "help" in given.options or not given.words:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("scontrol", _OPTIONS))
    verb, *rest = given.words
    match verb.lower():
        case "show":
            from unisono.slurm.commands.scontrol_show import show

            return show(rest, given.options, context)
        case "write":
            return write(rest, given.options, context)
        case "version":
            raise PrintAndEnd(VERSION)
        case "reconfigure":
            return Outcome()  # what the administrator sets is read with every job
        case "hold" | "uhold" | "release" | "requeue" | "requeuehold":
            return _told(verb.lower(), rest, given.options, context)
        case "update":
            return _update(rest, given.options, context)
        case "ping":
            context.connect(given.options).get("/version")
            return Outcome(f"Slurmctld(primary) at {context.host} is UP\n")
        case _ if verb.lower() in _ELSEWHERE:
            return Outcome("", f"{verb} is not possible here: {_ELSEWHERE[verb.lower()]}\n", 1)
        case _:
            return Outcome("", f"invalid keyword: {verb}\n", 1)


# ---- hold, release, requeue, update ------------------------------------------------------------


def _told(verb: str, words: Sequence[str], options: Mapping[str, str], context: Context) -> Outcome:
    if not words:
        raise Refused(f"too few arguments for keyword:{verb}")
    api = context.connect(options)
    error: list[str] = []
    for word in (part for text in words for part in text.split(",") if part):
        one = called(word.removeprefix("jobid=").removeprefix("JobId="))
        found = find(api, one) if one is not None else None
        if found is None or not found.jobs:
            error.append(f"{_INVALID} for job {word}\n")
            continue
        for job in found.jobs:
            wrong = _tell(api, verb, job, context)
            if wrong:
                error.append(f"{wrong} for job {word}\n")
    return Outcome("", "".join(error), 1 if error else 0)


def _tell(api: ApiClient, verb: str, job: Json, context: Context) -> str:
    """Tell one job; return what is wrong."""
    state = (job.get("status") or {}).get("state") or "PENDING"
    path = path_of(job["metadata"]["namespace"], job["metadata"]["name"])
    annotations = job["metadata"].get("annotations") or {}
    if verb in ("hold", "uhold", "release"):
        if state != "PENDING":
            return "Job is no longer pending execution"
        held = annotations.get(HOLD, "")
        if verb == "release":
            if held == "admin" and context.user_id != 0:
                return "Access/permission denied"
            changes = hold_changes(None)
        else:
            is_admin = verb == "hold" and context.user_id == 0
            changes = hold_changes("admin" if is_admin else "user")
        api.patch(path, changes)
        if verb == "release" and held == "admin":
            _free(api, job)
        return ""
    if is_over(state):
        return "Job/step already completing or completed"
    if "no-requeue" in (job["spec"].get("options") or {}):
        return "Requested operation is presently disabled"
    if state == "PENDING":
        return "Job is pending execution"
    api.patch(path, {"spec": {"stop": verb}})
    return ""


def _free(api: ApiClient, job: Json) -> None:
    """Take an administrator's hold off the Workload, where the job's owner could not."""
    workloads = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{job['metadata']['namespace']}/workloads"
    for one in decoded(api.call("GET", workloads)):
        metadata = one["metadata"]
        owners = {each["uid"] for each in metadata.get("ownerReferences") or ()}
        is_held = (metadata.get("annotations") or {}).get(HOLD) == "admin"
        if job["metadata"]["uid"] in owners and is_held:
            api.patch(f"{workloads}/{metadata['name']}", hold_changes(None))


def _update(words: Sequence[str], options: Mapping[str, str], context: Context) -> Outcome:
    pairs = [word.partition("=")[::2] for word in words]
    assignments = {key.lower(): value for key, value in pairs}
    api = context.connect(options)
    if "nodename" in assignments:
        for name in expand(assignments["nodename"]):
            path = f"/api/v1/nodes/{name}"
            found = api.find(path)
            if found is None:
                raise Refused(f"Invalid node name specified for node {name}")
            try:
                api.patch(path, node_changes(assignments, context.user, context.now))
            except BadRequest as error:
                raise Refused(str(error)) from None
        return Outcome()
    word = assignments.get("jobid") or assignments.get("job") or ""
    one = called(word)
    found_jobs = find(api, one).jobs if one is not None else []
    if not found_jobs:
        raise Refused(f"{_INVALID} for job {word}")
    for job in found_jobs:
        if is_over((job.get("status") or {}).get("state") or ""):
            raise Refused("Job has already finished")
        path = path_of(job["metadata"]["namespace"], job["metadata"]["name"])
        try:
            changes = job_changes(assignments, job, context.now)
        except BadRequest as error:
            raise Refused(str(error)) from None
        if changes:
            api.patch(path, changes)
    return Outcome()


# Keys of scontrol that are options of sbatch, and annotations where decisions read them.
_CHANGED_OPTIONS = {
    "account": "account",
    "qos": "qos",
    "nice": "nice",
    "priority": "priority",
    "comment": "comment",
    "dependency": "dependency",
    "features": "constraint",
}
_TURN = ("account", "qos", "nice", "priority")


def job_changes(assignments: Mapping[str, str], job: Json, now: float) -> Json:
    """Return the patch of a job; raise BadRequest for what cannot be changed."""
    options: Json = {}
    annotations: Json = {}
    spec: Json = {}
    for key, value in assignments.items():
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
                at = parse_time(value, now)
            except BadTime:
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
        elif key in _CHANGED_OPTIONS:
            name = _CHANGED_OPTIONS[key]
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


def node_changes(assignments: Mapping[str, str], user: str, now: float) -> Json:
    """Return the patch of a node that is drained or resumed; a reason is a must, as in Slurm."""
    state = assignments.get("state", "").upper()
    if state in ("DRAIN", "DOWN", "FAIL"):
        reason = assignments.get("reason", "")
        if not reason:
            raise BadRequest("You must specify a reason when DRAINING a node. Request denied")
        note = f"{reason.replace('|', '/')}|{user}|{written(now)}"
        return {"spec": {"unschedulable": True}, "metadata": {"annotations": {REASON: note}}}
    if state in ("RESUME", "IDLE", "UNDRAIN"):
        return {"spec": {"unschedulable": None}, "metadata": {"annotations": {REASON: None}}}
    raise BadRequest(f"Invalid input: State={state}; nodes can be drained and resumed")


def write(words: Sequence[str], options: Mapping[str, str], context: Context) -> Outcome:
    """Write the script of a job to a file; `-` prints it."""
    if len(words) < 2 or words[0] != "batch_script":
        return Outcome("", f"invalid write argument: {' '.join(words)}\n", 1)
    api = context.connect(options)
    one = called(words[1])
    found = find(api, one) if one is not None else None
    if found is None or not (found.jobs or found.array):
        return Outcome("", "job script retrieval failed: Invalid job id specified\n", 1)
    job = found.jobs[0] if found.jobs else found.array or {}
    name, namespace = job["spec"].get("script", ""), job["metadata"]["namespace"]
    secret = api.find(f"/api/v1/namespaces/{namespace}/secrets/{name}") or {}
    script = binascii.a2b_base64((secret.get("data") or {}).get("script") or "").decode()
    path = words[2] if len(words) > 2 else f"slurm-{words[1]}.sh"
    if path == "-":
        return Outcome(script)
    context.save(path, script)
    return Outcome(f"batch script for job {words[1]} written to {path}\n")
