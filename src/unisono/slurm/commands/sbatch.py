"""`sbatch`: read a script, make a job of it, and say its number (spec slurm §4).

It is called from scripts, thousands of times: what few jobs ask for is loaded where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.kinds.digits import whole_number
from unisono.slurm.client import ApiClient, ClientError
from unisono.slurm.commands.context import (
    VERSION,
    Context,
    Outcome,
    PlannedStart,
    PrintAndEnd,
    Refused,
    path_of,
)
from unisono.slurm.getopt import BadOption
from unisono.slurm.labels import CONF, DEPENDS_ON, NAMESPACE
from unisono.slurm.lite_typing import TYPE_CHECKING, Json, NamedTuple
from unisono.slurm.sbatch.document import Job, Place, Submitter, job_object, secret_object
from unisono.slurm.sbatch.layout import UNAVAILABLE, BadRequest, NodeSize, Site, layout_of
from unisono.slurm.sbatch.options import KNOWN, given, of_environment, of_script, together
from unisono.slurm.site import LAST_ID, MAP, MAPS, PartitionRules, Rules, rules_of, size_of
from unisono.slurm.states import is_over

if TYPE_CHECKING:
    from unisono.slurm.sbatch.arrays import Array


# Paths of warnings that are told.
_NOTIFY = "metadata.annotations[unisono.dev/notify"
# Others submit at the same time; each needs its own number.
_TRIES = 50
_USED_WRONGLY = 255  # what Slurm's sbatch ends with if an option is none
_FAILED = "Batch job submission failed: "
_NOT_A_SCRIPT = (
    "This does not look like a batch script.  The first\n"
    "line must start with #! followed by the path to an interpreter.\n"
    "For instance: #!/bin/sh"
)


class Submission(NamedTuple):
    """A call, read."""

    options: dict[str, str]
    script: str
    command: str
    arguments: list[str]
    warnings: list[str]


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """Submit a job."""
    submission = read_submission(arguments, context)
    if submission is None:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("sbatch", KNOWN))
    api = context.connect(submission.options)
    if "test-only" in submission.options:
        return test_only(api, submission, context)
    job, cluster, warnings = submit(api, submission, context)
    warned = [f"sbatch: warning: {one}\n" for one in (*submission.warnings, *warnings)]
    identity = job["spec"]["jobId"]
    if "parsable" in submission.options:
        clusters = f";{cluster}" if "clusters" in submission.options else ""
        text = f"{identity}{clusters}\n"
    else:
        text = "" if "quiet" in submission.options else f"Submitted batch job {identity}\n"
    code = 0
    if "wait" in submission.options:
        code = wait_for(api, job, context)
    return Outcome(text, "".join(warned), code)


def read_submission(arguments: Sequence[str], context: Context) -> Submission | None:
    """Return what is to be submitted; None if only help was asked for."""
    try:
        line = given(arguments)
        if "help" in line.options or "usage" in line.options:
            return None
        if "version" in line.options:
            raise PrintAndEnd(VERSION)
        text, command, rest = _script(line.options, line.words, context)
        inside = of_script(text, lenient="lenient" in line.options)
    except BadOption as error:
        message = f'{error}\nTry "sbatch --help" for more information'
        raise Refused(message, _USED_WRONGLY) from None
    options = together(inside.options, of_environment(context.environment), line.options)
    return Submission(options, text, command, rest, [*line.warnings, *inside.warnings])


def _script(
    options: Mapping[str, str], words: list[str], context: Context
) -> tuple[str, str, list[str]]:
    if "wrap" in options:
        if words:
            raise Refused("Script arguments not permitted with --wrap option")
        text = f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{options['wrap']}\n"
        return text, options.get("job-name") or "wrap", []
    path, rest = (words[0], words[1:]) if words else ("-", [])
    try:
        text = context.read(path)
    except OSError:
        raise Refused(f"Unable to open file {path}") from None
    check_script(text)
    if path == "-":
        return text, "sbatch", list(rest)
    return text, path if path.startswith("/") else f"{context.directory}/{path}", list(rest)


def check_script(text: str) -> None:
    """Refuse what is no script."""
    if not text:
        raise Refused("Batch script is empty!")
    if not text.strip():
        raise Refused("Batch script contains only whitespace!")
    if not text.startswith("#!"):
        raise Refused(_NOT_A_SCRIPT)
    if "\r\n" in text:
        raise Refused(
            "Batch script contains DOS line breaks (\\r\\n)\n"
            "instead of expected UNIX line breaks (\\n)."
        )


def submit(api: ApiClient, submission: Submission, context: Context) -> tuple[Json, str, list[str]]:
    """Store a job; return it, the name of the cluster, and warnings."""
    stored = api.find(MAP)
    rules = rules_of(stored)
    try:
        if "," in submission.options.get("partition", ""):
            submission, _ = first_to_start(api, submission, context, rules, 0)
        made, job, submitter, warnings = prepare(api, submission, context, rules, 0)
        _refuse_impossible(api, made, submission.options)
        identity = _next_id(api, stored, job.array.size if job.array is not None else 1)
        job = job._replace(identity=identity)
        made, _ = job_object(job, submitter, _place_of(made))
    except BadRequest as error:
        raise refusal(error, submission.options) from None
    namespace = made["metadata"]["namespace"]
    try:
        created = api.create(f"/apis/unisono.dev/v1/namespaces/{namespace}/slurmjobs", made)
        warnings += _about_mails(api.warnings())
        api.create(
            f"/api/v1/namespaces/{namespace}/secrets", secret_object(created, job, submitter)
        )
    except ClientError as error:
        raise Refused(f"{_FAILED}{error}") from None
    return created, rules.cluster, warnings


def _about_mails(warnings: list[str]) -> list[str]:
    """Return why mails that a job asks for are not sent; Slurm says nothing of the rest."""
    paired = (one.partition("]: ") for one in warnings)
    return [message for path, _, message in paired if path.startswith(_NOTIFY)]


def _refuse_impossible(api: ApiClient, made: Json, options: Mapping[str, str]) -> None:
    """Refuse a job that the API says can never start on its nodes, or in its queue."""
    if not options.keys() & _OF_A_SIZE:
        return
    namespace = made["metadata"]["namespace"]
    path = f"/apis/unisono.dev/v1/namespaces/{namespace}/slurmjobs"
    try:
        warnings = api.warnings_about(path, made)
    except ClientError:
        return  # it is told what is wrong when it is made
    for one in warnings:
        for begin, words in _NEVER.items():
            if one.startswith(begin):
                raise BadRequest(words, one.removeprefix(begin).partition(". To change that")[0])


# Options by which a job may be more than its nodes or its queue have.
_OF_A_SIZE = frozenset(
    {
        "constraint",
        "cpus-per-gpu",
        "cpus-per-task",
        "exclude",
        "gpus",
        "gpus-per-node",
        "gpus-per-task",
        "gres",
        "mem",
        "mem-per-cpu",
        "mem-per-gpu",
        "mincpus",
        "nodelist",
        "nodes",
        "ntasks",
        "ntasks-per-node",
        "partition",
    }
)
# How the API's warnings begin, and what Slurm says.
_LIMITED = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
_NEVER = {
    "can never start on the nodes that there are: ": UNAVAILABLE,
    "can never be admitted as the queues are now: ": _LIMITED,
}


def refusal(error: BadRequest, options: Mapping[str, str]) -> Refused:
    """Return a refusal in Slurm's words, with its exit code; a number comes first."""
    message, first = str(error), f"{error.detail}\n" if error.detail else ""
    if message in _AT_SUBMISSION:
        name = options.get("partition", "")
        if message == _NO_PARTITION and name:
            first = f"invalid partition specified: {name}\n"
        return Refused(f"{first}{_FAILED}{message}")
    is_usage = message.startswith("Invalid --") or message.endswith("is not a valid node count")
    return Refused(message, _USED_WRONGLY if is_usage else 1)


