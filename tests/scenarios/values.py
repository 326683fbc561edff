"""The short words of a scenario as engine values: queues, cohorts, flavors, workloads.

Everything that a scenario leaves out gets the engine's own default, so a file states only what its
story is about. `README.md` beside this file is the grammar.
"""

from __future__ import annotations

import re
from typing import Any

from tests.scenarios import nodes
from tests.scenarios.offerings import buying
from tests.scenarios.reading import Part
from tests.scenarios.words import (
    DEFAULT_NAMESPACE,
    RESOURCES,
    key_of,
    labels,
    requests,
    resource,
    taint,
)
from unisono.engine.model.multifactor import SubmitOptions
from unisono.engine.model.names import (
    PODS,
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    QueueName,
    ResourceName,
)
from unisono.engine.model.provisioning import ProvisioningOptions
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
from unisono.engine.model.workload import (
    Admission,
    AdmittedWorkload,
    PodSet,
    PodSetAssignment,
    Workload,
)
from unisono.kinds.job_annotations import read_array

DEFAULT_FLAVOR = FlavorName("f")
_QUOTA = re.compile(r"(?P<nominal>[^/]+)(/bl(?P<bl>[^/]+))?(/ll(?P<ll>[^/]+))?")

_QUEUE_FIELDS = (
    *("quota", "cohort", "strict", "within", "reclaim", "borrow", "min_runtime", "weight", "stop"),
    *("checks", "namespaces", "usage_based", "when_can_borrow", "when_can_preempt", "preference"),
)
_TOLERATION = re.compile(r"(?P<key>[^=:]+)(=(?P<value>[^:]*))?(:(?P<effect>\w+))?")
_POD_FIELDS = ("pods", "min", "selector", "tolerates", "nodes", *nodes.PLACE_FIELDS)
_WORKLOAD_FIELDS = (
    *(
        "queue",
        "local",
        "namespace",
        "prio",
        "at",
        "sets",
        "together",
        "replaces",
        "copies",
        "buying",
    ),
    "shrinks",
)
_LIMIT_FIELDS = ("max_execution", "accounting", "limit", "begin", "deadline", "array")
_RUNNING_FIELDS = ("since", "flavor", "flavors", "evicting", "admitted", "ready")


# --- quota ---------------------------------------------------------------------------------------


def groups(part: Part) -> tuple[ResourceGroup, ...]:
    """Read a quota: `4/bl2/ll1`, flavors with amounts, flavors with resources, a pool, a list."""
    if part.value is None:
        return ()
    if part.is_scalar():
        quota = _quota(part, "gpu")
        only = FlavorQuota(DEFAULT_FLAVOR, (quota,))
        return (ResourceGroup(covered=(quota.resource,), flavors=(only,)),)
    if isinstance(part.value, list):
        return tuple(_group(item) for item in part.items())
    return (_group(part),)


def _group(part: Part) -> ResourceGroup:
    entries = dict(part.entries())
    if "pool" in entries:
        flavors = entries.pop("pool").names()
        pool = tuple(_quota(amount, word) for word, amount in entries.items())
        empty = tuple(FlavorQuota(FlavorName(flavor)) for flavor in flavors)
        covered = tuple(quota.resource for quota in pool)
        return ResourceGroup(covered=covered, flavors=empty, pool=pool)
    quotas = []
    for name, amount in entries.items():
        by_word = {"gpu": amount} if amount.is_scalar() else dict(amount.entries())
        listed = tuple(_quota(inner, word) for word, inner in by_word.items())
        quotas.append(FlavorQuota(FlavorName(name), listed))
    ordered = dict.fromkeys(quota.resource for flavor in quotas for quota in flavor.resources)
    return ResourceGroup(covered=tuple(ordered), flavors=tuple(quotas))


def _quota(part: Part, word: str) -> ResourceQuota:
    """Read nominal quota, borrowing limit and lending limit: `4/bl2/ll1`."""
    name = resource(part, word)
    shape = _QUOTA.fullmatch(part.text())
    if shape is None:
        part.fail(f"must look like 4, 4/bl2, 4/ll1 or 4/bl2/ll1, not {part.value!r}")

    def amount(text: str) -> int:
        return Part(text, part.path).amount(name)

    return ResourceQuota(
        resource=name,
        nominal=amount(shape["nominal"]),
        borrowing_limit=None if shape["bl"] is None else amount(shape["bl"]),
        lending_limit=None if shape["ll"] is None else amount(shape["ll"]),
    )


# --- queues, cohorts, flavors --------------------------------------------------------------------


def as_mapping(part: Part, field: str) -> Part:
    """Let a bare value stand for a mapping with one field: `q: 8` is `q: {quota: 8}`."""
    return Part({field: part.value}, part.path) if part.is_scalar() else part


