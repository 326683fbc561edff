"""`scontrol show`: records of jobs, nodes and partitions, key by key (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unisono.slurm.conf import minutes_of
from unisono.slurm.file_names import output_files
from unisono.slurm.formats import clock, size_text
from unisono.slurm.jobs import Row
from unisono.slurm.json_output import tres
from unisono.slurm.nodes import NodeRow
from unisono.slurm.sbatch.layout import BadRequest, mib_of
from unisono.slurm.states import is_over
from unisono.slurm.times import shown

Json = Mapping[str, Any]


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
        f"Reason={node.reason} [{node.who}@{shown(node.since)}]" if node.reason else "",
    ]
    lines = [line for line in lines if line]
    return (" ".join(lines) if one_line else "\n   ".join(lines)) + ("\n" if one_line else "\n\n")


def _longest(text: str | None) -> str:
    minutes = minutes_of(text or "")
    return clock(minutes * 60) if minutes else "UNLIMITED"


def partition_text(
    name: str, nodes: Sequence[NodeRow], said: Mapping[str, str], *, one_line: bool = False
) -> str:
    """Return a partition as `scontrol show partition` prints it."""
    from unisono.slurm.host_list import fold

    lines = [
        f"PartitionName={name}",
        f"AllowGroups=ALL AllowAccounts={said.get('allowaccounts') or 'ALL'} "
        f"AllowQos={said.get('allowqos') or 'ALL'}",
        f"AllocNodes=ALL Default={said.get('default', 'NO').upper()} "
        f"QoS={said.get('qos') or 'N/A'}",
        f"DefaultTime={said.get('defaulttime') or 'NONE'} DisableRootJobs=NO "
        "ExclusiveUser=NO GraceTime=0 Hidden=NO",
        f"MaxNodes={said.get('maxnodes') or 'UNLIMITED'} "
        f"MaxTime={_longest(said.get('maxtime'))} MinNodes={said.get('minnodes') or 0} "
        "LLN=NO MaxCPUsPerNode=UNLIMITED",
        f"Nodes={fold(node.name for node in nodes)}",
        f"PriorityJobFactor={said.get('priorityjobfactor') or 1} "
        f"PriorityTier={said.get('prioritytier') or 1} RootOnly=NO ReqResv=NO OverSubscribe=NO",
        "OverTimeLimit=NONE PreemptMode=OFF",
        f"State={said.get('state') or 'UP'} TotalCPUs={sum(node.cpus for node in nodes)} "
        f"TotalNodes={len(nodes)} SelectTypeParameters=NONE",
        "JobDefaults=(null)",
        f"DefMemPerNode={said.get('defmempernode') or 'UNLIMITED'} "
        f"MaxMemPerNode={said.get('maxmempernode') or 'UNLIMITED'}",
        f"TRES=cpu={sum(node.cpus for node in nodes)},"
        f"mem={size_text(sum(node.memory_mib for node in nodes))},node={len(nodes)},"
        f"billing={sum(node.cpus for node in nodes)}",
    ]
    return (" ".join(lines) if one_line else "\n   ".join(lines)) + ("\n" if one_line else "\n\n")
