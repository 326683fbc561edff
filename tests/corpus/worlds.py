"""A cluster that has what one manifest asks for: nodes, queues, classes, volumes.

Only what the author of the manifest would have had is made, and it is read off the manifest itself:
nodes with the labels that pods select and the resources that they ask for, the queues that jobs
name, the classes, claims, ConfigMaps and Secrets that pods refer to. What the manifest brings along
is not made. So a manifest that is new gets a fitting cluster, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.control.stories import namespace
from tests.runner.simulated_world import node
from tests.support.control_objects import KUEUE
from unisono.kube.form import Json

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_CLUSTER_QUEUE = "corpus"
_HOSTNAME = "kubernetes.io/hostname"
_NODES = 12  # with each set of labels that some pod selects
_BLOCKS = 3  # domains of every topology level
_AMOUNTS = {
    "cpu": "1000",
    "memory": "8000Gi",
    "ephemeral-storage": "20Ti",
    "pods": "1000",
    "nvidia.com/gpu": "64",
}
_MOST = "100000"  # of any other resource on a node
_TOPOLOGY_WORDS = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
)
_VOLCANO_QUEUES = ("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")
_KAI_QUEUES = ("kai.scheduler/queue", "runai/queue")
_SYSTEM = frozenset({"system-cluster-critical", "system-node-critical"})

Found = Mapping[str, Any]


def world_for(documents: Sequence[Json], *, space: str) -> Iterator[Json]:
    """Yield the objects of a cluster in which these can run; `space` is for those without one."""
    seen = _Seen(documents, space)
    for name in sorted({space, *seen.namespaces}):
        if name not in ("default", "kube-system") and not seen.has("Namespace", name):
            yield namespace(name)
    yield from _nodes(seen)
    yield from _queues(seen)
    yield from _classes(seen)
    yield from _mentioned(seen)


class _Seen:
    """What a file holds, and what it mentions."""

    def __init__(self, documents: Sequence[Json], space: str) -> None:
        self.documents = documents
        self.space = space
        self.namespaces = {self.space_of(one) for one in documents}
        self.pods = [(self.space_of(one), spec) for one in documents for spec in pod_specs(one)]

    def space_of(self, obj: Json) -> str:
        return str(obj["metadata"].get("namespace") or self.space)

    def has(self, kind: str, name: str) -> bool:
        return any(
            one.get("kind") == kind and one["metadata"].get("name") == name
            for one in self.documents
        )

    def texts(self, *keys: str) -> Iterator[tuple[str, str]]:
        """Yield (namespace, text) of every field, label or annotation of one of some names."""
        for one in self.documents:
            for found in _valued(one, keys):
                if isinstance(found, str) and found:
                    yield self.space_of(one), found


def pod_specs(node_: Any) -> Iterator[Json]:
    """Yield every pod spec within an object."""
    if isinstance(node_, dict):
        if isinstance(node_.get("containers"), list):
            yield node_
        for below in node_.values():
            yield from pod_specs(below)
    elif isinstance(node_, list):
        for below in node_:
            yield from pod_specs(below)


def _valued(node_: Any, keys: Iterable[str]) -> Iterator[Any]:
    if isinstance(node_, dict):
        for key, below in node_.items():
            if key in keys:
                yield below
            yield from _valued(below, keys)
    elif isinstance(node_, list):
        for below in node_:
            yield from _valued(below, keys)


# ---- nodes -------------------------------------------------------------------------------------


def _nodes(seen: _Seen) -> Iterator[Json]:
    """Yield nodes for each set of labels that is selected, spread over all topology levels."""
    levels = _levels(seen)
    resources = dict.fromkeys(_resources(seen), _MOST) | _AMOUNTS
    number = 0
    for labels in _selected(seen):
        for index in range(_NODES):
            made = node(f"node-{number}", **resources)
            spread = {level: f"{level.rpartition('/')[2]}-{index % _BLOCKS}" for level in levels}
            made["metadata"]["labels"] |= {
                "topology.kubernetes.io/zone": f"zone-{index % _BLOCKS}",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **spread,
                **labels,
            }
            number += 1
            yield made


def _selected(seen: _Seen) -> list[dict[str, str]]:
    found: list[dict[str, str]] = [{}]
    for _, spec in seen.pods:
        labels = {key: str(value) for key, value in (spec.get("nodeSelector") or {}).items()}
        found.append(labels | _by_affinity(spec))
    for one in seen.documents:
        if one.get("kind") == "ResourceFlavor":
            flavor = one.get("spec") or {}
            found.append(dict(flavor.get("nodeLabels") or {}))
    for _, group in seen.texts("volcano.sh/nodegroup-name"):
        found.append({"volcano.sh/nodegroup-name": group})
    for labels in found:
        labels.pop(_HOSTNAME, None)
    return [labels for index, labels in enumerate(found) if labels not in found[:index]]


def _by_affinity(spec: Json) -> dict[str, str]:
    """Return labels that fulfil what a pod requires of its node."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: Sequence[Json] = required.get("nodeSelectorTerms") or ({},)
    labels: dict[str, str] = {}
    for rule in terms[0].get("matchExpressions") or ():
        operator, values = rule.get("operator"), rule.get("values") or ()
        if operator == "In" and values:
            labels[rule["key"]] = str(values[0])
        elif operator == "Exists":
            labels[rule["key"]] = "yes"
        elif operator == "Gt" and values:
            labels[rule["key"]] = str(int(values[0]) + 1)
    return labels