def cluster_queue(name: str, part: Part) -> ClusterQueue:
    """Read a ClusterQueue."""
    given = part.fields(*_QUEUE_FIELDS)
    return ClusterQueue(
        name=QueueName(name),
        cohort=_optional_name(given.get("cohort")),
        groups=groups(given["quota"]) if "quota" in given else (),
        strategy="StrictFIFO" if "strict" in given and given["strict"].flag() else "BestEffortFIFO",
        namespace_selector=LabelSelector(_requirements(given.get("namespaces"))),
        fungibility=FlavorFungibility(
            **_words(given, "when_can_borrow", "MayStopSearch", "TryNextFlavor"),
            **_words(given, "when_can_preempt", "MayStopSearch", "TryNextFlavor"),
            **_words(given, "preference", "BorrowingOverPreemption", "PreemptionOverBorrowing"),
        ),
        preemption=_preemption(given),
        checks=tuple(CheckRule(check) for check in given["checks"].names())
        if "checks" in given
        else (),
        usage_based_admission="usage_based" in given and given["usage_based"].flag(),
        **_words(given, "stop", "None", "Hold", "HoldAndDrain"),
        **_weight(given),
    )


def _preemption(given: dict[str, Part]) -> PreemptionRules:
    found: dict[str, Any] = {}
    if "within" in given:
        found["within_queue"] = given["within"].one_of(
            "Never", "LowerPriority", "LowerOrNewerEqualPriority"
        )
    if "reclaim" in given:
        found["reclaim"] = given["reclaim"].one_of("Never", "LowerPriority", "Any")
    if "borrow" in given:
        rule = as_mapping(given["borrow"], "policy").fields("policy", "threshold")
        found["borrow"] = BorrowWithinCohort(
            policy=rule["policy"].one_of("Never", "LowerPriority"),
            max_priority_threshold=rule["threshold"].whole() if "threshold" in rule else None,
        )
    if "min_runtime" in given:
        found["min_runtime_ms"] = given["min_runtime"].milliseconds()
    return PreemptionRules(**found)


def cohort(name: str, part: Part) -> Cohort:
    """Read a cohort."""
    given = part.fields("quota", "parent", "weight")
    return Cohort(
        name=CohortName(name),
        parent=_optional_name(given.get("parent")),
        groups=groups(given["quota"]) if "quota" in given else (),
        **_weight(given),
    )


def local_queue(name: str, part: Part) -> LocalQueue:
    """Read a local queue; `used` is what it used lately, in GPUs."""
    given = part.fields("queue", "namespace", "stop", "weight", "used")
    namespace = given["namespace"].text() if "namespace" in given else DEFAULT_NAMESPACE
    return LocalQueue(
        key=LocalQueueKey(f"{namespace}/{name}"),
        queue=QueueName(given["queue"].text()),
        consumed_micro=((RESOURCES["gpu"], given["used"].milli() * 1000),)
        if "used" in given
        else (),
        **_words(given, "stop", "None", "Hold", "HoldAndDrain"),
        **_weight(given),
    )


def flavor(name: str, part: Part) -> Flavor:
    """Read a flavor."""
    given = part.fields("labels", "taints", "topology")
    taints = given["taints"].items() if "taints" in given else []
    return Flavor(
        name=FlavorName(name),
        topology=given["topology"].text() if "topology" in given else "",
        node_labels=labels(given["labels"]) if "labels" in given else (),
        node_taints=tuple(Taint(*taint(item)) for item in taints),
    )


def _requirements(part: Part | None) -> tuple[Requirement, ...]:
    if part is None:
        return ()
    return tuple(Requirement(key, "In", (value,)) for key, value in labels(part))


def _optional_name(part: Part | None) -> Any:
    return None if part is None or part.value is None else part.text()


def _words(given: dict[str, Part], field: str, *known: str) -> dict[str, Any]:
    return {field: given[field].one_of(*known)} if field in given else {}


def _weight(given: dict[str, Part]) -> dict[str, Any]:
    return {"weight_milli": given["weight"].milli()} if "weight" in given else {}


# --- workloads -----------------------------------------------------------------------------------


