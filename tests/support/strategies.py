"""Hypothesis strategies for small clusters, workloads and policies.

Small on purpose: four queues, a handful of GPUs and at most two pod sets show nearly every way in
which rules can meet, and a counterexample is still short enough to read. Names are fixed, so that
an edited object replaces one that is there.

    root cohort ── left ── deep        two resources: gpu, cpu (in milli-units, but small)
              └─── right               two flavors:   f (zone 1), g (zone 2, sometimes tainted)

Every queue has two local queues, `ns/<queue>` and `ns/<queue>2`.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from unisono.engine.model.multifactor import (
    Association,
    Limits,
    MultifactorRules,
    Qos,
    SubmitOptions,
    Weights,
)
from unisono.engine.model.names import (
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.policy import (
    AdmissionFairSharing,
    FairSharing,
    PodsReady,
    Policy,
)
from unisono.engine.model.queue import (
    BorrowWithinCohort,
    CheckRule,
    ClusterQueue,
    Cohort,
    Flavor,
    FlavorFungibility,
    FlavorQuota,
    LocalQueue,
    PreemptionRules,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import LabelSelector, Requirement, Taint, Toleration
from unisono.engine.model.snapshot import AdmissionCheck, Namespace, Snapshot
from unisono.engine.model.workload import PodSet, Workload

GPU, CPU = ResourceName("gpu"), ResourceName("cpu")
F, G = FlavorName("f"), FlavorName("g")
QUEUES = tuple(QueueName(name) for name in "abcd")
COHORTS = tuple(CohortName(name) for name in ("root", "left", "right", "deep"))
LOCAL_QUEUES = tuple(LocalQueueKey(f"ns/{name}{suffix}") for name in QUEUES for suffix in ("", "2"))
TEAM_A = LabelSelector((Requirement("team", "In", ("a",)),))
ANY_NAMESPACE = LabelSelector()
SPOT = Taint("spot")

# Instants are milliseconds; back-offs last a minute and more, so a second tells events apart.
SECOND = 1000


T = TypeVar("T")


def mostly(usual: T, *rare: T) -> SearchStrategy[T]:
    """Draw the usual value four times out of five; shrink towards it."""
    return st.sampled_from((usual,) * (4 * len(rare)) + rare)


def nearly(usual: T, *rare: T) -> SearchStrategy[T]:
    """Draw the usual value nineteen times out of twenty."""
    return st.sampled_from((usual,) * (19 * len(rare)) + rare)


# --- quota ---------------------------------------------------------------------------------------


@st.composite
def resource_quotas(draw: st.DrawFn, resource: ResourceName) -> ResourceQuota:
    """Own enough for a few workloads, or nothing; mostly without limits."""
    nominal = draw(st.sampled_from((4, 6, 8, 3, 2, 0)))
    return ResourceQuota(
        resource=resource,
        nominal=nominal,
        borrowing_limit=draw(mostly(None, 0, 2)),
        lending_limit=draw(mostly(None, 0, nominal // 2)),
    )


def flavor_quotas(name: FlavorName, *resources: ResourceName) -> SearchStrategy[FlavorQuota]:
    """Give one flavor quota for some resources; covered ones that are left out are unmetered."""
    return st.tuples(*(resource_quotas(each) for each in resources)).map(
        lambda quotas: FlavorQuota(name, quotas)
    )


def _group(
    covered: tuple[ResourceName, ...], *flavors: SearchStrategy[FlavorQuota]
) -> SearchStrategy[ResourceGroup]:
    return st.tuples(*flavors).map(lambda each: ResourceGroup(covered=covered, flavors=each))


def _pool(*flavors: FlavorName) -> SearchStrategy[ResourceGroup]:
    return resource_quotas(GPU).map(
        lambda quota: ResourceGroup(
            covered=(GPU,), flavors=tuple(FlavorQuota(name) for name in flavors), pool=(quota,)
        )
    )


ONE_FLAVOR = _group((GPU,), flavor_quotas(F, GPU))
TWO_FLAVORS = _group((GPU,), flavor_quotas(F, GPU), flavor_quotas(G, GPU))
TWO_RESOURCES = _group((GPU, CPU), flavor_quotas(F, GPU, CPU))
ONE_UNMETERED = _group((GPU, CPU), flavor_quotas(F, GPU, CPU), flavor_quotas(G, GPU))
POOL = _pool(F, G)
SAME_POOL = _pool(G, F)

Groups = SearchStrategy[tuple[ResourceGroup, ...]]


def _alone(group: SearchStrategy[ResourceGroup]) -> Groups:
    return group.map(lambda each: (each,))


SIMPLE_GROUPS: Groups = _alone(ONE_FLAVOR)
# Queues that share quota have to name it alike, so a cluster keeps mostly to one of these.
STYLES: tuple[Groups, ...] = (
    SIMPLE_GROUPS,
    _alone(TWO_FLAVORS),
    _alone(TWO_RESOURCES),
    _alone(ONE_UNMETERED),
    _alone(POOL | SAME_POOL),
)
GROUPS: Groups = st.one_of(STYLES)

WEIGHTS = mostly(1000, 0, 250, 2000, 3000)


# --- rules ---------------------------------------------------------------------------------------


@st.composite
def preemption_rules(draw: st.DrawFn, *, eager: bool = False) -> PreemptionRules:
    """Draw preemption rules; `eager` ones can always reclaim."""
    reclaim = draw(st.sampled_from(_RECLAIM[:2]) if eager else mostly(*_RECLAIM))
    policy = draw(st.sampled_from(_BORROW[:1] if reclaim == "Never" else _BORROW))
    threshold = draw(st.none() | st.integers(0, 2)) if policy != "Never" else None
    return PreemptionRules(
        within_queue=draw(st.sampled_from(_WITHIN)),
        reclaim=reclaim,
        borrow=BorrowWithinCohort(policy=policy, max_priority_threshold=threshold),
        min_runtime_ms=draw(mostly(0, 90 * SECOND)),
    )


_Reclaim = Literal["Any", "LowerPriority", "Never"]
_RECLAIM: tuple[_Reclaim, ...] = ("Any", "LowerPriority", "Never")
_BORROW: tuple[Literal["Never", "LowerPriority"], ...] = ("Never", "LowerPriority")
_WITHIN: tuple[Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"], ...] = (
    "Never",
    "LowerPriority",
    "LowerOrNewerEqualPriority",
)

FUNGIBILITIES = st.sampled_from(
    (
        FlavorFungibility(),
        FlavorFungibility(when_can_preempt="MayStopSearch"),
        FlavorFungibility(when_can_borrow="TryNextFlavor"),
        FlavorFungibility(when_can_borrow="TryNextFlavor", preference="BorrowingOverPreemption"),
        FlavorFungibility(when_can_borrow="TryNextFlavor", preference="PreemptionOverBorrowing"),
    )
)


@st.composite
def queues(
    draw: st.DrawFn,
    name: QueueName,
    *,
    groups: Groups = GROUPS,
    cohorts: tuple[CohortName | None, ...] = (*COHORTS, None),
    eager: bool = False,
) -> ClusterQueue:
    """Draw a ClusterQueue that is open, most of the time."""
    return ClusterQueue(
        name=name,
        cohort=draw(st.sampled_from(cohorts)),
        groups=draw(groups),
        strategy=draw(mostly("BestEffortFIFO", "StrictFIFO")),
        namespace_selector=draw(nearly(ANY_NAMESPACE, TEAM_A)),
        fungibility=draw(FUNGIBILITIES),
        preemption=draw(preemption_rules(eager=eager)),
        checks=draw(nearly((), (CheckRule("prov"),))),
        weight_milli=draw(WEIGHTS),
        usage_based_admission=draw(st.booleans()),
    )


@st.composite
def cohorts(
    draw: st.DrawFn,
    name: CohortName,
    *,
    groups: Groups = GROUPS,
    parents: tuple[CohortName | None, ...] = (*COHORTS, None),
) -> Cohort:
    """Draw a cohort; with any parent, so also one that closes a cycle."""
    return Cohort(
        name=name,
        parent=draw(st.sampled_from(parents)),
        groups=draw(groups | st.just(())),
        weight_milli=draw(WEIGHTS),
    )


PARENTS: dict[CohortName, tuple[CohortName | None, ...]] = {
    COHORTS[0]: (None,),
    COHORTS[1]: (COHORTS[0],),
    COHORTS[2]: (COHORTS[0], None),
    COHORTS[3]: (COHORTS[1], COHORTS[0]),
}


def flavors(name: FlavorName) -> SearchStrategy[Flavor]:
    """Draw a flavor: labelled with its zone; now and then it repels pods."""
    zone = "1" if name == F else "2"
    return nearly((), (SPOT,)).map(
        lambda taints: Flavor(name=name, node_labels=(("zone", zone),), node_taints=taints)
    )


# --- workloads -----------------------------------------------------------------------------------


@st.composite
def pod_sets(draw: st.DrawFn, *, name: str, simple: bool) -> PodSet:
    """Draw a pod set; a simple one asks for GPUs only and never for a zone."""
    count = draw(st.sampled_from((1, 2, 3, 1, 4)))
    wanted: dict[str, int] = {"gpu": draw(st.sampled_from((1, 2, 1, 3)))}
    if not simple and draw(nearly(False, True)):
        wanted["cpu"] = draw(st.integers(0, 2))
    return PodSet(
        name=name,
        count=count,
        min_count=draw(mostly(None, 1, count)),
        requests=amounts(wanted),
        node_selector=() if simple else draw(nearly((), (("zone", "1"),), (("zone", "2"),))),
        tolerations=() if simple else draw(mostly((), (Toleration("spot", "Exists"),))),
    )


@st.composite
def workloads(
    draw: st.DrawFn,
    name: str,
    *,
    local_queues: tuple[LocalQueueKey, ...] = LOCAL_QUEUES,
    simple: bool = False,
    latest: int = 20,
) -> Workload:
    """Draw a workload; simultaneous ones, and ones that arrive out of order, are likely."""
    sets = [draw(pod_sets(name="main", simple=simple))]
    if not simple and draw(mostly(False, True)):
        sets.append(draw(pod_sets(name="more", simple=simple)))
    return Workload(
        key=WorkloadKey(f"ns/{name}"),
        uid=name,
        queue=draw(st.sampled_from(local_queues)),
        pod_sets=tuple(sets),
        priority=draw(st.integers(0, 2)),
        created_at=Instant(draw(st.integers(0, latest)) * SECOND),
        can_shrink=draw(st.booleans()),
        submit_options=SubmitOptions(
            account=draw(st.sampled_from(("", "a", "b"))),
            user=draw(st.sampled_from(("", "ann"))),
            qos=draw(st.sampled_from(("", "plain", "tight"))),
            hold=draw(nearly("", "user")),
        ),
    )


# --- policies ------------------------------------------------------------------------------------

STRATEGIES = st.sampled_from(
    (
        FairSharing(),
        FairSharing(strategies=("LessThanOrEqualToFinalShare",)),
        FairSharing(strategies=("LessThanInitialShare",)),
    )
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw a policy: classical or fair sharing, each with everything else that may be on."""
    recent = AdmissionFairSharing(half_life_ms=3600 * SECOND, sampling_ms=300 * SECOND)
    blocking = PodsReady(block_admission=True)
    return Policy(
        fair_sharing=draw(st.none() | STRATEGIES),
        admission_fair_sharing=draw(mostly(None, recent)),
        pods_ready=draw(nearly(None, blocking)),
        undeclared=draw(nearly("Block", "Ignore")),
        strict=draw(mostly(False, True)),
        multifactor=draw(mostly(None, draw(turns()))),
    )


