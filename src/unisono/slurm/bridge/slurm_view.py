"""Slurm's view: its jobs and nodes, read from the JSON of its commands.

JSON and nothing else: in the text forms a job may be called `x UserId=root(0)`, or have a line
break in its name. Slurm 22.05 and 26 spell some fields differently (a state is a word or a list of
words, a number may be wrapped); both are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from unisono.slurm.bridge.slurm_commands import SlurmCommands, SlurmUnreachable
from unisono.slurm.host_list import expand
from unisono.slurm.lite_typing import ReadOnlyJson

PENDING = "PENDING"
# States of a job that has nodes, or is about to give them back.
HOLDING = frozenset(
    ("CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "STAGE_OUT", "SIGNALING")
)
# How our marks in a job's AdminComment begin (bridge.marks).
_NONE = ("", "(null)", "N/A", None)
_GRES = re.compile(
    r"^gres[:/](?P<name>[^:]+)(?::(?P<type>[^:()]*[^0-9:()][^:()]*))?(?::(?P<n>\d+))?"
)
_DETAIL = re.compile(r"^(?P<name>[^:(]+)(?::(?P<type>[^:(]+))?:(?P<n>\d+)")
_NO_LIMIT = 2**32 - 1
# Only the beginning of an array is looked at; Slurm itself shortens long ones with dots.
MOST_TASKS = 1_000


class Held(msgspec.Struct, frozen=True):
    """What a job has on one node."""

    node: str
    cpus: int
    memory_mib: int
    gpus: int


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job, or one task of an array, as the bridge needs it."""

    key: str  # `17`, or `5_3` for a task of an array
    number: int  # its own job id; for a task that waits in its array, the array's
    state: str
    reason: str = ""
    priority: int = 0
    comment: str = ""  # AdminComment: our mark
    name: str = ""
    user: str = ""
    account: str = ""
    qos: str = ""
    partition: str = ""
    nice: int = 0
    nodes: int = 1
    cpus: int = 1
    tasks: int = 1
    memory_per_cpu: int | None = None
    memory_per_node: int | None = None
    gpus_per_node: int = 0
    gpus_per_job: int = 0
    gpus_per_task: int = 0
    gpu_type: str = ""
    exclusive: bool = False
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    features: str = ""
    dependency: str = ""
    submitted: float = 0.0
    eligible: float = 0.0
    started: float = 0.0
    limit_minutes: int | None = None
    restarts: int = 0
    can_requeue: bool = False
    array: int = 0
    most_at_once: int = 0  # of its array; 0: all
    held: tuple[Held, ...] = ()  # what it has, by node

    @property
    def is_held(self) -> bool:
        """Whether it is held, until it is released."""
        return self.state == PENDING and self.priority == 0

    @property
    def is_holding(self) -> bool:
        """Whether it has nodes."""
        return self.state in HOLDING

    @property
    def is_over(self) -> bool:
        """Whether it ended for good."""
        return self.state != PENDING and not self.is_holding

    @property
    def on(self) -> tuple[str, ...]:
        """The nodes that it has."""
        return tuple(one.node for one in self.held)


class SlurmNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node as Slurm sees it."""

    name: str
    states: frozenset[str]
    reason: str = ""
    cpus: int = 0
    memory_mib: int = 0
    gpus: int = 0
    gpu_types: frozenset[str] = frozenset()
    cpus_used: int = 0
    memory_used_mib: int = 0
    gpus_used: int = 0
    partitions: frozenset[str] = frozenset()
    features: tuple[str, ...] = ()

    @property
    def is_drained(self) -> bool:
        """Whether it is drained: it takes no new jobs."""
        return "DRAIN" in self.states

    @property
    def is_down(self) -> bool:
        """Whether it cannot run anything."""
        return bool(self.states & {"DOWN", "FAIL", "ERROR", "NOT_RESPONDING", "POWERED_DOWN"})

    @property
    def takes_jobs(self) -> bool:
        """Whether Slurm would start something on it."""
        return not self.is_drained and not self.is_down


class SlurmView(msgspec.Struct, frozen=True):
    """Jobs by key and nodes by name."""

    jobs: Mapping[str, SlurmJob] = {}
    nodes: Mapping[str, SlurmNode] = {}


async def read_jobs(programs: SlurmCommands) -> dict[str, SlurmJob]:
    """Ask for every job that Slurm still knows."""
    return jobs_of(_answered(await programs("squeue", "--json", "--all")))


async def read_nodes(programs: SlurmCommands) -> dict[str, SlurmNode]:
    """Ask for every node; since 23.02 scontrol has them, before that sinfo."""
    version = re.search(r"(\d+)\.(\d+)", await programs("sinfo", "--version"))
    if version is not None and int(version[1]) < 23:
        return nodes_of(_answered(await programs("sinfo", "--json", "--all")))
    return nodes_of(_answered(await programs("scontrol", "show", "nodes", "--json")))


def _answered(printed: str) -> ReadOnlyJson:
    """Read an answer; with --json, commands exit with 0 even if slurmctld did not answer.

    An empty list that came with an error must never pass for an empty queue.
    """
    try:
        answer: ReadOnlyJson = msgspec.json.decode(printed)
    except msgspec.DecodeError as error:
        raise SlurmUnreachable(f"the output of Slurm is not JSON: {error}") from error
    if answer.get("errors"):
        raise SlurmUnreachable(f"Slurm answered with errors: {json.dumps(answer['errors'])}")
    return answer


async def read_config(programs: SlurmCommands) -> dict[str, str]:
    """Ask for Slurm's settings, by their names."""
    lines = (await programs("scontrol", "show", "config")).splitlines()
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


