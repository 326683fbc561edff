"""The kinds that the API serves, read from `data/*.json`.

One file per API group:

    {"group": "kueue.x-k8s.io",
     "definitions": {"kueue.v1beta2.FlavorQuotas": {…schema…}},
     "kinds": [{"kind": "ClusterQueue", "plural": "clusterqueues", "singular": "clusterqueue",
                "shortNames": ["cq"], "categories": [], "namespaced": false,
                "versions": [{"name": "v1beta2", "storage": true, "deprecated": "",
                              "subresources": ["status"], "scale": null, "selectable": [],
                              "columns": [{"name": "Cohort", "type": "string", "priority": 0,
                                           "jsonPath": ".spec.cohortName", "description": "…"}],
                              "schema": {…}}]}]}

Definitions are shared by all files: a pod template is `{"$ref": "core.v1.PodTemplateSpec"}`
wherever it stands. Versions are listed with the preferred one first.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from unisono.kinds.shapes.shape import Shape

# The order in which discovery lists the groups; it decides which kind a short name belongs to. Of
# Kubernetes' own groups, scheduling.k8s.io comes last: its Workload and PodGroup are young, and
# `kubectl get workloads` means Kueue's, `get podgroups` Volcano's.
GROUPS = (
    "",
    "apps",
    "batch",
    "policy",
    "coordination.k8s.io",
    "events.k8s.io",
    "rbac.authorization.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "networking.k8s.io",
    "storage.k8s.io",
    "node.k8s.io",
    "resource.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "metrics.k8s.io",
    "kueue.x-k8s.io",
    "visibility.kueue.x-k8s.io",
    "trainer.kubeflow.org",
    "kubeflow.org",
    "jobset.x-k8s.io",
    "leaderworkerset.x-k8s.io",
    "ray.io",
    "batch.volcano.sh",
    "bus.volcano.sh",
    "flow.volcano.sh",
    "scheduling.volcano.sh",
    "topology.volcano.sh",
    "scheduling.x-k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
    "autoscaling.x-k8s.io",
    "scheduling.k8s.io",
    "unisono.dev",
)

# Groups whose answers are computed when they are asked for. Nothing of them is stored; on a real
# cluster another server answers for them, which an APIService names.
METRICS = "metrics.k8s.io"
VISIBILITY = "visibility.kueue.x-k8s.io"
AGGREGATED = frozenset({METRICS, VISIBILITY})

# Groups that every Kubernetes has by itself; the others are custom resources elsewhere.
BUILT_IN = AGGREGATED | frozenset(
    group for group in GROUPS if "." not in group or group.endswith(".k8s.io")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of `kubectl get`; priority 1 shows with `-o wide` only."""

    name: str
    type: str  # string, integer, number, boolean, date
    json_path: str
    priority: int = 0
    format: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where a kind keeps what `kubectl scale` shows and sets."""

    spec: str  # .spec.replicas
    status: str
    selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """One kind in one version."""

    group: str  # empty for the core group
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    is_storage: bool = True
    deprecated: str = ""  # the warning that every use of this version gets
    subresources: tuple[str, ...] = ()  # status, scale, log, binding, eviction, …
    scale: Scale | None = None
    columns: tuple[Column, ...] = ()  # empty: Age alone, or the printer of a built-in kind
    selectable: tuple[str, ...] = ()  # field selectors beyond name and namespace, ".spec.x"
    schema: Mapping[str, Any] = field(default_factory=dict)
    shape: Shape
    # Under which objects of all versions of the kind are stored; asked many times for each write.
    key: str = field(init=False)

    def __post_init__(self) -> None:
        """Join the key."""
        object.__setattr__(self, "key", f"{self.group}/{self.plural}")

    @property
    def api_version(self) -> str:
        """The version as documents write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The kind as messages name it: `clusterqueues.kueue.x-k8s.io`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def is_computed(self) -> bool:
        """Whether no object of the kind is ever stored."""
        return self.group in AGGREGATED


def read_served(kind: Mapping[str, Any], group: str) -> Iterator[Served]:
    """Read one entry of `kinds`, version by version."""
    for version in kind["versions"]:
        scale = version.get("scale")
        shape = Shape(version.get("schema", {}), definition)
        yield Served(
            group=group,
            version=version["name"],
            kind=kind["kind"],
            plural=kind["plural"],
            singular=kind["singular"],
            namespaced=kind["namespaced"],
            short_names=tuple(kind.get("shortNames", ())),
            categories=tuple(kind.get("categories", ())),
            is_storage=version.get("storage", True),
            deprecated=version.get("deprecated", ""),
            subresources=tuple(version.get("subresources", ())),
            scale=Scale(**scale) if scale else None,
            columns=tuple(
                Column(
                    name=column["name"],
                    type=column["type"],
                    json_path=column["jsonPath"],
                    priority=column.get("priority", 0),
                    format=column.get("format", ""),
                    description=column.get("description", ""),
                )
                for column in version.get("columns", ())
            ),
            selectable=tuple(version.get("selectable", ())),
            schema=shape.raw,  # even where the file has a reference
            shape=shape,
        )


@cache
def _file(group: str) -> Mapping[str, Any] | None:
    try:
        content = pkgutil.get_data("unisono.kinds.shapes", f"data/{group or 'core'}.json")
    except FileNotFoundError:
        return None
    return json.loads(content) if content is not None else None


@cache
def served_kinds() -> tuple[Served, ...]:
    """Return every built-in kind in every version, in the order of discovery."""
    return tuple(
        served
        for group in GROUPS
        if (content := _file(group)) is not None
        for kind in content["kinds"]
        for served in read_served(kind, group)
    )


@cache
def all_definitions() -> Mapping[str, Mapping[str, Any]]:
    """Return every shared schema by its name."""
    return {
        name: schema
        for group in GROUPS
        if (content := _file(group)) is not None
        for name, schema in content.get("definitions", {}).items()
    }


def definition(name: str) -> Mapping[str, Any]:
    """Return a shared schema by its name, such as `core.v1.PodSpec`."""
    return all_definitions()[name]
