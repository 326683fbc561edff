"""`unisono report`: GPU usage and costs by team, user and job, with advice."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.help_format import HelpFormat
from unisono.engine.model.errors import InvalidManifest
from unisono.runtime import AnswerIsNo
from unisono.runtime.instance import Instance, default_directory
from unisono.runtime.memory import calm_collector

if TYPE_CHECKING:
    from unisono.monitor.ledger.accounts import Period

_EXAMPLES = """\
examples:
  unisono report
  unisono report --since 7d --format html,csv --out reports/
  unisono report daily --team vision
  unisono report monthly --whole --format html --out reports/
  unisono report monthly --user kim --format json
  unisono report --since 2026-01-01 --until 2026-02-01 --format eml --out mail/
  unisono report monthly --whole --format focus > chargeback.csv
  unisono report daily --whole --format sreport --sreport TopUsage -P
"""
_LENGTHS = {"daily": 1, "weekly": 7, "monthly": 30}
_FORMATS = ("text", "md", "html", "csv", "json", "eml", "sreport", "opencost", "focus")
_SREPORTS = ("utilization", "AccountUtilizationByUser", "TopUsage", "SizesByAccount")
_AGO = re.compile(r"(\d{1,4})([mhdw])")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        description="Report GPU usage by team, user and job: utilization, costs, waiting times, "
        "waste and advice. The figures come from the ledger that `unisono up` keeps.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    period = made.add_argument_group("period")
    usage = made.add_argument_group("usage")
    output = made.add_argument_group("output")
    period.add_argument(
        "length",
        nargs="?",
        choices=("daily", "weekly", "monthly"),
        default="weekly",
        help="the last day, the last week (default) or the last thirty days",
    )
    period.add_argument(
        "--whole",
        action="store_true",
        help="the last whole day, week (Monday to Monday) or month instead, in UTC",
    )
    period.add_argument(
        "--since", metavar="WHEN", help="the start, as 7d, 12h or a date, instead of a length"
    )
    period.add_argument("--until", metavar="WHEN", help="the end (default: now)")
    usage.add_argument("--queue", default="", metavar="NAME", help="only this ClusterQueue")
    usage.add_argument("--team", default="", metavar="NAME", help="only this team")
    usage.add_argument("--user", default="", metavar="NAME", help="only this user")
    output.add_argument(
        "--format",
        default="text",
        metavar="F[,F…]",
        help=f"{', '.join(_FORMATS)} (default: text)",
    )
    output.add_argument("-o", dest="form", choices=("text", "json"), help="the same as --format")
    output.add_argument("--out", type=Path, metavar="DIR", help="write files to this folder")
    output.add_argument(
        "--sreport",
        choices=_SREPORTS,
        default=_SREPORTS[0],
        help="the report of sreport to print (default: utilization)",
    )
    output.add_argument(
        "-P", dest="is_parsable", action="store_true", help="with sreport: separate columns with |"
    )
    usage.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="a cluster of `unisono up`, by its folder"
    )
    usage.add_argument(
        "--ledger", type=Path, metavar="FILE", help="a ledger file instead of a cluster's"
    )
    output.add_argument(
        "--mail-from",
        default="unisono@localhost",
        metavar="ADDRESS",
        help="sender of eml (default: unisono@localhost)",
    )
    output.add_argument("--mail-to", default="", metavar="ADDRESS", help="recipient of eml")
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print it, or write files."""
    formats = list(dict.fromkeys((arguments.form or arguments.format).split(",")))
    for one in formats:
        if one not in _FORMATS:
            raise InvalidManifest("--format", f"{one} is none; there are {', '.join(_FORMATS)}")
    if arguments.out is None and len(formats) > 1:
        raise InvalidManifest("--out", f"these are {len(formats)} files; say where: --out DIR")
    calm_collector()
    from unisono.cli.language import say
    from unisono.cli.tables import width_of
    from unisono.monitor.report.build import Only
    from unisono.runtime.usage_reports import FormatOptions, read, write, written

    period = _period(arguments)
    only = Only(arguments.queue, arguments.team, arguments.user)
    ledger = _ledger(arguments)
    made = read(ledger, period, only)
    if only != Only() and not made.jobs and not made.waiting:
        _refuse_empty(arguments, ledger, period)
    options = FormatOptions(
        arguments.mail_from,
        arguments.mail_to,
        arguments.sreport,
        arguments.is_parsable,
        say,
        width_of,
    )
    if arguments.out is None:
        print(written(made, formats[0], options), end="")
        return 0
    for path in write(made, arguments.out, formats, options):
        print(path)
    return 0


def _refuse_empty(arguments: argparse.Namespace, ledger: Path, period: Period) -> None:
    """Refuse names that the ledger does not have, and what would be a bill of nothing.

    A queue without usage is no mistake: its quota was there.
    """
    from unisono.cli.filters import refuse_unknown
    from unisono.runtime.usage_reports import known_names

    known = known_names(ledger)
    refuse_unknown("queue", arguments.queue, known.queues)
    refuse_unknown("team", arguments.team, known.teams)
    refuse_unknown("user", arguments.user, known.users)
    lines = [
        f"{what} {name}"
        for what, name in (("team", arguments.team), ("user", arguments.user))
        if name
    ]
    if lines:
        since, until = (datetime.fromtimestamp(at, UTC).date() for at in period)
        raise AnswerIsNo(f"{' and '.join(lines)}: no usage from {since} to {until}; see --since")


def _ledger(arguments: argparse.Namespace) -> Path:
    if arguments.ledger is not None:
        return Path(arguments.ledger)
    instance = Instance(arguments.data_dir or default_directory())
    if not instance.ledger.exists():
        message = f"{instance.directory} has none; start it with `unisono up`, or name another"
        raise InvalidManifest("--ledger", message)
    return instance.ledger


def _period(arguments: argparse.Namespace) -> Period:
    from unisono.monitor.ledger.accounts import Period
    from unisono.runtime.clock import seconds_now

    now = int(seconds_now())
    if arguments.whole:
        if arguments.since or arguments.until:
            raise InvalidManifest("--whole", "says when already; leave --since and --until out")
        return Period(*whole(arguments.length, datetime.fromtimestamp(now, UTC)))
    until = _when(arguments.until, now, "--until") if arguments.until else now
    length = timedelta(days=_LENGTHS[arguments.length])
    since = until - int(length.total_seconds())
    if arguments.since:
        since = _when(arguments.since, until, "--since")
    if since >= until:
        raise InvalidManifest("--since", f"{arguments.since} is not before the end of the period")
    return Period(since, until)


def whole(length: str, now: datetime) -> tuple[int, int]:
    """Return the last whole day, week or month, in seconds since 1970.

    >>> at = datetime(2026, 3, 4, 5, tzinfo=UTC)
    >>> [str(datetime.fromtimestamp(one, UTC))[:10] for one in whole("monthly", at)]
    ['2026-02-01', '2026-03-01']
    """
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if length == "monthly":
        until = today.replace(day=1)
        since = (until - timedelta(days=1)).replace(day=1)
    else:
        until = today - timedelta(days=today.weekday()) if length == "weekly" else today
        since = until - timedelta(days=_LENGTHS[length])
    return int(since.timestamp()), int(until.timestamp())


def _when(text: str, now: int, option: str) -> int:
    """Read `7d` (ago) or a date."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidManifest(option, f"{text} is neither a date nor a time ago, as 7d") from None
    return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp())