def workload(name: str, part: Part, *, created_at: Instant) -> Workload:
    """Read a submitted workload."""
    everything = (*_WORKLOAD_FIELDS, *_POD_FIELDS, *_LIMIT_FIELDS, *_RUNNING_FIELDS, *RESOURCES)
    given = part.fields(*everything)
    namespace = given["namespace"].text() if "namespace" in given else DEFAULT_NAMESPACE
    if ("queue" in given) == ("local" in given):
        part.fail("names either a queue or a local queue")
    local_queue = given["local" if "local" in given else "queue"].text()
    if "sets" in given:
        pod_sets = tuple(_pod_set(inner, body, name) for inner, body in given["sets"].entries())
    else:
        outer = (*_WORKLOAD_FIELDS, *_LIMIT_FIELDS, *_RUNNING_FIELDS)
        rest = {field: value for field, value in part.value.items() if field not in outer}
        pod_sets = (_pod_set("main", Part(rest, part.path), name),)
    array, array_limit = read_array(given["array"].text()) if "array" in given else ("", 0)
    return Workload(
        key=key_of(name, namespace),
        uid=name,
        queue=LocalQueueKey(f"{namespace}/{local_queue}"),
        pod_sets=pod_sets,
        priority=given["prio"].whole() if "prio" in given else 0,
        created_at=created_at,
        replaces=key_of(given["replaces"].text()) if "replaces" in given else None,
        min_total=given["together"].whole() if "together" in given else None,
        can_shrink="shrinks" in given and given["shrinks"].flag(),
        max_execution_ms=given["max_execution"].milliseconds()
        if "max_execution" in given
        else None,
        submit_options=accounting(given["accounting"])
        if "accounting" in given
        else SubmitOptions(),
        time_limit_ms=given["limit"].milliseconds() if "limit" in given else None,
        begin_at=Instant(given["begin"].milliseconds()) if "begin" in given else None,
        deadline=Instant(given["deadline"].milliseconds()) if "deadline" in given else None,
        array=array,
        array_limit=array_limit,
        buying=buying(given["buying"]) if "buying" in given else ProvisioningOptions(),
    )


def accounting(part: Part) -> SubmitOptions:
    """Read whose a workload is: `{account, user, qos, partition, nice, …}`."""
    numbers = ("nice", "site", "priority", "number", "task")
    given = part.fields("account", "user", "qos", "partition", "hold", *numbers)
    found: dict[str, Any] = {
        name: value.whole() if name in numbers else value.text() for name, value in given.items()
    }
    return SubmitOptions(**found)


def _pod_set(name: str, part: Part, owner: str) -> PodSet:
    given = part.fields(*_POD_FIELDS, *RESOURCES)
    asked = {word: value for word, value in given.items() if word not in _POD_FIELDS}
    return PodSet(
        name=name,
        count=given["pods"].whole() if "pods" in given else 1,
        min_count=given["min"].whole() if "min" in given else None,
        requests=amounts(requests(asked)),
        node_selector=labels(given["selector"]) if "selector" in given else (),
        tolerations=tuple(_toleration(item) for item in given["tolerates"].items())
        if "tolerates" in given
        else (),
        **nodes.place(given, owner),
    )


def _toleration(part: Part) -> Toleration:
    """Read `key=value:NoSchedule`; without a value any value will do, without an effect any."""
    shape = _TOLERATION.fullmatch(part.text())
    if shape is None:
        part.fail(f"must look like key, key=value, or key=value:NoSchedule, not {part.value!r}")
    value, effect = shape["value"] or "", shape["effect"] or ""
    return Toleration(shape["key"], "Equal" if value else "Exists", value, effect)


def admitted(wanted: Workload, part: Part, queue: ClusterQueue) -> AdmittedWorkload:
    """Read a workload that runs already: on the flavors named, else on the first of each group."""

    def flag(field: str, default: bool) -> bool:
        return part[field].flag() if field in part.value else default

    since = part["since"].milliseconds() if "since" in part.value else wanted.created_at
    return AdmittedWorkload(
        workload=wanted,
        admission=Admission(
            queue=queue.name,
            pod_sets=tuple(
                PodSetAssignment(
                    name=pods.name,
                    count=pods.count,
                    flavors=_flavors(pods, part, queue),
                    nodes=_nodes(pods, part),
                )
                for pods in wanted.pod_sets
            ),
        ),
        reserved_at=Instant(since),
        evicting=flag("evicting", False),
        may_start=flag("admitted", True),
        ready=flag("ready", True),
    )


def _nodes(pods: PodSet, part: Part) -> tuple[tuple[NodeName, int], ...]:
    body = part["sets"][pods.name] if "sets" in part.value else part
    return nodes.pods_on(body["nodes"], pods.count) if "nodes" in body.value else ()


def _flavors(
    pods: PodSet, part: Part, queue: ClusterQueue
) -> tuple[tuple[ResourceName, FlavorName], ...]:
    named = dict(part["flavors"].entries()) if "flavors" in part.value else {}
    by_resource = {resource(value, word): value.text() for word, value in named.items()}
    everywhere = part["flavor"].text() if "flavor" in part.value else None
    wanted = [name for name, _ in pods.requests]
    if any(PODS in group.covered for group in queue.groups):
        wanted.append(PODS)
    found = []
    for name in sorted(wanted):
        group = next((group for group in queue.groups if name in group.covered), None)
        if group is None:
            part.fail(f"queue {queue.name} has no quota for {name}")
        chosen = by_resource.get(name) or everywhere or group.flavors[0].flavor
        if chosen not in [quota.flavor for quota in group.flavors]:
            part.fail(f"queue {queue.name} has no quota for {name} of flavor {chosen}")
        found.append((name, FlavorName(chosen)))
    return tuple(found)
