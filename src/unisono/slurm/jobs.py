"""Jobs as Slurm's commands show them, in tables and JSON: one row per job, and one for an array's
rest.

A row is made of a SlurmJob as the API lists it. Tasks of an array that wait are folded into the row
of their array, `48_[2-15%2]`, as in Slurm: they are objects of their own only so that they can be
placed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unisono.slurm.environment import amounts_of
from unisono.slurm.formats import elapsed, size_text
from unisono.slurm.host_list import fold
from unisono.slurm.labels import GRANTED_OPTION
from unisono.slurm.lite_typing import ReadOnlyJson
from unisono.slurm.sbatch.arrays import folded, read_array, tasks_text
from unisono.slurm.sbatch.document import limit_text
from unisono.slurm.sbatch.layout import BadRequest
from unisono.slurm.states import SHORT, STARTED, is_over
from unisono.slurm.times import read, shown

_NOT_SAID = "N/A"


class Row:
    """One line of squeue."""

    __slots__ = ("array", "job", "now", "options", "pending", "priority", "spec", "state", "status")

    def __init__(
        self, job: ReadOnlyJson, now: float, *, pending: str = "", priority: int = 0
    ) -> None:
        """Take a job; `pending` are the tasks of an array that wait."""
        self.job = job
        self.now = now
        self.spec = job["spec"]
        self.status = job.get("status") or {}
        self.options = self.spec.get("options") or {}
        self.state = str(self.status.get("state") or "PENDING")
        self.array = self.spec.get("array")
        self.pending = pending
        self.priority = priority

    # ---- identity -----------------------------------------------------------------------------

    @property
    def identity(self) -> int:
        """The number of the job itself."""
        return int(self.spec["jobId"])

    @property
    def array_id(self) -> int:
        """The number that the user was told: that of the array, if it is of one."""
        task = self.spec.get("task")
        return int(task["arrayJobId"]) if task else self.identity

    @property
    def label(self) -> str:
        """The job as squeue writes it: 12, 48_0 or 48_[2-15%2]."""
        task = self.spec.get("task")
        if task:
            return f"{task['arrayJobId']}_{task['index']}"
        if self.array:
            limit = f"%{self.array['limit']}" if self.array.get("limit") else ""
            return f"{self.identity}_[{self.pending}{limit}]"
        return str(self.identity)

    @property
    def task(self) -> str:
        """The number of the task, or the tasks that wait."""
        task = self.spec.get("task")
        return str(task["index"]) if task else self.pending or _NOT_SAID

    @property
    def name(self) -> str:
        """The job's name on one line."""
        return one_line(self.spec.get("jobName") or "")

    @property
    def user(self) -> str:
        """Its user."""
        return str(self.spec.get("user") or "")

    @property
    def group(self) -> str:
        """The group of its user, by name where this machine knows it."""
        import grp

        number = int(self.spec.get("groupId") or 0)
        try:
            return grp.getgrgid(number).gr_name
        except KeyError:
            return str(number)

    @property
    def command(self) -> str:
        """The file that was submitted; `(null)` if it was none."""
        command = str(self.spec.get("command") or "")
        return command if "/" in command else "(null)"

    @property
    def partition(self) -> str:
        """Where it waits or runs."""
        labels = self.job["metadata"].get("labels") or {}
        queue = labels.get("kueue.x-k8s.io/queue-name")
        return str(self.options.get("partition") or queue or "default")

    @property
    def account(self) -> str:
        """Its account."""
        return str(self.options.get("account") or self.status.get("account") or "(null)")

    @property
    def qos(self) -> str:
        """Its QOS."""
        return str(self.options.get("qos") or self.status.get("qos") or "normal")

    # ---- how it is ----------------------------------------------------------------------------

    @property
    def short_state(self) -> str:
        """The state in one or two letters."""
        return SHORT.get(self.state, self.state[:2])

    @property
    def reason(self) -> str:
        """Why it waits, in one word."""
        return str(self.status.get("reason") or "None")

    @property
    def nodes(self) -> str:
        """Where it runs or ran."""
        return fold(self.status.get("nodes") or ())

    @property
    def planned_nodes(self) -> str:
        """The nodes on which it is to start, as things stand."""
        return fold(self.status.get("plannedNodes") or ())

    @property
    def place(self) -> str:
        """Its nodes, or why it has none."""
        if self.state == "PENDING":  # as most do where a list is long
            return f"({self.reason})"
        if self.state in STARTED or (is_over(self.state) and self.nodes):
            return self.nodes
        return f"({self.reason})"

    @property
    def node_count(self) -> int:
        """How many nodes it has or wants."""
        groups: Sequence[Any] = self.spec.get("groups") or ()
        if len(groups) == 1:
            return int(groups[0]["nodes"])
        return sum(int(one["nodes"]) for one in groups)

    @property
    def cpus(self) -> int:
        """How many cores it has or wants, on all nodes."""
        return self._total(0)

    @property
    def gpus(self) -> int:
        """How many GPUs it has or wants, on all nodes."""
        return self._total(1)

    def _total(self, place: int) -> int:
        return sum(
            amounts_of(one)[place] * int(one["nodes"]) for one in self.spec.get("groups") or ()
        )

    # ---- when ---------------------------------------------------------------------------------

    def time(self, key: str) -> float:
        """Return a time of its status; 0 if there is none."""
        return read(str(self.status.get(key) or ""))

    @property
    def submitted(self) -> float:
        """When it was submitted."""
        return read(str(self.job["metadata"].get("creationTimestamp") or ""))

    @property
    def elapsed(self) -> float:
        """How long it has run."""
        start = self.time("startTime")
        if not start:
            return 0.0
        return max(0.0, (self.time("endTime") or self.now) - start)

    @property
    def limit_seconds(self) -> int | None:
        """How long it may run; None if for ever."""
        try:
            granted = self.options.get(GRANTED_OPTION)
            minutes = int(limit_text(granted or self.options.get("time", "0")))
        except BadRequest:
            return None
        return minutes * 60 or None

    @property
    def limit(self) -> str:
        """The same as squeue writes it."""
        limit = self.limit_seconds
        return elapsed(limit) if limit is not None else "UNLIMITED"

    @property
    def start(self) -> str:
        """When it started, or is to start."""
        return time_text(self.time("startTime") or self.time("expectedStart"))

    @property
    def end(self) -> str:
        """When it ended, or has to."""
        end, start, limit = self.time("endTime"), self.time("startTime"), self.limit_seconds
        if end:
            return shown(end)
        start = start or self.time("expectedStart")
        return shown(start + limit) if start and limit is not None else _NOT_SAID