async def cluster_name(programs: SlurmCommands) -> str:
    """Ask what a Slurm is called."""
    return (await read_config(programs)).get("ClusterName", "")


def jobs_of(answer: ReadOnlyJson) -> dict[str, SlurmJob]:
    """Read what `squeue --json` prints."""
    return {one.key: one for each in answer.get("jobs") or () for one in _jobs(each)}


def nodes_of(answer: ReadOnlyJson) -> dict[str, SlurmNode]:
    """Read what `sinfo --json` prints."""
    return {one["name"]: _node(one) for one in answer.get("nodes") or ()}


def _jobs(each: ReadOnlyJson) -> Iterator[SlurmJob]:
    """Yield a job, or the tasks that wait in the record of an array."""
    number = _whole(each.get("job_id"))
    array = _whole(each.get("array_job_id"))
    task = each.get("array_task_id")
    waiting = _text(each.get("array_task_string"))
    if array and waiting:
        for index in tasks_of(waiting):
            yield _job(each, f"{array}_{index}", array, array)
    elif array:
        yield _job(each, f"{array}_{_whole(task)}", number, array)
    else:
        yield _job(each, str(number), number, 0)


def _job(each: ReadOnlyJson, key: str, number: int, array: int) -> SlurmJob:
    required = expand(_text(each.get("required_nodes")))
    nodes = max(1, _whole(each.get("node_count")))
    if required and not _whole(each.get("max_nodes")):
        nodes = len(required)  # Slurm's own guess counts one more
    per_node, gpu_type = _gpus(_text(each.get("tres_per_node")))
    per_job, type_of_job = _gpus(_text(each.get("tres_per_job")))
    per_task, type_of_task = _gpus(_text(each.get("tres_per_task")))
    state = _words(each.get("job_state"))
    return SlurmJob(
        key=key,
        number=number,
        state=_main_state(state),
        reason=_text(each.get("state_description")) or _text(each.get("state_reason")),
        priority=_whole(each.get("priority")),
        comment=_text(each.get("admin_comment")),
        name=_text(each.get("name")),
        user=_text(each.get("user_name")),
        account=_text(each.get("account")),
        qos=_text(each.get("qos")),
        partition=_text(each.get("partition")),
        nice=_whole(each.get("nice")),
        nodes=nodes,
        cpus=max(1, _whole(each.get("cpus"))),
        tasks=max(1, _whole(each.get("tasks"))),
        memory_per_cpu=_optional(each.get("memory_per_cpu")),
        memory_per_node=_optional(each.get("memory_per_node")),
        gpus_per_node=per_node,
        gpus_per_job=per_job,
        gpus_per_task=per_task,
        gpu_type=gpu_type or type_of_job or type_of_task,
        exclusive="none" in {word.lower() for word in _words(each.get("shared"))},
        required=tuple(required),
        excluded=tuple(expand(_text(each.get("excluded_nodes")))),
        features=_text(each.get("features")),
        dependency=_text(each.get("dependency")),
        submitted=float(_whole(each.get("submit_time"))),
        eligible=float(_whole(each.get("eligible_time"))),
        started=float(_whole(each.get("start_time"))),
        limit_minutes=_limit(each.get("time_limit")),
        restarts=_whole(each.get("restart_cnt")),
        can_requeue=bool(each.get("requeue")) and bool(each.get("batch_flag", True)),
        array=array,
        most_at_once=_whole(each.get("array_max_tasks")),
        held=_held(each, nodes) if state & HOLDING else (),
    )