_NO_PARTITION = "Invalid partition name specified"
_AT_SUBMISSION = frozenset(
    {
        UNAVAILABLE,
        _LIMITED,
        _NO_PARTITION,
        "Invalid feature specification",
        "Invalid node name specified",
        "Required partition not available (inactive or drain)",
        "Requested time limit is invalid (missing or exceeds some limit)",
        "Job dependency problem",
        "Invalid job array specification",
    }
)


def prepare(
    api: ApiClient, submission: Submission, context: Context, rules: Rules, identity: int
) -> tuple[Json, Job, Submitter, list[str]]:
    """Return a job's object, and what it was made of; nothing is stored."""
    options = submission.options
    _check(options, rules)
    partition = _partition(options, rules)
    where = _place(api, options, partition, rules)
    size = _size(api, options, partition, rules)
    site = partition.site if partition is not None else PartitionRules("").site
    array = _array(options, rules)
    job = Job(
        identity=identity,
        options=_settled(options, partition, site, rules),
        script=submission.script,
        command=submission.command,
        arguments=submission.arguments,
        layout=layout_of(options, site, size),
        array=array,
        depends_on=_dependency(api, options, where.namespace, array),
    )
    submitter = Submitter(
        user=context.user,
        user_id=context.user_id,
        group_id=context.group_id,
        host=context.host,
        directory=context.directory,
        environment=context.environment,
        now=context.now,
        cluster=rules.cluster,
    )
    made, warnings = job_object(job, submitter, where)
    return made, job, submitter, warnings


