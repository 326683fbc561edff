"""One intake: no number of any kind gets past it unbounded, wherever the object came from."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect as shape

from tests.control.job_kinds.test_kubeflow import torch
from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.training_world import job_set, train_job
from tests.support.control_objects import KUEUE, job, node, queue
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.resources import MAX_AMOUNT, MAX_GPUS, MAX_MILLICORES, MAX_TOTAL
from unisono.kinds.core.nodes import node_of
from unisono.kinds.decode import _reader_for
from unisono.kinds.known import KNOWN, taken_in, wrong_with
from unisono.kinds.registry import Kind
from unisono.kinds.scalar import Scalar
from unisono.kube.form import Json

GPU = "nvidia.com/gpu"


def numeric_fields(info: Any, path: str, above: frozenset[type]) -> Iterator[tuple[str, Any]]:
    """Yield the path and the type of every number below a type."""
    match info:
        case shape.Metadata(type=inner):
            yield from numeric_fields(inner, path, above)
        case shape.StructType(cls=cls, fields=fields):
            if not issubclass(cls, Scalar) and cls not in above:
                for field in fields:
                    at = f"{path}.{field.encode_name}"
                    yield from numeric_fields(field.type, at, above | {cls})
        case shape.UnionType(types=types):
            for one in types:
                yield from numeric_fields(one, path, above)
        case shape.VarTupleType(item_type=inner):
            yield from numeric_fields(inner, f"{path}[]", above)
        case shape.DictType(value_type=inner):
            yield from numeric_fields(inner, f"{path}{{}}", above)
        case shape.IntType() | shape.FloatType():
            yield path, info
        case _:
            pass


def refuses(info: Any, value: object) -> bool:
    """Say whether a field of a type does not take a value."""
    problems: Any = type("Problems", (list,), {"ignore_unknown": True})()
    _reader_for(info)(value, (None, "field"), problems)
    return bool(problems)


@pytest.mark.parametrize("kind", KNOWN.kinds.values(), ids=lambda kind: f"{kind.kind}.{kind.group}")
def test_every_number_of_every_kind_is_bounded(kind: Kind) -> None:
    for path, info in numeric_fields(shape.type_info(kind.struct), kind.kind, frozenset()):
        for value in WRONG:
            assert refuses(info, value), f"{path} takes {value}"


TEMPLATE = "template/spec/containers/0/resources/limits"
FLAVOR, CLUSTER_QUEUE, LOCAL_QUEUE = queue()
QUOTA = "spec/resourceGroups/0/flavors/0/resources/0"
WORKLOAD = {
    "apiVersion": KUEUE,
    "kind": "Workload",
    "metadata": {"name": "w", "namespace": "default"},
    "spec": {
        "queueName": "lq-cq",
        "podSets": [{"name": "main", "count": 2, "template": job("j")["spec"]["template"]}],
    },
    "status": {
        "admission": {
            "clusterQueue": "cq",
            "podSetAssignments": [
                {
                    "name": "main",
                    "count": 2,
                    "flavors": {GPU: "f"},
                    "resourceUsage": {GPU: "16"},
                    "topologyAssignment": {
                        "levels": ["kubernetes.io/hostname"],
                        "slices": [
                            {
                                "domainCount": 2,
                                "valuesPerLevel": [{"individual": {"roots": ["n1", "n2"]}}],
                                "podCounts": {"universal": 1},
                            }
                        ],
                    },
                }
            ],
        }
    },
}
ASSIGNED = "status/admission/podSetAssignments/0"
PLACED = f"{ASSIGNED}/topologyAssignment/slices/0"
LIMIT_RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "l", "namespace": "default"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}}]},
}
RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "r"},
    "handler": "h",
    "overhead": {"podFixed": {"cpu": "1"}},
}
COHORT = {
    "apiVersion": KUEUE,
    "kind": "Cohort",
    "metadata": {"name": "c"},
    "spec": {"resourceGroups": CLUSTER_QUEUE["spec"]["resourceGroups"]},
}
POD_GROUP = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"minMember": 2},
}
PRIORITY = {
    "apiVersion": KUEUE,
    "kind": "WorkloadPriorityClass",
    "metadata": {"name": "p"},
    "value": 5,
}
VCJOB, TRAIN, SET, TORCH, JOB = vcjob(task("w", 2)), train_job(), job_set(), torch(), job("j")
SETS = "spec/replicatedJobs/0"
LONG = "9" * 5000
WRONG: tuple[object, ...] = (10**30, -(10**30), 2**63, math.nan, math.inf, "1", True, {}, [])
NO_AMOUNTS: tuple[object, ...] = ("-8", "many", {}, [])
NO_QUOTAS: tuple[object, ...] = ("-1", "x", [])

REFUSED: list[tuple[Json, str, object]] = [
    *((JOB, f"spec/{TEMPLATE}/{GPU.replace('/', '~')}", one) for one in NO_AMOUNTS),
    *((JOB, f"spec/{field}", one) for field in ("parallelism", "completions") for one in (-1, "2")),
    *((JOB, f"spec/{field}", 2**31) for field in ("parallelism", "completions", "backoffLimit")),
    (JOB, "metadata/labels/kueue.x-k8s.io~queue-name", {"a": "b"}),
    (JOB, "metadata/labels/kueue.x-k8s.io~queue-name", 7),
    *((VCJOB, f"spec/tasks/0/{TEMPLATE}/{GPU.replace('/', '~')}", one) for one in ("-8", "x")),
    *((VCJOB, "spec/tasks/0/replicas", one) for one in (-1, 2**31, "4", 1.5, LONG)),
    *((VCJOB, "spec/minAvailable", one) for one in (-1, 2**31, 10**30)),
    *((SET, f"{SETS}/replicas", one) for one in (-1, 2**31)),
    *((SET, f"{SETS}/template/spec/parallelism", one) for one in (-1, 2**31)),
    (SET, f"{SETS}/replicas", 2**31 - 1),  # of two pods each
    *((TRAIN, "spec/trainer/numNodes", one) for one in (-1, 2**31, "2")),
    *((TORCH, "spec/pytorchReplicaSpecs/Worker/replicas", one) for one in (-1, 2**31)),
    *((CLUSTER_QUEUE, f"{QUOTA}/nominalQuota", one) for one in NO_QUOTAS),
    (CLUSTER_QUEUE, f"{QUOTA}/borrowingLimit", "-1"),
    (CLUSTER_QUEUE, f"{QUOTA}/lendingLimit", "-1"),
    (COHORT, f"{QUOTA}/nominalQuota", "-1"),
    (LOCAL_QUEUE, "spec/clusterQueue", 7),
    (FLAVOR, "spec/nodeLabels", {"a": 1}),
    *((node("n"), "status/allocatable/cpu", one) for one in ("-1", "x")),
    *((node("n"), "status/capacity/cpu", one) for one in ("-1", "x")),
    (node("n"), "metadata/labels/kubernetes.io~hostname", 7),
    (LIMIT_RANGE, "spec/limits/0/max/cpu", "-1"),
    (RUNTIME_CLASS, "overhead/podFixed/cpu", "-1"),
    *((POD_GROUP, "spec/minMember", one) for one in (-1, 2**31, "2")),
    *((PRIORITY, "value", one) for one in (2**31, -(2**31) - 1, "5")),
    *((WORKLOAD, "spec/podSets/0/count", one) for one in (-1, 2**31, 10**30, "2")),
    (WORKLOAD, "spec/podSets/0/minCount", 3),
    (WORKLOAD, f"spec/podSets/0/{TEMPLATE}/{GPU.replace('/', '~')}", "-8"),
    (WORKLOAD, "spec/priority", 2**31),
    (WORKLOAD, f"{ASSIGNED}/resourceUsage/{GPU.replace('/', '~')}", "-48"),
    *((WORKLOAD, f"{ASSIGNED}/count", one) for one in (-1, 2**31)),
    (WORKLOAD, f"{ASSIGNED}/flavors", {GPU: 7}),
    *((WORKLOAD, f"{PLACED}/domainCount", one) for one in (-1, 10**9)),
    *((WORKLOAD, f"{PLACED}/podCounts/universal", one) for one in (-1, 10**9)),
]


@pytest.mark.parametrize(
    ("obj", "path", "value"),
    REFUSED,
    ids=lambda one: one.get("kind", "") if isinstance(one, dict) else str(one)[:60],
)
def test_it_is_refused_and_the_field_is_named(obj: Json, path: str, value: object) -> None:
    assert wrong_with(obj) == "", "the object itself is fine"
    written = poked_at(obj, path, value)
    kind = KNOWN.kinds[obj["apiVersion"], obj["kind"]]
    with pytest.raises(InvalidManifest) as error:
        taken_in(kind, written)
    last = [one for one in path.split("/") if not one.isdecimal()][-1].replace("~", "/")
    known = (last, "topologyAssignment", "replicatedJobs[0].template")
    assert any(one in error.value.path for one in known), error.value


def poked_at(obj: Json, path: str, value: object) -> Json:
    """Return an object with a value at a path in which ~ stands for the / of a name."""
    made: Any = copy.deepcopy(obj)
    names = (one.replace("~", "/") for one in path.split("/"))
    *parts, last = [int(one) if one.isdecimal() else one for one in names]
    at = made
    for part in parts:
        at = at[part]
    at[last] = value
    return made  # type: ignore[no-any-return]  # as it came


@pytest.mark.parametrize("amount", ["9223372036854775807", "1e30", "999999999Ei", str(2**63)])
@pytest.mark.parametrize("resource", ["cpu", "memory", GPU, "pods", "example.com/thing"])
def test_what_a_node_has_beyond_the_bounds_is_not_counted(resource: str, amount: str) -> None:
    made = node("n")
    made["status"]["allocatable"][resource] = amount
    found = dict(node_of(taken_in(KNOWN.kinds["v1", "Node"], made), {}).allocatable)
    assert 0 <= found[resource] <= max(MAX_AMOUNT, MAX_MILLICORES)  # type: ignore[index]  # a name
    assert found[GPU] <= MAX_GPUS  # type: ignore[index]
    assert MAX_AMOUNT * 2**15 <= 2**63
    assert MAX_TOTAL * 9 < 2**63