def _held(each: ReadOnlyJson, nodes: int) -> tuple[Held, ...]:
    """Return what a job has on each of its nodes."""
    names = expand(_text(each.get("nodes")))
    details = [_text(one) for one in each.get("gres_detail") or ()]
    allocated = (each.get("job_resources") or {}).get("allocated_nodes") or ()
    by_name = {_text(one.get("nodename")): one for one in allocated if isinstance(one, Mapping)}
    share = -(-_whole(each.get("cpus")) // max(1, nodes))
    found = []
    for place, name in enumerate(names):
        known = by_name.get(name, {})
        detail = details[place] if place < len(details) else ""
        found.append(
            Held(
                node=name,
                cpus=_cores(known) or share,
                memory_mib=_whole(known.get("memory_allocated")),
                gpus=gpus_in(detail),
            )
        )
    return tuple(found)


def _cores(known: ReadOnlyJson) -> int:
    """Count the cores that a job has on a node; 0 if Slurm does not say."""
    sockets = known.get("sockets")
    if not isinstance(sockets, Mapping):
        return 0
    return sum(len(one.get("cores") or ()) for one in sockets.values() if isinstance(one, Mapping))


def _node(each: ReadOnlyJson) -> SlurmNode:
    configured = _text(each.get("gres"))
    states = {*_words(each.get("state")), *_words(each.get("state_flags"))}
    return SlurmNode(
        name=each["name"],
        states=frozenset(word.upper() for word in states),
        reason=_text(each.get("reason")),
        cpus=_whole(each.get("cpus")),
        memory_mib=_whole(each.get("real_memory")),
        gpus=gpus_in(configured),
        gpu_types=frozenset(_types(configured)),
        cpus_used=_whole(each.get("alloc_cpus")),
        memory_used_mib=_whole(each.get("alloc_memory")),
        gpus_used=gpus_in(_text(each.get("gres_used"))),
        partitions=frozenset(each.get("partitions") or ()),
        features=tuple(_listed(each.get("features"))),
    )


def gpus_in(text: str) -> int:
    """Count the GPUs of a node's gres or of a job's on a node.

    >>> gpus_in("gpu:a100:8(S:0-1),gpu:h100:2,shard:4"), gpus_in("gpu:2(IDX:0-1)"), gpus_in("")
    (10, 2, 0)
    """
    found = (_DETAIL.match(part.strip()) for part in re.split(r",(?![^(]*\))", text))
    return sum(int(one["n"]) for one in found if one is not None and one["name"] == "gpu")


def _types(text: str) -> list[str]:
    found = (_DETAIL.match(part.strip()) for part in re.split(r",(?![^(]*\))", text))
    return [
        one["type"] for one in found if one is not None and one["name"] == "gpu" and one["type"]
    ]


def _gpus(text: str) -> tuple[int, str]:
    """Return how many GPUs a request asks for, and of which type.

    >>> _gpus("gres:gpu:a100:2"), _gpus("gres/gpu:4"), _gpus("gres:gpu"), _gpus("gres:lic:1")
    ((2, 'a100'), (4, ''), (1, ''), (0, ''))
    """
    count, sort = 0, ""
    for part in text.split(","):
        found = _GRES.match(part.strip())
        if found is not None and found["name"] == "gpu":
            count += int(found["n"] or 1)
            sort = sort or found["type"] or ""
    return count, sort


def tasks_of(text: str) -> list[int]:
    """Return the first tasks of an array that wait.

    >>> tasks_of("0-2,4-15:4%2"), tasks_of("7,9-...")
    ([0, 1, 2, 4, 8, 12], [7])
    """
    found: list[int] = []
    for part in text.partition("%")[0].strip("[]").split(","):
        known = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if known is None:
            break  # shortened by Slurm
        first, last, step = int(known[1]), int(known[2] or known[1]), int(known[3] or 1)
        found += range(first, last + 1, max(1, step))[: MOST_TASKS - len(found)]
    return found


# ---- values ------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return "" if value in _NONE else str(value)


def _whole(value: Any) -> int:
    found = _optional(value)
    return 0 if found is None else found


def _optional(value: Any) -> int | None:
    """Read a number, which newer versions wrap in `{set, infinite, number}`."""
    if isinstance(value, Mapping):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
    return int(value) if isinstance(value, int | float) else None


def _limit(value: Any) -> int | None:
    found = _optional(value)
    return None if found is None or found >= _NO_LIMIT else found


def _words(value: Any) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset((value,))
    return frozenset(value) if isinstance(value, Sequence) else frozenset()


def _listed(value: Any) -> list[str]:
    if isinstance(value, str):
        return [word for word in value.split(",") if word]
    return list(value or ())


def _main_state(words: frozenset[str]) -> str:
    """Return the one word that counts of several: what holds nodes goes before what does not."""
    for word in ("COMPLETING", "CONFIGURING", *sorted(HOLDING)):
        if word in words:
            return word
    return next(iter(sorted(words)), "")
