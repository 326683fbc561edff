"""`unisono alerts`: what needs attention in an embedded cluster, without a Prometheus."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.help_format import HelpFormat
from unisono.runtime import AnswerIsNo
from unisono.runtime.instance import Instance, default_directory

if TYPE_CHECKING:
    from unisono.kube.form import Json

_EXAMPLES = """\
examples:
  unisono alerts
  unisono alerts --pending
  unisono alerts -o json

The rules, and what to do about each alert: docs/reference/alerts.md
"""
# Of one alert on many devices; -o json has all of them.
_MOST_LINES = 10
_TIMEOUT_SECONDS = 10.0
_HEADINGS = ("ALERT", "SEVERITY", "STATE", "FOR", "ABOUT")


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        description="List the alerts of an embedded cluster: those that fire, the urgent ones "
        "first. They have the names, times and severities of `unisono monitor rules`.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    made.add_argument(
        "--pending",
        action="store_true",
        help="also list alerts that have not lasted long enough to fire",
    )
    made.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="a cluster of `unisono up`, by its folder"
    )
    made.add_argument(
        "-o",
        "--output",
        choices=("table", "json"),
        default="table",
        help="output format (default: table)",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print them."""
    from unisono.runtime.clock import seconds_now

    alerts = _asked(Instance(arguments.data_dir or default_directory()))
    shown = [one for one in alerts if arguments.pending or one["state"] == "firing"]
    if arguments.output == "json":
        print(json.dumps(shown, indent=1))
        return 0
    if not shown:
        waiting = sum(1 for one in alerts if one["state"] == "pending")
        more = f"; {waiting} pending (--pending lists them)" if waiting else ""
        print(f"no alert is firing{more}")
        return 0
    from unisono.cli.tables import table

    print(table(list(_HEADINGS), list(_lines(shown, seconds_now()))))
    return 0


def _asked(instance: Instance) -> list[Json]:
    import urllib.request

    address = instance.remembered().get("metrics") if instance.is_running() else None
    if not isinstance(address, str):
        where = f"{instance.directory} does not run, or shows no metrics (--metrics-port none)"
        raise AnswerIsNo(f"no alerts are evaluated: {where}")
    page = f"{address.removesuffix('/metrics')}/api/v1/alerts"
    try:
        with urllib.request.urlopen(page, timeout=_TIMEOUT_SECONDS) as answer:
            found: list[Json] = json.load(answer)["data"]["alerts"]
    except (OSError, ValueError, KeyError) as error:
        raise AnswerIsNo(f"{page} does not answer: {error}") from error
    return found


def _lines(alerts: list[Json], now: float) -> list[tuple[str, ...]]:
    from datetime import datetime

    from unisono.monitor.active_alerts import about
    from unisono.monitor.report.formats import lasting

    lines: list[tuple[str, ...]] = []
    of_name: dict[str, int] = {}
    for one in alerts:
        labels = {**one.get("annotations", {}), **one["labels"]}
        name = labels["alertname"]
        of_name[name] = of_name.get(name, 0) + 1
        if of_name[name] <= _MOST_LINES:
            age = max(0, int(now - datetime.fromisoformat(one["activeAt"]).timestamp()))
            words = (name, labels["severity"], one["state"], lasting(age), about(labels))
            lines.append(words)
    for name, count in of_name.items():
        if count > _MOST_LINES:
            lines.append((name, "", "", "", f"and {count - _MOST_LINES} more"))
    return lines