def _resources(seen: _Seen) -> list[str]:
    found: dict[str, None] = {}
    for one in seen.documents:
        for part in _valued(one, ("requests", "limits")):
            found |= dict.fromkeys(name for name in part if isinstance(part, dict))
        for names in _valued(one, ("coveredResources",)):
            found |= dict.fromkeys(names if isinstance(names, list) else ())
    return sorted(str(name) for name in found)


def _levels(seen: _Seen) -> list[str]:
    found = dict.fromkeys(text for _, text in seen.texts(*_TOPOLOGY_WORDS))
    found |= dict.fromkeys(text for _, text in seen.texts("nodeLabel", "topologyKey"))
    found |= dict.fromkeys(
        text
        for _, text in seen.texts(
            "alpha.jobset.sigs.k8s.io/exclusive-topology",
            "leaderworkerset.sigs.k8s.io/exclusive-topology",
        )
    )
    found.pop(_HOSTNAME, None)
    return sorted(found)


# ---- queues ------------------------------------------------------------------------------------


def _queues(seen: _Seen) -> Iterator[Json]:
    """Yield what is behind the queues that are named and not brought along."""
    levels = [
        level
        for level in _levels(seen)
        if any(level == text for _, text in seen.texts(*_TOPOLOGY_WORDS))
    ]
    wanted = sorted(
        {
            (space, name)
            for space, name in seen.texts(QUEUE_LABEL)
            if not seen.has("LocalQueue", name)
        }
    )
    if wanted:
        # Resources first that a pod of the file asks for: all of them belong to one flavor.
        covered = [name for name in sorted({*_AMOUNTS, *_resources(seen)}) if name != "pods"]
        flavor: Json = {"nodeLabels": {"kubernetes.io/os": "linux"}}
        if levels:
            flavor["topologyName"] = _CLUSTER_QUEUE
            yield _topology(_CLUSTER_QUEUE, levels)
        yield _kueue("ResourceFlavor", _CLUSTER_QUEUE, flavor)
        quotas = [{"name": name, "nominalQuota": "1000000Gi"} for name in covered]
        yield _kueue(
            "ClusterQueue",
            _CLUSTER_QUEUE,
            {
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": covered,
                        "flavors": [{"name": _CLUSTER_QUEUE, "resources": quotas}],
                    }
                ],
            },
        )
    for space, name in wanted:
        local = _kueue("LocalQueue", name, {"clusterQueue": _CLUSTER_QUEUE})
        local["metadata"]["namespace"] = space
        yield local
    yield from _of_cluster_queues(seen)
    yield from _of_others(seen)


def _of_cluster_queues(seen: _Seen) -> Iterator[Json]:
    """Yield flavors and topologies that a ClusterQueue or a flavor of the file names."""
    for one in seen.documents:
        spec = one.get("spec") or {}
        if one.get("kind") == "ClusterQueue":
            for group in spec.get("resourceGroups") or ():
                for flavor in group.get("flavors") or ():
                    if not seen.has("ResourceFlavor", flavor["name"]):
                        yield _kueue("ResourceFlavor", flavor["name"], {})
        if one.get("kind") == "ResourceFlavor" and spec.get("topologyName"):
            if not seen.has("Topology", spec["topologyName"]):
                yield _topology(spec["topologyName"], ["cloud.provider.com/topology-block"])
        if one.get("kind") == "LocalQueue" and not seen.has("ClusterQueue", spec["clusterQueue"]):
            yield _kueue("ClusterQueue", spec["clusterQueue"], {"namespaceSelector": {}})