@st.composite
def turns(draw: st.DrawFn) -> MultifactorRules:
    """Draw an order by accounts, with limits that bite."""
    limits = Limits(
        group_jobs=draw(st.sampled_from((None, 2, 4))),
        tres_per_user=draw(st.sampled_from(((), (("gres/gpu", 3000),)))),
        submitted_per_user=draw(mostly(None, 3)),
        jobs_accruing_per_user=draw(mostly(None, 1)),
    )
    return MultifactorRules(
        weights=Weights(age=1000, fair_share=1000, qos=100),
        max_age_ms=3600 * SECOND,
        half_life_ms=600 * SECOND,
        compat=draw(mostly(False, True)),
        associations=(
            Association(account="a", limits=Limits(group_tres=(("gres/gpu", 4000),))),
            Association(account="b", shares=3),
        ),
        qos=(Qos(name="plain"), Qos(name="tight", priority=10, limits=limits)),
        default_account="b",
    )


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    policy: SearchStrategy[Policy] | None = None,
    groups: Groups | None = None,
    eager: bool = False,
) -> Snapshot:
    """Draw a configured cluster without workloads."""
    names = COHORTS[: draw(st.integers(1, len(COHORTS)))]
    size = draw(st.sampled_from((2, 3, 4, 1)))
    places = (*names, None) if draw(mostly(False, True)) else names
    style = draw(st.sampled_from(STYLES)) if groups is None else groups
    return Snapshot(
        policy=draw(policies() if policy is None else policy),
        flavors=(draw(flavors(F)), draw(flavors(G))),
        cohorts=tuple(
            draw(cohorts(name, groups=style, parents=PARENTS[name]))
            for name in names
            if draw(mostly(True, False))
        ),
        queues=tuple(
            draw(queues(name, groups=style, cohorts=places, eager=eager)) for name in QUEUES[:size]
        ),
        local_queues=tuple(
            LocalQueue(key=key, queue=QueueName(key[3]), weight_milli=draw(WEIGHTS))
            for key in LOCAL_QUEUES[: 2 * size]
        ),
        namespaces=(Namespace("ns", (("team", "a"),)),),
        checks=(AdmissionCheck("prov"),),
    )
