"""`sreport`: usage of accounts, users and the cluster, from stored jobs (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.slurm.commands.context import COMMON, Context, Outcome, Refused, parse_arguments
from unisono.slurm.formats import parsable, ruled_table
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.jobs import Row
from unisono.slurm.labels import JOBS
from unisono.slurm.listing import decoded
from unisono.slurm.nodes import node_rows
from unisono.slurm.site import MAP, rules_of
from unisono.slurm.times import BadTime, parse_time, shown

_OPTIONS = options_table(
    Option("noheader", "n", "nothing"),
    Option("parsable", "p", "nothing"),
    Option("parsable2", "P", "nothing"),
    Option("tres", "T"),
    Option("help", "h", "nothing"),
    *COMMON,
)
_DAY = 86_400


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """Print a report; of yesterday, if no time is given."""
    given = parse_arguments("sreport", arguments, _OPTIONS)
    words = [word for word in given.words if "=" not in word]
    time_range = dict(word.lower().partition("=")[::2] for word in given.words if "=" in word)
    if "help" in given.options or len(words) < 2:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("sreport", _OPTIONS), code=0 if "help" in given.options else 1)
    start, end = _window(time_range, context.now)
    api = context.connect(given.options)
    rows = [Row(job, context.now) for job in decoded(api.call("GET", JOBS))]
    rows = [row for row in rows if not row.array]
    cluster = rules_of(api.find(MAP)).cluster
    what = "gpu" if "gpu" in given.options.get("tres", "") else "cpu"
    kind = (words[0].lower(), words[1].lower())
    if kind == ("cluster", "utilization"):
        nodes = node_rows(decoded(api.call("GET", "/api/v1/nodes")), ())
        total = sum(node.gpus if what == "gpu" else node.cpus for node in nodes)
        used = sum(_minutes(row, start, end, what) for row in rows)
        whole = round(total * (end - start) / 60)
        table = [["Cluster", "Allocated", "Down", "PLND Down", "Idle", "Planned", "Reported"]]
        table.append([cluster, *map(str, (used, 0, 0, max(0, whole - used), 0, whole))])
    elif kind == ("cluster", "accountutilizationbyuser"):
        table = [["Cluster", "Account", "Login", "Proper Name", "Used", "Energy"]]
        for account, user, used in _by_account(rows, start, end, what):
            table.append([cluster, account, user, user, str(used), "0"])
    elif kind in (("user", "topusage"), ("user", "top")):
        table = [["Cluster", "Login", "Proper Name", "Account", "Used", "Energy"]]
        users = [one for one in _by_account(rows, start, end, what) if one[1]]
        for account, user, used in sorted(users, key=lambda one: -one[2])[:10]:
            table.append([cluster, user, user, account, str(used), "0"])
    else:
        raise Refused(f"Not valid report {words[1]}\n`sreport --help` lists the reports")
    title = (
        f"{words[0].title()} {words[1]} {shown(start)} - {shown(end - 1)} ({end - start:.0f} secs)"
    )
    return Outcome(_text(table, title, what, given.options))


def _window(time_range: Mapping[str, str], now: float) -> tuple[float, float]:
    midnight = now - now % _DAY
    try:
        start = parse_time(time_range["start"], now) if "start" in time_range else midnight - _DAY
        end = (
            parse_time(time_range["end"], now)
            if "end" in time_range
            else midnight
            if "start" not in time_range
            else now
        )
    except BadTime as text:
        raise Refused(f"Invalid time specification: {text}") from None
    if end <= start:
        raise Refused("the end is not after the start")
    return start, end


def _minutes(row: Row, start: float, end: float, what: str) -> int:
    """Return the core or GPU minutes of a job within a time."""
    began = row.time("startTime")
    if not began:
        return 0
    inside = min(row.time("endTime") or row.now, end) - max(began, start)
    return max(0, round(inside * (row.gpus if what == "gpu" else row.cpus) / 60))


def _by_account(
    rows: Sequence[Row], start: float, end: float, what: str
) -> list[tuple[str, str, int]]:
    """Return account, user and minutes; an account without a user is the sum of its users."""
    used: dict[tuple[str, str], int] = {}
    for row in rows:
        account = row.account.replace("(null)", "root")
        minutes = _minutes(row, start, end, what)
        for user in ("", row.user):
            used[account, user] = used.get((account, user), 0) + minutes
    return [(account, user, minutes) for (account, user), minutes in sorted(used.items())]


def _text(table: list[list[str]], title: str, what: str, options: Mapping[str, str]) -> str:
    heads = "noheader" not in options
    shown = table if heads else table[1:]
    if "parsable" in options or "parsable2" in options:
        return parsable(shown, after="|" if "parsable" in options else "")
    line = "-" * 80
    unit = "GPU" if what == "gpu" else "CPU"
    about = f"{line}\n{title}\nUsage reported in {unit} Minutes\n{line}\n" if heads else ""
    widths = [max([9, *(len(row[place]) for row in shown)]) for place in range(len(table[0]))]
    return about + ruled_table(table[0], table[1:], widths, heads=heads)
