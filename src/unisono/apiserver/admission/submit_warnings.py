"""Warnings at the moment of submission: what would otherwise wait in silence.

    a job      its queue does not exist, is stopped, or does not take its namespace
               it names no queue although there are some: it runs outside of quota, or waits
               it asks for more than the queue may ever use
               a Volcano job names a Queue that does not exist, or is closed
               its priority class does not exist
               no node has the labels of any flavor that it could get
               no empty node could hold one of its pods, or all of them together
               it asks for mails that are not sent
               its pods ask for devices by dynamic resource allocation
    a queue    what it refers to does not exist
    any        a time limit, a begin or a deadline cannot be read

All of it may be mended later, so nothing is refused. A job is looked at in two steps, since most
jobs are small: one that fits into its queue's own quota needs no second look; for any other the
engine is asked (`kinds.submission`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from unisono.apiserver.admission.foreign_queues import KEPT
from unisono.apiserver.admission.suspend import (
    LOCAL_QUEUES,
    PODS,
    POLICIES,
    default_queue,
    is_alone_and_ours,
    job_kind,
    managed_owner,
    namespace_labels,
    read_settings,
)
from unisono.apiserver.builtin.jobs import shape_of
from unisono.apiserver.builtin.typed_validation import known_kind
from unisono.apiserver.caches import VerdictCache
from unisono.apiserver.objects import Json, at, items, labels_of
from unisono.apiserver.strategy import Context
from unisono.kinds.core.device_claims import device_claims, may_claim_devices
from unisono.kinds.core.pod_groups import GROUP_NAME, TOTAL_COUNT
from unisono.kinds.core.schema import PodSpec
from unisono.kinds.decode import decode
from unisono.kinds.digits import whole_number
from unisono.kinds.job_annotations import wrong_with_annotations
from unisono.kinds.known import KNOWN
from unisono.kinds.kueue.unsupported import NO_EFFECT
from unisono.kinds.meta import is_selected
from unisono.kinds.nearest import did_you_mean
from unisono.kinds.node_fit import FlavorNodes, Room, flavor_nodes, healthy_node
from unisono.kinds.notes import Notes
from unisono.kinds.notifying import NOTIFY, NOTIFY_TO, USER, events_of, wrong_with_notifying
from unisono.kinds.policy.notifications import addresses_of
from unisono.kinds.policy.settings import is_managed
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Kind
from unisono.kinds.resource_rules import NO_RULES, ResourceRules
from unisono.kinds.shapes.served import Served, served_kinds
from unisono.kinds.snapshot.candidates import DEFAULT_QUEUE, QUEUE_LABEL, QUEUE_LABEL_PATH
from unisono.kinds.submission import pod_sets_of, total_requests, why_never

CLUSTER_QUEUES = "kueue.x-k8s.io/clusterqueues"
VOLCANO_JOBS = "batch.volcano.sh/jobs"
VOLCANO_QUEUES = "scheduling.volcano.sh/queues"
TRAIN_JOBS = "trainer.kubeflow.org/trainjobs"
CLUSTER_RUNTIMES = "trainer.kubeflow.org/clustertrainingruntimes"
RUNTIMES = "trainer.kubeflow.org/trainingruntimes"
COHORTS = "kueue.x-k8s.io/cohorts"
FLAVORS = "kueue.x-k8s.io/resourceflavors"
DEVICE_CLASSES = "resource.k8s.io/deviceclasses"
PRIORITY_CLASSES = "kueue.x-k8s.io/workloadpriorityclasses"
T = TypeVar("T")

_MOST_LISTED = 5  # queues in a warning
# Everything that the engine needs to know of a cluster in which nothing runs.
_CONFIGURATION = (CLUSTER_QUEUES, COHORTS, FLAVORS, "kueue.x-k8s.io/topologies")


def advise(served: Served, obj: Json, context: Context) -> Iterator[str]:
    """Yield warnings about a new object."""
    metadata = at(obj, "metadata")
    annotations = at(metadata, "annotations")
    for path, reason in wrong_with_annotations(annotations).items() if annotations else ():
        yield f"{path}: {reason}"
    if served.key == LOCAL_QUEUES:
        yield from _about_local_queue(obj, context)
    elif served.key == CLUSTER_QUEUES:
        yield from _about_queue(obj, context)
    elif served.key == FLAVORS:
        yield from _about_flavor(obj, context)
    elif served.key == "apps/daemonsets":
        yield from _about_daemon_set(obj)
    elif served.key == "leaderworkerset.x-k8s.io/leaderworkersets":
        yield from _about_leader_worker_set(obj)
    elif served.key == PODS or job_kind(served) is not None:
        yield from _about_notifications(annotations, context)
        yield from _about_words(metadata)
        claims = [*_about_devices(obj, context)]
        yield from claims
        yield from _about_job(served, obj, context, can_run=not claims)


def _about_notifications(given: Json, context: Context) -> Iterator[str]:
    """Warn about words that mean nothing, and about addresses that get no mail."""
    if NOTIFY not in given and NOTIFY_TO not in given:
        return
    yield from (f"{path}: {reason}" for path, reason in wrong_with_notifying(given))
    if events_of(given):
        user = str(given.get(USER) or "")
        _, refused = addresses_of(read_settings(context).notifications, given, user)
        path = f"metadata.annotations[{NOTIFY_TO if NOTIFY_TO in given else NOTIFY}]"
        yield from (f"{path}: gets no mail: {reason}" for reason in refused)


# ---- words of Kueue's ----------------------------------------------------------------------------


def _about_words(metadata: Json) -> Iterator[str]:
    """Warn about annotations and labels that Kueue knows, and that mean nothing here."""
    for part in ("annotations", "labels"):
        for key in metadata.get(part) or ():
            if key in NO_EFFECT:
                yield f"metadata.{part}[{key}]: has no effect here: {NO_EFFECT[key]}"


# ---- devices -----------------------------------------------------------------------------------


_MOST_DEEP = 12  # levels down to a pod template; RayJobs, the deepest, have seven


def _about_devices(obj: Json, context: Context) -> Iterator[str]:
    """Warn about pods that ask for devices in a way that keeps them waiting."""
    kept = _remembered(context).without_devices
    shape = context.shape_key, context.stamp(DEVICE_CLASSES)
    if shape in kept:
        return
    named = {at(one, "spec").get("extendedResourceName") for one in context.every(DEVICE_CLASSES)}
    # Hardly a pod asks for any: only those that may are decoded.
    asking = [
        (path, raw)
        for path, raw in _pod_specs(obj.get("spec"), "spec", _MOST_DEEP)
        if may_claim_devices(raw, named)
    ]
    if not asking and context.shape_key:
        _keep(kept, shape, None)
    if not asking or managed_owner(obj, context) is not None:
        return
    namespace = str(at(obj, "metadata").get("namespace") or "")
    notes = Notes(file="", document=0)
    around = StoredContext(namespace, notes, context, NO_RULES, left_out=())
    for path, raw in asking:
        spec, _ = decode(PodSpec, raw, ignore_unknown=True)
        for claimed in device_claims(spec, around) if spec is not None else ():
            yield f"{path}.{claimed.path}: {claimed.message}; it waits"


def _pod_specs(node: Any, path: str, depth: int) -> Iterator[tuple[str, Json]]:
    """Yield every pod spec within an object, and where it is."""
    if isinstance(node, dict):
        if isinstance(node.get("containers"), list):
            yield path, node
        elif depth:
            for key, below in node.items():
                yield from _pod_specs(below, f"{path}.{key}", depth - 1)
    elif isinstance(node, list) and depth:
        for index, below in enumerate(node):
            yield from _pod_specs(below, f"{path}[{index}]", depth - 1)


# ---- queues ------------------------------------------------------------------------------------


def _about_local_queue(obj: Json, context: Context) -> Iterator[str]:
    name = str(at(obj, "spec").get("clusterQueue") or "")
    if name and context.find(CLUSTER_QUEUES, "", name) is None:
        yield f"spec.clusterQueue: {_missing('ClusterQueue', name, CLUSTER_QUEUES, context)}"


def _about_queue(obj: Json, context: Context) -> Iterator[str]:
    for index, group in enumerate(items(at(obj, "spec"), "resourceGroups")):
        for number, name in enumerate(flavor_names(group)):
            if context.find(FLAVORS, "", name) is None:
                path = f"spec.resourceGroups[{index}].flavors[{number}]"
                yield f"{path}: {_missing('ResourceFlavor', name, FLAVORS, context)}"


def _about_flavor(obj: Json, context: Context) -> Iterator[str]:
    if _is_somewhere(at(obj, "spec", "nodeLabels"), context) is False:
        yield "spec.nodeLabels: no node has these labels yet"


def flavor_names(group: Mapping[str, Any]) -> list[str]:
    """Return the flavors of a raw resource group, whether it is pooled or not."""
    names: list[str] = []
    for flavor in group.get("flavors") or ():
        name = flavor.get("name") if isinstance(flavor, dict) else flavor
        names.append(str(name))
    return names


def _missing(
    kind: str, name: str, key: str, context: Context, namespace: str = "", *, then: str = ""
) -> str:
    known = [str(at(one, "metadata").get("name")) for one in context.every(key, namespace)]
    where = f" in namespace {namespace}" if namespace else ""
    return f'there is no {kind} "{name}"{where} yet{then}{did_you_mean(name, known)}'


# ---- jobs --------------------------------------------------------------------------------------


def _about_runtime(obj: Json, context: Context) -> Iterator[str]:
    """A TrainJob without its runtime cannot begin."""
    ref = at(obj, "spec", "runtimeRef")
    name, kind = str(ref.get("name") or ""), str(ref.get("kind") or "ClusterTrainingRuntime")
    is_shared = kind == "ClusterTrainingRuntime"
    key = CLUSTER_RUNTIMES if is_shared else RUNTIMES
    namespace = "" if is_shared else str(at(obj, "metadata").get("namespace") or "")
    if name and context.find(key, namespace, name) is None:
        missing = _missing(
            kind, name, key, context, namespace, then="; it waits until there is one"
        )
        yield f"spec.runtimeRef: {missing}"


def _about_job(served: Served, obj: Json, context: Context, *, can_run: bool) -> Iterator[str]:
    metadata = at(obj, "metadata")
    queue = at(metadata, "labels").get(QUEUE_LABEL, "")
    namespace = str(metadata.get("namespace") or "")
    if not queue and served.key == TRAIN_JOBS:
        yield from _about_runtime(obj, context)  # with a queue, its requests cannot be told without
    if not queue and served.key == VOLCANO_JOBS:
        yield from _about_volcano_queue(obj, namespace, context)
    if managed_owner(obj, context) is not None:
        return
    labels = namespace_labels(namespace, context)
    kind_of_job = _kind(served) if can_run else None
    if not queue:
        is_owned = bool(items(metadata, "ownerReferences"))
        yield from _about_no_queue(served, obj, labels, context, is_owned=is_owned)
        if kind_of_job is not None and not is_owned:
            asked = _asked_together(kind_of_job, obj, namespace, context)
            _, pod_sets, wrong = _wanted(kind_of_job, obj, asked, namespace, context)
            if not wrong:
                yield from _about_nodes(pod_sets, None, context)
        return
    if not is_managed(read_settings(context), labels):
        yield f"{QUEUE_LABEL_PATH}: namespace {namespace} is not managed; it runs without a queue"
        return
    priority = labels_of(obj).get(PRIORITY_LABEL, "")
    if priority and context.find(PRIORITY_CLASSES, "", priority) is None:
        missing = _missing(
            "WorkloadPriorityClass", priority, PRIORITY_CLASSES, context, then="; priority 0"
        )
        yield f"metadata.labels[{PRIORITY_LABEL}]: {missing}"
    if queue.startswith(KEPT):
        return  # a queue of Volcano, which needs no LocalQueue
    local_queue = context.find(LOCAL_QUEUES, namespace, queue)
    if local_queue is None:
        waits = "; it waits until there is one"
        missing = _missing("LocalQueue", queue, LOCAL_QUEUES, context, namespace, then=waits)
        yield f"{QUEUE_LABEL_PATH}: {missing}"
        return
    behind = str(at(local_queue, "spec").get("clusterQueue"))
    cluster_queue = context.find(CLUSTER_QUEUES, "", behind)
    if cluster_queue is None:
        yield f"LocalQueue {queue} leads to ClusterQueue {behind}, which does not exist; it waits"
        return
    inactive = _inactive(cluster_queue)
    if inactive:
        yield f"it waits: {inactive}"
    for kind, one in (("LocalQueue", local_queue), ("ClusterQueue", cluster_queue)):
        stop = at(one, "spec").get("stopPolicy")
        if stop in ("Hold", "HoldAndDrain"):
            yield f"{kind} {at(one, 'metadata').get('name')} is stopped ({stop}); it waits"
    selector = at(cluster_queue, "spec").get("namespaceSelector")
    if isinstance(selector, dict) and selector and not is_selected(selector, labels):
        yield f"ClusterQueue {behind} takes no jobs from namespace {namespace}; it waits"
    if kind_of_job is not None:
        yield from _about_size(kind_of_job, obj, local_queue, cluster_queue, context)


def _inactive(cluster_queue: Mapping[str, Any]) -> str:
    """Return why a queue admits nothing, other than that it is stopped; empty if it does."""
    for one in items(at(cluster_queue, "status"), "conditions"):
        if one.get("type") == "Active" and one.get("status") == "False":
            if one.get("reason") not in ("Stopped", "Terminating"):
                return str(one.get("message") or one.get("reason") or "")
    return ""


def _kind(served: Served) -> Kind | None:
    """Return the kind of a job, or of pods."""
    return KNOWN.kinds.get(("v1", "Pod")) if served.key == PODS else job_kind(served)


def _about_no_queue(
    served: Served, obj: Json, labels: Mapping[str, str], context: Context, *, is_owned: bool
) -> Iterator[str]:
    """Warn about a job outside of quota, where there is quota."""
    if served.key == VOLCANO_JOBS:
        return  # it names a queue of its own kind
    if served.key == PODS and (is_owned or not _asks_for_quota(obj, context)):
        return
    settings = read_settings(context)
    namespace = str(at(obj, "metadata").get("namespace") or "")
    if (
        not is_managed(settings, labels)
        or default_queue(namespace, context)
        or not _is_any(CLUSTER_QUEUES, context)
    ):
        return
    if settings.manages_unqueued and (served.key != PODS or is_alone_and_ours(obj)):
        yield f"{QUEUE_LABEL_PATH}: names no queue; it waits until it does"
        return
    every = context.every(LOCAL_QUEUES, namespace)
    local_queues = sorted(str(at(one, "metadata").get("name")) for one in every)
    known = f" (here: {', '.join(local_queues[:_MOST_LISTED])})" if local_queues else ""
    yield f"{QUEUE_LABEL_PATH}: names no queue{known}, so it runs outside of every quota"


def _asks_for_quota(pod: Json, context: Context) -> bool:
    """Say whether a pod asks for anything that some queue has quota for."""
    asked: set[str] = set()
    for container in items(at(pod, "spec"), "containers"):
        resources = at(container, "resources")
        asked.update(at(resources, "requests"), at(resources, "limits"))
    for queue in context.every(CLUSTER_QUEUES):
        for group in items(at(queue, "spec"), "resourceGroups"):
            if not asked.isdisjoint(group.get("coveredResources") or ()):
                return True
    return False


def _is_any(key: str, context: Context) -> bool:
    """Say whether there is an object of a kind."""
    for _ in context.every(key):
        return True
    return False


def _about_volcano_queue(obj: Json, namespace: str, context: Context) -> Iterator[str]:
    name = str(at(obj, "spec").get("queue") or DEFAULT_QUEUE)
    found = context.find(VOLCANO_QUEUES, "", name)
    if found is None and context.find(LOCAL_QUEUES, namespace, name) is None:
        waits = "; it waits until there is one" if name != DEFAULT_QUEUE else "; it has no limits"
        yield f"spec.queue: {_missing('Queue', name, VOLCANO_QUEUES, context, then=waits)}"
    elif found is not None and at(found, "status").get("state") in ("Closing", "Closed"):
        yield f"spec.queue: Queue {name} is closed; it waits"


def _about_size(
    kind: Kind,
    obj: Json,
    local_queue: Mapping[str, Any],
    cluster_queue: Mapping[str, Any],
    context: Context,
) -> Iterator[str]:
    namespace = str(at(obj, "metadata").get("namespace"))
    asked = _asked_together(kind, obj, namespace, context)
    wanted, pod_sets, wrong = _wanted(kind, obj, asked, namespace, context)
    yield from wrong
    if wrong:
        return
    spec = at(cluster_queue, "spec")
    if _is_small(wanted, spec):
        told = list(_about_flavors(wanted, spec, context))
        yield from told or _about_nodes(pod_sets, spec, context)
        return
    documents = [
        dict(one)
        for one in (
            *(found for key in _CONFIGURATION for found in context.every(key)),
            *_named(context, "/namespaces", "", namespace),
            *_rendered_from(kind, context, namespace),
            local_queue,
            *map(_as_asked, asked),
        )
    ]
    never = why_never(documents, now=_instant(context.now))
    if never:
        yield f"can never be admitted as the queues are now: {never}"
    else:
        yield from _about_nodes(pod_sets, spec, context)


_Wanted = tuple[Mapping[str, int], tuple[Any, ...], tuple[str, ...]]


# Pods of a group come one after the other; those of larger groups are looked at one by one.
_MOST_OF_A_GROUP = 256


def _asked_together(
    kind: Kind, obj: Json, namespace: str, context: Context
) -> tuple[Mapping[str, Any], ...]:
    """Return what has to fit together with a new object: itself, or its whole group of pods.

    Until the last pod of a group is there, each is judged by itself.
    """
    group = labels_of(obj).get(GROUP_NAME, "") if kind.kind == "Pod" else ""
    if not group:
        return (obj,)
    metadata = at(obj, "metadata")
    total = whole_number(at(metadata, "annotations").get(TOTAL_COUNT)) or 0
    if 1 < total <= _MOST_OF_A_GROUP:
        others = [
            one
            for one in context.every(PODS, namespace, saying=group.encode())
            if labels_of(one).get(GROUP_NAME) == group
            and at(one, "metadata").get("name") != metadata.get("name")
        ]
        if len(others) + 1 == total:
            return (*others, obj)
    labels = {key: value for key, value in labels_of(obj).items() if key != GROUP_NAME}
    return ({**obj, "metadata": {**metadata, "labels": labels}},)


def _wanted(
    kind: Kind, obj: Json, asked: Sequence[Mapping[str, Any]], namespace: str, context: Context
) -> _Wanted:
    """Return what all pods ask for together, the pod sets, and why there is no answer, if so.

    What is asked together is mostly the new object alone.
    """
    kept = _remembered(context).wanted
    shape = context.shape_key if len(asked) == 1 and asked[0] is obj else b""
    shape = shape or VerdictCache.key(*(shape_of(dict(one)) for one in asked))
    key = (kind.api_version, kind.kind, namespace, shape, *map(context.stamp, _beside(kind)))
    known = kept.get(key)
    if known is not None:
        return known
    manifests = []
    for one in asked:
        manifest, problems = decode(kind.struct, one, ignore_unknown=True)
        if manifest is None:
            return {}, (), tuple(f"{each.path}: {each.message}" for each in problems)
        manifests.append(manifest)
    notes = Notes(file="", document=0)
    rules = read_settings(context).rules
    around = StoredContext(namespace, notes, context, rules)
    pod_sets = pod_sets_of(kind, manifests, around)
    wrong = (
        *(f"{one.path}: {one.message}" for one in notes.problems),
        *(f"can never run as written: {fault}" for fault in notes.faults),
    )
    if not wrong:
        _keep(kept, key, (total_requests(pod_sets), pod_sets, ()))
    return total_requests(pod_sets), pod_sets, wrong


def _is_small(wanted: Mapping[str, int], spec: Mapping[str, Any]) -> bool:
    """Say whether one flavor of each group has quota for everything that is asked of the group."""
    left = {resource for resource, amount in wanted.items() if amount}
    for group in items(spec, "resourceGroups"):
        asked = {resource for resource in left if resource in (group.get("coveredResources") or ())}
        if asked and not any(
            all(_nominal(quotas, resource) >= wanted[resource] for resource in asked)
            for quotas in _quotas(group)
        ):
            return False
        left -= asked
    return not left


def _quotas(group: Mapping[str, Any]) -> Iterator[list[Json]]:
    """Yield the quotas of each flavor; those of a pool once."""
    if group.get("resources"):
        yield items(group, "resources")
    for flavor in items(group, "flavors"):
        yield items(flavor, "resources")


def _nominal(quotas: list[Json], resource: str) -> int:
    for quota in quotas:
        if quota.get("name") == resource:
            return Quantity.from_raw(quota.get("nominalQuota")).amount(resource)
    return 2**63  # not metered in this flavor


def _as_asked(obj: Mapping[str, Any]) -> Json:
    """Return a job as its author wrote it, without what the server has added to its history."""
    metadata = {
        key: value
        for key, value in at(obj, "metadata").items()
        if key in ("name", "namespace", "labels", "annotations")
    }
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


def _named(context: Context, key: str, namespace: str, name: str) -> Iterator[Mapping[str, Any]]:
    found = context.find(key, namespace, name)
    if found is not None:
        yield found


# What besides itself decides what a job asks for.
_LIMIT_RANGES = "/limitranges"
_RUNTIME_CLASSES = "node.k8s.io/runtimeclasses"
_BESIDE = (_LIMIT_RANGES, _RUNTIME_CLASSES, POLICIES)
_BESIDE_TRAIN_JOBS = (*_BESIDE, CLUSTER_RUNTIMES, RUNTIMES)


def _beside(kind: Kind) -> tuple[str, ...]:
    return _BESIDE_TRAIN_JOBS if kind.group == "trainer.kubeflow.org" else _BESIDE


def _rendered_from(kind: Kind, context: Context, namespace: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that the engine needs besides the queues to know what a job asks for."""
    yield from context.every(_LIMIT_RANGES, namespace)
    yield from context.every(_RUNTIME_CLASSES)
    if kind.group == "trainer.kubeflow.org":
        yield from context.every(CLUSTER_RUNTIMES)
        yield from context.every(RUNTIMES, namespace)