def _place_of(made: Json) -> Place:
    """Return where an object that was made goes, to make it again with its number."""
    spec, labels = made["spec"], made["metadata"]["labels"]
    partition = spec["options"].get("partition", "")
    selector = spec["groups"][0]["template"]["spec"].get("nodeSelector")
    queue = labels.get("kueue.x-k8s.io/queue-name", "")
    return Place(made["metadata"]["namespace"], partition, queue, bool(selector))


def _check(options: Mapping[str, str], rules: Rules) -> None:
    """Refuse unknown generic resources."""
    if rules.gres and options.get("gres"):
        asked = {one.partition(":")[0].strip().lower() for one in options["gres"].split(",")}
        if not asked - {"none", "craynetwork"} <= rules.gres:
            raise BadRequest("Invalid generic resource (gres) specification")


def _partition(options: Mapping[str, str], rules: Rules) -> PartitionRules | None:
    """Return the partition of a job; of several one was chosen before."""
    name = options.get("partition", "")
    found = rules.partition(name)
    if rules.partitions and found is None:
        raise BadRequest("Invalid partition name specified")
    if found is not None and found.state in ("DRAIN", "INACTIVE"):
        raise BadRequest("Required partition not available (inactive or drain)")
    return found


def _place(
    api: ApiClient, options: Mapping[str, str], partition: PartitionRules | None, rules: Rules
) -> Place:
    namespace = options.get("namespace") or api.namespace
    if partition is not None:
        return Place(namespace, partition.name, partition.name.lower(), selects_nodes=True)
    name = options.get("partition", "").partition(",")[0]
    if not name:
        return Place(namespace)
    path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues/{name}"
    if api.find(path) is None:
        raise BadRequest("Invalid partition name specified")
    return Place(namespace, name, name)


def _size(
    api: ApiClient, options: Mapping[str, str], partition: PartitionRules | None, rules: Rules
) -> NodeSize:
    """Return how large nodes are, if the shape of the job depends on it."""
    needs = (
        ("nodes" not in options and options.get("ntasks", "1") != "1")
        or any(name in options for name in ("gpus", "gpus-per-task", "exclusive"))
        or options.get("mem") == "0"
        or any(name in options for name in ("gres", "gpus-per-node", "mem"))
    )
    chooses = rules.partitions and any(name in options for name in ("nodelist", "constraint"))
    if not needs and not chooses:
        return NodeSize()
    nodes = api.get("/api/v1/nodes")["items"]
    if chooses:
        from unisono.slurm.sbatch.selection import refuse_unknown

        refuse_unknown(options, nodes)
    if not needs:
        return NodeSize()
    return size_of(nodes, partition.name if partition is not None else "")


def _settled(
    options: Mapping[str, str], partition: PartitionRules | None, site: Site, rules: Rules
) -> dict[str, str]:
    """Return the options with what the administrator set where the job says nothing."""
    made = _timed(options, partition)
    if not rules.requeues:
        made["no-requeue"] = ""
    if not made.keys() & {"mem", "mem-per-cpu", "mem-per-gpu"}:
        has_gpus = bool(made.keys() & {"gres", "gpus", "gpus-per-node", "gpus-per-task"})
        if site.mem_per_cpu_mib:
            made["mem-per-cpu"] = str(site.mem_per_cpu_mib)
        elif site.mem_per_gpu_mib and has_gpus:
            made["mem-per-gpu"] = str(site.mem_per_gpu_mib)
        elif site.mem_per_node_mib:
            made["mem"] = str(site.mem_per_node_mib)
    return made


def _timed(options: Mapping[str, str], partition: PartitionRules | None) -> dict[str, str]:
    """Return the options with the partition's time where the job says none."""
    made = dict(options)
    if "time" not in made and partition is not None:
        minutes = partition.default_minutes or partition.max_minutes
        if minutes is not None:
            made["time"] = str(minutes)
    return made


def _array(options: Mapping[str, str], rules: Rules) -> Array | None:
    if "array" not in options:
        return None
    from unisono.slurm.sbatch.arrays import BadArray, read_array

    try:
        return read_array(options["array"], rules.max_array)
    except BadArray as error:
        raise BadRequest(str(error)) from None


def _dependency(
    api: ApiClient, options: Mapping[str, str], namespace: str, array: Array | None
) -> str:
    if not options.get("dependency"):
        return ""
    from unisono.slurm.sbatch.dependencies import dependency

    return dependency(api, options["dependency"], namespace, array)


