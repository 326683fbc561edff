"""Which kinds there are, and what each of them can do.

A module of an API group defines its structs and ends with a tuple `KINDS` of `Kind`;
`kinds/known.py` lists those tuples, and nothing else has to change to add a kind.

Four sorts of kinds:

    configuration   ClusterQueue, Namespace, LimitRange, PriorityClass, TrainingRuntime, …
                    decoded, checked and kept; a reader that needs one calls `context.find(…)`
    job             one object is one workload: give `job=JobHooks(…)`
    member          several objects are one workload (pods of a group): `members=MemberHooks(…)`
    group           an object makes one workload of the pods that name it: `gang=GroupHooks(…)`

What `snapshot` does for every job, so that a job kind need not: names, namespaces, the queue label,
priorities, creation times, owners, gates, duplicates, and what is already admitted. What a job
kind does, with functions that take its decoded manifest:

    pod_sets(manifest, context) -> tuple[PodSet, ...]      the gang, requests filled in
    priority_class(manifest) -> str                        its own class, else its first pod set's
    is_finished(manifest) -> bool                          a finished job holds and wants nothing
    reclaimable(manifest) -> tuple[tuple[str, int], ...]   pods per set that are done for good
    queue(manifest) -> str                                 only if it has one besides the label
    min_total(manifest) -> int | None                      if fewer pods than all may start
    scheduler(manifest) -> str                             the schedulerName of its pods

They never raise for bad input. They report to `context.notes`:

    problem(path, message)       the user must mend it before there can be a decision; return ()
    warn(code, path, message)    it works, but perhaps not as its author thinks
    misconfigured(problem)       the job can never run as written (a request above its limit); the
                                 workload is kept, never admitted, and explained with this text

Returning () without a problem means: there is nothing to run, so there is no workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.workload import PodSet, TopologyRequest
from unisono.kinds.nearest import nearest
from unisono.kinds.notes import Notes
from unisono.kinds.resource_rules import ResourceRules

# Names of schedulers whose pods are placed by us, even if they are in no queue.
OUR_SCHEDULERS = frozenset(
    {"unisono", "volcano", "scheduler-plugins-scheduler", "coscheduling", "kai-scheduler"}
)


class Context(Protocol):
    """What a job kind may look at besides its own manifest."""

    @property
    def namespace(self) -> str:
        """The namespace of the object being read; never empty for a namespaced kind."""

    @property
    def notes(self) -> Notes:
        """Where to report problems and warnings about this document."""

    @property
    def rules(self) -> ResourceRules:
        """Which resources to leave out of a request, and which to turn into others."""

    def find(self, kind: str, name: str, *, namespace: str = "") -> Any | None:
        """Return a decoded object by kind and name (and namespace if it has one), or None.

        A kind that several API groups have is written KIND.GROUP.
        """

    def every(self, kind: str, *, namespace: str = "") -> tuple[Any, ...]:
        """Return all decoded objects of a kind (in a namespace), in document order."""


def _no(manifest: Any) -> bool:
    return False


def _nothing(manifest: Any) -> tuple[tuple[str, int], ...]:
    return ()


def _empty(manifest: Any) -> str:
    return ""


def _all(manifest: Any) -> int | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHooks:
    """How one object becomes one workload, named `KIND-NAME` in lower case."""

    pod_sets: Callable[[Any, Context], tuple[PodSet, ...]]
    priority_class: Callable[[Any], str] = _empty
    is_finished: Callable[[Any], bool] = _no
    reclaimable: Callable[[Any], tuple[tuple[str, int], ...]] = _nothing
    queue: Callable[[Any], str] = _empty
    min_total: Callable[[Any], int | None] = _all
    scheduler: Callable[[Any], str] = _empty


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberHooks:
    """How several objects of one namespace become one workload.

    `workload` names the workload that an object belongs to; an empty name means none. The other
    functions get all members, in document order; `context.notes` is that of the first.
    """

    workload: Callable[[Any], str]
    pod_sets: Callable[[tuple[Any, ...], Context], tuple[PodSet, ...]]
    priority_class: Callable[[tuple[Any, ...]], str] = _empty
    is_finished: Callable[[tuple[Any, ...]], bool] = _no
    reclaimable: Callable[[tuple[Any, ...]], tuple[tuple[str, int], ...]] = _nothing
    queue: Callable[[tuple[Any, ...]], str] = _empty
    scheduler: Callable[[tuple[Any, ...]], str] = _empty


class Slices(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of a gang that come in blocks, each block close together."""

    name: str  # for people
    selector: LabelSelector  # which pods
    size: int = 1  # of one block
    least: int = 0  # blocks that must start
    topology: TopologyRequest | None = None  # with the level that a block has to share


