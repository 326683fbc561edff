"""A job as it is stored: the SlurmJob, and the Secret with its script and environment."""

from __future__ import annotations

import binascii
import re
import shlex
from collections.abc import Mapping, Sequence

from unisono.slurm.labels import (
    API_VERSION,
    DEPENDS_ON,
    GPU,
    JOB_ID,
    KIND,
    label_part,
    object_name,
    partition_label,
    resource_of,
)
from unisono.slurm.lite_typing import TYPE_CHECKING, Json, NamedTuple
from unisono.slurm.sbatch.layout import BadRequest, Layout

if TYPE_CHECKING:
    from unisono.slurm.sbatch.arrays import Array


_IMAGE = "slurm/batch"
_LONGEST_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SLEEP = re.compile(r"^\s*(?:srun\s+(?:-\S+\s+)*)?sleep\s+(\d+(?:\.\d+)?)\s*$", re.MULTILINE)
# What a job must not bring along: it gets its own.
_OWN = re.compile(r"SLURM.*|UNISONO_SLURM.*|UNISONO_POD_UID|CUDA_VISIBLE_DEVICES|HOSTNAME|PWD|_")
_QUEUE = "kueue.x-k8s.io/queue-name"
_HOSTNAME = "kubernetes.io/hostname"
# Options that choose nodes.
_CHOOSING = frozenset({"constraint", "prefer", "nodelist", "exclude"})


class Submitter(NamedTuple):
    """The submitting user, host and directory."""

    user: str
    user_id: int
    group_id: int
    host: str
    directory: str
    environment: Mapping[str, str]
    now: float
    cluster: str = "unisono"


class Place(NamedTuple):
    """Where a job goes."""

    namespace: str
    partition: str = ""
    queue: str = ""  # the LocalQueue, if there is one
    selects_nodes: bool = False  # nodes have labels for their partitions


class Job(NamedTuple):
    """What is to run."""

    identity: int
    options: Mapping[str, str]
    script: str
    command: str  # how the script is called
    arguments: Sequence[str]
    layout: Layout
    array: Array | None
    depends_on: str = ""  # with names of objects


def job_object(job: Job, submitter: Submitter, where: Place) -> tuple[Json, list[str]]:
    """Return the SlurmJob, and what is worth a warning."""
    options = dict(job.options)
    if where.partition:
        options["partition"] = where.partition
    name = options.get("job-name") or job.command.rpartition("/")[2]
    nodes, warnings = _chosen(options, job.layout.gpu_type)
    spec: Json = {
        "jobId": job.identity,
        "jobName": name,
        "user": submitter.user,
        "userId": submitter.user_id,
        "groupId": submitter.group_id,
        "command": job.command,
        "arguments": list(job.arguments),
        "workDir": options.get("chdir") or submitter.directory,
        "submitHost": submitter.host,
        "cluster": submitter.cluster,
        "script": f"{object_name(name)}-{job.identity}",
        "options": options,
        "tasks": job.layout.tasks,
        "cpusPerTask": job.layout.cpus_per_task,
        "groups": _groups(job, nodes, where),
    }
    if job.array is not None:
        tasks, _, _ = options["array"].partition("%")
        spec["array"] = {"tasks": tasks, "limit": job.array.limit}
    labels = {JOB_ID: str(job.identity)}
    if where.queue:
        labels[_QUEUE] = where.queue
    made = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": spec["script"],
            "namespace": where.namespace,
            "labels": labels,
            "annotations": _annotations(job, options, submitter),
        },
        "spec": spec,
    }
    return made, warnings


def _chosen(options: Mapping[str, str], gpu_type: str) -> tuple[Json, list[str]]:
    """Return which nodes a job asks for, and warnings; most ask for none."""
    if not gpu_type and not options.keys() & _CHOOSING:
        return {}, []
    from unisono.slurm.sbatch.selection import affinity

    return affinity(options, gpu_type)


