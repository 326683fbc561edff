"""`sbatch`: read a script, make a job of it, and say its number (spec slurm §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unisono.slurm.getopt import BadOption
from unisono.slurm.host_list import fold
from unisono.slurm.moments import shown
from unisono.slurm.quick import Quick, QuickTrouble
from unisono.slurm.sbatch.arrays import Array, BadArray, for_task, read_array
from unisono.slurm.sbatch.document import Job, Place, Submitter, job_object, secret_object
from unisono.slurm.sbatch.layout import UNAVAILABLE, BadRequest, NodeSize, layout_of
from unisono.slurm.sbatch.options import given, of_environment, of_script, together
from unisono.slurm.site import LAST_ID, MAP, MAPS, PartitionRules, Rules, rules_of, size_of
from unisono.slurm.verbs.around import JOBS, Around, Outcome, Refused, Start, path_of
from unisono.slurm.words import CONF, DEPENDS_ON, NAMESPACE

Json = dict[str, Any]

# Others submit at the same time; each needs its own number.
_TRIES = 50
# Tasks of an array that a dependency may stand for: each is named in an annotation.
_MOST_AWAITED = 1000
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
        return _tested(api, wish, around)
    job, cluster, warnings = submit(api, wish, around)
    said = [f"sbatch: warning: {one}\n" for one in (*wish.warnings, *warnings)]
    identity = job["spec"]["jobId"]
    if "parsable" in wish.options:
        clusters = f";{cluster}" if "clusters" in wish.options else ""
        text = f"{identity}{clusters}\n"
    else:
        text = "" if "quiet" in wish.options else f"Submitted batch job {identity}\n"
    code = _wait_for(api, job, around) if "wait" in wish.options else 0
    return Outcome(text, "".join(said), code)


def _tested(api: Quick, wish: Wish, around: Around) -> Outcome:
    """Say when a job would start; nothing is stored."""
    stored = api.find(MAP)
    last = int(((stored or {}).get("metadata") or {}).get("annotations", {}).get(LAST_ID) or 0)
    try:
        wish, start = _first_to_start(api, wish, around, rules_of(stored), last + 1)
        made, job, _, _ = prepare(api, wish, around, rules_of(stored), last + 1)
    except BadRequest as trouble:
        raise Refused(f"allocation failure: {trouble}") from None
    if not start.at:
        raise Refused(f"allocation failure: {start.why}")
    cpus = sum(group.cpus * group.nodes for group in job.layout.groups)
    nodes = f" on nodes {fold(start.nodes)}" if start.nodes else ""
    partition = made["spec"]["options"].get("partition") or "default"
    text = (
        f"sbatch: Job {last + 1} to start at {shown(start.at)} using {cpus} processors{nodes}"
        f" in partition {partition}\n"
    )
    return Outcome("", text)


def _first_to_start(
    api: Quick, wish: Wish, around: Around, rules: Rules, identity: int
) -> tuple[Wish, Start]:
    """Return a wish for that one of its partitions where it starts first, and when that is."""
    found: list[tuple[float, Wish, Start]] = []
    trouble: BadRequest | None = None
    for one in _by_partition(wish):
        try:
            made, job, _, _ = prepare(api, one, around, rules, identity)
        except BadRequest as refused:
            trouble = trouble or refused
            continue
        start = around.rehearse(api, _as_one_job(made, job.array), around.now)
        found.append((start.at or float("inf"), one, start))
    if not found:
        assert trouble is not None, "there is at least one partition to try"
        raise trouble
    _, chosen, start = min(found, key=lambda each: each[0])  # of equals the first named
    return chosen, start


def _by_partition(wish: Wish) -> list[Wish]:
    names = [one for one in wish.options.get("partition", "").split(",") if one]
    if len(names) < 2:
        return [wish]
    return [wish._replace(options={**wish.options, "partition": name}) for name in names]


def _as_one_job(made: Json, array: Array | None) -> Json:
    """Return the first task of an array, for whoever wants to know when it would start."""
    annotations = made["metadata"]["annotations"]
    if array is not None and DEPENDS_ON in annotations:
        annotations[DEPENDS_ON] = for_task(annotations[DEPENDS_ON], array.at(0))
    made["spec"].pop("array", None)
    return made


def read_wish(arguments: Sequence[str], around: Around) -> Wish | None:
    """Return what is to be submitted; None if only help was asked for."""
    try:
        line = given(arguments)
        if "help" in line.options or "usage" in line.options:
            return None
        text, command, rest = _script(line.options, line.words, around)
        inside = of_script(text, lenient="lenient" in line.options)
    except BadOption as trouble:
        raise Refused(f'{trouble}\nTry "sbatch --help" for more information') from None
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
    return text, "sbatch" if path == "-" else path, list(rest)


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
            wish, _ = _first_to_start(api, wish, around, rules, 0)
        made, job, who, warnings = prepare(api, wish, around, rules, 0)
        identity = _next_id(api, stored, job.array.size if job.array is not None else 1)
        job = job._replace(identity=identity)
        made, _ = job_object(job, who, _place_of(made))
    except BadRequest as trouble:
        before = _FAILED if str(trouble) in _AT_SUBMISSION else ""
        raise Refused(f"{before}{trouble}") from None
    namespace = made["metadata"]["namespace"]
    try:
        created = api.create(f"/apis/unisono.dev/v1/namespaces/{namespace}/slurmjobs", made)
        api.create(f"/api/v1/namespaces/{namespace}/secrets", secret_object(created, job, who))
    except QuickTrouble as trouble:
        raise Refused(f"{_FAILED}{trouble}") from None
    return created, rules.cluster, warnings


_AT_SUBMISSION = frozenset(
    {
        UNAVAILABLE,
        "Invalid partition name specified",
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
    partition = _partition(options, rules)
    where = _place(api, options, partition, rules)
    size = _size(api, options, partition, rules)
    site = partition.site if partition is not None else PartitionRules("").site
    array = _array(options, rules)
    job = Job(
        identity=identity,
        options={**_timed(options, partition), **({} if rules.requeues else {"no-requeue": ""})},
        script=wish.script,
        command=wish.command,
        arguments=wish.arguments,
        layout=layout_of(options, site, size),
        array=array,
        depends_on=_dependency(api, options.get("dependency", ""), where.namespace, array),
    )
    who = Submitter(
        user=around.user,
        user_id=around.user_id,
        group_id=around.group_id,
        host=around.host,
        directory=around.directory,
        environment=around.environment,
        now=around.now,
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
    if not needs:
        return NodeSize()
    nodes = api.get("/api/v1/nodes")["items"]
    return size_of(nodes, partition.name if partition is not None else "")


def _timed(options: Mapping[str, str], partition: PartitionRules | None) -> dict[str, str]:
    """Return the options with the partition's time where the job says none."""
    made = dict(options)
    if "time" not in made and partition is not None:
        minutes = partition.default_minutes or partition.max_minutes
        if minutes is not None:
            made["time"] = str(minutes)
    if "time-min" in made:
        made["time"] = made["time-min"]  # planned with the shorter one; it is not raised later
    return made