def _instant(now: float) -> Any:
    return int(now * 1000)


# ---- nodes -------------------------------------------------------------------------------------


def _about_flavors(
    wanted: Mapping[str, int], spec: Mapping[str, Any], context: Context
) -> Iterator[str]:
    """Warn if none of the flavors that a job could get has a node."""
    for group in items(spec, "resourceGroups"):
        covered = [one for one in group.get("coveredResources") or () if wanted.get(one)]
        names = flavor_names(group)
        if covered and names and all(not _has_node(name, context) for name in names):
            yield f"no node has the labels of flavor {' or '.join(names)}; it waits for nodes"


def _has_node(flavor: str, context: Context) -> bool:
    found = context.find(FLAVORS, "", flavor)
    return found is None or _is_somewhere(at(found, "spec", "nodeLabels"), context) is not False


# Where nodes with certain labels were seen last; looked at first, and never trusted.
_SEEN: dict[tuple[tuple[str, str], ...], str] = {}
_MOST_SEEN = 1024  # far more than there are flavors


def _is_somewhere(labels: Mapping[str, str], context: Context) -> bool | None:
    """Say whether a node has all of the labels; None if there are no nodes at all, or no labels."""
    if not labels:
        return None
    key = tuple(sorted(labels.items()))
    last = context.find("/nodes", "", _SEEN[key]) if key in _SEEN else None
    if last is not None and labels.items() <= labels_of(last).items():
        return True
    any_node = None
    for node in context.every("/nodes"):
        any_node = False
        if labels.items() <= labels_of(node).items():
            if len(_SEEN) >= _MOST_SEEN:
                _SEEN.clear()
            _SEEN[key] = str(at(node, "metadata").get("name"))
            return True
    return any_node


