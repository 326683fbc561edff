"""Columns of squeue: what its letters and long names stand for (spec slurm §7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.slurm.file_names import output_files
from unisono.slurm.formats import Known, elapsed
from unisono.slurm.jobs import Row, moment_text


def _left(row: Row) -> str:
    limit = row.limit_seconds
    return elapsed(limit - row.elapsed) if limit is not None else "UNLIMITED"


def _memory(row: Row) -> str:
    groups: Any = row.spec.get("groups") or ({},)
    containers: Any = (((groups[0].get("template") or {}).get("spec") or {}).get("containers")) or (
        {},
    )
    asked = (containers[0].get("resources") or {}).get("requests") or {}
    return str(asked.get("memory") or "0").removesuffix("i")


def _option(name: str, default: str = "(null)") -> Any:
    return lambda row: str(row.options.get(name) or default)


def _output(place: int) -> Any:
    def shows(row: Row) -> str:
        name = output_files(row.spec, int(row.status.get("restarts") or 0))[place]
        name = (name or output_files(row.spec, 0)[0]).replace(
            "\x01", (row.status.get("nodes") or ["%N"])[0]
        )
        return name if name.startswith("/") else f"{row.spec.get('workDir', '')}/{name}"

    return shows


def _exclusive(row: Row) -> str:
    return "NO" if "exclusive" in row.options else "OK"


def _gres(row: Row) -> str:
    for key, text in (("gres", ""), ("gpus-per-node", "gpu:")):
        if row.options.get(key):
            return f"gres:{text}{row.options[key]}"
    return "N/A"


LETTERS: Mapping[str, Known] = {
    "a": Known("ACCOUNT", lambda row: row.account),
    "A": Known("JOBID", lambda row: str(row.identity)),
    "b": Known("TRES_PER_NODE", _gres),
    "B": Known("EXEC_HOST", lambda row: (row.status.get("nodes") or ["n/a"])[0]),
    "c": Known("MIN_CPUS", _option("mincpus", "1")),
    "C": Known("CPUS", lambda row: str(row.cpus)),
    "d": Known("MIN_TMP_DISK", _option("tmp", "0")),
    "D": Known("NODES", lambda row: str(row.node_count)),
    "e": Known("END_TIME", lambda row: row.end),
    "E": Known("DEPENDENCY", _option("dependency")),
    "f": Known("FEATURES", _option("constraint")),
    "F": Known("ARRAY_JOB_ID", lambda row: str(row.array_id)),
    "g": Known("GROUP", lambda row: row.group),
    "G": Known("GROUP", lambda row: str(row.spec.get("groupId", 0))),
    "H": Known("SOCKETS_PER_NODE", _option("sockets-per-node", "*")),
    "h": Known("OVER_SUBSCRIBE", _exclusive),
    "i": Known("JOBID", lambda row: row.label),
    "I": Known("CORES_PER_SOCKET", _option("cores-per-socket", "*")),
    "J": Known("THREADS_PER_CORE", _option("threads-per-core", "*")),
    "j": Known("NAME", lambda row: row.name),
    "k": Known("COMMENT", _option("comment")),
    "K": Known("ARRAY_TASK_ID", lambda row: row.task),
    "l": Known("TIME_LIMIT", lambda row: row.limit),
    "L": Known("TIME_LEFT", _left),
    "m": Known("MIN_MEMORY", _memory),
    "M": Known("TIME", lambda row: elapsed(row.elapsed)),
    "n": Known("REQ_NODES", _option("nodelist", "")),
    "N": Known("NODELIST", lambda row: row.nodes),
    "o": Known("COMMAND", lambda row: row.command),
    "O": Known("CONTIGUOUS", lambda row: str(int("contiguous" in row.options))),
    "p": Known("PRIORITY", lambda row: f"{row.priority / 2**32:.14f}"),
    "P": Known("PARTITION", lambda row: row.partition),
    "q": Known("QOS", lambda row: row.qos),
    "Q": Known("PRIORITY", lambda row: str(row.priority)),
    "r": Known("REASON", lambda row: row.reason),
    "R": Known("NODELIST(REASON)", lambda row: row.place),
    "s": Known("", lambda row: ""),
    "S": Known("START_TIME", lambda row: row.start),
    "t": Known("ST", lambda row: row.short_state),
    "T": Known("STATE", lambda row: row.state),
    "u": Known("USER", lambda row: row.user),
    "U": Known("UID", lambda row: str(row.spec.get("userId", 0))),
    "v": Known("RESERVATION", _option("reservation")),
    "V": Known("SUBMIT_TIME", lambda row: moment_text(row.submitted)),
    "w": Known("WCKEY", _option("wckey")),
    "W": Known("LICENSES", _option("licenses")),
    "x": Known("EXC_NODES", _option("exclude", "")),
    "X": Known("CORE_SPEC", _option("core-spec", "N/A")),
    "y": Known("NICE", lambda row: str(row.options.get("nice") or 0)),
    "Y": Known("SCHEDNODES", lambda row: row.planned_nodes or "(null)"),
    "z": Known("S:C:T", lambda row: "*:*:*"),
    "Z": Known("WORK_DIR", lambda row: str(row.spec.get("workDir") or "")),
}


def _named(pairs: str) -> dict[str, Known]:
    return {
        name: LETTERS[letter] for name, _, letter in (one.partition("=") for one in pairs.split())
    }


NAMES: Mapping[str, Known] = {
    **_named(
        "account=a jobid=A batchhost=B mincpus=c numcpus=C numnodes=D endtime=e dependency=E "
        "feature=f arrayjobid=F jobarrayid=i name=j comment=k arraytaskid=K timelimit=l timeleft=L "
        "minmemory=m timeused=M reqnodes=n nodelist=N command=o prioritylong=Q priority=p "
        "partition=P qos=q reason=r reasonlist=R starttime=S statecompact=t state=T username=u "
        "userid=U reservation=v submittime=V wckey=w licenses=W exc_nodes=x nice=y schednodes=Y "
        "workdir=Z groupid=g oversubscribe=h mintmpdisk=d tres-per-node=b"
    ),
    "stdout": Known("STDOUT", _output(0)),
    "stderr": Known("STDERR", _output(1)),
    "restartcnt": Known("RESTART_COUNT", lambda row: str(row.status.get("restarts") or 0)),
    "requeue": Known("REQUEUE", lambda row: "0" if "no-requeue" in row.options else "1"),
    "exit_code": Known("EXIT_CODE", lambda row: str(row.status.get("exitCode") or "0:0")),
    "numtasks": Known("TASKS", lambda row: str(row.spec.get("tasks", 1))),
}
