"""All controllers of a mode, put together, and what they need to watch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from unisono.control import apps, names
from unisono.control.actions import Json
from unisono.control.admission import checks, purchases
from unisono.control.admission.elastic import BY_REPLACED, replaced_by
from unisono.control.apps.adoption import ORPHANS, Adoption, orphaned
from unisono.control.apps.autoscaler import Autoscalers, PodUsage, no_usage
from unisono.control.apps.daemon_sets import DaemonSets
from unisono.control.apps.deployments import Deployments
from unisono.control.apps.leader_worker_sets import LeaderWorkerSets
from unisono.control.apps.replica_sets import KINDS as REPLICA_SET_KINDS
from unisono.control.apps.replica_sets import ReplicaSets
from unisono.control.apps.stateful_sets import StatefulSets
from unisono.control.controller import Controller
from unisono.control.cron_jobs import CRON_KINDS, CronJobs
from unisono.control.foreign_queues import KINDS as FOREIGN_KINDS
from unisono.control.foreign_queues import foreign_objects
from unisono.control.gangs import controller as gangs
from unisono.control.gangs.controller import GangController
from unisono.control.health.node_health import BY_INCIDENT, NodeHealth, failed_on
from unisono.control.health.watchdog import Evacuation, Watchdog
from unisono.control.job_kinds import kubeflow, ray, slurm, volcano
from unisono.control.job_kinds.batch.adapter import BatchJobs
from unisono.control.job_kinds.batch.operator import JobOperator, OrphanedPods
from unisono.control.job_kinds.declared.controller import DeclaredKinds, WorkloadKinds
from unisono.control.job_kinds.jobset.adapter import JobSets
from unisono.control.job_kinds.jobset.operator import JobSetOperator
from unisono.control.job_kinds.kubeflow.adapter import KubeflowJobs
from unisono.control.job_kinds.kubeflow.operator import KubeflowOperator
from unisono.control.job_kinds.ray.adapter import RayClusters, RayJobs
from unisono.control.job_kinds.ray.cluster import RayClusterOperator
from unisono.control.job_kinds.ray.job import RayJobOperator
from unisono.control.job_kinds.ray.service import RayServiceOperator
from unisono.control.job_kinds.slurm.adapter import SlurmJobs
from unisono.control.job_kinds.slurm.operator import SlurmJobOperator
from unisono.control.job_kinds.slurm.priority_orders import PriorityOrders
from unisono.control.job_kinds.trainjob.adapter import TrainJobs
from unisono.control.job_kinds.trainjob.operator import TrainJobOperator
from unisono.control.job_kinds.trainjob.runtimes import BY_RUNTIME, RuntimesInUse, runtimes_used
from unisono.control.job_kinds.volcano.adapter import VolcanoJobs, queue_named_by
from unisono.control.job_kinds.volcano.flows import JobFlows, JobTemplates
from unisono.control.job_kinds.volcano.operator import VolcanoJobOperator
from unisono.control.job_kinds.volcano.statuses import (
    BY_QUEUE,
    VolcanoGroups,
    VolcanoQueues,
    queue_of_group,
    queue_of_job,
)
from unisono.control.jobs.adapter import JobAdapter
from unisono.control.jobs.controller import JobController
from unisono.control.jobs.priority_class_rules import ClassRules
from unisono.control.jobs.queues import Queues
from unisono.control.manifests import Manifests
from unisono.control.nodes import ReadinessTaints
from unisono.control.orphaned_workloads import BY_JOB, OrphanedWorkloads, Owners, job_uids
from unisono.control.pod_gangs.controller import PodGangs
from unisono.control.pod_gangs.membership import (
    BY_GANG,
    COSCHEDULING,
    GROUPS,
    UPSTREAM_GROUP,
    UPSTREAM_WORKLOAD,
    gangs_of,
)
from unisono.control.pod_gangs.status import PodGroupStatus
from unisono.control.queue_status.cluster_queue import (
    BY_REFERENCE,
    BY_TOPOLOGY,
    ClusterQueueStatus,
    FairShares,
    InUseFinalizers,
    PendingOrder,
    referred_to,
    topology_of,
)
from unisono.control.queue_status.local_queue import (
    BY_CLUSTER_QUEUE,
    LocalQueueStatus,
    RecentUse,
    leads_to,
)
from unisono.control.queue_status.tally import Tally
from unisono.control.requeueing import ON_HOLD, Requeueing, queue_on_hold
from unisono.control.scheduler.explainer import Explainer, ExplanationRate
from unisono.control.scheduler.loop import (
    LEDGER,
    KeepRefusal,
    OfferingsSource,
    Report,
    Scheduler,
    not_kept,
    not_reported,
)
from unisono.control.scheduler.usage_ledger import UsageLedger
from unisono.control.scheduler.writes_in_flight import ON_ITS_WAY, on_its_way
from unisono.control.submission_limits import SubmissionLimits
from unisono.control.view import Index, View
from unisono.engine.cycle import Decides, plan
from unisono.engine.ordering.priority_order import account_and_qos
from unisono.kinds.policy.settings import Settings
from unisono.kinds.registry import OUR_SCHEDULERS
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.slurm.listing import PUBLISHED_MAP

# Repair goes before new admissions, and both before sentences about them.
LANES: Mapping[str, int] = {
    "gangs": 0,
    "scheduler": 1,
    "explainer": 2,
    "root-causes": 2,
    "cluster-queues": 2,
    "local-queues": 2,
    "fair-shares": 2,
}

# Every kind that some controller looks at, whether it watches it or only looks things up in it.
KINDS: Sequence[Kind] = (
    names.POLICY,
    names.WORKLOAD_KIND,
    names.NAMESPACE,
    names.NODE,
    names.POD,
    names.SERVICE,
    names.CONFIG_MAP,
    names.SECRET,
    names.LIMIT_RANGE,
    names.PRIORITY_CLASS,
    names.RUNTIME_CLASS,
    names.DEVICE_CLASS,
    names.CLAIM,
    names.VOLUME,
    names.STORAGE_CLASS,
    names.JOB,
    names.JOB_SET,
    names.TRAIN_JOB,
    names.TRAINING_RUNTIME,
    names.CLUSTER_TRAINING_RUNTIME,
    names.FLAVOR,
    names.TOPOLOGY,
    names.ADMISSION_CHECK,
    names.COHORT,
    names.CLUSTER_QUEUE,
    names.LOCAL_QUEUE,
    names.WORKLOAD_PRIORITY_CLASS,
    names.VOLCANO_QUEUE,
    names.HYPER_NODE,
    *(job_kind.kind for job_kind in kubeflow.JOB_KINDS),
    ray.CLUSTER,
    ray.JOB,
    volcano.JOB,
    volcano.POD_GROUP,
    volcano.COMMAND,
    volcano.FLOW,
    volcano.JOB_TEMPLATE,
    slurm.JOB,
    COSCHEDULING,
    UPSTREAM_GROUP,
    UPSTREAM_WORKLOAD,
    names.WORKLOAD,
)

# What else an embedded cluster runs; on a real one these are the business of its own controllers.
EMBEDDED_KINDS: Sequence[Kind] = (
    *KINDS,
    *FOREIGN_KINDS,
    *(cron.kind for cron in CRON_KINDS),
    *apps.KINDS,
    ray.SERVICE,
)

# Kinds whose pods have to start together: without a queue of their own they are in one without
# limits, so that they get their nodes all at once.
ALWAYS_QUEUED: Mapping[Kind, Callable[[Json], str | None]] = {
    names.JOB_SET: lambda job: "",
    names.TRAIN_JOB: lambda job: "",
    ray.CLUSTER: lambda job: "",
    ray.JOB: lambda job: None if job["spec"].get("clusterSelector") else "",
    slurm.JOB: lambda job: "",
    **{job_kind.kind: lambda job: "" for job_kind in kubeflow.JOB_KINDS},
    **{kind: lambda group: "" for kind in GROUPS},
    volcano.POD_GROUP: lambda group: next(iter(queue_of_group(group))),
}


def _hostname(node: Json) -> Iterable[str]:
    host = (node["metadata"].get("labels") or {}).get(names.HOSTNAME)
    return (host,) if host else ()


INDEXES: Mapping[Kind, Mapping[str, Index]] = {
    names.POD: {
        "node": lambda pod: [node] if (node := pod["spec"].get("nodeName")) else [],
        gangs.BY_WORKLOAD: gangs.workload_of,
        BY_GANG: gangs_of,
        ORPHANS: orphaned,
    },
    names.NODE: {"hostname": _hostname},
    names.JOB_SET: {BY_INCIDENT: failed_on},
    names.TRAIN_JOB: {BY_RUNTIME: runtimes_used},
    volcano.JOB: {BY_QUEUE: queue_of_job},
    volcano.POD_GROUP: {BY_QUEUE: queue_of_group},
    names.CLUSTER_QUEUE: {BY_REFERENCE: referred_to},
    names.FLAVOR: {BY_TOPOLOGY: topology_of},
    names.LOCAL_QUEUE: {BY_CLUSTER_QUEUE: leads_to},
    names.WORKLOAD: {
        gangs.BY_HOST: gangs.hosts_without_job,
        BY_JOB: job_uids,
        BY_REPLACED: replaced_by,
        ON_HOLD: queue_on_hold,
        ON_ITS_WAY: on_its_way,
        checks.BY_QUEUE: checks.reserved_in,
        purchases.BY_HOLDER: purchases.holders_of,
        purchases.BY_MACHINE: purchases.nodes_to_come,
    },
}


# Kinds of jobs that we run where no upstream operator does; a real cluster runs Jobs itself.
OPERATORS = ("jobset", "trainer", "volcano", "ray", "kubeflow", "slurm")


@dataclass(frozen=True, slots=True)
class Assembly:
    """The controllers, and the one among them that decides."""

    scheduler: Scheduler
    controllers: Sequence[Controller]


def embedded(
    view: View,
    settings: Settings,
    *,
    epoch: int = 1,
    needs_nodes: bool = True,
    decides: Decides = plan,
    offerings: OfferingsSource | None = None,
    report: Report = not_reported,
    keep_refusal: KeepRefusal = not_kept,
    usage: PodUsage = no_usage,
) -> Assembly:
    """Return the controllers of an embedded cluster: we schedule everything and run every kind.

    Without `needs_nodes` quota alone decides until the first node joins. `epoch` counts the leaders
    so far, this one included; `decides` may also record decisions. `report` and `keep_refusal` are
    the scheduler's (`scheduler/loop.py`). `usage` knows what pods use, for autoscalers.
    """
    return _assembled(
        view,
        settings,
        epoch,
        OPERATORS,
        is_alone=True,
        needs_nodes=needs_nodes,
        decides=decides,
        offerings=offerings,
        report=report,
        keep_refusal=keep_refusal,
        usage=usage,
    )


def cluster(
    view: View,
    settings: Settings,
    *,
    epoch: int,
    operators: Collection[str],
    decides: Decides = plan,
    home: str = LEDGER.namespace,
    offerings: OfferingsSource | None = None,
    report: Report = not_reported,
    keep_refusal: KeepRefusal = not_kept,
    api_checks_classes: bool = False,
) -> Assembly:
    """Return the controllers for a real cluster, which keeps its nodes and runs its Jobs itself.

    Stock kube-scheduler is at work there, so pods of queued jobs are held back by a gate. Kinds
    whose operator is not among `operators` are run by an upstream operator. `home` is the namespace
    of the usage ledger. `api_checks_classes` if policies of the API refuse priority classes that an
    author may not use.
    """
    ledger = Key(home, LEDGER.name)
    return _assembled(
        view,
        settings,
        epoch,
        operators,
        is_alone=False,
        needs_nodes=False,  # a cluster of others may have none, and its pods run somewhere else
        decides=decides,
        offerings=offerings,
        ledger=ledger,
        report=report,
        keep_refusal=keep_refusal,
        api_checks_classes=api_checks_classes,
    )


def _assembled(
    view: View,
    settings: Settings,
    epoch: int,
    operators: Collection[str],
    *,
    is_alone: bool,
    needs_nodes: bool,
    decides: Decides,
    offerings: OfferingsSource | None,
    report: Report,
    keep_refusal: KeepRefusal,
    ledger: Key = LEDGER,
    api_checks_classes: bool = False,
    usage: PodUsage = no_usage,
) -> Assembly:
    runs_volcano = "volcano" in operators
    adapters: Sequence[JobAdapter] = (
        BatchJobs(),
        JobSets(),
        TrainJobs(),
        *((VolcanoJobs(),) if runs_volcano else ()),  # there is no way to hold Volcano's own back
        RayClusters(),
        RayJobs(),
        *(KubeflowJobs(job_kind) for job_kind in kubeflow.JOB_KINDS),
        SlurmJobs(),
    )
    built_in = frozenset(adapter.kind for adapter in adapters)
    declared = DeclaredKinds()
    queues = Queues(
        settings,
        lambda: built_in | declared.kinds,
        names_queue={**ALWAYS_QUEUED, volcano.JOB: queue_named_by},
        gates=() if is_alone else (names.GATE,),
        ungated=OUR_SCHEDULERS - (set() if runs_volcano else {"volcano"}),
        shares_the_cluster=not is_alone,
        api_checks_classes=api_checks_classes,
    )
    scheduler = Scheduler(
        view,
        settings,
        epoch=epoch,
        places_strays=is_alone,
        needs_queue=queues.needs_queue,
        needs_nodes=needs_nodes,
        decides=decides,
        ledger=ledger,
        offerings=offerings,
        report=report,
        keep_refusal=keep_refusal,
    )
    run_by: Mapping[str, Sequence[Controller]] = {
        "jobset": (JobSetOperator(queues),),
        "trainer": (TrainJobOperator(queues), RuntimesInUse()),
        "volcano": (
            VolcanoJobOperator(queues),
            VolcanoGroups(),
            VolcanoQueues(),
            JobFlows(),
            JobTemplates(),
        ),
        "ray": (RayClusterOperator(queues), RayJobOperator(queues)),
        "kubeflow": tuple(KubeflowOperator(job_kind, queues) for job_kind in kubeflow.JOB_KINDS),
        "slurm": (
            # Asked for each time: the scheduler may have built its state anew.
            SlurmJobOperator(queues, lambda key: account_and_qos(scheduler.state, key)),
            PriorityOrders(scheduler, Key(ledger.namespace, PUBLISHED_MAP)),
        ),
    }
    groups = [kind for kind in GROUPS if runs_volcano or kind != volcano.POD_GROUP]
    owners = Owners((*(adapter.kind for adapter in adapters), *groups), lambda: declared.kinds)
    tally, manifests = Tally(view), Manifests(view)
    statuses = (ClusterQueueStatus, LocalQueueStatus, FairShares)
    return Assembly(
        scheduler,
        (
            scheduler,
            Explainer(scheduler, None if is_alone else ExplanationRate()),
            scheduler.root_causes,
            GangController(owners.is_made_elsewhere, scheduler.came_late),
            OrphanedWorkloads(owners, view),
            *(JobController(adapter, queues) for adapter in adapters),
            WorkloadKinds(declared, queues),
            *(foreign_objects() if is_alone else ()),
            *((JobOperator(), OrphanedPods(), ReadinessTaints()) if is_alone else ()),
            *(_of_kubernetes(usage) if is_alone else ()),
            *(one for name in OPERATORS if name in operators for one in run_by[name]),
            PodGangs(view, settings, queues, groups),
            *(PodGroupStatus(kind) for kind in groups if kind != UPSTREAM_WORKLOAD),
            Requeueing(),
            checks.AdmissionChecks(),
            NodeHealth(),
            Watchdog(scheduler.can_replace),
            Evacuation(scheduler.can_replace),
            *(keeps(tally, manifests, settings.policy) for keeps in statuses),
            InUseFinalizers(tally),
            RecentUse(lambda: scheduler.state),
            UsageLedger(lambda: scheduler.state, ledger),
            PendingOrder(lambda: scheduler.state),
            *(() if is_alone else (ClassRules(settings, view, ledger.namespace),)),
            *(() if is_alone else (SubmissionLimits(lambda: scheduler.state, ledger.namespace),)),
        ),
    )


def _of_kubernetes(usage: PodUsage) -> Sequence[Controller]:
    """Return what a real cluster's own controller manager does: schedules, and pods that stay."""
    return (
        *map(CronJobs, CRON_KINDS),
        *map(ReplicaSets, REPLICA_SET_KINDS),
        Deployments(),
        StatefulSets(),
        DaemonSets(),
        LeaderWorkerSets(),
        RayServiceOperator(),
        Adoption(),
        Autoscalers(usage),
    )