# What was found is believed for so long: jobs come in thousands of the same shape, and where there
# is no room, all nodes are looked at.
_BELIEVED_SECONDS = 5.0
_MOST_KEPT = 512
NODE_POOLS = "karpenter.sh/nodepools"


def _about_nodes(
    pod_sets: Sequence[Any], spec: Mapping[str, Any] | None, context: Context
) -> Iterator[str]:
    """Warn if even empty nodes could not hold a job; `spec` is that of its ClusterQueue."""
    if _is_any(NODE_POOLS, context):
        return  # machines may be bought
    for pod_set in pod_sets:
        level = _unlabelled_level(pod_set, context)
        if level:
            yield (
                f"can never start on the nodes that there are: pod set {pod_set.name} has to be "
                f"in one domain of {level}, and no node has that label"
            )
            continue
        groups = _flavors_of(pod_set, spec, context) if spec is not None else []
        never = _never(pod_set, groups, context) if pod_set.count else ""
        if never:
            yield f"can never start on the nodes that there are: {never}"


def _unlabelled_level(pod_set: Any, context: Context) -> str:
    """Return the topology level that a pod set requires, if there are nodes and none has it."""
    topology = pod_set.topology
    if not pod_set.count or topology is None or topology.mode != "required" or not topology.level:
        return ""
    any_node = False
    for node in context.every("/nodes"):
        any_node = True
        if topology.level in labels_of(node):
            return ""
    is_of_hypernodes = any(True for _ in context.every("topology.volcano.sh/hypernodes"))
    return topology.level if any_node and not is_of_hypernodes else ""


