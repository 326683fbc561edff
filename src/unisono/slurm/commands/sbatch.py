"""`sbatch`: read a script, make a job of it, and say its number (spec slurm §4).

It is called from scripts, thousands of times: what few jobs ask for is loaded where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.slurm.client import Quick, QuickTrouble
from unisono.slurm.commands.context import VERSION, Answered, Around, Outcome, Refused
from unisono.slurm.getopt import BadOption
from unisono.slurm.labels import CONF, NAMESPACE
from unisono.slurm.lite_typing import TYPE_CHECKING, Any, NamedTuple
from unisono.slurm.sbatch.document import Job, Place, Submitter, job_object, secret_object
from unisono.slurm.sbatch.layout import UNAVAILABLE, BadRequest, NodeSize, Site, layout_of
from unisono.slurm.sbatch.options import given, of_environment, of_script, together
from unisono.slurm.site import LAST_ID, MAP, MAPS, PartitionRules, Rules, rules_of, size_of

if TYPE_CHECKING:
    from unisono.slurm.sbatch.arrays import Array

Json = dict[str, Any]

# Others submit at the same time; each needs its own number.
_TRIES = 50
_USED_WRONGLY = 255  # what Slurm's sbatch ends with if an option is none
_FAILED = "Batch job submission failed: "
_NOT_A_SCRIPT = (
    "This does not look like a batch script.  The first\n"
    "line must start with #! followed by the path to an interpreter.\n"
    "For instance: #!/bin/sh"
)
_USAGE = "Usage: sbatch [OPTIONS...] [script [args...]]; unisono's documentation lists the options"


class Wish(NamedTuple):
    """A call, read."""

    options: dict[str, str]
    script: str
    command: str
    arguments: list[str]
    warnings: list[str]


def run(arguments: Sequence[str], around: Around) -> Outcome:
    """Submit a job."""
    wish = read_wish(arguments, around)
    if wish is None:
        return Outcome(f"{_USAGE}\n")
    api = around.connect(wish.options)
    if "test-only" in wish.options:
        from unisono.slurm.commands.sbatch_start import tested

        return tested(api, wish, around)
    job, cluster, warnings = submit(api, wish, around)
    said = [f"sbatch: warning: {one}\n" for one in (*wish.warnings, *warnings)]
    identity = job["spec"]["jobId"]
    if "parsable" in wish.options:
        clusters = f";{cluster}" if "clusters" in wish.options else ""
        text = f"{identity}{clusters}\n"
    else:
        text = "" if "quiet" in wish.options else f"Submitted batch job {identity}\n"
    code = 0
    if "wait" in wish.options:
        from unisono.slurm.commands.sbatch_wait import wait_for

        code = wait_for(api, job, around)
    return Outcome(text, "".join(said), code)


def read_wish(arguments: Sequence[str], around: Around) -> Wish | None:
    """Return what is to be submitted; None if only help was asked for."""
    try:
        line = given(arguments)
        if "help" in line.options or "usage" in line.options:
            return None
        if "version" in line.options:
            raise Answered(VERSION)
        text, command, rest = _script(line.options, line.words, around)
        inside = of_script(text, lenient="lenient" in line.options)
    except BadOption as trouble:
        said = f'{trouble}\nTry "sbatch --help" for more information'
        raise Refused(said, _USED_WRONGLY) from None
    options = together(inside.options, of_environment(around.environment), line.options)
    return Wish(options, text, command, rest, [*line.warnings, *inside.warnings])


def _script(
    options: Mapping[str, str], words: list[str], around: Around
) -> tuple[str, str, list[str]]:
    if "wrap" in options:
        if words:
            raise Refused("Script arguments not permitted with --wrap option")
        text = f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{options['wrap']}\n"
        return text, options.get("job-name") or "wrap", []
    path, rest = (words[0], words[1:]) if words else ("-", [])
    try:
        text = around.read(path)
    except OSError:
        raise Refused(f"Unable to open file {path}") from None
    check_script(text)
    if path == "-":
        return text, "sbatch", list(rest)
    return text, path if path.startswith("/") else f"{around.directory}/{path}", list(rest)


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


def submit(api: Quick, wish: Wish, around: Around) -> tuple[Json, str, list[str]]:
    """Store a job; return it, the name of the cluster, and warnings."""
    stored = api.find(MAP)
    rules = rules_of(stored)
    try:
        if "," in wish.options.get("partition", ""):
            from unisono.slurm.commands.sbatch_start import first_to_start

            wish, _ = first_to_start(api, wish, around, rules, 0)
        made, job, who, warnings = prepare(api, wish, around, rules, 0)
        identity = _next_id(api, stored, job.array.size if job.array is not None else 1)
        job = job._replace(identity=identity)
        made, _ = job_object(job, who, _place_of(made))
    except BadRequest as trouble:
        raise refusal(str(trouble), wish.options) from None
    namespace = made["metadata"]["namespace"]
    try:
        created = api.create(f"/apis/unisono.dev/v1/namespaces/{namespace}/slurmjobs", made)
        api.create(f"/api/v1/namespaces/{namespace}/secrets", secret_object(created, job, who))
    except QuickTrouble as trouble:
        raise Refused(f"{_FAILED}{trouble}") from None
    return created, rules.cluster, warnings


def refusal(said: str, options: Mapping[str, str]) -> Refused:
    """Return a no in Slurm's words, with its exit code: some it says before it asks anybody."""
    if said in _AT_SUBMISSION:
        name = options.get("partition", "")
        first = f"invalid partition specified: {name}\n" if said == _NO_PARTITION and name else ""
        return Refused(f"{first}{_FAILED}{said}")
    is_usage = said.startswith("Invalid --") or said.endswith("is not a valid node count")
    return Refused(said, _USED_WRONGLY if is_usage else 1)


