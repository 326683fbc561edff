"""`sinfo`: partitions and the state of their nodes (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from unisono.slurm.commands.context import COMMON, Context, Outcome, Refused, parse_arguments
from unisono.slurm.conf import minutes_of
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
from unisono.slurm.host_list import expand, fold
from unisono.slurm.listing import decoded
from unisono.slurm.nodes import NodeRow, node_rows, partitions_of
from unisono.slurm.site import MAP
from unisono.slurm.times import dated, shown

DEFAULT = "%#P %.5a %.10l %.6D %.6t %N"
LONG = "%#P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
SUMMARY = "%#P %.5a %.10l %.16F %N"
NODES = "%#N %.6D %#P %6t"
NODES_LONG = "%#N %.6D %.#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
REASONS = "%20E %9u %19H %N"

_OPTIONS = options_table(
    Option("all", "a", "nothing"),
    Option("dead", "d", "nothing"),
    Option("exact", "e", "nothing"),
    Option("noheader", "h", "nothing"),
    Option("hide", "", "nothing"),
    Option("json", "", "nothing"),
    Option("long", "l", "nothing"),
    Option("clusters", "M"),
    Option("nodes", "n"),
    Option("noconvert", "", "nothing"),
    Option("Node", "N", "nothing"),
    Option("format", "o"),
    Option("Format", "O"),
    Option("partition", "p"),
    Option("responding", "r", "nothing"),
    Option("list-reasons", "R", "nothing"),
    Option("summarize", "s", "nothing"),
    Option("sort", "S"),
    Option("states", "t"),
    Option("verbose", "v", "nothing"),
    Option("help", "", "nothing"),
    Option("usage", "", "nothing"),
    *COMMON,
)
_IDLE, _USED = ("idle",), ("allocated", "mixed")


class Line(NamedTuple):
    """Nodes of a partition that have something in common."""

    partition: str
    settings: Mapping[str, str]
    nodes: list[NodeRow]

    def alike(self, what: Callable[[NodeRow], object]) -> str:
        """Return a value that all nodes share; the least with a plus if they differ."""
        values = sorted({what(node) for node in self.nodes}, key=str)
        if not values:
            return "0"
        return str(values[0]) if len(values) == 1 else f"{min(values, key=_number)}+"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int) else 0.0


def run(arguments: Sequence[str], context: Context) -> Outcome:
    """Print partitions and nodes."""
    given = parse_arguments("sinfo", arguments, _OPTIONS)
    options = given.options
    if "help" in options or "usage" in options:
        from unisono.slurm.commands.usage import help_of

        return Outcome(help_of("sinfo", _OPTIONS))
    api = context.connect(options)
    nodes = node_rows(
        decoded(api.call("GET", "/api/v1/nodes")), decoded(api.call("GET", "/api/v1/pods"))
    )
    partitions = partitions_of(api.find(MAP), nodes)
    if "json" in options:
        return Outcome(_json(nodes, partitions))
    form, by = _form(options, context.environment)
    try:
        columns, after = (
            read_long_format(options["Format"], NAMES)
            if "Format" in options
            else read_format(form, LETTERS)
        )
    except BadFormat as error:
        raise Refused(str(error).replace("job", "node")) from None
    lines = _lines(partitions, options, by, reasons="list-reasons" in options)
    heads = "noheader" not in options
    date = f"{dated(context.now)}\n" if "long" in options and heads else ""
    return Outcome(date + table(columns, lines, heads=heads, after=after))


def _form(options: Mapping[str, str], environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the format, and what makes nodes share a line."""
    if "list-reasons" in options:
        return options.get("format", REASONS), "reason"
    if "summarize" in options:
        return options.get("format", SUMMARY), "partition"
    if "Node" in options:
        default = NODES_LONG if "long" in options else NODES
        return options.get("format", default), "node"
    default = LONG if "long" in options else environment.get("SINFO_FORMAT", DEFAULT)
    form = options.get("format", default)
    wide = options.get("Format", "").lower()
    needs_state = any(letter in form for letter in "tTEeO") or "state" in wide
    return form, "state" if needs_state or "format" not in options else _grain(form)