class GangRules(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods of a group must start together, and where, whichever API says so.

    coscheduling PodGroup       minMember
    Volcano PodGroup            minMember, minTaskMember, networkTopology, subGroupPolicy
    scheduling.k8s.io           minCount, a topology key; several groups under a composite one

    `snapshot.pod_gangs` applies them to pods (spec placement §7).
    """

    least: int  # over all of the group's pods
    task_least: Mapping[str, int] = {}  # of the pods of one task
    topology: TopologyRequest | None = None
    slices: tuple[Slices, ...] = ()
    priority_class: str = ""
    priority: int | None = None  # worked out from the class already


def least_of_each(least: int, counts: Sequence[int]) -> tuple[int, ...]:
    """Return how many pods of each set there must be for `least` of them all.

    What the other sets cannot make up for even when they are complete.

    >>> least_of_each(4, [3, 3]), least_of_each(4, [6]), least_of_each(2, [3, 3])
    ((1, 1), (4,), (0, 0))
    """
    total = sum(counts)
    return tuple(max(0, least - (total - count)) for count in counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHooks:
    """How an object makes a gang of the pods that name it (`core.pod_groups`).

    An object may describe several gangs; pods then name a part of it, which is empty otherwise.
    """

    rules: Callable[[Any, str, Context], GangRules | None]  # None: it has no such part
    # False: its pods start one by one, as if they did not name it.
    is_gang: Callable[[Any, str], bool] = lambda manifest, part: True
    queue: Callable[[Any], str] = _empty
    # The object of its own namespace, as KIND.GROUP and name, that makes one gang of several.
    parent: Callable[[Any], tuple[str, str] | None] = lambda manifest: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One version of one kind."""

    group: str  # empty for the core group
    version: str
    kind: str
    struct: type[msgspec.Struct]
    namespaced: bool
    is_named: bool = True  # False for configuration files, which need no metadata
    # Rules that the field types cannot say; reports to the notes.
    check: Callable[[Any, Notes], None] | None = None
    # Turns an old version into the one that is stored, after the check.
    upgrade: Callable[[Any], Any] | None = None
    job: JobHooks | None = None
    members: MemberHooks | None = None
    gang: GroupHooks | None = None

    @property
    def api_version(self) -> str:
        """The version as documents write it."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True)
class UnknownKind:
    """Nothing in a decision depends on such an object."""

    near: str = ""  # a known kind of the same group with almost the same name


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """We know the kind, but not in this version."""

    known: tuple[str, ...]  # apiVersions


@dataclass(frozen=True, slots=True)
class Registry:
    """Finds a kind by what a document says of itself."""

    kinds: Mapping[tuple[str, str], Kind] = field(default_factory=dict)

    def look_up(self, api_version: str, kind: str) -> Kind | UnknownKind | UnknownVersion:
        """Return the kind of a document, or in which way it is unknown."""
        found = self.kinds.get((api_version, kind))
        if found is not None:
            return found
        group = api_version.rpartition("/")[0]
        siblings = [known for known in self.kinds.values() if known.group == group]
        versions = tuple(known.api_version for known in siblings if known.kind == kind)
        if versions:
            return UnknownVersion(versions)
        return UnknownKind(nearest(kind, sorted({known.kind for known in siblings})))


def registry(*groups: Iterable[Kind]) -> Registry:
    """Gather the kinds of several modules; a kind that is defined twice is a bug."""
    kinds: dict[tuple[str, str], Kind] = {}
    for group in groups:
        for kind in group:
            key = (kind.api_version, kind.kind)
            assert key not in kinds, f"{key} is defined twice"
            kinds[key] = kind
    return Registry(kinds)
