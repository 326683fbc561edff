"""`scontrol`: hold, release, requeue and change jobs and nodes; `scontrol_show` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unisono.slurm.client import Quick
from unisono.slurm.commands.context import (
    COMMON,
    VERSION,
    Answered,
    Around,
    Outcome,
    Refused,
    path_of,
    understood,
)
from unisono.slurm.commands.job_lookup import called, find
from unisono.slurm.commands.scontrol_update import job_changes, node_changes
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.host_list import expand
from unisono.slurm.listing import decoded
from unisono.slurm.sbatch.layout import BadRequest
from unisono.slurm.states import is_over

Json = dict[str, Any]

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
    "suspend": "pods cannot be stopped and go on; use requeuehold, and release later",
    "resume": "nothing is ever suspended; use release",
    "top": "use update JobId=… Priority=… (operators), or Nice=…",
    "create": "reservations stand in the Policy, and partitions in slurm.conf",
    "delete": "reservations stand in the Policy; jobs are cancelled by scancel",
    "reboot": "machines belong to whoever runs the cluster; use update NodeName=… State=DRAIN",
    "shutdown": "use unisono down",
}
_INVALID = "Invalid job id specified"


def run(arguments: Sequence[str], around: Around) -> Outcome:
    """Do what the first word says."""
    given = understood("scontrol", arguments, _OPTIONS)
    if "help" in given.options or not given.words:
        return Outcome("Usage: scontrol [OPTIONS] show|hold|release|requeue|update …\n")
    verb, *rest = given.words
    match verb.lower():
        case "show":
            from unisono.slurm.commands.scontrol_show import show

            return show(rest, given.options, around)
        case "write":
            from unisono.slurm.commands.scontrol_write import write

            return write(rest, given.options, around)
        case "version":
            raise Answered(VERSION)
        case "reconfigure":
            return Outcome()  # what the administrator sets is read with every job
        case "hold" | "uhold" | "release" | "requeue" | "requeuehold":
            return _told(verb.lower(), rest, given.options, around)
        case "update":
            return _update(rest, given.options, around)
        case "ping":
            around.connect(given.options).get("/version")
            return Outcome(f"Slurmctld(primary) at {around.host} is UP\n")
        case _ if verb.lower() in _ELSEWHERE:
            return Outcome("", f"{verb} is not possible here: {_ELSEWHERE[verb.lower()]}\n", 1)
        case _:
            return Outcome("", f"invalid keyword: {verb}\n", 1)


# ---- hold, release, requeue, update ------------------------------------------------------------


def _told(verb: str, words: Sequence[str], options: Mapping[str, str], around: Around) -> Outcome:
    if not words:
        raise Refused(f"too few arguments for keyword:{verb}")
    api = around.connect(options)
    trouble: list[str] = []
    for word in (part for text in words for part in text.split(",") if part):
        one = called(word.removeprefix("jobid=").removeprefix("JobId="))
        found = find(api, one) if one is not None else None
        if found is None or not found.jobs:
            trouble.append(f"{_INVALID} for job {word}\n")
            continue
        for job in found.jobs:
            wrong = _tell(api, verb, job, around)
            if wrong:
                trouble.append(f"{wrong} for job {word}\n")
    return Outcome("", "".join(trouble), 1 if trouble else 0)


def _tell(api: Quick, verb: str, job: Json, around: Around) -> str:
    """Tell one job; return what is wrong."""
    state = (job.get("status") or {}).get("state") or "PENDING"
    path = path_of(job["metadata"]["namespace"], job["metadata"]["name"])
    annotations = job["metadata"].get("annotations") or {}
    if verb in ("hold", "uhold", "release"):
        if state != "PENDING":
            return "Job is no longer pending execution"
        held = annotations.get("unisono.dev/hold", "")
        if verb == "release":
            if held == "admin" and around.user_id != 0:
                return "Access/permission denied"
            value: str | None = None
        else:
            value = "admin" if verb == "hold" and around.user_id == 0 else "user"
        api.patch(path, {"metadata": {"annotations": {"unisono.dev/hold": value}}})
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


def _free(api: Quick, job: Json) -> None:
    """Take an administrator's hold off the Workload, where the job's owner could not."""
    workloads = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{job['metadata']['namespace']}/workloads"
    for one in decoded(api.call("GET", workloads)):
        metadata = one["metadata"]
        owners = {each["uid"] for each in metadata.get("ownerReferences") or ()}
        is_held = (metadata.get("annotations") or {}).get("unisono.dev/hold") == "admin"
        if job["metadata"]["uid"] in owners and is_held:
            freed = {"metadata": {"annotations": {"unisono.dev/hold": None}}}
            api.patch(f"{workloads}/{metadata['name']}", freed)


def _update(words: Sequence[str], options: Mapping[str, str], around: Around) -> Outcome:
    pairs = [word.partition("=")[::2] for word in words]
    said = {key.lower(): value for key, value in pairs}
    api = around.connect(options)
    if "nodename" in said:
        for name in expand(said["nodename"]):
            path = f"/api/v1/nodes/{name}"
            found = api.find(path)
            if found is None:
                raise Refused(f"Invalid node name specified for node {name}")
            try:
                api.patch(path, node_changes(said, around.user, around.now))
            except BadRequest as trouble:
                raise Refused(str(trouble)) from None
        return Outcome()
    word = said.get("jobid") or said.get("job") or ""
    one = called(word)
    found_jobs = find(api, one).jobs if one is not None else []
    if not found_jobs:
        raise Refused(f"{_INVALID} for job {word}")
    for job in found_jobs:
        if is_over((job.get("status") or {}).get("state") or ""):
            raise Refused("Job has already finished")
        path = path_of(job["metadata"]["namespace"], job["metadata"]["name"])
        try:
            changes = job_changes(said, job, around.now)
        except BadRequest as trouble:
            raise Refused(str(trouble)) from None
        if changes:
            api.patch(path, changes)
    return Outcome()