def _grain(form: str) -> str:
    """Return what a format without a state tells apart."""
    if "N" in form or "n" in form:
        return "state"
    return "partition" if "P" in form or "R" in form else "all"


def _lines(
    partitions: Mapping[str, tuple[list[NodeRow], dict[str, str]]],
    options: Mapping[str, str],
    by: str,
    *,
    reasons: bool,
) -> list[Line]:
    wanted = set(filter(None, options.get("partition", "").split(",")))
    named = set(expand(options["nodes"])) if options.get("nodes") else None
    states = {one.lower() for one in options.get("states", "").split(",") if one}
    lines: list[Line] = []
    chosen_nodes: dict[str, NodeRow] = {}
    for name, (nodes, settings) in partitions.items():
        if wanted and name not in wanted:
            continue
        chosen = [
            node
            for node in nodes
            if (named is None or node.name in named)
            and (not states or node.state.strip("*") in states or node.short_state in states)
            and ("dead" not in options or not node.is_ready)
            and (not reasons or node.reason)
        ]
        chosen_nodes |= {node.name: node for node in chosen}
        groups: dict[str, list[NodeRow]] = {}
        for node in chosen:
            key = {"state": node.state, "node": node.name, "partition": ""}.get(by, node.reason)
            groups.setdefault(key, []).append(node)
        if not groups and not (named or states or reasons or by == "node"):
            groups[""] = []
        order = sorted(groups, key=_rank) if by == "state" else list(groups)
        lines += [Line(name, settings, groups[key]) for key in order]
    if by == "all":
        return [Line("", {}, list(chosen_nodes.values()))]
    if reasons:
        return _once(lines)
    return sorted(lines, key=lambda line: line.nodes[0].name) if by == "node" else lines


def _once(lines: list[Line]) -> list[Line]:
    """Return reasons with every node once, however many partitions it is in."""
    found: dict[str, dict[str, NodeRow]] = {}
    for line in lines:
        for node in line.nodes:
            found.setdefault(node.reason, {})[node.name] = node
    return [Line("", {}, list(nodes.values())) for nodes in found.values()]


_RANKS = ("down*", "down", "draining", "drained", "mixed", "allocated", "idle")


def _rank(state: str) -> int:
    return _RANKS.index(state) if state in _RANKS else len(_RANKS)


def _partition(line: Line) -> str:
    return (
        f"{line.partition}*"
        if line.settings.get("default", "").upper() == "YES"
        else line.partition
    )


def _limit(key: str, default: str) -> Callable[[Line], str]:
    def shows(line: Line) -> str:
        minutes = minutes_of(line.settings.get(key, ""))
        return elapsed(minutes * 60) if minutes is not None else default

    return shows


def _counts(line: Line) -> str:
    used = sum(node.state in _USED for node in line.nodes)
    idle = sum(node.state in _IDLE for node in line.nodes)
    return f"{used}/{idle}/{len(line.nodes) - used - idle}/{len(line.nodes)}"


def _cpu_counts(line: Line) -> str:
    used = sum(node.cpus_used for node in line.nodes)
    total = sum(node.cpus for node in line.nodes)
    other = sum(node.cpus for node in line.nodes if node.state not in (*_IDLE, *_USED))
    return f"{used}/{max(0, total - used - other)}/{other}/{total}"


