"""`squeue`: pending and running jobs, with the columns of its formats (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unisono.kinds.digits import whole_number
from unisono.slurm.commands.context import COMMON, Context, Outcome, Refused, parse_arguments
from unisono.slurm.file_names import output_files
from unisono.slurm.formats import (
    BadFormat,
    Known,
    elapsed,
    long_names,
    read_format,
    read_long_format,
    table,
)
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.host_list import expand
from unisono.slurm.jobs import Row, rows_of, time_text
from unisono.slurm.labels import JOBS
from unisono.slurm.states import read_states
from unisono.slurm.times import dated


def _left(row: Row) -> str:
    limit = row.limit_seconds
    return elapsed(limit - row.elapsed) if limit is not None else "UNLIMITED"


def _memory(row: Row) -> str:
    groups: Any = row.spec.get("groups") or ({},)
    containers: Any = (((groups[0].get("template") or {}).get("spec") or {}).get("containers")) or (
        {},
    )
    asked = (containers[0].get("resources") or {}).get("requests") or {}
    return str(asked.get("memory") or "0").removesuffix("i")


def _option(name: str, default: str = "(null)") -> Any:
    return lambda row: str(row.options.get(name) or default)


def _output(place: int) -> Any:
    def shows(row: Row) -> str:
        name = output_files(row.spec, int(row.status.get("restarts") or 0))[place]
        name = (name or output_files(row.spec, 0)[0]).replace(
            "\x01", (row.status.get("nodes") or ["%N"])[0]
        )
        return name if name.startswith("/") else f"{row.spec.get('workDir', '')}/{name}"

    return shows


def _exclusive(row: Row) -> str:
    return "NO" if "exclusive" in row.options else "OK"


def _gres(row: Row) -> str:
    for key, text in (("gres", ""), ("gpus-per-node", "gpu:")):
        if row.options.get(key):
            return f"gres:{text}{row.options[key]}"
    return "N/A"


LETTERS: Mapping[str, Known] = {
    "a": Known("ACCOUNT", lambda row: row.account),
    "A": Known("JOBID", lambda row: str(row.identity)),
    "b": Known("TRES_PER_NODE", _gres),
    "B": Known("EXEC_HOST", lambda row: (row.status.get("nodes") or ["n/a"])[0]),
    "c": Known("MIN_CPUS", _option("mincpus", "1")),
    "C": Known("CPUS", lambda row: str(row.cpus)),
    "d": Known("MIN_TMP_DISK", _option("tmp", "0")),
    "D": Known("NODES", lambda row: str(row.node_count)),
    "e": Known("END_TIME", lambda row: row.end),
    "E": Known("DEPENDENCY", _option("dependency")),
    "f": Known("FEATURES", _option("constraint")),
    "F": Known("ARRAY_JOB_ID", lambda row: str(row.array_id)),
    "g": Known("GROUP", lambda row: row.group),
    "G": Known("GROUP", lambda row: str(row.spec.get("groupId", 0))),
    "H": Known("SOCKETS_PER_NODE", _option("sockets-per-node", "*")),
    "h": Known("OVER_SUBSCRIBE", _exclusive),
    "i": Known("JOBID", lambda row: row.label),
    "I": Known("CORES_PER_SOCKET", _option("cores-per-socket", "*")),
    "J": Known("THREADS_PER_CORE", _option("threads-per-core", "*")),
    "j": Known("NAME", lambda row: row.name),
    "k": Known("COMMENT", _option("comment")),
    "K": Known("ARRAY_TASK_ID", lambda row: row.task),
    "l": Known("TIME_LIMIT", lambda row: row.limit),
    "L": Known("TIME_LEFT", _left),
    "m": Known("MIN_MEMORY", _memory),
    "M": Known("TIME", lambda row: elapsed(row.elapsed)),
    "n": Known("REQ_NODES", _option("nodelist", "")),
    "N": Known("NODELIST", lambda row: row.nodes),
    "o": Known("COMMAND", lambda row: row.command),
    "O": Known("CONTIGUOUS", lambda row: str(int("contiguous" in row.options))),
    "p": Known("PRIORITY", lambda row: f"{row.priority / 2**32:.14f}"),
    "P": Known("PARTITION", lambda row: row.partition),
    "q": Known("QOS", lambda row: row.qos),
    "Q": Known("PRIORITY", lambda row: str(row.priority)),
    "r": Known("REASON", lambda row: row.reason),
    "R": Known("NODELIST(REASON)", lambda row: row.place),
    "s": Known("", lambda row: ""),
    "S": Known("START_TIME", lambda row: row.start),
    "t": Known("ST", lambda row: row.short_state),
    "T": Known("STATE", lambda row: row.state),
    "u": Known("USER", lambda row: row.user),
    "U": Known("UID", lambda row: str(row.spec.get("userId", 0))),
    "v": Known("RESERVATION", _option("reservation")),
    "V": Known("SUBMIT_TIME", lambda row: time_text(row.submitted)),
    "w": Known("WCKEY", _option("wckey")),
    "W": Known("LICENSES", _option("licenses")),
    "x": Known("EXC_NODES", _option("exclude", "")),
    "X": Known("CORE_SPEC", _option("core-spec", "N/A")),
    "y": Known("NICE", lambda row: str(row.options.get("nice") or 0)),
    "Y": Known("SCHEDNODES", lambda row: row.planned_nodes or "(null)"),
    "z": Known("S:C:T", lambda row: "*:*:*"),
    "Z": Known("WORK_DIR", lambda row: str(row.spec.get("workDir") or "")),
}


NAMES: Mapping[str, Known] = {
    **long_names(
        LETTERS,
        "account=a jobid=A batchhost=B mincpus=c numcpus=C numnodes=D endtime=e dependency=E "
        "feature=f arrayjobid=F jobarrayid=i name=j comment=k arraytaskid=K timelimit=l timeleft=L "
        "minmemory=m timeused=M reqnodes=n nodelist=N command=o prioritylong=Q priority=p "
        "partition=P qos=q reason=r reasonlist=R starttime=S statecompact=t state=T username=u "
        "userid=U reservation=v submittime=V wckey=w licenses=W exc_nodes=x nice=y schednodes=Y "
        "workdir=Z groupid=g oversubscribe=h mintmpdisk=d tres-per-node=b",
    ),
    "stdout": Known("STDOUT", _output(0)),
    "stderr": Known("STDERR", _output(1)),
    "restartcnt": Known("RESTART_COUNT", lambda row: str(row.status.get("restarts") or 0)),
    "requeue": Known("REQUEUE", lambda row: "0" if "no-requeue" in row.options else "1"),
    "exit_code": Known("EXIT_CODE", lambda row: str(row.status.get("exitCode") or "0:0")),
    "numtasks": Known("TASKS", lambda row: str(row.spec.get("tasks", 1))),
}


DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
STEPS = "%.15i %.8j %.9P %.8u %.9M %N"
START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"

_OPTIONS = options_table(
    Option("account", "A"),
    Option("all", "a", "nothing"),
    Option("array", "r", "nothing"),
    Option("array-unique", "", "nothing"),
    Option("noheader", "h", "nothing"),
    Option("hide", "", "nothing"),
    Option("jobs", "j", "optional"),
    Option("json", "", "nothing"),
    Option("long", "l", "nothing"),
    Option("licenses", "L"),
    Option("clusters", "M"),
    Option("me", "", "nothing"),
    Option("name", "n"),
    Option("noconvert", "", "nothing"),
    Option("format", "o"),
    Option("Format", "O"),
    Option("partition", "p"),
    Option("qos", "q"),
    Option("reservation", "R"),
    Option("states", "t"),
    Option("sort", "S"),
    Option("start", "", "nothing"),
    Option("user", "u"),
    Option("nodelist", "w"),
    Option("steps", "s", "optional"),
    Option("iterate", "i"),
    Option("priority", "P", "nothing"),
    Option("yaml", "", "nothing"),
    Option("federation", "", "nothing"),
    Option("local", "", "nothing"),
    Option("sibling", "", "nothing"),
    Option("help", "", "nothing"),
    Option("usage", "", "nothing"),
    Option("verbose", "v", "nothing"),
    *COMMON,
    Option("namespace"),
)


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """List jobs."""
    given = parse_arguments("squeue", _jobs_apart(arguments), _OPTIONS)
    options = given.options
    if "help" in options or "usage" in options:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("squeue", _OPTIONS))
    if options.get("iterate"):
        return _again_and_again(arguments, options["iterate"], context)
    api = context.connect(options)
    from unisono.slurm.listing import decoded, priorities, slim_jobs

    reads = decoded if _needs_templates(options, context.environment) else slim_jobs
    jobs = reads(api.call("GET", JOBS))
    rows = rows_of(
        jobs,
        context.now,
        priorities=priorities(api),
        splits_arrays="array" in options or "array-unique" in options,
    )
    states = _states(options)
    found = [row for row in rows if states is None or row.state in states]
    if options.keys() & _FILTERS:
        found = [row for row in found if _is_wanted(row, options, context)]
    chosen = _sorted(found, options)
    if "json" in options:
        from unisono.slurm.jobs import jobs_json

        return Outcome(jobs_json(chosen))
    if "yaml" in options:
        from unisono.slurm.jobs import jobs_yaml

        return Outcome(jobs_yaml(chosen))
    if "steps" in options:
        return Outcome(_steps(chosen, options, heads="noheader" not in options))
    try:
        columns, after = _columns(options, context.environment)
    except BadFormat as error:
        raise Refused(str(error)) from None
    wanted = _numbers(options.get("jobs", ""))
    if wanted and not any(row.identity in wanted or row.array_id in wanted for row in rows):
        if len(wanted) == 1:
            return Outcome("", "slurm_load_jobs error: Invalid job id specified\n", 1)
    heads = "noheader" not in options
    text = table(columns, chosen, heads=heads, after=after)
    return Outcome((f"{dated(context.now)}\n" if "long" in options and heads else "") + text)


def _again_and_again(arguments: Sequence[str], every: str, context: Context) -> Outcome:
    """List jobs every so many seconds, until interrupted."""
    if not whole_number(every):
        raise Refused(f"invalid iterate value {every}")
    rest = [*arguments, "--iterate="]
    while True:
        outcome = run(rest, context)
        context.say(f"{dated(context.now)}\n{outcome.text}\n")
        context = context._replace(now=context.pause(float(every)))


def _steps(rows: Sequence[Row], options: Mapping[str, str], *, heads: bool) -> str:
    """List the batch steps of jobs that run."""
    columns, after = read_format(STEPS, _STEP_LETTERS)
    wanted = {one.partition(".")[0] for one in _listed(options.get("steps", ""))}
    running = [
        row for row in rows if row.state == "RUNNING" and (not wanted or row.label in wanted)
    ]
    return table(columns, running, heads=heads, after=after)


# Options that leave jobs out, besides their states.
_FILTERS = frozenset(
    {"jobs", "user", "me", "nodelist", "start", "partition", "account", "qos", "name", "namespace"}
)


def _needs_templates(options: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Say whether something is to be shown, or sorted by, that stands in templates of pods."""
    text = options.get("format") or environment.get("SQUEUE_FORMAT") or ""
    asked = any(letter in text for letter in "Cm") or "C" in options.get("sort", "")
    return asked or "Format" in options or "json" in options