def _annotations(job: Job, options: Mapping[str, str], submitter: Submitter) -> dict[str, str]:
    made = {"unisono.dev/user": submitter.user}
    for name in ("account", "qos", "priority", "nice"):
        if name in options:
            made[f"unisono.dev/{name}"] = options[name] or "100"  # --nice alone is 100
    made["unisono.dev/number"] = str(job.identity)
    if "partition" in options:
        made["unisono.dev/partition"] = options["partition"].partition(",")[0]
    if "hold" in options:
        made["unisono.dev/hold"] = "user"
    for option, key in (("time", "time-limit"), ("time-min", "time-min")):
        if option in options:
            made[f"unisono.dev/{key}"] = limit_text(options[option])
    for name in ("begin", "deadline"):
        if name in options:
            made[f"unisono.dev/{name}"] = _moment(name, options[name], submitter.now)
    if job.depends_on:
        made[DEPENDS_ON] = job.depends_on
    if "mail-type" in options:
        made |= _mails(options)
    sleeps = [float(one) for one in _SLEEP.findall(job.script)]
    if sleeps:
        # Simulated pods do not run scripts; they take as long as these would.
        made["unisono.dev/run-seconds"] = f"{sum(sleeps):g}"
    return made


def _mails(options: Mapping[str, str]) -> dict[str, str]:

    made = mail_annotations(options)
    if made is None:
        raise BadRequest("Invalid --mail-type specification")
    return made


def _moment(name: str, text: str, now: float) -> str:
    from unisono.slurm.times import BadTime, parse_time, written

    try:
        return written(parse_time(text, now))
    except BadTime:
        raise BadRequest(f"Invalid --{name} specification") from None