def _flavors_of(pod_set: Any, spec: Mapping[str, Any], context: Context) -> list[list[FlavorNodes]]:
    """Return the flavors that each group of resources leaves to a pod set."""
    asked = {resource for resource, amount in pod_set.requests if amount}
    groups = []
    for group in items(spec, "resourceGroups"):
        if asked.isdisjoint(group.get("coveredResources") or ()):
            continue
        stored = [context.find(FLAVORS, "", name) for name in flavor_names(group)]
        manifests = [_manifest(one) for one in stored if one is not None]
        groups.append([flavor_nodes(one) for one in manifests if one is not None])
    return [flavors for flavors in groups if flavors]


@dataclass(slots=True)
class _Remembered:
    """What was found about jobs of one shape."""

    # What they ask for, by their shape and the versions of what decides it besides.
    wanted: OrderedDict[Hashable, _Wanted] = field(default_factory=OrderedDict)
    # Of which it is known that they claim no devices, with the version of the classes.
    without_devices: OrderedDict[Hashable, None] = field(default_factory=OrderedDict)
    # About room, by what pods ask for. Empty: there is some; and until when that is believed.
    found: OrderedDict[Hashable, tuple[float, str]] = field(default_factory=OrderedDict)
    # Where they found room last: these nodes are looked at first.
    used: OrderedDict[Hashable, list[str]] = field(default_factory=OrderedDict)