_NO_PARTITION = "Invalid partition name specified"
_AT_SUBMISSION = frozenset(
    {
        UNAVAILABLE,
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
    api: Quick, wish: Wish, around: Around, rules: Rules, identity: int
) -> tuple[Json, Job, Submitter, list[str]]:
    """Return a job's object, and what it was made of; nothing is stored."""
    options = wish.options
    _check(options, rules)
    partition = _partition(options, rules)
    where = _place(api, options, partition, rules)
    size = _size(api, options, partition, rules)
    site = partition.site if partition is not None else PartitionRules("").site
    array = _array(options, rules)
    job = Job(
        identity=identity,
        options=_settled(options, partition, site, rules),
        script=wish.script,
        command=wish.command,
        arguments=wish.arguments,
        layout=layout_of(options, site, size),
        array=array,
        depends_on=_dependency(api, options, where.namespace, array),
    )
    who = Submitter(
        user=around.user,
        user_id=around.user_id,
        group_id=around.group_id,
        host=around.host,
        directory=around.directory,
        environment=around.environment,
        now=around.now,
        cluster=rules.cluster,
    )
    made, warnings = job_object(job, who, where)
    return made, job, who, warnings


def _place_of(made: Json) -> Place:
    """Return where an object that was made goes, to make it again with its number."""
    spec, labels = made["spec"], made["metadata"]["labels"]
    partition = spec["options"].get("partition", "")
    selector = spec["groups"][0]["template"]["spec"].get("nodeSelector")
    queue = labels.get("kueue.x-k8s.io/queue-name", "")
    return Place(made["metadata"]["namespace"], partition, queue, bool(selector))


# When Slurm writes a mail; none is sent here, but a word that is none is refused all the same.
_MAILS = frozenset(
    [
        "NONE",
        "BEGIN",
        "END",
        "FAIL",
        "REQUEUE",
        "ALL",
        "STAGE_OUT",
        "TIME_LIMIT",
        "TIME_LIMIT_90",
        "TIME_LIMIT_80",
        "TIME_LIMIT_50",
        "ARRAY_TASKS",
        "INVALID_DEPEND",
    ]
)


def _check(options: Mapping[str, str], rules: Rules) -> None:
    """Refuse words that nobody knows."""
    if not set(filter(None, options.get("mail-type", "").upper().split(","))) <= _MAILS:
        raise BadRequest("Invalid --mail-type specification")
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
    api: Quick, options: Mapping[str, str], partition: PartitionRules | None, rules: Rules
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
    api: Quick, options: Mapping[str, str], partition: PartitionRules | None, rules: Rules
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
    except BadArray as trouble:
        raise BadRequest(str(trouble)) from None


def _dependency(api: Quick, options: Mapping[str, str], namespace: str, array: Array | None) -> str:
    if not options.get("dependency"):
        return ""
    from unisono.slurm.sbatch.dependencies import dependency

    return dependency(api, options["dependency"], namespace, array)


def _next_id(api: Quick, stored: Json | None, count: int) -> int:
    """Take the next number, and as many more as an array has tasks; nobody else gets them."""
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
        except QuickTrouble as trouble:
            if trouble.status != 409:
                raise Refused(f"{_FAILED}{trouble}") from None
            stored = api.find(MAP)
            continue
        return last + 1
    raise Refused(f"{_FAILED}Slurm temporarily unable to accept job, sleeping and retrying")


def _counter(api: Quick) -> Json:
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONF, "namespace": NAMESPACE, "annotations": {LAST_ID: "0"}},
    }
    try:
        return api.create(MAPS, made)
    except QuickTrouble as trouble:
        found = api.find(MAP) if trouble.status == 409 else None
        if found is None:
            raise Refused(f"{_FAILED}{trouble}") from None
        return found
