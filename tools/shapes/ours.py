"""Where we differ from what is published: our own fields, our leniencies, our kinds.

Kueue's queues know a quota for several flavors at once, so a flavor may be only a name; some of
its rules only concern what we read more kindly (specification of quota, §2 and §18).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tools.shapes.schema import ANY_OBJECT, ANYTHING
from unisono.kinds.core.schema import PodTemplateSpec
from unisono.kinds.meta import LabelSelector
from unisono.kinds.policy.schema import Policy
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import Duration, Timestamp
from unisono.kinds.slurm import SlurmJob
from unisono.kinds.workload_kinds import WorkloadKind
from unisono.kube.form import Json

# `kubectl get unisono` lists these: what has a turn, a quota and a place.
SCHEDULABLE = frozenset(
    {
        "batch/jobs",
        "kueue.x-k8s.io/workloads",
        "trainer.kubeflow.org/trainjobs",
        "kubeflow.org/pytorchjobs",
        "kubeflow.org/mpijobs",
        "kubeflow.org/tfjobs",
        "kubeflow.org/xgboostjobs",
        "kubeflow.org/paddlejobs",
        "kubeflow.org/jaxjobs",
        "jobset.x-k8s.io/jobsets",
        "ray.io/rayclusters",
        "ray.io/rayjobs",
        "ray.io/rayservices",
        "batch.volcano.sh/jobs",
        "scheduling.volcano.sh/podgroups",
        "scheduling.x-k8s.io/podgroups",
        "unisono.dev/slurmjobs",
    }
)

# Versions that are read, but not served: nothing converts between them and the stored one.
NOT_SERVED = frozenset({("karpenter.sh", "v1beta1")})


def adjust(key: str, version: str, schema: Json) -> None:
    """Change the schema of one version of a kind, in place."""
    for change in _CHANGES.get(key, ()):
        change(schema, version)


def _pools(schema: Json, version: str) -> None:
    groups = schema["properties"]["spec"]["properties"]["resourceGroups"]["items"]
    fields = groups["properties"]
    fields["resources"] = dict(fields["flavors"]["items"]["properties"]["resources"])
    groups["required"] = ["flavors"]  # a pool covers what it has quota for
    groups.pop("x-kubernetes-validations", None)  # a flavor may leave resources unmetered
    # A name or an object: a structural schema cannot say that, so anything is accepted here, and
    # the rules of the kind look at it.
    flavors = fields["flavors"]
    flavors.pop("x-kubernetes-list-type", None)
    flavors.pop("x-kubernetes-list-map-keys", None)
    flavors["items"] = ANYTHING | {"properties": flavors["items"]["properties"]}
    # A limit without a cohort is reported and has no effect.
    schema["properties"]["spec"].pop("x-kubernetes-validations", None)


def _minimum_run_time(schema: Json, version: str) -> None:
    preemption = schema["properties"]["spec"]["properties"]["preemption"]
    preemption["properties"]["minRuntimeSeconds"] = {
        "type": "integer",
        "format": "int64",
        "minimum": 0,
    }


def _device_quota(schema: Json, version: str) -> None:
    # Announced for Volcano's queues; read, and reported as without effect.
    schema["properties"]["spec"]["properties"]["dra"] = dict(ANY_OBJECT)


def _names_of_node_groups(schema: Json, version: str) -> None:
    # Their fields have the names of node affinity, and hold the names of groups.
    affinity = schema["properties"]["spec"]["properties"]["affinity"]["properties"]
    names = {"type": "array", "items": {"type": "string"}}
    for name in ("nodeGroupAffinity", "nodeGroupAntiAffinity"):
        affinity[name] = {
            "type": "object",
            "properties": {
                "requiredDuringSchedulingIgnoredDuringExecution": dict(names),
                "preferredDuringSchedulingIgnoredDuringExecution": dict(names),
            },
        }


_CHANGES: Mapping[str, tuple[Callable[[Json, str], None], ...]] = {
    "kueue.x-k8s.io/clusterqueues": (_pools, _minimum_run_time),
    "kueue.x-k8s.io/cohorts": (_pools,),
    "scheduling.volcano.sh/queues": (_device_quota, _names_of_node_groups),
}


# ---- our own kinds -----------------------------------------------------------------------------


def policy_entry() -> Json:
    """Return the entry of `unisono.dev` Policy, made from the struct that reads it."""
    schema = _schema_of(msgspec.inspect.type_info(Policy))
    schema["properties"]["metadata"] = {"$ref": "meta.v1.ObjectMeta"}
    return {
        "kind": "Policy",
        "plural": "policies",
        "singular": "policy",
        "shortNames": [],
        "categories": [],
        "namespaced": False,
        "versions": [{"name": "v1", "storage": True, "subresources": [], "schema": schema}],
    }


def slurm_job_entry() -> Json:
    """Return the entry of `unisono.dev` SlurmJob, made from the struct that reads it."""
    schema = _schema_of(msgspec.inspect.type_info(SlurmJob))
    schema["properties"]["metadata"] = {"$ref": "meta.v1.ObjectMeta"}
    columns = [
        ("Job", "integer", ".spec.jobId", 0),
        ("User", "string", ".spec.user", 0),
        ("Partition", "string", ".spec.options.partition", 0),
        ("State", "string", ".status.state", 0),
        ("Reason", "string", ".status.reason", 0),
        ("Exit", "string", ".status.exitCode", 1),
        ("Age", "date", ".metadata.creationTimestamp", 0),
    ]
    version = {
        "name": "v1",
        "storage": True,
        "subresources": ["status"],
        "columns": [
            {"name": name, "type": type_, "jsonPath": path} | ({"priority": 1} if wide else {})
            for name, type_, path, wide in columns
        ],
        "schema": schema,
    }
    return {
        "kind": "SlurmJob",
        "plural": "slurmjobs",
        "singular": "slurmjob",
        "shortNames": ["sj"],
        "categories": [],
        "namespaced": True,
        "versions": [version],
    }


def workload_kind_entry() -> Json:
    """Return the entry of `unisono.dev` WorkloadKind, made from the struct that reads it."""
    schema = _schema_of(msgspec.inspect.type_info(WorkloadKind))
    schema["properties"]["metadata"] = {"$ref": "meta.v1.ObjectMeta"}
    columns = [
        ("Kind", "string", ".spec.kind", 0),
        ("Version", "string", ".spec.apiVersion", 0),
        ("Ready", "string", ".status.conditions[?(@.type=='Ready')].status", 0),
        ("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason", 0),
        ("Message", "string", ".status.conditions[?(@.type=='Ready')].message", 1),
        ("Age", "date", ".metadata.creationTimestamp", 0),
    ]
    version = {
        "name": "v1",
        "storage": True,
        "subresources": ["status"],
        "columns": [
            {"name": name, "type": type_, "jsonPath": path} | ({"priority": 1} if wide else {})
            for name, type_, path, wide in columns
        ],
        "schema": schema,
    }
    return {
        "kind": "WorkloadKind",
        "plural": "workloadkinds",
        "singular": "workloadkind",
        "shortNames": ["wk"],
        "categories": [],
        "namespaced": False,
        "versions": [version],
    }


def node_class_entry() -> Json:
    """Return the entry of AWS' node class, which NodePools name; its fields are not ours to say."""
    fields = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    schema: Json = {
        "type": "object",
        "properties": {
            **fields,
            "metadata": {"$ref": "meta.v1.ObjectMeta"},
            "spec": dict(ANY_OBJECT),
            "status": dict(ANY_OBJECT),
        },
    }
    columns = [
        {
            "name": "Ready",
            "type": "string",
            "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
        },
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    version = {
        "name": "v1",
        "storage": True,
        "subresources": ["status"],
        "columns": columns,
        "schema": schema,
    }
    return {
        "kind": "EC2NodeClass",
        "plural": "ec2nodeclasses",
        "singular": "ec2nodeclass",
        "shortNames": ["ec2nc", "ec2ncs"],
        "categories": ["karpenter"],
        "namespaced": False,
        "versions": [version],
    }


def _schema_of(info: Any) -> Json:
    """Return the schema of a struct's type; only what our own kinds use."""
    kind = msgspec.inspect
    match info:
        case kind.Metadata():
            return _schema_of(info.type)
        case kind.AnyType():
            return dict(ANYTHING)
        case kind.StructType(cls=cls) if cls is LabelSelector:
            return {"$ref": "meta.v1.LabelSelector"}
        case kind.StructType(cls=cls) if cls is Quantity:
            return {"$ref": "meta.v1.Quantity"}
        case kind.StructType(cls=cls) if cls is PodTemplateSpec:
            return {"$ref": "core.v1.PodTemplateSpec"}
        case kind.StructType(cls=cls) if cls is Duration:
            return {"type": "string"}
        case kind.StructType(cls=cls) if cls is Timestamp:
            return {"type": "string", "format": "date-time"}
        case kind.StructType():
            fields = {field.encode_name: _schema_of(field.type) for field in info.fields}
            required = [field.encode_name for field in info.fields if field.required]
            made: Json = {"type": "object", "properties": fields}
            needed = [name for name in required if name not in ("apiVersion", "kind", "metadata")]
            return made | ({"required": needed} if needed else {})
        case kind.UnionType():
            members = [one for one in info.types if not isinstance(one, kind.NoneType)]
            return _schema_of(members[0]) if len(members) == 1 else dict(ANYTHING)
        case kind.VarTupleType():
            return {"type": "array", "items": _schema_of(info.item_type)}
        case kind.DictType():
            return {"type": "object", "additionalProperties": _schema_of(info.value_type)}
        case kind.LiteralType():
            return {"type": "string", "enum": list(info.values)}
        case kind.StrType():
            return {"type": "string"}
        case kind.BoolType():
            return {"type": "boolean"}
        case kind.IntType():
            low = {} if info.ge is None else {"minimum": info.ge}
            return {"type": "integer", "format": "int64"} | low
        case kind.FloatType():
            return {"type": "number"}
        case _:
            raise AssertionError(f"no schema for {info}")
