"""`sprio`: the priority of waiting jobs, part by part (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unisono.slurm.commands.context import COMMON, Context, Outcome, Refused, parse_arguments
from unisono.slurm.formats import BadFormat, Known, read_format, table
from unisono.slurm.getopt import Option
from unisono.slurm.getopt import table as options_table
from unisono.slurm.jobs import Row
from unisono.slurm.labels import JOBS
from unisono.slurm.listing import decoded, published_priorities

LONG = "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T"
NORMAL = "%.15i %9r %.8u %10y %10a %10b %10f %10j %10p %10q %20t"
_PARTS = ("site", "age", "assoc", "fairshare", "jobsize", "partition", "qos", "nice")

_OPTIONS = options_table(
    Option("noheader", "h", "nothing"),
    Option("jobs", "j"),
    Option("long", "l", "nothing"),
    Option("norm", "n", "nothing"),
    Option("format", "o"),
    Option("partition", "p"),
    Option("sort", "S"),
    Option("user", "u"),
    Option("weights", "w", "nothing"),
    Option("verbose", "v", "nothing"),
    Option("help", "", "nothing"),
    *COMMON,
)


class Line(NamedTuple):
    """A job and the parts of its priority; the weights are a line, too."""

    row: Row | None
    priority: int
    parts: Mapping[str, float]
    tres: Mapping[str, float]
    weights: Mapping[str, Any]


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """Print priorities."""
    given = parse_arguments("sprio", arguments, _OPTIONS)
    options = given.options
    if "help" in options:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("sprio", _OPTIONS))
    api = context.connect(options)
    published = published_priorities(api)
    weights = published.get("weights")
    if weights is None:
        raise Refused(
            "without a SchedulingPolicy jobs are ordered by priority class and age; create one"
        )
    if "weights" in options:
        lines = [Line(None, 0, weights, weights.get("tres") or {}, weights)]
    else:
        jobs = {str(job["spec"]["jobId"]): job for job in decoded(api.call("GET", JOBS))}
        lines = [
            _line(identity, parts, jobs[identity], published, context)
            for identity, parts in (published.get("factors") or {}).items()
            if identity in jobs
        ]
        lines = _chosen(lines, options)
    try:
        columns, after = read_format(_form(options, weights), LETTERS)
    except BadFormat as error:
        raise Refused(str(error)) from None
    return Outcome(table(columns, lines, heads="noheader" not in options, after=after))


def _line(identity: str, parts: list[Any], job: Any, published: Any, context: Context) -> Line:
    *numbers, tres = parts
    named = dict(zip(_PARTS, numbers, strict=True))
    priority = int((published.get("priorities") or {}).get(identity, 0))
    return Line(Row(job, context.now), priority, named, tres, published["weights"])


def _chosen(lines: list[Line], options: Mapping[str, str]) -> list[Line]:
    jobs = set(filter(None, options.get("jobs", "").split(",")))
    users = set(filter(None, options.get("user", "").split(",")))
    partitions = set(filter(None, options.get("partition", "").split(",")))
    found = [
        line
        for line in lines
        if line.row is not None
        and (not jobs or str(line.row.identity) in jobs)
        and (not users or line.row.user in users)
        and (not partitions or line.row.partition in partitions)
    ]
    return sorted(found, key=lambda line: line.row.identity if line.row is not None else 0)


def _form(options: Mapping[str, str], weights: Mapping[str, Any]) -> str:
    if "format" in options:
        return options["format"]
    if "long" in options:
        return LONG
    if "norm" in options:
        return NORMAL
    parts = ["%.15i %9r %.10Y %.10S"]
    for letter, name in zip(
        "ABFJPQ", ("age", "assoc", "fairshare", "jobsize", "partition", "qos"), strict=True
    ):
        if weights.get(name):
            parts.append(f"%.10{letter}")
    if weights.get("tres"):
        parts.append("%.20T")
    return " ".join(parts)


def _part(name: str) -> Any:
    return lambda line: f"{line.parts.get(name, 0):.0f}" if line.row or name != "site" else "1"


def _norm(name: str) -> Any:
    def shows(line: Line) -> str:
        weight = float(line.weights.get(name) or 0)
        return f"{line.parts.get(name, 0) / weight:.7f}" if weight else f"{0:.7f}"

    return shows


def _tres(line: Line) -> str:
    if line.row is None:
        return ",".join(f"{_capital(name)}={weight:g}" for name, weight in line.tres.items())
    return ",".join(f"{name}={value:.0f}" for name, value in line.tres.items() if value)


def _capital(name: str) -> str:
    return {"cpu": "CPU", "mem": "Mem"}.get(name, name.replace("gres/", "GRES/"))


def _tres_norm(line: Line) -> str:
    weights = line.weights.get("tres") or {}
    return ",".join(
        f"{name}={value / weights[name]:.2f}"
        for name, value in line.tres.items()
        if weights.get(name)
    )


LETTERS: Mapping[str, Known] = {
    "i": Known("JOBID", lambda line: str(line.row.identity) if line.row else "Weights"),
    "r": Known("PARTITION", lambda line: line.row.partition if line.row else ""),
    "u": Known("USER", lambda line: line.row.user if line.row else ""),
    "Y": Known("PRIORITY", lambda line: str(line.priority) if line.row else ""),
    "y": Known("PRIORITY", lambda line: f"{line.priority / 2**32:.14f}"),
    "S": Known("SITE", _part("site")),
    "A": Known("AGE", _part("age")),
    "a": Known("AGE", _norm("age")),
    "B": Known("ASSOC", _part("assoc")),
    "b": Known("ASSOC", _norm("assoc")),
    "F": Known("FAIRSHARE", _part("fairshare")),
    "f": Known("FAIRSHARE", _norm("fairshare")),
    "J": Known("JOBSIZE", _part("jobsize")),
    "j": Known("JOBSIZE", _norm("jobsize")),
    "P": Known("PARTITION", _part("partition")),
    "p": Known("PARTITION", _norm("partition")),
    "Q": Known("QOS", _part("qos")),
    "q": Known("QOS", _norm("qos")),
    "N": Known("NICE", _part("nice")),
    "T": Known("TRES", _tres),
    "t": Known("TRES", _tres_norm),
}
