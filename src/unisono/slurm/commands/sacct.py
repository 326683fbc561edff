"""`sacct`: jobs that ran, as long as their records are kept (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from unisono.kinds.digits import whole_number
from unisono.slurm.commands.context import (
    COMMON,
    Context,
    Outcome,
    Refused,
    parse_arguments,
    states_wanted,
)
from unisono.slurm.formats import clock, parsable, ruled_table
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.jobs import Row, jobs_json, rows_of, tres
from unisono.slurm.labels import JOBS
from unisono.slurm.listing import decoded
from unisono.slurm.times import BadTime, parse_time, shown

# Fields that Slurm measures on nodes and this does not: they are empty.
_UNMEASURED = [
    "AdminComment",
    "AssocID",
    "AveCPU",
    "AveCPUFreq",
    "AveDiskRead",
    "AveDiskWrite",
    "AvePages",
    "AveRSS",
    "AveVMSize",
    "BlockID",
    "Cluster",
    "ConsumedEnergy",
    "ConsumedEnergyRaw",
    "DBIndex",
    "Flags",
    "Layout",
    "MaxDiskRead",
    "MaxDiskReadNode",
    "MaxDiskReadTask",
    "MaxDiskWrite",
    "MaxDiskWriteNode",
    "MaxDiskWriteTask",
    "MaxPages",
    "MaxPagesNode",
    "MaxPagesTask",
    "MaxRSS",
    "MaxRSSNode",
    "MaxRSSTask",
    "MaxVMSize",
    "MaxVMSizeNode",
    "MaxVMSizeTask",
    "McsLabel",
    "MinCPU",
    "MinCPUNode",
    "MinCPUTask",
    "PlannedCPU",
    "PlannedCPURAW",
    "QOSRAW",
    "ReqCPUFreq",
    "ReqCPUFreqGov",
    "ReqCPUFreqMax",
    "ReqCPUFreqMin",
    "ReservationId",
    "SubmitLine",
    "SystemComment",
    "SystemCPU",
    "TotalCPU",
    "TRESUsageInAve",
    "TRESUsageInMax",
    "TRESUsageInTot",
    "TRESUsageOutAve",
    "TRESUsageOutMax",
    "TRESUsageOutTot",
    "UserCPU",
    "WCKeyID",
]


class Entry(NamedTuple):
    """A job, or its batch step."""

    row: Row
    is_step: bool = False


class Field(NamedTuple):
    """A column: how wide, and what it shows."""

    width: int
    shows: Callable[[Entry], str]


def _state(one: Entry) -> str:
    message = str(one.row.status.get("message") or "")
    if one.row.state == "CANCELLED" and message.startswith("by ") and not one.is_step:
        return f"CANCELLED {message}"
    return one.row.state


def _memory(row: Row) -> str:
    found = dict(one.partition("=")[::2] for one in tres(row).split(","))
    return found.get("mem", "0")


def _waited(row: Row) -> str:
    until = row.time("startTime") or row.time("endTime") or row.now
    return clock(max(0.0, until - row.submitted))


def _code(one: Entry) -> str:
    return str(one.row.status.get("exitCode") or "0:0")


def _job(shows: Callable[[Row], str]) -> Callable[[Entry], str]:
    """Show something of the job, and nothing for its step."""
    return lambda one: "" if one.is_step else shows(one.row)


def _time(key: str) -> Callable[[Entry], str]:
    return lambda one: shown(one.row.time(key)) if one.row.time(key) else "Unknown"


FIELDS: Mapping[str, Field] = {
    "JobID": Field(12, lambda one: one.row.label + (".batch" if one.is_step else "")),
    "JobIDRaw": Field(12, lambda one: str(one.row.identity) + (".batch" if one.is_step else "")),
    "JobName": Field(10, lambda one: "batch" if one.is_step else one.row.name),
    "Partition": Field(10, _job(lambda row: row.partition)),
    "Account": Field(10, lambda one: one.row.account.replace("(null)", "")),
    "AllocCPUS": Field(10, lambda one: str(one.row.cpus if one.row.time("startTime") else 0)),
    "State": Field(10, _state),
    "ExitCode": Field(8, _code),
    "User": Field(9, _job(lambda row: row.user)),
    "UID": Field(6, _job(lambda row: str(row.spec.get("userId", 0)))),
    "QOS": Field(10, _job(lambda row: row.qos)),
    "Submit": Field(19, lambda one: shown(one.row.submitted)),
    "Eligible": Field(19, lambda one: shown(one.row.submitted)),
    "Start": Field(19, _time("startTime")),
    "End": Field(19, _time("endTime")),
    "Elapsed": Field(10, lambda one: clock(one.row.elapsed)),
    "ElapsedRaw": Field(10, lambda one: str(int(one.row.elapsed))),
    "Timelimit": Field(
        10, _job(lambda row: clock(row.limit_seconds) if row.limit_seconds else "UNLIMITED")
    ),
    "AllocNodes": Field(10, lambda one: str(one.row.node_count if one.row.nodes else 0)),
    "ReqNodes": Field(8, _job(lambda row: str(row.node_count))),
    "ReqMem": Field(10, _job(_memory)),
    "TimelimitRaw": Field(12, _job(lambda row: str((row.limit_seconds or 0) // 60 or "UNLIMITED"))),
    "Planned": Field(10, _job(_waited)),
    "Suspended": Field(10, lambda one: "00:00:00"),
    "DerivedExitCode": Field(15, _job(lambda row: str(row.status.get("exitCode") or "0:0"))),
    "Constraints": Field(18, _job(lambda row: str(row.options.get("constraint") or ""))),
    "Reservation": Field(20, _job(lambda row: str(row.options.get("reservation") or ""))),
    "WCKey": Field(10, _job(lambda row: str(row.options.get("wckey") or ""))),
    "Container": Field(20, _job(lambda row: str(row.options.get("container") or ""))),
    "GID": Field(6, _job(lambda row: str(row.spec.get("groupId", 0)))),
    "Group": Field(9, _job(lambda row: row.group)),
    "NNodes": Field(8, lambda one: "1" if one.is_step else str(one.row.node_count)),
    "NodeList": Field(15, lambda one: one.row.nodes or "None assigned"),
    "NCPUS": Field(10, lambda one: str(one.row.cpus)),
    "NTasks": Field(8, lambda one: "1" if one.is_step else ""),
    "ReqCPUS": Field(8, lambda one: str(one.row.cpus)),
    "ReqTRES": Field(10, _job(tres)),
    "AllocTRES": Field(10, lambda one: tres(one.row) if one.row.time("startTime") else ""),
    "Priority": Field(10, _job(lambda row: str(row.priority))),
    "Reason": Field(22, _job(lambda row: row.reason)),
    "WorkDir": Field(20, _job(lambda row: str(row.spec.get("workDir") or ""))),
    "Comment": Field(14, _job(lambda row: str(row.options.get("comment") or ""))),
    "Restarts": Field(8, _job(lambda row: str(row.status.get("restarts") or 0))),
    "CPUTimeRAW": Field(10, lambda one: str(int(one.row.elapsed) * one.row.cpus)),
    "CPUTime": Field(10, lambda one: clock(one.row.elapsed * one.row.cpus)),
    **{name: Field(10, lambda one: "") for name in _UNMEASURED},
}
LONG = (
    "JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,"
    "MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,"
    "MinCPUTask,AveCPU,NTasks,AllocCPUS,Elapsed,State,ExitCode,AveCPUFreq,ReqCPUFreqMin,"
    "ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,"
    "AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,ReqTRES,AllocTRES"
)


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


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """Print records."""
    given = parse_arguments("sacct", arguments, _OPTIONS)
    options = given.options
    if "help" in options:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("sacct", _OPTIONS))
    if "helpformat" in options:
        return Outcome(" ".join(FIELDS) + "\n")
    states = states_wanted(options.get("state", ""), "unrecognized job state value '{}'")
    api = context.connect(options)
    rows = rows_of(decoded(api.call("GET", JOBS)), context.now)
    chosen = sorted(
        (row for row in rows if _is_wanted(row, options, states, context)),
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
    row: Row, options: Mapping[str, str], states: set[str] | None, context: Context
) -> bool:
    jobs = {int(one.partition("_")[0].partition(".")[0]) for one in _listed(options, "jobs")}
    if jobs and row.identity not in jobs and row.array_id not in jobs:
        return False
    users = set(_listed(options, "user")) | set(_listed(options, "uid"))
    mine = (
        {context.user} if context.user_id != 0 and "allusers" not in options and not jobs else set()
    )
    wanted = users or mine
    if wanted and row.user not in wanted and str(row.spec.get("userId")) not in wanted:
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
    return bool(jobs) or _is_in_time(row, options, context.now)


def _is_in_time(row: Row, options: Mapping[str, str], now: float) -> bool:
    """Say whether a job was there between the times asked for: since midnight, if not said."""
    try:
        start = (
            parse_time(options["starttime"], now) if "starttime" in options else now - now % 86_400
        )
        end = parse_time(options["endtime"], now) if "endtime" in options else now
    except BadTime as text:
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
    names = [name for name, _, _ in fields]
    rows = [[field.shows(one) for _, _, field in fields] for one in entries]
    if "parsable" in options or "parsable2" in options:
        between = options.get("delimiter") or "|"
        after = between if "parsable" in options else ""
        return parsable([names, *rows] if heads else rows, between=between, after=after)
    widths = [-abs(width) if name == "JobID" else width for name, width, _ in fields]
    return ruled_table(names, rows, widths, heads=heads, mark="+")