def _next_id(api: ApiClient, stored: Json | None, count: int) -> int:
    """Take the next job id, and one more for each further task of an array, atomically."""
    for _ in range(_TRIES):
        if stored is None:
            stored = _counter(api)
        annotations = stored["metadata"].get("annotations") or {}
        last = int(annotations.get(LAST_ID) or 0)
        version = stored["metadata"]["resourceVersion"]
        changes = {
            "metadata": {"resourceVersion": version, "annotations": {LAST_ID: str(last + count)}}
        }
        try:
            api.patch(MAP, changes)
        except ClientError as error:
            if error.status != 409:
                raise Refused(f"{_FAILED}{error}") from None
            stored = api.find(MAP)
            continue
        return last + 1
    raise Refused(f"{_FAILED}Slurm temporarily unable to accept job, sleeping and retrying")


def _counter(api: ApiClient) -> Json:
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONF, "namespace": NAMESPACE, "annotations": {LAST_ID: "0"}},
    }
    try:
        return api.create(MAPS, made)
    except ClientError as error:
        found = api.find(MAP) if error.status == 409 else None
        if found is None:
            raise Refused(f"{_FAILED}{error}") from None
        return found


# ---- `--test-only`, several partitions, `--wait` ---------------------------------------------


def test_only(api: ApiClient, submission: Submission, context: Context) -> Outcome:
    """Say when a job would start; nothing is stored."""
    stored = api.find(MAP)
    last = int(((stored or {}).get("metadata") or {}).get("annotations", {}).get(LAST_ID) or 0)
    try:
        submission, start = first_to_start(api, submission, context, rules_of(stored), last + 1)
        made, job, _, _ = prepare(api, submission, context, rules_of(stored), last + 1)
    except BadRequest as error:
        detail = f" ({error.detail})" if error.detail else ""
        raise Refused(f"allocation failure: {error}{detail}") from None
    if not start.at:
        raise Refused(f"allocation failure: {start.why}")
    from unisono.slurm.host_list import fold
    from unisono.slurm.times import shown

    cpus = sum(group.cpus * group.nodes for group in job.layout.groups)
    nodes = f" on nodes {fold(start.nodes)}" if start.nodes else ""
    partition = made["spec"]["options"].get("partition") or "default"
    text = (
        f"sbatch: Job {last + 1} to start at {shown(start.at)} using {cpus} processors{nodes}"
        f" in partition {partition}\n"
    )
    return Outcome("", text)


def first_to_start(
    api: ApiClient, submission: Submission, context: Context, rules: Rules, identity: int
) -> tuple[Submission, PlannedStart]:
    """Return the submission to the partition in which it starts first, and that start."""
    found: list[tuple[float, Submission, PlannedStart]] = []
    error: BadRequest | None = None
    for one in _by_partition(submission):
        try:
            made, job, _, _ = prepare(api, one, context, rules, identity)
        except BadRequest as refused:
            error = error or refused
            continue
        start = context.dry_run(api, _as_one_job(made, job.array), context.now)
        found.append((start.at or float("inf"), one, start))
    if not found:
        assert error is not None, "there is at least one partition to try"
        raise error
    _, chosen, start = min(found, key=lambda each: each[0])  # of equals the first named
    return chosen, start


def _by_partition(submission: Submission) -> list[Submission]:
    names = [one for one in submission.options.get("partition", "").split(",") if one]
    if len(names) < 2:
        return [submission]
    return [
        submission._replace(options={**submission.options, "partition": name}) for name in names
    ]


def _as_one_job(made: Json, array: Array | None) -> Json:
    """Return the first task of an array, to estimate when it would start."""
    annotations = made["metadata"]["annotations"]
    if array is not None and DEPENDS_ON in annotations:
        from unisono.slurm.sbatch.arrays import for_task

        annotations[DEPENDS_ON] = for_task(annotations[DEPENDS_ON], array.at(0))
    made["spec"].pop("array", None)
    return made


def wait_for(api: ApiClient, job: Json, context: Context) -> int:
    """Wait for the end of a job; return its exit code."""
    path = path_of(job["metadata"]["namespace"], job["metadata"]["name"])
    while True:
        found = api.find(path)
        if found is None:
            return 1
        status = found.get("status") or {}
        if is_over(status.get("state", "")):
            code, _, signal = str(status.get("exitCode") or "1:0").partition(":")
            killed_by = whole_number(signal)
            return whole_number(code) or (128 + killed_by if killed_by else 0)
        context.pause(1.0)