def _never(pod_set: Any, groups: Sequence[Sequence[FlavorNodes]], context: Context) -> str:
    """Return why no nodes could hold a pod set; empty if they could."""
    remembered = _remembered(context)
    key = (pod_set, tuple(map(tuple, groups)))
    until, known = remembered.found.get(key, (0.0, ""))
    now = context.now
    if now < until <= now + _BELIEVED_SECONDS:
        return known
    found = _tried(remembered, key, Room(pod_set, groups), Room(pod_set, groups), context)
    _keep(remembered.found, key, (now + _BELIEVED_SECONDS, found))
    return found


def _tried(
    remembered: _Remembered, key: Hashable, again: Room, room: Room, context: Context
) -> str:
    """Look at the nodes that were used last, then at all until there is room."""
    for name in remembered.used.get(key, ()):
        stored = context.find("/nodes", "", name)
        node = healthy_node(stored) if stored is not None else None
        if node is not None:
            again.add(node)
    if again.is_enough:
        return ""
    used: list[str] = []
    any_node = False
    for stored in context.every("/nodes"):
        node = healthy_node(stored)
        if node is None:
            return ""  # its size is not known
        any_node = True
        if room.add(node):
            used.append(str(node.name))
        if room.is_enough:
            _keep(remembered.used, key, used)
            return ""
    return room.refusal() if any_node else ""  # else the cluster is only being set up