LETTERS: Mapping[str, Known] = {
    "P": Known("PARTITION", _partition),
    "R": Known("PARTITION", lambda line: line.partition),
    "a": Known("AVAIL", lambda line: (line.settings.get("state") or "up").lower()),
    "l": Known("TIMELIMIT", _limit("maxtime", "infinite")),
    "L": Known("DEFAULTTIME", _limit("defaulttime", "n/a")),
    "D": Known("NODES", lambda line: str(len(line.nodes))),
    "t": Known("STATE", lambda line: line.nodes[0].short_state if line.nodes else "n/a"),
    "T": Known("STATE", lambda line: line.nodes[0].state if line.nodes else "n/a"),
    "N": Known("NODELIST", lambda line: fold(node.name for node in line.nodes)),
    "n": Known("HOSTNAMES", lambda line: fold(node.name for node in line.nodes)),
    "A": Known("NODES(A/I)", lambda line: "/".join(_counts(line).split("/")[:2])),
    "F": Known("NODES(A/I/O/T)", _counts),
    "C": Known("CPUS(A/I/O/T)", _cpu_counts),
    "c": Known("CPUS", lambda line: line.alike(lambda node: node.cpus)),
    "m": Known("MEMORY", lambda line: line.alike(lambda node: node.memory_mib)),
    "e": Known(
        "FREE_MEM", lambda line: line.alike(lambda node: node.memory_mib - node.memory_used)
    ),
    "G": Known("GRES", lambda line: line.alike(lambda node: node.gres or "(null)")),
    "f": Known("AVAIL_FEATURES", lambda line: line.alike(_features)),
    "b": Known("ACTIVE_FEATURES", lambda line: line.alike(_features)),
    "E": Known("REASON", lambda line: (line.nodes[0].reason if line.nodes else "") or "none"),
    "u": Known("USER", lambda line: line.nodes[0].drained_by if line.nodes else "Unknown"),
    "U": Known("USER", lambda line: line.nodes[0].drained_by if line.nodes else "Unknown"),
    "H": Known("TIMESTAMP", lambda line: shown(line.nodes[0].since) if line.nodes else "Unknown"),
    "w": Known("WEIGHT", lambda line: "1"),
    "d": Known("TMP_DISK", lambda line: "0"),
    "z": Known("S:C:T", lambda line: line.alike(lambda node: f"{node.cpus}:1:1")),
    "s": Known("JOB_SIZE", lambda line: f"1-{line.settings.get('maxnodes') or 'infinite'}".lower()),
    "r": Known("ROOT", lambda line: "no"),
    "h": Known("OVERSUBS", lambda line: (line.settings.get("oversubscribe") or "NO").upper()),
    "g": Known("GROUPS", lambda line: (line.settings.get("allowgroups") or "all").lower()),
    "p": Known("PRIO_TIER", lambda line: line.settings.get("prioritytier") or "1"),
    "I": Known("PRIO_JOB_FACTOR", lambda line: line.settings.get("priorityjobfactor") or "1"),
    "O": Known("CPU_LOAD", lambda line: "0.00"),
    "M": Known("PREEMPT_MODE", lambda line: "OFF"),
}


def _features(node: NodeRow) -> str:
    return ",".join(node.features) or "(null)"


NAMES: Mapping[str, Known] = {
    **long_names(
        LETTERS,
        "partition=P partitionname=R available=a time=l defaulttime=L nodes=D statecompact=t "
        "statelong=T nodelist=N nodehost=n nodeai=A nodeaiot=F cpusstate=C cpus=c memory=m "
        "freemem=e gres=G features=f features_act=b reason=E user=u userlong=U timestamp=H "
        "weight=w disk=d socketcorethread=z size=s prioritytier=p priorityjobfactor=I cpusload=O",
    ),
    "gresused": Known(
        "GRES_USED",
        lambda line: line.alike(
            lambda node: (
                f"{node.gres.rpartition(':')[0]}:{node.gpus_used}" if node.gres else "(null)"
            )
        ),
    ),
}


def _json(
    nodes: Sequence[NodeRow], partitions: Mapping[str, tuple[list[NodeRow], dict[str, str]]]
) -> str:
    import json

    made: list[dict[str, Any]] = []
    for node in nodes:
        inside = [name for name, (there, _) in partitions.items() if node in there]
        made.append(
            {
                "name": node.name,
                "state": node.load.lower() if node.is_ready else "down",
                "state_flags": ["DRAIN"] if node.is_drained else [],
                "cpus": node.cpus,
                "alloc_cpus": node.cpus_used,
                "real_memory": node.memory_mib,
                "alloc_memory": node.memory_used,
                "gres": node.gres,
                "gres_used": f"gpu:{node.gpus_used}" if node.gpus else "",
                "active_features": ",".join(node.features),
                "features": ",".join(node.features),
                "partitions": inside,
                "reason": node.reason,
                "tres": node.tres,
                "tres_used": node.tres_used,
            }
        )
    return json.dumps({"meta": {"Slurm": {"release": "22.05"}}, "errors": [], "nodes": made}) + "\n"
