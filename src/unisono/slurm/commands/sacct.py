"""`sacct`: jobs that ran, as long as their records are kept (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.kinds.digits import whole_number
from unisono.slurm.commands.context import (
    COMMON,
    JOBS,
    Around,
    Outcome,
    Refused,
    states_wanted,
    understood,
)
from unisono.slurm.commands.sacct_fields import FIELDS, LONG, Entry, Field
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.jobs import Row, rows_of
from unisono.slurm.json_output import jobs_json
from unisono.slurm.listing import decoded
from unisono.slurm.times import BadMoment, moment

# Of a column: no terminal is wider.
_WIDEST = 10_000

DEFAULT = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"

_OPTIONS = options_table(
    Option("allusers", "a", "nothing"),
    Option("accounts", "A"),
    Option("brief", "b", "nothing"),
    Option("endtime", "E"),
    Option("format", "o"),
    Option("helpformat", "e", "nothing"),
    Option("jobs", "j"),
    Option("json", "", "nothing"),
    Option("long", "l", "nothing"),
    Option("name"),
    Option("noheader", "n", "nothing"),
    Option("parsable", "p", "nothing"),
    Option("parsable2", "P", "nothing"),
    Option("partition", "r"),
    Option("qos", "q"),
    Option("starttime", "S"),
    Option("state", "s"),
    Option("user", "u"),
    Option("uid"),
    Option("allocations", "X", "nothing"),
    Option("truncate", "T", "nothing"),
    Option("delimiter"),
    Option("units"),
    Option("help", "h", "nothing"),
    *COMMON,
)


def run(arguments: Sequence[str], around: Around) -> Outcome:
    """Print records."""
    given = understood("sacct", arguments, _OPTIONS)
    options = given.options
    if "help" in options:
        return Outcome("Usage: sacct [OPTIONS]; unisono's documentation lists them\n")
    if "helpformat" in options:
        return Outcome(" ".join(FIELDS) + "\n")
    states = states_wanted(options.get("state", ""), "unrecognized job state value '{}'")
    api = around.connect(options)
    rows = rows_of(decoded(api.call("GET", JOBS)), around.now)
    chosen = sorted(
        (row for row in rows if _is_wanted(row, options, states, around)),
        key=lambda row: (row.array_id, (row.spec.get("task") or {}).get("index", -1), row.identity),
    )
    if "json" in options:
        return Outcome(jobs_json(chosen))
    entries: list[Entry] = []
    for row in chosen:
        entries.append(Entry(row))
        if row.time("startTime") and "allocations" not in options:
            entries.append(Entry(row, is_step=True))
    return Outcome(_text(entries, _fields(options), options))


def _is_wanted(
    row: Row, options: Mapping[str, str], states: set[str] | None, around: Around
) -> bool:
    jobs = {int(one.partition("_")[0].partition(".")[0]) for one in _listed(options, "jobs")}
    if jobs and row.identity not in jobs and row.array_id not in jobs:
        return False
    users = set(_listed(options, "user")) | set(_listed(options, "uid"))
    mine = (
        {around.user} if around.user_id != 0 and "allusers" not in options and not jobs else set()
    )
    who = users or mine
    if who and row.user not in who and str(row.spec.get("userId")) not in who:
        return False
    if states is not None and row.state not in states:
        return False
    plain = (
        ("partition", row.partition),
        ("accounts", row.account),
        ("qos", row.qos),
        ("name", row.name),
    )
    if not all(not options.get(key) or value in _listed(options, key) for key, value in plain):
        return False
    return bool(jobs) or _is_in_time(row, options, around.now)


def _is_in_time(row: Row, options: Mapping[str, str], now: float) -> bool:
    """Say whether a job was there between the times asked for: since midnight, if not said."""
    try:
        start = moment(options["starttime"], now) if "starttime" in options else now - now % 86_400
        end = moment(options["endtime"], now) if "endtime" in options else now
    except BadMoment as text:
        raise Refused(f"Invalid time specification: {text}") from None
    over = row.time("endTime")
    return row.submitted <= end and (not over or over >= start)


def _listed(options: Mapping[str, str], key: str) -> list[str]:
    return [one for one in options.get(key, "").split(",") if one]


def _fields(options: Mapping[str, str]) -> list[tuple[str, int, Field]]:
    usual = "JobID,State,ExitCode" if "brief" in options else DEFAULT
    text = options.get("format") or (LONG if "long" in options else usual)
    known = {name.lower(): name for name in FIELDS}
    found: list[tuple[str, int, Field]] = []
    for part in filter(None, text.split(",")):
        name, _, width = part.strip().partition("%")
        heading = known.get(name.lower())
        if heading is None:
            raise Refused(f'Invalid field requested: "{name}"')
        field = FIELDS[heading]
        number = whole_number(width.lstrip("-"), _WIDEST)
        size = field.width if number is None else -number if width.startswith("-") else number
        found.append((heading, size, field))
    return found


def _text(
    entries: Sequence[Entry],
    fields: Sequence[tuple[str, int, Field]],
    options: Mapping[str, str],
) -> str:
    heads = "noheader" not in options
    if "parsable" in options or "parsable2" in options:
        mark = options.get("delimiter") or "|"
        end = mark if "parsable" in options else ""
        lines = [mark.join(name for name, _, _ in fields) + end] if heads else []
        lines += [mark.join(field.shows(one) for _, _, field in fields) + end for one in entries]
        return "".join(f"{line}\n" for line in lines)
    text = ""
    if heads:
        text += " ".join(_put(name, width, name) for name, width, _ in fields) + " \n"
        text += " ".join("-" * abs(width) for _, width, _ in fields) + " \n"
    for one in entries:
        text += (
            " ".join(_put(field.shows(one), width, name) for name, width, field in fields) + " \n"
        )
    return text


def _put(text: str, width: int, name: str) -> str:
    """Return a value in its width; what is cut ends with a plus."""
    size = abs(width)
    cut = text if len(text) <= size else text[: size - 1] + "+"
    return cut.ljust(size) if width < 0 or name == "JobID" else cut.rjust(size)