def time_text(at: float) -> str:
    """Return a time for a table; `N/A` if there is none."""
    return shown(at) if at else _NOT_SAID


def one_line(text: str) -> str:
    """Return a text that cannot break a table: what would move the cursor is a question mark."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def rows_of(
    jobs: Iterable[ReadOnlyJson],
    now: float,
    *,
    priorities: Mapping[str, int] | None = None,
    splits_arrays: bool = False,
) -> list[Row]:
    """Return the rows of all jobs; what waits of an array is one row, or one per task."""
    known = priorities or {}
    waiting: dict[int, list[int]] = {}
    listed = list(jobs)
    found: list[Row] = []
    for job in listed:
        spec, state = job["spec"], (job.get("status") or {}).get("state") or "PENDING"
        task = spec.get("task")
        if task and state == "PENDING" and not splits_arrays:
            waiting.setdefault(int(task["arrayJobId"]), []).append(int(task["index"]))
        elif not spec.get("array"):
            found.append(Row(job, now, priority=known.get(str(spec["jobId"]), 0)))
    for job in listed:
        if job["spec"].get("array"):
            found += _array_rows(job, now, waiting, known, splits_arrays=splits_arrays)
    return found


def _array_rows(
    job: ReadOnlyJson,
    now: float,
    waiting: Mapping[int, list[int]],
    known: Mapping[str, int],
    *,
    splits_arrays: bool,
) -> list[Row]:
    spec, status = job["spec"], job.get("status") or {}
    identity = int(spec["jobId"])
    if is_over(status.get("state") or ""):
        return []  # its tasks have rows of their own
    whole = read_array(spec["array"]["tasks"])
    rest = list(whole.rest(int(status.get("opened") or 0)))
    priority = known.get(str(identity), 0)
    if splits_arrays:
        return [
            Row({**job, "spec": _as_task(spec, identity, number)}, now, priority=priority)
            for part in rest
            for number in part
        ]
    text = tasks_text([*folded(waiting.get(identity, ())), *rest])
    return [Row(job, now, pending=_joined(text), priority=priority)] if text else []


def _as_task(spec: ReadOnlyJson, identity: int, number: int) -> ReadOnlyJson:
    made = {key: value for key, value in spec.items() if key != "array"}
    return {**made, "task": {"arrayJobId": identity, "index": number}}


def _joined(text: str) -> str:
    """Return ranges with neighbours put together: 2-3,4-15 is 2-15."""
    made: list[range] = []
    for part in text.split(","):
        one = read_array(part).parts[0]
        if made and made[-1].step == one.step == 1 and made[-1].stop == one.start:
            made[-1] = range(made[-1].start, one.stop)
        else:
            made.append(one)
    return tasks_text(made)


_META = {"meta": {"plugin": {"type": "unisono", "name": "unisono"}, "Slurm": {"release": "22.05"}}}


def jobs_json(rows: Sequence[Row]) -> str:
    """Return jobs as `squeue --json` does."""
    return json.dumps({**_META, "errors": [], "jobs": [job_form(row) for row in rows]}) + "\n"


def jobs_yaml(rows: Sequence[Row]) -> str:
    """Return the same in YAML."""
    import yaml

    text: str = yaml.safe_dump(json.loads(jobs_json(rows)), sort_keys=False)
    return text


def job_form(row: Row) -> dict[str, Any]:
    """Return one job; times in seconds, memory in MiB, as Slurm has them."""
    code, _, signal = str(row.status.get("exitCode") or "0:0").partition(":")
    return {
        "account": row.account.replace("(null)", ""),
        "array_job_id": row.array_id if row.spec.get("task") or row.array else 0,
        "array_task_id": (row.spec.get("task") or {}).get("index"),
        "array_task_string": row.pending,
        "batch_host": (row.status.get("nodes") or [""])[0],
        "command": row.spec.get("command", ""),
        "comment": row.options.get("comment", ""),
        "cpus": row.cpus,
        "current_working_directory": row.spec.get("workDir", ""),
        "dependency": row.options.get("dependency", ""),
        "eligible_time": int(row.time("eligibleTime") or row.submitted),
        "end_time": int(row.time("endTime")),
        "exit_code": int(code or 0),
        "derived_exit_code": int(signal or 0),
        "gres_detail": [],
        "job_id": row.identity,
        "job_state": row.state,
        "name": row.spec.get("jobName", ""),
        "node_count": row.node_count,
        "nodes": row.nodes,
        "partition": row.partition,
        "priority": row.priority,
        "qos": row.qos,
        "restart_cnt": int(row.status.get("restarts") or 0),
        "start_time": int(row.time("startTime") or row.time("expectedStart")),
        "state_description": row.status.get("message") or "",
        "state_reason": row.reason,
        "submit_time": int(row.submitted),
        "tasks": row.spec.get("tasks", 1),
        "time_limit": (row.limit_seconds or 0) // 60 or None,
        "tres_req_str": tres(row),
        "user_id": row.spec.get("userId", 0),
        "user_name": row.user,
    }


def tres(row: Row) -> str:
    """Return what a job has or wants, as Slurm lists it."""
    from unisono.slurm.site import mib_of_quantity

    memory = 0
    for group in row.spec.get("groups") or ():
        containers: Any = ((group.get("template") or {}).get("spec") or {}).get("containers") or (
            {},
        )
        asked = (containers[0].get("resources") or {}).get("requests") or {}
        memory += mib_of_quantity(str(asked.get("memory", "0"))) * int(group["nodes"])
    parts = [f"cpu={row.cpus}"]
    if memory:
        parts.append(f"mem={size_text(memory)}")
    parts += [f"node={row.node_count}", f"billing={row.cpus}"]
    if row.gpus:
        parts.append(f"gres/gpu={row.gpus}")
    return ",".join(parts)
