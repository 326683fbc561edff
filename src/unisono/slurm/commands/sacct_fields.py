"""The fields of sacct: their widths, and what they show of a job and of its batch step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from unisono.slurm.formats import clock
from unisono.slurm.jobs import Row
from unisono.slurm.json_output import tres
from unisono.slurm.times import shown

# What Slurm's programs measure on nodes, and nobody does here: these fields are empty.
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