def _array(options: Mapping[str, str], rules: Rules) -> Array | None:
    if "array" not in options:
        return None
    try:
        return read_array(options["array"], rules.max_array)
    except BadArray as trouble:
        raise BadRequest(str(trouble)) from None


_DEPENDENCIES = ("after", "afterany", "afterok", "afternotok", "aftercorr", "singleton")


def _dependency(api: Quick, text: str, namespace: str, array: Array | None) -> str:
    """Return a dependency with names of objects instead of numbers of jobs.

    `aftercorr` of an array on an array stays, with the other's name, until a task is made; of
    anything else it means `afterok`, as in Slurm.
    """
    if not text:
        return ""
    join = "?" if "?" in text else ","
    terms = []
    for term in text.split(join):
        kind, *numbers = term.strip().split(":")
        if kind not in _DEPENDENCIES and not kind.isdecimal():
            raise BadRequest("Job dependency problem")
        if kind.isdecimal():
            kind, numbers = "afterany", [kind, *numbers]
        names = [kind]
        for number in numbers:
            if number.startswith("+") or (
                kind != "after" and not number.partition("_")[0].isdecimal()
            ):
                raise BadRequest("Job dependency problem")
            identity, plus, minutes = number.partition("+")
            other = _corresponding(api, identity, namespace, array) if kind == "aftercorr" else ""
            if other:
                terms.append(f"aftercorr:{other}")
                continue
            names += [f"{one}{plus}{minutes}" for one in _names_of(api, identity, namespace)]
        if kind == "aftercorr":
            names[0] = "afterok"
        if len(names) > 1 or kind == "singleton":
            terms.append(":".join(names))
    return join.join(terms)


def _corresponding(api: Quick, number: str, namespace: str, array: Array | None) -> str:
    """Return the name of an array that has every task of ours; empty if it is no array."""
    found = _array_of(api, number, namespace)
    if array is None or found is None or "_" in number:
        return ""
    whole = read_array(found["spec"]["array"]["tasks"])
    if any(whole.place(one) is None for part in array.parts for one in part):
        raise BadRequest("Job dependency problem")
    return str(found["metadata"]["name"])


def _array_of(api: Quick, number: str, namespace: str) -> Json | None:
    found = _jobs_of(api, number.partition("_")[0], namespace)
    return next((one for one in found if one["spec"].get("array")), None)


def _jobs_of(api: Quick, identity: str, namespace: str) -> list[Json]:
    found = api.get(f"{JOBS}?labelSelector=unisono.dev%2Fslurm-job%3D{identity}")["items"]
    return [one for one in found if one["metadata"]["namespace"] == namespace]


def _names_of(api: Quick, number: str, namespace: str) -> list[str]:
    """Return the names of the objects of a job, which must exist; of an array, all of its tasks."""
    identity, _, index = number.partition("_")
    own = _jobs_of(api, identity, namespace)
    if not own:
        raise BadRequest("Job dependency problem")
    array = next((one for one in own if one["spec"].get("array")), None)
    name = str((array or own[0])["metadata"]["name"])
    if index:
        return [f"{name}-{index}"]
    if array is None:
        return [name]
    whole = read_array(array["spec"]["array"]["tasks"])
    if whole.size > _MOST_AWAITED:
        raise BadRequest("Job dependency problem")
    return [f"{name}-{whole.at(place)}" for place in range(whole.size)]


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


def _wait_for(api: Quick, job: Json, around: Around) -> int:
    """Wait for the end of a job; return its exit code."""
    from unisono.slurm.states import is_over

    path = path_of(job["metadata"]["namespace"], job["metadata"]["name"])
    while True:
        found = api.find(path)
        if found is None:
            return 1
        status = found.get("status") or {}
        if is_over(status.get("state", "")):
            code, _, signal = str(status.get("exitCode") or "1:0").partition(":")
            return int(code) or (128 + int(signal) if signal.isdecimal() and int(signal) else 0)
        around.pause(1.0)
