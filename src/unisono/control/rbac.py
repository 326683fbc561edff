"""What the controllers may do on a real cluster: the least that they need, as data.

One table says what each controller writes (`WRITES`), by the part of an installation that brings
it: queueing, which is always there; an operator, for one family of jobs; a provider of machines.
`unisono install` makes one role of each part, and `unisono controller` asks the API whether it has
all of its own. Tests run every controller with exactly its row.

    part       its controllers run where
    queueing   always; they make Workloads and nothing that runs: they hold, admit, bind and evict
    OPERATORS  `--operators` names them and no upstream operator runs; they make pods
    MACHINES   `--machines` names them

What is followed is read in all namespaces, because jobs are everywhere; but ConfigMaps are read
only in the namespace of the installation, where the controllers keep notes of their own, and
Secrets nowhere: for jobs that need ssh keys, an operator grants `KEYS` in their namespaces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from unisono.control import names
from unisono.control.assembly import KINDS, OPERATORS
from unisono.control.job_kinds import kubeflow, ray, slurm, volcano
from unisono.control.pod_gangs.membership import COSCHEDULING, UPSTREAM_GROUP, UPSTREAM_WORKLOAD
from unisono.kinds.shapes.served import served_kinds
from unisono.kube.mapping import Kind

READ = ("get", "list", "watch")
QUEUEING = "queueing"
MACHINES = ("karpenter", "autoscaler")
PARTS: Sequence[str] = (QUEUEING, *OPERATORS, *MACHINES)

_TEMPLATE = Kind("v1", "PodTemplate")

# Words of the table below, and what they mean on a kind:
#
#     create, patch, delete   that verb; with create comes get, to recognise its own objects
#     status                  patch the subresource of that name
#     bind                    create the subresource `binding`
#     owner                   update the subresource `finalizers`: without it, a cluster that checks
#                             (OwnerReferencesPermissionEnforcement) refuses dependents that block
#                             the deletion of such an object
Writes = Mapping[Kind, str]
_WORKLOAD = "create patch delete status"


def _queued(kind: Kind) -> Mapping[str, Writes]:
    """Return the row of what queues the jobs of a kind: it suspends and unsuspends them."""
    name = f"queued-{kind.kind.lower()}.{kind.api_version.partition('/')[0]}"
    return {name: {kind: "patch owner", names.WORKLOAD: _WORKLOAD}}


# What each controller writes, by part. A controller may have something in several parts: what it
# does only where that part is there.
WRITES: Mapping[str, Mapping[str, Writes]] = {
    QUEUEING: {
        "scheduler": {names.WORKLOAD: "patch status", names.POD: "bind"},
        "explainer": {names.WORKLOAD: "status", names.POD: "status"},
        "root-causes": {},  # the explainer writes what it finds
        # A pod's gate is lifted, or it is bound; a surplus pod is deleted.
        "gangs": {names.WORKLOAD: "patch status", names.POD: "patch delete bind"},
        **_queued(names.JOB),
        **_queued(names.JOB_SET),
        **_queued(names.TRAIN_JOB),
        **_queued(ray.CLUSTER),
        **_queued(ray.JOB),
        **_queued(slurm.JOB),
        **{
            name: row
            for job_kind in kubeflow.JOB_KINDS
            for name, row in _queued(job_kind.kind).items()
        },
        "pod-gangs": {
            names.WORKLOAD: _WORKLOAD,
            names.POD: "patch delete status owner",
            COSCHEDULING: "owner",
            UPSTREAM_GROUP: "owner",
            UPSTREAM_WORKLOAD: "owner",
        },
        "podgroups.scheduling.x-k8s.io": {COSCHEDULING: "status"},
        "podgroups.scheduling.k8s.io": {UPSTREAM_GROUP: "status"},
        "ownerless": {names.WORKLOAD: "patch status", names.POD: "delete"},
        "requeues": {names.WORKLOAD: "status"},
        "admission-checks": {names.WORKLOAD: "status"},
        # A node that failed is tainted and labelled.
        "node-health": {names.NODE: "patch"},
        "watchdog": {names.WORKLOAD: "patch", names.NODE: "patch", names.POD: "status"},
        "evacuation": {names.POD: "status"},
        "cluster-queues": {names.CLUSTER_QUEUE: "status"},
        "local-queues": {names.LOCAL_QUEUE: "status"},
        "fair-shares": {names.CLUSTER_QUEUE: "status", names.COHORT: "status"},
        "in-use": {
            names.CLUSTER_QUEUE: "patch",
            names.FLAVOR: "patch",
            names.TOPOLOGY: "patch",
        },
        "pending-order": {names.CLUSTER_QUEUE: "status"},
        "recent-use": {names.LOCAL_QUEUE: "status"},
        "usage-ledger": {names.CONFIG_MAP: "create patch"},
        "workload-kinds": {names.WORKLOAD_KIND: "status"},
        "class-rules": {names.CONFIG_MAP: "create patch"},
        "submission-limits": {names.CONFIG_MAP: "create patch"},
        # The record of what was told. What sends it reads one Secret (`cli.install`).
        "notifications": {names.WORKLOAD: "patch"},
        "array-notifications": {slurm.JOB: "patch"},
    },
    "jobset": {
        "jobset": {
            names.JOB_SET: "patch delete status owner",
            names.JOB: "create patch delete",
            names.SERVICE: "create",
        },
    },
    "trainer": {
        "trainjob": {
            names.TRAIN_JOB: "patch status owner",
            names.JOB_SET: "create patch",
            names.CONFIG_MAP: "create",
            COSCHEDULING: "create",
            volcano.POD_GROUP: "create",
        },
        "training-runtimes": {
            names.TRAINING_RUNTIME: "patch",
            names.CLUSTER_TRAINING_RUNTIME: "patch",
        },
    },
    "volcano": {
        **_queued(volcano.JOB),
        "vcjob": {
            volcano.JOB: "delete patch status owner",
            volcano.COMMAND: "delete",
            names.POD: "create delete",
            names.SERVICE: "create",
            names.CONFIG_MAP: "create patch",
            names.CLAIM: "create",
        },
        "vcjob-groups": {volcano.POD_GROUP: "create patch", volcano.JOB: "owner"},
        "volcano-queues": {names.VOLCANO_QUEUE: "patch status", volcano.COMMAND: "delete"},
        "job-flows": {volcano.FLOW: "status owner", volcano.JOB: "create delete"},
        "job-templates": {volcano.JOB_TEMPLATE: "status"},
        "pod-gangs": {volcano.POD_GROUP: "owner"},
        "podgroups.scheduling.volcano.sh": {volcano.POD_GROUP: "patch"},
    },
    "ray": {
        "raycluster": {
            ray.CLUSTER: "status owner",
            names.POD: "create delete",
            names.SERVICE: "create",
        },
        "rayjob": {
            ray.JOB: "patch status owner",
            ray.CLUSTER: "create delete",
            names.JOB: "create delete",
            names.POD: "delete",
        },
    },
    "kubeflow": {
        job_kind.kind.kind.lower(): {
            job_kind.kind: "patch delete status owner",
            names.POD: "create delete",
            names.SERVICE: "create",
            **({names.CONFIG_MAP: "create"} if job_kind is kubeflow.MPI else {}),
        }
        for job_kind in kubeflow.JOB_KINDS
    },
    "slurm": {
        "slurmjob": {
            slurm.JOB: "create patch delete status owner",
            names.POD: "create delete",
            names.SERVICE: "create",
            names.WORKLOAD: "status",
        },
        "slurm-turns": {names.CONFIG_MAP: "create patch"},
    },
    "karpenter": {
        "purchases": {
            names.NODE_CLAIM: "create patch",
            names.NODE_POOL: "owner",
            names.WORKLOAD: "status",
            names.CONFIG_MAP: "create patch",
        },
        "machines": {names.NODE_CLAIM: "patch delete status", names.NODE: "patch"},
    },
    "autoscaler": {
        "provisioning-checks": {names.ADMISSION_CHECK: "status"},
        "provisioning-requests": {
            names.PROVISIONING_REQUEST: "create delete",
            _TEMPLATE: "create delete",
            names.WORKLOAD: "patch status owner",
        },
    },
}

# Controllers whose ConfigMaps are in the namespace of the installation, and nowhere else.
AT_HOME = frozenset(
    {"usage-ledger", "class-rules", "submission-limits", "slurm-turns", "purchases"}
)

# What only an operator reads. ConfigMaps are always read in the installation's namespace.
_READ_BY: Mapping[str, Sequence[Kind]] = {
    "jobset": (names.SERVICE,),
    "volcano": (
        *(volcano.JOB, volcano.POD_GROUP, volcano.COMMAND),
        *(volcano.FLOW, volcano.JOB_TEMPLATE),
    ),
    "ray": (names.SERVICE,),
    "slurm": (names.SERVICE,),
    "karpenter": (names.NODE_POOL, names.NODE_CLAIM, names.NODE_OVERLAY),
    "autoscaler": (names.PROVISIONING_REQUEST, names.REQUEST_CONFIG),
}
# Never read: see `KEYS`.
_NEVER: Sequence[Kind] = (names.SECRET,)


class Right(NamedTuple):
    """Some verbs on one resource (or subresource) of a group."""

    group: str
    resource: str
    verbs: Sequence[str]

    @property
    def full_name(self) -> str:
        """The resource with its group."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