def _of_others(seen: _Seen) -> Iterator[Json]:
    """Yield the queues of Volcano and KAI that are named."""
    volcano = {name for _, name in seen.texts(*_VOLCANO_QUEUES)}
    kai = {name for _, name in seen.texts(*_KAI_QUEUES)}
    for one in seen.documents:
        spec = one.get("spec") or {}
        queue = spec.get("queue") if isinstance(spec, dict) else None
        group = str(one.get("apiVersion")).partition("/")[0]
        if isinstance(queue, str) and group in ("batch.volcano.sh", "scheduling.volcano.sh"):
            volcano.add(queue)
        if isinstance(queue, str) and group == "scheduling.run.ai":
            kai.add(queue)
        if one.get("kind") == "Queue":
            parent = spec.get("parent") or spec.get("parentQueue")
            if parent and parent != "root":
                (volcano if group == "scheduling.volcano.sh" else kai).add(parent)
        for policy in _valued(one, ("schedulingPolicy",)):
            if isinstance(policy, dict) and policy.get("queue"):
                volcano.add(str(policy["queue"]))
    for name in sorted(volcano - {"default", "root"}):
        if not seen.has("Queue", name):
            yield _plain("scheduling.volcano.sh/v1beta1", "Queue", name, spec={"weight": 1})
    for name in sorted(kai):
        if not seen.has("Queue", name):
            quota = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
            spec = {"resources": {"cpu": quota, "gpu": quota, "memory": quota}}
            yield _plain("scheduling.run.ai/v2", "Queue", name, spec=spec)


def _topology(name: str, levels: Sequence[str]) -> Json:
    labels = [*levels, _HOSTNAME]
    return _kueue("Topology", name, {"levels": [{"nodeLabel": label} for label in labels]})


def _kueue(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}


# ---- what is referred to -----------------------------------------------------------------------


def _classes(seen: _Seen) -> Iterator[Json]:
    for name in sorted({name for _, name in seen.texts("priorityClassName", "priorityClass")}):
        if name not in _SYSTEM and not seen.has("PriorityClass", name):
            yield _plain("scheduling.k8s.io/v1", "PriorityClass", name, value=100)
    for name in sorted({name for _, name in seen.texts("kueue.x-k8s.io/priority-class")}):
        if not seen.has("WorkloadPriorityClass", name):
            yield _plain(KUEUE, "WorkloadPriorityClass", name, value=100)
    for name in sorted({name for _, name in seen.texts("runtimeClassName")}):
        if not seen.has("RuntimeClass", name):
            yield _plain("node.k8s.io/v1", "RuntimeClass", name, handler=name)


def _mentioned(seen: _Seen) -> Iterator[Json]:
    """Yield ConfigMaps, Secrets, claims and accounts that pods refer to."""
    wanted: set[tuple[str, str, str]] = set()
    for space, spec in seen.pods:
        account = spec.get("serviceAccountName")
        if account and account != "default":
            wanted.add(("ServiceAccount", space, str(account)))
        for kind, name in _references(spec):
            wanted.add((kind, space, name))
    for kind, space, name in sorted(wanted):
        if seen.has(kind, name):
            continue
        made = _plain("v1", kind, name)
        made["metadata"]["namespace"] = space
        if kind == "PersistentVolumeClaim":
            made["spec"] = {
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": "1Gi"}},
            }
        yield made


def _references(spec: Json) -> Iterator[tuple[str, str]]:
    for volume in spec.get("volumes") or ():
        parts = [volume, *((volume.get("projected") or {}).get("sources") or ())]
        for part in parts:
            if (part.get("configMap") or {}).get("name"):
                yield "ConfigMap", str(part["configMap"]["name"])
            secret = part.get("secret") or {}
            if secret.get("secretName") or secret.get("name"):
                yield "Secret", str(secret.get("secretName") or secret["name"])
            if (part.get("persistentVolumeClaim") or {}).get("claimName"):
                yield "PersistentVolumeClaim", str(part["persistentVolumeClaim"]["claimName"])
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        sources = [one.get("valueFrom") or {} for one in container.get("env") or ()]
        for source in sources:
            if (source.get("configMapKeyRef") or {}).get("name"):
                yield "ConfigMap", str(source["configMapKeyRef"]["name"])
            if (source.get("secretKeyRef") or {}).get("name"):
                yield "Secret", str(source["secretKeyRef"]["name"])
        for source in container.get("envFrom") or ():
            if (source.get("configMapRef") or {}).get("name"):
                yield "ConfigMap", str(source["configMapRef"]["name"])
            if (source.get("secretRef") or {}).get("name"):
                yield "Secret", str(source["secretRef"]["name"])


def _plain(api_version: str, kind: str, name: str, **more: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}