def _jobs_apart(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `-j 12` as one word: the number may be left off."""
    made: list[str] = []
    for word in arguments:
        if made and made[-1] in ("-j", "--jobs", "--job") and whole_number(word[:1]) is not None:
            made[-1] = f"--jobs={word}"
        else:
            made.append("--jobs" + word[5:] if word.startswith("--job=") else word)
    return made


def _columns(options: Mapping[str, str], environment: Mapping[str, str]) -> Any:
    if "Format" in options:
        return read_long_format(options["Format"], NAMES)
    text = options.get("format")
    if text is None:
        text = environment.get("SQUEUE_FORMAT")
    if text is None:
        text = START if "start" in options else LONG if "long" in options else DEFAULT
    return read_format(text, LETTERS)


def _is_wanted(row: Row, options: Mapping[str, str], context: Context) -> bool:
    numbers = _numbers(options.get("jobs", ""))
    if numbers and row.identity not in numbers and row.array_id not in numbers:
        return False
    users = {*_listed(options.get("user", "")), *([context.user] if "me" in options else [])}
    if users and row.user not in users and str(row.spec.get("userId")) not in users:
        return False
    if options.get("nodelist"):
        if not set(expand(options["nodelist"])) & set(row.status.get("nodes") or ()):
            return False
    if "start" in options and row.state != "PENDING":
        return False
    plain = (
        ("partition", set(row.partition.split(","))),
        ("account", {row.account}),
        ("qos", {row.qos}),
        ("name", {row.name}),
        ("namespace", {row.job["metadata"]["namespace"]}),
    )
    return all(not options.get(key) or values & set(_listed(options[key])) for key, values in plain)


def _states(options: Mapping[str, str]) -> set[str] | None:
    if "states" not in options:
        return {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"}
    try:
        return read_states(options["states"])
    except ValueError as error:
        raise Refused(f"Invalid job state specified: {error}") from None


def _listed(text: str) -> list[str]:
    return [one for one in text.split(",") if one]


def _numbers(text: str) -> set[int]:
    words = (one.partition("_")[0] for one in _listed(text))
    return {number for word in words if (number := whole_number(word)) is not None}


def _sorted(rows: list[Row], options: Mapping[str, str]) -> list[Row]:
    """Sort by `P,t,-p`, or as asked; jobs that are equal stay in the order of their numbers."""
    if not options.get("sort"):
        return sorted(rows, key=_usual)
    rows = sorted(rows, key=lambda row: (row.array_id, row.identity))
    for key in reversed(_listed(options["sort"])):
        letter = key.lstrip("+-")
        shows = _SORTS.get(letter)
        if shows is None:
            raise Refused(f"Invalid sort specification: {letter}")
        rows = sorted(rows, key=shows, reverse=key.startswith("-"))
    return rows


_STEP_LETTERS: Mapping[str, Known] = {
    **LETTERS,
    "i": Known("STEPID", lambda row: f"{row.label}.batch"),
    "j": Known("NAME", lambda row: "batch"),
    "N": Known("NODELIST", lambda row: (row.status.get("nodes") or ["n/a"])[0]),
}
_ORDER = {"PENDING": 0, "RUNNING": 1, "SUSPENDED": 2, "CONFIGURING": 1, "COMPLETING": 3}


def _usual(row: Row) -> tuple[str, int, int, int, int]:
    """Return what `P,t,-p` sorts by, all at once: a queue has thousands of them."""
    order = _ORDER.get(row.state, 9)
    return row.partition, order, -row.priority, row.array_id, row.identity


_SORTS: Mapping[str, Any] = {
    "P": lambda row: row.partition,
    "t": lambda row: _ORDER.get(row.state, 9),
    "T": lambda row: _ORDER.get(row.state, 9),
    "p": lambda row: row.priority,
    "Q": lambda row: row.priority,
    "i": lambda row: row.identity,
    "A": lambda row: row.identity,
    "F": lambda row: row.array_id,
    "j": lambda row: row.name,
    "u": lambda row: row.user,
    "a": lambda row: row.account,
    "q": lambda row: row.qos,
    "D": lambda row: row.node_count,
    "C": lambda row: row.cpus,
    "S": lambda row: row.time("startTime") or row.time("expectedStart") or float("inf"),
    "e": lambda row: row.time("endTime"),
    "V": lambda row: row.submitted,
    "M": lambda row: row.elapsed,
    "l": lambda row: row.limit_seconds or float("inf"),
    "L": lambda row: (row.limit_seconds or float("inf")) - row.elapsed,
}