# In the namespace of the installation: the leader's lease.
_LEASE = Right("coordination.k8s.io", "leases", ("get", "create", "update"))
# Where jobs get ssh keys (MPI, Volcano's plugin `ssh`); bound by hand, namespace by namespace.
KEYS: Sequence[Right] = (Right("", "secrets", ("get", "create", "patch")),)
# With the web page: the user of a token, and what that user may see.
WEB: Sequence[Right] = (
    Right("authentication.k8s.io", "tokenreviews", ("create",)),
    Right("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)
_ALWAYS: Sequence[Right] = (
    Right("", "events", ("create", "patch")),
    Right("apps", "deployments", ("list",)),  # to see which operators of others run
    # to see whether the API itself checks priority classes
    Right("admissionregistration.k8s.io", "validatingadmissionpolicybindings", ("get",)),
)


def kinds_read(parts: Collection[str]) -> Sequence[Kind]:
    """Return the kinds that the controllers of these parts look at, in any namespace or at home."""
    elsewhere = {kind for kinds in _READ_BY.values() for kind in kinds}
    here = {kind for part in parts for kind in _READ_BY.get(part, ())}
    always = [kind for kind in KINDS if kind not in elsewhere and kind not in _NEVER]
    return (*always, *(kind for kind in (*KINDS, *_machine_kinds()) if kind in here))


def kinds_unread(parts: Collection[str]) -> Sequence[Kind]:
    """Return the kinds that look empty to these controllers."""
    read = set(kinds_read(parts))
    return [kind for kind in KINDS if kind not in read]


def rights(part: str) -> Sequence[Right]:
    """Return what a part needs in the whole cluster, beyond what queueing needs."""
    verbs: dict[tuple[str, str], set[str]] = {}
    if part == QUEUEING:
        followed = [kind for kind in kinds_read(()) if kind != names.CONFIG_MAP]
        _add(verbs, ((kind, "", READ) for kind in followed))
        for right in _ALWAYS:
            verbs[right.group, right.resource] = set(right.verbs)
    _add(verbs, ((kind, "", READ) for kind in _READ_BY.get(part, ())))
    for controller, row in WRITES[part].items():
        _add(verbs, (one for one in _meant(row) if not _is_at_home(controller, one[0])))
    return _sorted(verbs)


def rights_at_home() -> Sequence[Right]:
    """Return what is needed in the namespace of the installation only, with any parts."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for rows in WRITES.values():
        for controller, row in rows.items():
            _add(verbs, (one for one in _meant(row) if _is_at_home(controller, one[0])))
    _add(verbs, [(names.CONFIG_MAP, "", READ)])
    return (_LEASE, *_sorted(verbs))


def row_of(controller: str, part: str) -> Sequence[Right]:
    """Return what one controller writes as a member of a part, wherever it does."""
    verbs: dict[tuple[str, str], set[str]] = {}
    _add(verbs, _meant(WRITES[part][controller]))
    return _sorted(verbs)


_Meaning = tuple[Kind, str, Iterable[str]]


def _meant(row: Writes) -> Iterator[_Meaning]:
    """Yield kind, subresource and verbs for the words of a row."""
    for kind, words in row.items():
        for word in words.split():
            match word:
                case "status":
                    yield kind, "status", ("patch",)
                case "bind":
                    yield kind, "binding", ("create",)
                case "owner":
                    yield kind, "finalizers", ("update",)
                case "create":
                    yield kind, "", ("get", "create")
                case _:
                    yield kind, "", (word,)


def _is_at_home(controller: str, kind: Kind) -> bool:
    return controller in AT_HOME and kind == names.CONFIG_MAP


def _add(verbs: dict[tuple[str, str], set[str]], meant: Iterable[_Meaning]) -> None:
    for kind, below, some in meant:
        group, plural = resource_of(kind)
        verbs.setdefault((group, f"{plural}/{below}" if below else plural), set()).update(some)


def _sorted(verbs: Mapping[tuple[str, str], Collection[str]]) -> Sequence[Right]:
    ordered = (*READ, "create", "update", "patch", "delete")
    return [
        Right(group, resource, tuple(sorted(some, key=ordered.index)))
        for (group, resource), some in verbs.items()
    ]


def resource_of(kind: Kind) -> tuple[str, str]:
    """Return the group and the plural of a kind."""
    return kind.api_version.rpartition("/")[0], _plurals()[kind]


@cache
def _plurals() -> Mapping[Kind, str]:
    served = {Kind(one.api_version, one.kind): one.plural for one in served_kinds()}
    return {**served, names.POD: "pods", UPSTREAM_WORKLOAD: "workloads"}


def _machine_kinds() -> Sequence[Kind]:
    return [kind for part in MACHINES for kind in _READ_BY[part]]