def _remembered(context: Context) -> _Remembered:
    found: _Remembered | None = context.remembered.get("submitted jobs")
    if found is None:
        found = context.remembered["submitted jobs"] = _Remembered()
    return found


def _keep(kept: OrderedDict[Hashable, T], key: Hashable, value: T) -> None:
    if len(kept) >= _MOST_KEPT:
        kept.popitem(last=False)
    kept[key] = value


# ---- what a check may read -----------------------------------------------------------------------
#
# Nodes are left out on purpose: what a job asks for does not depend on them.


_LEFT_OUT = ("Node", "HyperNode", "Pod")


@cache
def _keys() -> Mapping[str, str]:
    """Find where a kind is stored by its name, with and without its group; the first one counts."""
    found: dict[str, str] = {}
    for served in served_kinds():
        found.setdefault(served.kind, served.key)
        found.setdefault(f"{served.kind}.{served.group}", served.key)
    return found


@dataclass(frozen=True, slots=True)
class StoredContext:
    """The surroundings of a write as `kinds.registry.Context` wants them."""

    namespace: str
    notes: Notes
    context: Context
    rules: ResourceRules
    left_out: Container[str] = _LEFT_OUT

    def find(self, kind: str, name: str, *, namespace: str = "") -> Any | None:
        """Return a decoded object by kind and name, or None."""
        key = _keys().get(kind)
        found = self.context.find(key, namespace, name) if key is not None else None
        return _manifest(found) if found is not None else None

    def every(self, kind: str, *, namespace: str = "") -> tuple[Any, ...]:
        """Return all decoded objects of a kind."""
        key = _keys().get(kind)
        if key is None or kind in self.left_out:
            return ()
        decoded = (_manifest(one) for one in self.context.every(key, namespace))
        return tuple(one for one in decoded if one is not None)


