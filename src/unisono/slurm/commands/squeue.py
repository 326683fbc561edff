"""`squeue`: who waits and who runs (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unisono.kinds.digits import whole_number
from unisono.slurm.commands.context import COMMON, JOBS, Around, Outcome, Refused, understood
from unisono.slurm.commands.squeue_columns import LETTERS, NAMES
from unisono.slurm.formats import BadFormat, Known, read_format, read_long_format, table
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.host_list import expand
from unisono.slurm.jobs import Row, rows_of
from unisono.slurm.states import read_states
from unisono.slurm.times import dated

Json = dict[str, Any]

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


def run(arguments: Sequence[str], around: Around) -> Outcome:
    """List jobs."""
    given = understood("squeue", _jobs_apart(arguments), _OPTIONS)
    options = given.options
    if "help" in options or "usage" in options:
        return Outcome("Usage: squeue [OPTIONS]; unisono's documentation lists them\n")
    if options.get("iterate"):
        return _again_and_again(arguments, options["iterate"], around)
    api = around.connect(options)
    from unisono.slurm.listing import decoded, priorities, slim_jobs

    reads = decoded if _needs_templates(options, around.environment) else slim_jobs
    jobs = reads(api.call("GET", JOBS))
    rows = rows_of(
        jobs,
        around.now,
        priorities=priorities(api),
        splits_arrays="array" in options or "array-unique" in options,
    )
    states = _states(options)
    found = [row for row in rows if states is None or row.state in states]
    if options.keys() & _FILTERS:
        found = [row for row in found if _is_wanted(row, options, around)]
    chosen = _sorted(found, options)
    if "json" in options:
        from unisono.slurm.json_output import jobs_json

        return Outcome(jobs_json(chosen))
    if "yaml" in options:
        from unisono.slurm.json_output import jobs_yaml

        return Outcome(jobs_yaml(chosen))
    if "steps" in options:
        return Outcome(_steps(chosen, options, heads="noheader" not in options))
    try:
        columns, after = _columns(options, around.environment)
    except BadFormat as trouble:
        raise Refused(str(trouble)) from None
    wanted = _numbers(options.get("jobs", ""))
    if wanted and not any(row.identity in wanted or row.array_id in wanted for row in rows):
        if len(wanted) == 1:
            return Outcome("", "slurm_load_jobs error: Invalid job id specified\n", 1)
    heads = "noheader" not in options
    text = table(columns, chosen, heads=heads, after=after)
    return Outcome((f"{dated(around.now)}\n" if "long" in options and heads else "") + text)


def _again_and_again(arguments: Sequence[str], every: str, around: Around) -> Outcome:
    """List jobs every so many seconds, until somebody has seen enough."""
    if not whole_number(every):
        raise Refused(f"invalid iterate value {every}")
    rest = [*arguments, "--iterate="]
    while True:
        outcome = run(rest, around)
        around.say(f"{dated(around.now)}\n{outcome.text}\n")
        around = around._replace(now=around.pause(float(every)))


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


def _is_wanted(row: Row, options: Mapping[str, str], around: Around) -> bool:
    numbers = _numbers(options.get("jobs", ""))
    if numbers and row.identity not in numbers and row.array_id not in numbers:
        return False
    users = {*_listed(options.get("user", "")), *([around.user] if "me" in options else [])}
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
    except ValueError as trouble:
        raise Refused(f"Invalid job state specified: {trouble}") from None


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
