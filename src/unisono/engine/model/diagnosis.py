"""A diagnosis: what keeps one pending workload from starting, with a set of causes that was tried.

An explanation (`model/explanation.py`) holds the facts that a scheduling cycle came across. A
diagnosis answers the next question, "and what would have to change?", from copies of the cluster:
it names every way that was tried, and marks **one minimal sufficient set** of what is in the way.
With all of that gone the workload starts in the next cycles; with any one of it left it does not.
`engine/diagnosis` makes it, `engine/explain/diagnosis.py` writes it as sentences.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.explanation import Blocker, Stage
from unisono.engine.model.names import (
    FlavorName,
    Instant,
    NodeName,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.node import NodeTrouble
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import Labels, Taint, Toleration
from unisono.engine.model.workload import LimitWord

# starts-now   the next cycles start it; perhaps they preempt others for it, or buy machines
# later        it starts once what is in its way is gone, which needs no larger cluster
# never        it would not start even on the empty cluster with all nodes healthy; what is in the
#              way is what such a cluster lacks ("never, unless ...")
# unknown      no set of causes was found within the budget; `in_the_way` is empty
Verdict = Literal["starts-now", "later", "never", "unknown"]

# What an instant is: its begin time; when it is requeued after an eviction; when it may preempt
# again; when an advance reservation is over; when usage has decayed below a limit; when machines
# may be in stock again; when terminating pods are gone at the latest; when a running workload may
# be preempted; when the job that it depends on has run for as long as required.
InstantOf = Literal[
    "begin",
    "requeue",
    "preemption back-off",
    "advance reservation",
    "usage decay",
    "stock",
    "terminating pods",
    "protection from preemption",
    "dependency delay",
    "time limit",
]


class HeldAmount(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How much of one resource of a flavor; without quota the flavor is empty."""

    flavor: str
    resource: ResourceName
    amount: int


class _Cause(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="cause", gc=False):
    """Base of what can be in the way; it only carries the tag."""


class Holder(_Cause, frozen=True, kw_only=True):
    """A workload with quota: it would start if that one ended."""

    workload: WorkloadKey
    queue: QueueName
    amounts: tuple[HeldAmount, ...] = ()  # of what is asked for, all pods together
    nodes: tuple[NodeName, ...] = ()
    ends: Instant | None = None  # at the latest, by its time limit; None: it has none
    ends_from: LimitWord = "policy"  # where that limit comes from
    evicting: bool = False  # it is being evicted already
    unready: bool = False  # its pods are not ready; admission may wait for that (blockAdmission)


class Ahead(_Cause, frozen=True, kw_only=True):
    """A pending workload that goes first."""

    workload: WorkloadKey
    queue: QueueName | None = None  # None: its queue does not exist


class OtherPod(_Cause, frozen=True, kw_only=True):
    """A pod on a node that belongs to no workload of ours."""

    pod: str  # namespace/name
    node: NodeName
    amounts: Amounts = ()
    leaves_at: Instant | None = None  # it is terminating


class NodeOut(_Cause, frozen=True, kw_only=True):
    """A node that takes no pods now."""

    node: NodeName
    why: NodeTrouble


class Until(_Cause, frozen=True, kw_only=True):
    """A date: it cannot start before then. A set has one at most, the last one."""

    instant: Instant
    what: InstantOf
    name: str = ""  # of the advance reservation, the limit or the workload that the date is of


class MissingQuota(_Cause, frozen=True, kw_only=True):
    """So much more nominal quota of a ClusterQueue is enough; one less is not."""

    queue: QueueName
    flavor: str  # or the name of a pool of flavors
    resource: ResourceName
    amount: int


# The topology domain of new nodes that join none of the existing ones: it may have any name.
NEW_DOMAIN = "unisono-diagnosis"


class MissingNodes(_Cause, frozen=True, kw_only=True):
    """So many more nodes like this, each with room for `pods` of the pod set; one less is not."""

    count: int
    pod_set: str
    requests: Amounts  # what such a node has to have at least
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()  # that the flavor's nodes have; the pods tolerate them
    level: str = ""  # the label of the topology domain that all of them have to share
    domain: str = ""  # an existing domain of that level that they join; empty: a new one
    # The most of `short_of` that one node of the cluster has, where none is large enough.
    short_of: ResourceName = ResourceName("")
    largest: int = 0
    # Labels of it that no node has: `key=value`, or the key of a topology level.
    unlabelled: tuple[str, ...] = ()
    # False: too many to try on a copy; a lower bound by arithmetic, and perhaps not enough.
    tried: bool = True


class MissingToleration(_Cause, frozen=True, kw_only=True):
    """The pods do not tolerate the taints of nodes that they would fit on."""

    tolerations: tuple[Toleration, ...]


class Condition(_Cause, frozen=True, kw_only=True):
    """Something that has to be changed: a stopped queue, a hold, a check, an entitlement."""

    blocker: Blocker


Cause = (
    Holder
    | Ahead
    | OtherPod
    | NodeOut
    | Until
    | MissingQuota
    | MissingNodes
    | MissingToleration
    | Condition
)

# as-it-is     on free quota and nodes
# preemption   once victims have left
# machines     on machines that are bought for it
Mode = Literal["as-it-is", "preemption", "machines"]


class Shortage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a way is short of, in numbers: of quota, or on the nodes of the flavor."""

    of: Literal["quota", "nodes"]
    flavor: str
    resource: ResourceName
    wanted: int
    free: int
    total: int  # with everything that the queue may borrow, or on all nodes of the flavor
    out: int = 0  # of the total: on nodes that take no pods now


class Way(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One way to start that was tried: flavors by pod set and resource, and how."""

    flavors: tuple[tuple[str, ResourceName, FlavorName], ...] = ()
    mode: Mode = "as-it-is"
    stage: Stage | None = None  # that refused; None: none did
    blockers: tuple[Blocker, ...] = ()
    short: tuple[Shortage, ...] = ()
    possible: bool = True  # False: not even on the empty cluster; the blockers are of that one


# reserved   a backfill reservation
# limits     the time limits of the holders in its way, and dates; others may still come first
Basis = Literal["reserved", "limits"]


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What keeps one pending workload from starting."""

    workload: WorkloadKey
    queue: QueueName | None
    verdict: Verdict
    in_the_way: tuple[Cause, ...] = ()
    ways: tuple[Way, ...] = ()
    nearest: int | None = None  # index of the way that needs least; None: there is none
    starts_at: Instant | None = None
    basis: Basis | None = None  # of `starts_at`
    # How it was tried: copies of the cluster in which cycles were run.
    trials: int = 0
