"""`scontrol`: look at jobs, nodes and partitions; hold, release, requeue and change jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unisono.slurm.changes import job_changes, node_changes
from unisono.slurm.finding import called, find
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.host_list import BadHostList, expand, fold
from unisono.slurm.jobs import Row, rows_of
from unisono.slurm.loading import decoded, priorities
from unisono.slurm.nodes import NodeRow, node_rows
from unisono.slurm.quick import Quick
from unisono.slurm.sbatch.layout import BadRequest
from unisono.slurm.site import MAP
from unisono.slurm.states import is_over
from unisono.slurm.verbs.around import COMMON, JOBS, Around, Outcome, Refused, path_of, understood

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
_INVALID = "Invalid job id specified"


def run(arguments: Sequence[str], around: Around) -> Outcome:
    """Do what the first word says."""
    given = understood("scontrol", arguments, _OPTIONS)
    if "help" in given.options or not given.words:
        return Outcome("Usage: scontrol [OPTIONS] show|hold|release|requeue|update …\n")
    verb, *rest = given.words
    match verb.lower():
        case "show":
            return _show(rest, given.options, around)
        case "hold" | "uhold" | "release" | "requeue" | "requeuehold":
            return _told(verb.lower(), rest, given.options, around)
        case "update":
            return _update(rest, given.options, around)
        case "ping":
            around.connect(given.options).get("/version")
            return Outcome(f"Slurmctld(primary) at {around.host} is UP\n")
        case _:
            raise Refused(f"invalid keyword: {verb}")


# ---- show --------------------------------------------------------------------------------------


def _show(words: Sequence[str], options: Mapping[str, str], around: Around) -> Outcome:
    what = words[0].lower().rstrip("s") if words else ""
    rest = words[1:]
    try:
        if what == "hostname":
            return Outcome("".join(f"{name}\n" for name in expand(rest[0] if rest else "")))
        if what in ("hostlist", "hostlistsorted"):
            names = expand(rest[0] if rest else "")
            return Outcome(fold(sorted(names) if what.endswith("sorted") else names) + "\n")
    except BadHostList as trouble:
        raise Refused(str(trouble)) from None
    api = around.connect(options)
    one_line = "oneliner" in options
    from unisono.slurm import showing

    if what == "job":
        text = [showing.job_text(row, one_line=one_line) for row in _rows(api, rest, around)]
        return Outcome("".join(text) or "No jobs in the system\n")
    if what == "node":
        nodes = _nodes(api)
        wanted = set(expand(rest[0])) if rest else None
        chosen = [node for node in nodes if wanted is None or node.name in wanted]
        if wanted and not chosen:
            return Outcome("", f"Node {rest[0]} not found\n", 1)
        return Outcome("".join(showing.node_text(node, one_line=one_line) for node in chosen))
    if what == "partition":
        said = _partitions(api, _nodes(api))
        if rest and rest[0] not in said:
            return Outcome("", f"Partition {rest[0]} not found\n", 1)
        return Outcome(
            "".join(
                showing.partition_text(name, nodes, keys, one_line=one_line)
                for name, (nodes, keys) in said.items()
                if not rest or name == rest[0]
            )
        )
    raise Refused(f"invalid entity: {words[0] if words else ''} for keyword:show")


def _rows(api: Quick, rest: Sequence[str], around: Around) -> list[Row]:
    if not rest:
        jobs = decoded(api.call("GET", JOBS))
        return rows_of(jobs, around.now, priorities=priorities(api))
    one = called(rest[0])
    found = find(api, one) if one is not None else None
    if found is None or not (found.jobs or found.waiting):
        raise Refused(_INVALID)
    jobs = found.jobs if found.jobs else [found.array] if found.array else []
    known = priorities(api)
    if one is not None and one.tasks is None:
        tasks = decoded(
            api.call("GET", f"{JOBS}?labelSelector=unisono.dev%2Fslurm-array%3D{one.identity}")
        )
        jobs = [*tasks, *jobs]
    rows = rows_of(jobs, around.now, priorities=known)
    return rows or [Row(job, around.now) for job in jobs]


def _nodes(api: Quick) -> list[NodeRow]:
    nodes = decoded(api.call("GET", "/api/v1/nodes"))
    return node_rows(nodes, decoded(api.call("GET", "/api/v1/pods")))


def _partitions(
    api: Quick, nodes: Sequence[NodeRow]
) -> dict[str, tuple[list[NodeRow], dict[str, str]]]:
    from unisono.slurm.partitions import partitions_of

    return partitions_of(api.find(MAP), nodes)


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
