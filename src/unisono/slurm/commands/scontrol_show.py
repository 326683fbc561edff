"""`scontrol show`: what it can show, by any beginning of its name; `show job 12`, `show job=12`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unisono.slurm.client import Quick
from unisono.slurm.commands.context import JOBS, VERSION, Around, Outcome, Refused
from unisono.slurm.commands.job_lookup import called, find
from unisono.slurm.formats import clock
from unisono.slurm.host_list import BadHostList, expand, fold
from unisono.slurm.jobs import Row, rows_of
from unisono.slurm.listing import decoded, priorities
from unisono.slurm.nodes import NodeRow, node_rows
from unisono.slurm.site import MAP
from unisono.slurm.times import shown

Json = Mapping[str, Any]

# In the order in which a beginning is looked for, as in Slurm: `j` is jobs, `n` nodes.
_ENTITIES = (
    "assoc_mgr",
    "bbstat",
    "burstbuffer",
    "config",
    "federation",
    "hostlist",
    "hostlistsorted",
    "hostnames",
    "jobs",
    "jobid",
    "licenses",
    "nodes",
    "partitions",
    "partitionname",
    "reservations",
    "reservationname",
    "steps",
    "topology",
)
# What there is none of, in Slurm's words.
_NONE = {
    "licenses": "No licenses configured in Slurm.\n",
    "burstbuffer": "No burst buffers configured in Slurm.\n",
    "bbstat": "",
    "federation": "",
    "topology": "",
    "assoc_mgr": "Current Association Manager state\n",
}


def show(words: Sequence[str], options: Mapping[str, str], around: Around) -> Outcome:
    """Show what the first word names; the second one chooses."""
    named, _, value = (words[0] if words else "").partition("=")
    which = value or (words[1] if len(words) > 1 else "")
    entity = next((one for one in _ENTITIES if one.startswith(named.lower())), "") if named else ""
    if not entity:
        return Outcome("", f"invalid entity:{named} for keyword:show \n", 1)
    if entity.startswith("host"):
        return _hosts(entity, which, around)
    if entity in _NONE:
        return Outcome(_NONE[entity])
    api, one_line = around.connect(options), "oneliner" in options
    match entity:
        case "jobs" | "jobid":
            return _jobs(api, which, around, one_line=one_line)
        case "nodes":
            return _shown_nodes(api, which, one_line=one_line)
        case "config":
            return _config(api, around)
        case "reservations" | "reservationname":
            return _reservations(api, around)
        case "steps":
            return _steps(api, which, around)
        case _:
            return _shown_partitions(api, which, one_line=one_line)


def _hosts(entity: str, text: str, around: Around) -> Outcome:
    """Expand or fold a list of hosts: that of the job whose script asks, if none is given."""
    text = text or around.environment.get("SLURM_JOB_NODELIST", "")
    if not text:
        raise Refused("host list is empty")
    try:
        names = expand(text)
    except BadHostList as trouble:
        raise Refused(str(trouble)) from None
    if entity == "hostnames":
        return Outcome("".join(f"{name}\n" for name in names))
    return Outcome(fold(sorted(names) if entity == "hostlistsorted" else names) + "\n")


# ---- jobs --------------------------------------------------------------------------------------


def _jobs(api: Quick, which: str, around: Around, *, one_line: bool) -> Outcome:
    from unisono.slurm.commands.scontrol_records import job_text

    rows = _rows(api, which, around)
    if rows is None:
        return Outcome("", "slurm_load_jobs error: Invalid job id specified\n", 1)
    text = [job_text(row, one_line=one_line) for row in rows]
    return Outcome("".join(text) or "No jobs in the system\n")


def _rows(api: Quick, which: str, around: Around) -> list[Row] | None:
    """Return the jobs of a number, or all of them; None if there is no such job."""
    if not which:
        jobs = decoded(api.call("GET", JOBS))
        return rows_of(jobs, around.now, priorities=priorities(api))
    one = called(which)
    found = find(api, one) if one is not None else None
    if found is None or not (found.jobs or found.waiting):
        return None
    jobs = found.jobs if found.jobs else [found.array] if found.array else []
    known = priorities(api)
    if one is not None and one.tasks is None:
        tasks = decoded(
            api.call("GET", f"{JOBS}?labelSelector=unisono.dev%2Fslurm-array%3D{one.identity}")
        )
        jobs = [*tasks, *jobs]
    rows = rows_of(jobs, around.now, priorities=known)
    return rows or [Row(job, around.now) for job in jobs]


def _steps(api: Quick, which: str, around: Around) -> Outcome:
    """Show the batch steps of jobs that run: others end before anybody could look."""
    rows = _rows(api, which.partition(".")[0], around)
    if rows is None:
        return Outcome("", "slurm_load_jobs error: Invalid job id specified\n", 1)
    text = [
        f"StepId={row.label}.batch UserId={row.spec.get('userId', 0)} "
        f"StartTime={shown(row.time('startTime'))} TimeLimit=UNLIMITED\n"
        f"   State=RUNNING Partition={row.partition} NodeList={row.status['nodes'][0]}\n"
        f"   Nodes=1 CPUs=0 Tasks=1 Name=batch Network=(null)\n\n"
        for row in rows
        if row.state == "RUNNING" and row.status.get("nodes")
    ]
    return Outcome("".join(text) or "No job steps in the system\n")


# ---- nodes and partitions ----------------------------------------------------------------------


def _nodes(api: Quick) -> list[NodeRow]:
    nodes = decoded(api.call("GET", "/api/v1/nodes"))
    return node_rows(nodes, decoded(api.call("GET", "/api/v1/pods")))


def _shown_nodes(api: Quick, which: str, *, one_line: bool) -> Outcome:
    from unisono.slurm.commands.scontrol_records import node_text

    wanted = set(expand(which)) if which else None
    chosen = [node for node in _nodes(api) if wanted is None or node.name in wanted]
    if wanted and not chosen:
        return Outcome("", f"Node {which} not found\n", 1)
    return Outcome("".join(node_text(node, one_line=one_line) for node in chosen))


def _shown_partitions(api: Quick, which: str, *, one_line: bool) -> Outcome:
    from unisono.slurm.commands.scontrol_records import partition_text
    from unisono.slurm.partition_rows import partitions_of

    said = partitions_of(api.find(MAP), _nodes(api))
    if which and which not in said:
        return Outcome("", f"Partition {which} not found\n", 1)
    return Outcome(
        "".join(
            partition_text(name, nodes, keys, one_line=one_line)
            for name, (nodes, keys) in said.items()
            if not which or name == which
        )
    )


# ---- the rest ----------------------------------------------------------------------------------


def _config(api: Quick, around: Around) -> Outcome:
    """Print the settings of slurm.conf that the cluster keeps, as they are written there."""
    from unisono.slurm.conf import read_conf

    stored = api.find(MAP) or {}
    conf = read_conf((stored.get("data") or {}).get("slurm.conf") or "")
    said = {value.name or key: value.text for key, value in conf.settings.items()}
    told = {"ClusterName": "unisono", "SLURM_VERSION": VERSION.split()[-1], **said}
    lines = [f"{key:<23} = {told[key]}" for key in sorted(told, key=str.lower)]
    head = f"Configuration data as of {shown(around.now)}"
    return Outcome("\n".join([head, *lines, "", f"Slurmctld(primary) at {around.host} is UP", ""]))


def _reservations(api: Quick, around: Around) -> Outcome:
    """Print the reservations of the Policy."""
    found = decoded(api.call("GET", "/apis/unisono.dev/v1/policies"))
    made = [
        _reservation(one, around.now)
        for policy in found
        for one in policy.get("reservations") or ()
    ]
    return Outcome("".join(made) or "No reservations in the system\n")


_PERIODS = {"Daily": 86_400, "Weekly": 7 * 86_400}


def _reservation(said: Json, now: float) -> str:
    """Write one reservation; of one that comes again, the time that is now or comes next."""
    from unisono.kinds.scalar import duration_ms, instant_ms  # not needed by who asks otherwise

    start = instant_ms(str(said.get("start"))) / 1000
    lasts = duration_ms(str(said["duration"])) / 1000 if said.get("duration") else 0.0
    if said.get("end"):
        lasts = instant_ms(str(said["end"])) / 1000 - start
    period = _PERIODS.get(str(said.get("repeat")))
    if period and now >= start + lasts:
        start += (int((now - start - lasts) // period) + 1) * period
    state = "ACTIVE" if start <= now < start + lasts else "INACTIVE"
    nodes = said.get("nodes") or "all"
    names = "ALL" if isinstance(nodes, str) else fold(nodes)
    flags = ["MAINT"] if said.get("maintenance") else []
    flags += [str(said["repeat"]).upper()] if said.get("repeat") else []
    return (
        f"ReservationName={said.get('name')} StartTime={shown(start)} "
        f"EndTime={shown(start + lasts)} Duration={clock(lasts)}\n"
        f"   Nodes={names} Flags={','.join(flags)} State={state}\n"
        f"   Users={','.join(said.get('users') or ()) or '(null)'} "
        f"Accounts={','.join(said.get('accounts') or ()) or '(null)'}\n\n"
    )