def _manifest(obj: Mapping[str, Any]) -> Any | None:
    kind = known_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
    if kind is None:
        return None
    manifest, _ = decode(kind.struct, obj, ignore_unknown=True)
    return kind.upgrade(manifest) if manifest is not None and kind.upgrade else manifest


# ---- DaemonSets ----------------------------------------------------------------------------------


def _about_daemon_set(obj: Json) -> Iterator[str]:
    if QUEUE_LABEL in labels_of(obj):
        yield (
            f"{QUEUE_LABEL_PATH}: has no effect here: a DaemonSet is not queued; its pods count on"
            " their nodes"
        )
    elif _surges(obj):
        yield "spec.updateStrategy.rollingUpdate.maxSurge: has no effect here; one pod goes first"


def _about_leader_worker_set(obj: Json) -> Iterator[str]:
    """Warn about what is not done, and what keeps groups from being gangs."""
    spec = at(obj, "spec")
    rolling = at(spec, "rolloutStrategy", "rollingUpdateConfiguration")
    if rolling.get("maxSurge") not in (None, 0, "0", "0%"):
        path = "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"
        yield f"{path}: has no effect here; one group goes first"
    if at(spec, "leaderWorkerTemplate").get("subGroupPolicy"):
        path = "spec.leaderWorkerTemplate.subGroupPolicy"
        yield f"{path}: has no effect here; pods get no labels of smaller groups"
    template = at(spec, "leaderWorkerTemplate")
    if at(template, "persistentVolumeClaimRetentionPolicy").get("whenScaled") == "Delete":
        path = "spec.leaderWorkerTemplate.persistentVolumeClaimRetentionPolicy.whenScaled"
        yield f"{path}: has no effect here; claims of groups that are scaled away stay"
    if spec.get("startupPolicy") == "LeaderReady":
        yield (
            "spec.startupPolicy: LeaderReady makes workers once their leader runs, so a group"
            " cannot start as a whole: its pods are queued one by one"
        )
    for key in at(obj, "metadata", "annotations"):
        if key in _EXCLUSIVE:
            yield f"metadata.annotations[{key}]: has no effect here"


_EXCLUSIVE = (
    "leaderworkerset.sigs.k8s.io/exclusive-topology",
    "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology",
)


def _surges(daemon_set: Json) -> bool:
    """Say whether a DaemonSet's new pods are to come before the old ones go."""
    rolling = at(daemon_set, "spec", "updateStrategy", "rollingUpdate")
    return rolling.get("maxSurge") not in (None, 0, "0", "0%")
