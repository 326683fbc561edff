"""What the controllers may do on a real cluster: the least that they need, as data.

`unisono install` makes roles of it, `unisono controller` asks the API whether it has all of it.
Secrets are not read: whoever runs MPI jobs that need ssh keys grants `KEYS` where those jobs are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from unisono.control import names
from unisono.control.assembly import KINDS
from unisono.control.operators.volcano import words as volcano
from unisono.control.pod_gangs.links import COSCHEDULING
from unisono.kinds.shapes.served import served_kinds
from unisono.kube.mapping import Kind

READ = ("get", "list", "watch")
CHANGE = (*READ, "patch")
MAKE = (*READ, "create", "patch", "delete")

# Not read on a real cluster.
UNREAD: Sequence[Kind] = (names.SECRET,)
READ_KINDS: Sequence[Kind] = tuple(kind for kind in KINDS if kind not in UNREAD)

# What we make objects of, and what we only look at; of all others we change some.
_MADE = frozenset(
    {
        names.POD,
        names.SERVICE,
        names.CONFIG_MAP,
        names.CLAIM,  # of Volcano jobs
        names.JOB,
        names.JOB_SET,
        names.WORKLOAD,
        volcano.POD_GROUP,
        COSCHEDULING,
        Kind("ray.io/v1", "RayCluster"),
    }
)
_LOOKED_AT = frozenset(
    {
        names.NAMESPACE,
        names.LIMIT_RANGE,
        names.PRIORITY_CLASS,
        names.RUNTIME_CLASS,
        names.VOLUME,
        names.STORAGE_CLASS,
        names.POLICY,
        names.TOPOLOGY,
        names.WORKLOAD_PRIORITY_CLASS,
        names.HYPER_NODE,
    }
)
# Of these only the finalizer is ours.
_WITHOUT_STATUS = frozenset(
    {names.FLAVOR, names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME},
)
_BUILT_IN_STATUS = frozenset({names.POD, names.JOB})


class Right(NamedTuple):
    """Some verbs on one resource (or subresource) of a group."""

    group: str
    resource: str
    verbs: Sequence[str]

    @property
    def full_name(self) -> str:
        """The resource with its group."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


# In the namespace of the installation: who leads.
OWN: Sequence[Right] = (Right("coordination.k8s.io", "leases", ("get", "create", "update")),)
# Where MPI jobs get their keys; bound by hand, namespace by namespace.
KEYS: Sequence[Right] = (Right("", "secrets", ("get", "create")),)


# With the web page: whose token somebody shows, and what they may see.
WEB: Sequence[Right] = (
    Right("authentication.k8s.io", "tokenreviews", ("create",)),
    Right("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)


# With machines that are bought: pools are read, claims are made and given up.
MACHINES: Sequence[Right] = (
    Right("karpenter.sh", "nodepools", READ),
    Right("karpenter.sh", "nodeoverlays", READ),
    Right("karpenter.sh", "nodeclaims", MAKE),
)
# Where an autoscaler is asked for nodes.
REQUESTS: Sequence[Right] = (
    Right("autoscaling.x-k8s.io", "provisioningrequests", MAKE),
    Right("kueue.x-k8s.io", "provisioningrequestconfigs", READ),
    Right("", "podtemplates", ("get", "create", "delete")),
)


def rights() -> Iterator[Right]:
    """Yield what is needed in the whole cluster."""
    plurals = {Kind(one.api_version, one.kind): one.plural for one in served_kinds()}
    for kind in READ_KINDS:
        group = kind.api_version.rpartition("/")[0]
        plural = plurals.get(kind, "pods" if kind == names.POD else "")
        assert plural, kind
        verbs = MAKE if kind in _MADE else READ if kind in _LOOKED_AT else CHANGE
        yield Right(group, plural, verbs)
        if "." in group and verbs != READ and group != "scheduling.k8s.io":
            if kind not in _WITHOUT_STATUS:
                yield Right(group, f"{plural}/status", ("patch",))
            yield Right(group, f"{plural}/finalizers", ("update",))
        elif kind in _BUILT_IN_STATUS:
            yield Right(group, f"{plural}/status", ("patch",))
        elif group == "scheduling.k8s.io" and verbs != READ:
            yield Right(group, f"{plural}/status", ("patch",))
    yield Right("", "pods/binding", ("create",))
    yield Right("", "events", ("create", "patch"))
    yield Right("batch", "jobs/finalizers", ("update",))
    yield Right("apps", "deployments", ("list",))  # to see which operators of others run