def limit_text(text: str) -> str:
    """Return a time limit in whole minutes, rounded up as Slurm does; 0 for none.

    >>> limit_text("1:30"), limit_text("2-0"), limit_text("UNLIMITED"), limit_text("45")
    ('2', '2880', '0', '45')
    """
    plain = text.strip().upper()
    if plain in ("UNLIMITED", "INFINITE", "-1", "0"):
        return "0"
    shape = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", plain)
    if shape is None:
        raise BadRequest("Invalid --time specification")
    days, first, second, third = (int(one or 0) for one in shape.groups())
    if shape[1] is not None:
        seconds = days * 86_400 + first * 3600 + second * 60 + third
    elif shape[4] is not None:
        seconds = first * 3600 + second * 60 + third
    else:
        seconds = first * 60 + second
    return str(-(-seconds // 60))


def _groups(job: Job, nodes: Json, where: Place) -> list[Json]:
    made: list[Json] = []
    for index, group in enumerate(job.layout.groups):
        amounts = {"cpu": str(group.cpus)}
        if group.memory_mib:
            amounts["memory"] = f"{group.memory_mib}Mi"
        limits = {key: value for key, value in amounts.items() if key == "memory"}
        if group.gpus:
            amounts[GPU] = limits[GPU] = str(group.gpus)
        for name, count in job.layout.devices:
            amounts[resource_of(name)] = limits[resource_of(name)] = str(count)
        container: Json = {
            "name": "batch",
            "image": _image(job.options.get("container-image", "")),
            "resources": {"requests": amounts, **({"limits": limits} if limits else {})},
        }
        pod: Json = {"restartPolicy": "Never", "containers": [container]}
        if where.partition and where.selects_nodes:
            label = partition_label(where.partition.partition(",")[0])
            pod["nodeSelector"] = {label: "true"}
        if nodes:
            pod["affinity"] = {"nodeAffinity": nodes}
        _mount(job.options, pod)
        template: Json = {"metadata": {"labels": {}}, "spec": pod}
        apart(template, job.identity, job.layout.nodes)
        name = "batch" if index == 0 else f"more-{index}"
        made.append(
            {"name": name, "nodes": group.nodes, "tasks": group.tasks, "template": template}
        )
    return made


def apart(template: Json, job_id: int, nodes: int) -> None:
    """Mark a template's pods as a job's, and keep them on nodes of their own."""
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels[JOB_ID] = str(job_id)
    if nodes < 2:
        return
    rule = {"labelSelector": {"matchLabels": {JOB_ID: str(job_id)}}, "topologyKey": _HOSTNAME}
    both = template["spec"].setdefault("affinity", {})
    both["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}


def _image(written_: str) -> str:
    """Return an image as Kubernetes names it; enroot puts a # behind the registry.

    >>> _image("nvcr.io#nvidia/pytorch:24.05-py3"), _image("docker://alpine")
    ('nvcr.io/nvidia/pytorch:24.05-py3', 'alpine')
    """
    return written_.removeprefix("docker://").replace("#", "/", 1) or _IMAGE


def _mount(options: Mapping[str, str], pod: Json) -> None:
    """Mount what `--container-mounts=/data:/data:ro,/home` says, directories of the node."""
    container = pod["containers"][0]
    if "container-workdir" in options:
        container["workingDir"] = options["container-workdir"]
    volumes, mounts = [], []
    for number, part in enumerate(filter(None, options.get("container-mounts", "").split(","))):
        source, _, rest = part.partition(":")
        target, _, flags = rest.partition(":")
        name = f"mount-{number}"
        volumes.append({"name": name, "hostPath": {"path": source}})
        mount: Json = {"name": name, "mountPath": target or source}
        if "ro" in flags.split("+"):
            mount["readOnly"] = True
        mounts.append(mount)
    if volumes:
        pod["volumes"] = volumes
        container["volumeMounts"] = mounts


def secret_object(made: Json, job: Job, submitter: Submitter) -> Json:
    """Return the Secret that a job's first pod mounts; it goes with the job."""
    metadata = made["metadata"]
    contents = {"script": job.script, "environment": environment_file(job.options, submitter)}
    data = {key: _base64(text) for key, text in contents.items()}
    owner = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": metadata["name"]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {JOB_ID: label_part(str(job.identity))},
            "ownerReferences": [{**owner, "uid": metadata["uid"]}],
        },
        "type": "Opaque",
        "data": data,
    }


def environment_file(options: Mapping[str, str], submitter: Submitter) -> str:
    """Return the environment that a job brings along, as lines for a shell.

    What is in a value is quoted; a name that is none of a shell's is left out.
    """
    exported = _exported(options.get("export", "ALL"), submitter.environment)
    lines = []
    for name, value in sorted(exported.items()):
        if _LONGEST_KEY.fullmatch(name) is None or _OWN.fullmatch(name):
            continue
        if name == "PATH":
            # `srun` of ours comes first, wherever the container has it.
            lines.append(f'export PATH="${{UNISONO_TOOLS:+$UNISONO_TOOLS:}}"{shlex.quote(value)}')
        else:
            lines.append(f"export {name}={shlex.quote(value)}")
    return "\n".join(lines) + "\n"


def _exported(text: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that `--export` names.

    >>> sorted(_exported("ALL,X=1", {"A": "b"}).items()), _exported("NONE", {"A": "b"})
    ([('A', 'b'), ('X', '1')], {})
    """
    if text.upper() in ("NONE", "NIL"):
        return {}
    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if name.upper() == "ALL" and not equals:
            found |= environment
        elif equals:
            found[name] = value
        elif name in environment:
            found[name] = environment[name]
    return found


def _base64(text: str) -> str:
    return binascii.b2a_base64(text.encode(), newline=False).decode()


# ---- mails ---------------------------------------------------------------------------------------


_WORDS = {
    "NONE": "none",
    "BEGIN": "begin",
    "END": "end",
    "FAIL": "fail",
    "REQUEUE": "preempt",
    "ALL": "all",
    "STAGE_OUT": "",
    "TIME_LIMIT": "time-limit",
    "TIME_LIMIT_90": "time-limit-90",
    "TIME_LIMIT_80": "time-limit-80",
    "TIME_LIMIT_50": "time-limit-50",
    "ARRAY_TASKS": "array-tasks",
    "INVALID_DEPEND": "invalid-dependency",
}


def mail_annotations(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return what a job says about mails; None if a word is not one of Slurm's.

    >>> mail_annotations({"mail-type": "BEGIN,TIME_LIMIT_80", "mail-user": "ada@example.org"})
    {'unisono.dev/notify': 'begin,time-limit-80', 'unisono.dev/notify-to': 'ada@example.org'}
    >>> mail_annotations({"mail-user": "ada"}), mail_annotations({"mail-type": "SUPPER"})
    ({}, None)
    """
    types = [one.strip().upper() for one in options.get("mail-type", "").split(",")]
    types = [one for one in types if one]
    if any(one not in _WORDS for one in types):
        return None
    words = [_WORDS[one] for one in types if _WORDS[one]]
    if not words or "none" in words:
        return {}
    made = {"unisono.dev/notify": ",".join(words)}
    if options.get("mail-user"):
        made["unisono.dev/notify-to"] = options["mail-user"]
    return made
