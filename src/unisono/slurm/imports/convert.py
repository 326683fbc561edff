"""A whole import: files in, documents and a report out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unisono.kinds.digits import whole_number
from unisono.slurm.conf import Conf, minutes_of
from unisono.slurm.imports.queues import machines, node_objects, queue_objects
from unisono.slurm.imports.report import Report
from unisono.slurm.imports.sacctmgr import Dump
from unisono.slurm.imports.scheduling_policy import scheduling_policy
from unisono.slurm.labels import CONF, NAMESPACE

Json = dict[str, object]

# Settings that `scheduling_policy`, `queues` and `_policy` read.
_USED = frozenset(
    {
        "clustername",
        "prioritytype",
        "prioritymaxage",
        "prioritydecayhalflife",
        "prioritycalcperiod",
        "priorityusageresetperiod",
        "priorityfavorsmall",
        "fairsharedampeningfactor",
        "priorityflags",
        "priorityweighttres",
        "priorityweightage",
        "priorityweightassoc",
        "priorityweightfairshare",
        "priorityweightjobsize",
        "priorityweightpartition",
        "priorityweightqos",
        "accountingstorageenforce",
        "schedulertype",
        "schedulerparameters",
    }
)
_AT_SUBMISSION = frozenset(
    {
        "defmempercpu",
        "defmempernode",
        "defmempergpu",
        "defcpupergpu",
        "maxmempercpu",
        "maxmempernode",
        "maxarraysize",
        "jobrequeue",
        "killwait",
        "enforcepartlimits",
        "overtimelimit",
        "minjobage",
        "jobfileappend",
    }
)
_DROPPED = {
    "prologflags": "only what its manifest says runs before a pod",
    "prologepilogtimeout": "there is no prolog; gangs that start too late are requeued",
    "prolog": "there is no prolog; use init containers",
    "epilog": "there is no epilog; use preStop hooks",
    "prologslurmctld": "there is no prolog: quota and nodes are decided together",
    "epilogslurmctld": "there is no epilog",
    "preempttype": "preemption follows queues and priority classes",
    "preemptmode": "preemption follows queues and priority classes",
    "licenses": "licenses are resources of nodes here, or quota of a queue",
    "topologyplugin": "topology is read from labels of nodes",
    "accountingstoragetres": "every resource is counted",
    "requeueexit": "jobs are requeued when they are preempted or their node is lost",
    "requeueexithold": "jobs are requeued when they are preempted or their node is lost",
    "maxbatchrequeue": "jobs are requeued when they are preempted or their node is lost",
}


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import makes."""

    queues: list[Json]
    policies: list[Json]
    nodes: list[Json]
    report: Report

    @property
    def documents(self) -> list[Json]:
        """Everything that a cluster needs besides nodes."""
        return [*self.policies, *self.queues]


def imported(
    conf: Conf,
    *,
    dump: Dump | None = None,
    qos: Mapping[str, Mapping[str, str]] | None = None,
    namespace: str = "default",
    text: str = "",
) -> Imported:
    """Return a Slurm configuration as our objects; `text` is kept for sbatch and sinfo."""
    report = Report()
    for remark in conf.warnings:
        report.warn(f"{remark.place}: {remark.what} {remark.message}")
    for remark in (*conf.unknown, *(dump.unknown if dump is not None else ())):
        report.dropped(remark.what, remark.message, remark.place)
    priorities = scheduling_policy(conf, dump, qos or {}, report)
    found = machines(conf, report)
    queues = queue_objects(conf, found, namespace, report)
    queues.append(_kept(conf, text))
    policy = _policy(conf, report)
    _rest(conf, report)
    return Imported(queues, [policy, priorities], node_objects(found), report)


def _kept(conf: Conf, text: str) -> Json:
    """Return what sbatch and sinfo read: the configuration itself, as Slurm hands it out."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONF, "namespace": NAMESPACE},
        "data": {"slurm.conf": text},
    }


def _policy(conf: Conf, report: Report) -> Json:
    made: Json = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "metadata": {"name": "unisono"}}
    if conf.text("SchedulerType", "sched/backfill").endswith("builtin"):
        report.mapped("SchedulerType", "no backfill")
        return made
    parameters = conf.parameters("SchedulerParameters")
    backfill: Json = {"dates": 1 if parameters.get("bf_job_part_count_reserve") == "1" else 0}
    window = parameters.get("bf_window", "")
    if whole_number(window) is not None:
        backfill["window"] = f"{window}m"
    resolution = parameters.get("bf_resolution", "")
    if whole_number(resolution) is not None:
        backfill["resolution"] = f"{resolution}s"
    test_only = whole_number(parameters.get("bf_max_job_test", ""))
    if test_only is not None:
        backfill["mostTested"] = test_only
    known = {"bf_window", "bf_resolution", "bf_max_job_test", "bf_job_part_count_reserve"}
    for name, value in parameters.items():
        if name in known:
            report.mapped(f"SchedulerParameters {name}={value}", "backfill")
        else:
            report.dropped(f"SchedulerParameters {name}", "decisions follow events, not intervals")
    longest = [minutes_of(part.text("maxtime")) for part in conf.partitions]
    if any(one is None for one in longest):
        report.approximated(
            "MaxTime=INFINITE", "jobs without a limit are planned for a year, as in Slurm"
        )
    made["backfill"] = backfill
    return made


def _rest(conf: Conf, report: Report) -> None:
    """Report every other setting that affects jobs."""
    for key, value in conf.settings.items():
        if key in _AT_SUBMISSION:
            report.mapped(
                value.name, f"read by sbatch from ConfigMap {NAMESPACE}/{CONF}", value.place
            )
        elif key in _DROPPED:
            report.dropped(value.name, _DROPPED[key], value.place)
        elif key not in _USED:
            report.dropped(value.name, "concerns Slurm's own daemons", value.place)
