"""`scontrol show`: records of jobs, nodes, partitions and more, key by key (spec slurm §7).

What to show is named by any beginning of its name: `show job 12`, `show j=12`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.slurm.client import ApiClient
from unisono.slurm.commands.context import VERSION, Context, Outcome, Refused
from unisono.slurm.commands.job_lookup import called, find
from unisono.slurm.conf import minutes_of
from unisono.slurm.file_names import output_files
from unisono.slurm.formats import clock, size_text
from unisono.slurm.host_list import BadHostList, expand, fold
from unisono.slurm.jobs import Row, rows_of, tres
from unisono.slurm.labels import JOBS
from unisono.slurm.listing import decoded, priorities
from unisono.slurm.lite_typing import ReadOnlyJson
from unisono.slurm.nodes import NodeRow, node_rows, partitions_of
from unisono.slurm.sbatch.layout import BadRequest, mib_of
from unisono.slurm.site import MAP
from unisono.slurm.states import is_over
from unisono.slurm.times import shown

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


def show(words: Sequence[str], options: Mapping[str, str], context: Context) -> Outcome:
    """Show what the first word names; the second one chooses."""
    named, _, value = (words[0] if words else "").partition("=")
    which = value or (words[1] if len(words) > 1 else "")
    entity = next((one for one in _ENTITIES if one.startswith(named.lower())), "") if named else ""
    if not entity:
        return Outcome("", f"invalid entity:{named} for keyword:show \n", 1)
    if entity.startswith("host"):
        return _hosts(entity, which, context)
    if entity in _NONE:
        return Outcome(_NONE[entity])
    api, one_line = context.connect(options), "oneliner" in options
    match entity:
        case "jobs" | "jobid":
            return _jobs(api, which, context, one_line=one_line)
        case "nodes":
            return _shown_nodes(api, which, one_line=one_line)
        case "config":
            return _config(api, context)
        case "reservations" | "reservationname":
            return _reservations(api, context)
        case "steps":
            return _steps(api, which, context)
        case _:
            return _shown_partitions(api, which, one_line=one_line)


def _hosts(entity: str, text: str, context: Context) -> Outcome:
    """Expand or fold a list of hosts: that of the job whose script asks, if none is given."""
    text = text or context.environment.get("SLURM_JOB_NODELIST", "")
    if not text:
        raise Refused("host list is empty")
    try:
        names = expand(text)
    except BadHostList as error:
        raise Refused(str(error)) from None
    if entity == "hostnames":
        return Outcome("".join(f"{name}\n" for name in names))
    return Outcome(fold(sorted(names) if entity == "hostlistsorted" else names) + "\n")


# ---- jobs --------------------------------------------------------------------------------------


def _jobs(api: ApiClient, which: str, context: Context, *, one_line: bool) -> Outcome:
    rows = _rows(api, which, context)
    if rows is None:
        return Outcome("", "slurm_load_jobs error: Invalid job id specified\n", 1)
    text = [job_text(row, one_line=one_line) for row in rows]
    return Outcome("".join(text) or "No jobs in the system\n")


def _rows(api: ApiClient, which: str, context: Context) -> list[Row] | None:
    """Return the jobs of a number, or all of them; None if there is no such job."""
    if not which:
        jobs = decoded(api.call("GET", JOBS))
        return rows_of(jobs, context.now, priorities=priorities(api))
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
    rows = rows_of(jobs, context.now, priorities=known)
    return rows or [Row(job, context.now) for job in jobs]


def _steps(api: ApiClient, which: str, context: Context) -> Outcome:
    """Show the batch steps of running jobs; other steps are not recorded."""
    rows = _rows(api, which.partition(".")[0], context)
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


def _nodes(api: ApiClient) -> list[NodeRow]:
    nodes = decoded(api.call("GET", "/api/v1/nodes"))
    return node_rows(nodes, decoded(api.call("GET", "/api/v1/pods")))


def _shown_nodes(api: ApiClient, which: str, *, one_line: bool) -> Outcome:
    wanted = set(expand(which)) if which else None
    chosen = [node for node in _nodes(api) if wanted is None or node.name in wanted]
    if wanted and not chosen:
        return Outcome("", f"Node {which} not found\n", 1)
    return Outcome("".join(node_text(node, one_line=one_line) for node in chosen))


def _shown_partitions(api: ApiClient, which: str, *, one_line: bool) -> Outcome:

    partitions = partitions_of(api.find(MAP), _nodes(api))
    if which and which not in partitions:
        return Outcome("", f"Partition {which} not found\n", 1)
    return Outcome(
        "".join(
            partition_text(name, nodes, keys, one_line=one_line)
            for name, (nodes, keys) in partitions.items()
            if not which or name == which
        )
    )


# ---- the rest ----------------------------------------------------------------------------------


def _config(api: ApiClient, context: Context) -> Outcome:
    """Print the settings of slurm.conf that the cluster keeps, as they are written there."""
    from unisono.slurm.conf import read_conf

    stored = api.find(MAP) or {}
    conf = read_conf((stored.get("data") or {}).get("slurm.conf") or "")
    written = {value.name or key: value.text for key, value in conf.settings.items()}
    settings = {"ClusterName": "unisono", "SLURM_VERSION": VERSION.split()[-1], **written}
    lines = [f"{key:<23} = {settings[key]}" for key in sorted(settings, key=str.lower)]
    head = f"Configuration data as of {shown(context.now)}"
    return Outcome("\n".join([head, *lines, "", f"Slurmctld(primary) at {context.host} is UP", ""]))


def _reservations(api: ApiClient, context: Context) -> Outcome:
    """Print the reservations of the Policy."""
    found = decoded(api.call("GET", "/apis/unisono.dev/v1/policies"))
    made = [
        _reservation(one, context.now)
        for policy in found
        for one in policy.get("reservations") or ()
    ]
    return Outcome("".join(made) or "No reservations in the system\n")


_PERIODS = {"Daily": 86_400, "Weekly": 7 * 86_400}


def _reservation(reservation: ReadOnlyJson, now: float) -> str:
    """Write one reservation; of one that comes again, the time that is now or comes next."""
    from unisono.kinds.scalar import duration_ms, instant_ms  # slow to load, and needed here only

    start = instant_ms(str(reservation.get("start"))) / 1000
    lasts = duration_ms(str(reservation["duration"])) / 1000 if reservation.get("duration") else 0.0
    if reservation.get("end"):
        lasts = instant_ms(str(reservation["end"])) / 1000 - start
    period = _PERIODS.get(str(reservation.get("repeat")))
    if period and now >= start + lasts:
        start += (int((now - start - lasts) // period) + 1) * period
    state = "ACTIVE" if start <= now < start + lasts else "INACTIVE"
    nodes = reservation.get("nodes") or "all"
    names = "ALL" if isinstance(nodes, str) else fold(nodes)
    flags = ["MAINT"] if reservation.get("maintenance") else []
    flags += [str(reservation["repeat"]).upper()] if reservation.get("repeat") else []
    return (
        f"ReservationName={reservation.get('name')} StartTime={shown(start)} "
        f"EndTime={shown(start + lasts)} Duration={clock(lasts)}\n"
        f"   Nodes={names} Flags={','.join(flags)} State={state}\n"
        f"   Users={','.join(reservation.get('users') or ()) or '(null)'} "
        f"Accounts={','.join(reservation.get('accounts') or ()) or '(null)'}\n\n"
    )


def job_text(row: Row, *, one_line: bool = False) -> str:
    """Return a job as `scontrol show job` prints it."""
    lines = [line for line in _job_lines(row) if line]
    return (" ".join(lines) if one_line else "\n   ".join(lines)) + ("\n" if one_line else "\n\n")


def _job_lines(row: Row) -> list[str]:
    options, spec, status = row.options, row.spec, row.status
    restarts = int(status.get("restarts") or 0)
    task = spec.get("task")
    array = ""
    if task:
        array = f" ArrayJobId={task['arrayJobId']} ArrayTaskId={task['index']}"
    elif row.array:
        array = f" ArrayJobId={row.identity} ArrayTaskId={row.pending}"
    throttle = (row.array or {}).get("limit")
    array += f" ArrayTaskThrottle={throttle}" if throttle else ""
    output, error, given = output_files(spec, restarts)
    where = spec.get("workDir", "")
    reason = row.reason if row.reason != "None" or not status.get("message") else "None"
    limit = row.limit_seconds
    requeue = "0" if "no-requeue" in options else "1"
    memory = "MinMemoryCPU" if "mem-per-cpu" in options else "MinMemoryNode"
    asked = _memory(options.get("mem-per-cpu") or options.get("mem") or "0")
    tasks = int(options.get("ntasks-per-node") or 1) * int(spec.get("cpusPerTask", 1))
    sharing = "NO" if "exclusive" in options else "OK"
    return [
        f"JobId={row.identity}{array} JobName={row.name}",
        f"UserId={row.user}({spec.get('userId', 0)}) GroupId={row.group}"
        f"({spec.get('groupId', 0)}) MCS_label=N/A",
        f"Priority={row.priority} Nice={options.get('nice') or 0} "
        f"Account={row.account} QOS={row.qos}",
        f"JobState={row.state} Reason={reason} Dependency={options.get('dependency') or '(null)'}",
        f"Requeue={requeue} Restarts={restarts} BatchFlag=1 Reboot=0 "
        f"ExitCode={status.get('exitCode') or '0:0'}",
        f"RunTime={clock(row.elapsed)} TimeLimit={clock(limit) if limit else 'UNLIMITED'} "
        f"TimeMin={options.get('time-min') or 'N/A'}",
        f"SubmitTime={_time(row.submitted)} EligibleTime={_time(row.submitted)}",
        f"AccrueTime={_time(row.submitted)}",
        f"StartTime={_unknown(row.start)} EndTime={_unknown(row.end)} "
        f"Deadline={options.get('deadline') or 'N/A'}",
        f"SuspendTime=None SecsPreSuspend=0 LastSchedEval={_time(row.now)} Scheduler=Backfill",
        f"Partition={row.partition} AllocNode:Sid={spec.get('submitHost', '')}:0",
        f"ReqNodeList={options.get('nodelist') or '(null)'} "
        f"ExcNodeList={options.get('exclude') or '(null)'}",
        f"NodeList={row.nodes or '(null)'}"
        + (f" SchedNodeList={row.planned_nodes}" if row.planned_nodes else ""),
        f"BatchHost={status['nodes'][0]}" if status.get("nodes") else "",
        f"NumNodes={row.node_count} NumCPUs={row.cpus} NumTasks={spec.get('tasks', 1)} "
        f"CPUs/Task={spec.get('cpusPerTask', 1)} ReqB:S:C:T=0:0:*:*",
        f"TRES={tres(row)}",
        f"Socks/Node=* NtasksPerN:B:S:C={options.get('ntasks-per-node') or 0}:0:*:* CoreSpec=*",
        f"MinCPUsNode={options.get('mincpus') or tasks} {memory}={asked} MinTmpDiskNode=0",
        f"Features={options.get('constraint') or '(null)'} DelayBoot=00:00:00",
        f"OverSubscribe={sharing} Contiguous={int('contiguous' in options)} "
        f"Licenses={options.get('licenses') or '(null)'} Network=(null)",
        f"Command={row.command}",
        f"WorkDir={where}",
        f"StdErr={_path(error or output, where, row)}",
        f"StdIn={_path(given, where, row)}",
        f"StdOut={_path(output, where, row)}",
        "Power=",
        f"TresPerNode=gres:{options['gres']}" if options.get("gres") else "",
        f"Comment={options['comment']}" if options.get("comment") else "",
        # Ours: why it waits, in a sentence with numbers.
        f"Explanation={status['message']}"
        if status.get("message") and not is_over(row.state)
        else "",
    ]


def _memory(text: str) -> str:
    try:
        return size_text(mib_of(text))
    except BadRequest:
        return text


def _path(name: str, where: str, row: Row) -> str:
    name = name.replace("\x01", (row.status.get("nodes") or ["%N"])[0])
    return name if name.startswith("/") else f"{where}/{name}"


def _time(at: float) -> str:
    return shown(at) if at else "Unknown"


def _unknown(text: str) -> str:
    return "Unknown" if text == "N/A" else text


def node_text(node: NodeRow, *, one_line: bool = False) -> str:
    """Return a node as `scontrol show node` prints it."""
    features = ",".join(node.features) or "(null)"
    gres = node.gres or "(null)"
    lines = [
        f"NodeName={node.name} Arch=x86_64 CoresPerSocket=1",
        f"CPUAlloc={node.cpus_used} CPUEfctv={node.cpus} CPUTot={node.cpus} CPULoad=0.00",
        f"AvailableFeatures={features}",
        f"ActiveFeatures={features}",
        f"Gres={gres}",
        f"NodeAddr={node.name} NodeHostName={node.name} Version=22.05",
        f"RealMemory={node.memory_mib} AllocMem={node.memory_used} Sockets={node.cpus} Boards=1",
        f"State={node.long_state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
        f"Partitions={','.join(node.partitions)}",
        f"CfgTRES={node.tres}",
        f"AllocTRES={node.tres_used}",
        f"Reason={node.reason} [{node.drained_by}@{shown(node.since)}]" if node.reason else "",
    ]
    lines = [line for line in lines if line]
    return (" ".join(lines) if one_line else "\n   ".join(lines)) + ("\n" if one_line else "\n\n")


def _longest(text: str | None) -> str:
    minutes = minutes_of(text or "")
    return clock(minutes * 60) if minutes else "UNLIMITED"


def partition_text(
    name: str, nodes: Sequence[NodeRow], settings: Mapping[str, str], *, one_line: bool = False
) -> str:
    """Return a partition as `scontrol show partition` prints it."""
    lines = [
        f"PartitionName={name}",
        f"AllowGroups=ALL AllowAccounts={settings.get('allowaccounts') or 'ALL'} "
        f"AllowQos={settings.get('allowqos') or 'ALL'}",
        f"AllocNodes=ALL Default={settings.get('default', 'NO').upper()} "
        f"QoS={settings.get('qos') or 'N/A'}",
        f"DefaultTime={settings.get('defaulttime') or 'NONE'} DisableRootJobs=NO "
        "ExclusiveUser=NO GraceTime=0 Hidden=NO",
        f"MaxNodes={settings.get('maxnodes') or 'UNLIMITED'} "
        f"MaxTime={_longest(settings.get('maxtime'))} MinNodes={settings.get('minnodes') or 0} "
        "LLN=NO MaxCPUsPerNode=UNLIMITED",
        f"Nodes={fold(node.name for node in nodes)}",
        f"PriorityJobFactor={settings.get('priorityjobfactor') or 1} "
        f"PriorityTier={settings.get('prioritytier') or 1} RootOnly=NO ReqResv=NO OverSubscribe=NO",
        "OverTimeLimit=NONE PreemptMode=OFF",
        f"State={settings.get('state') or 'UP'} TotalCPUs={sum(node.cpus for node in nodes)} "
        f"TotalNodes={len(nodes)} SelectTypeParameters=NONE",
        "JobDefaults=(null)",
        f"DefMemPerNode={settings.get('defmempernode') or 'UNLIMITED'} "
        f"MaxMemPerNode={settings.get('maxmempernode') or 'UNLIMITED'}",
        f"TRES=cpu={sum(node.cpus for node in nodes)},"
        f"mem={size_text(sum(node.memory_mib for node in nodes))},node={len(nodes)},"
        f"billing={sum(node.cpus for node in nodes)}",
    ]
    return (" ".join(lines) if one_line else "\n   ".join(lines)) + ("\n" if one_line else "\n\n")
