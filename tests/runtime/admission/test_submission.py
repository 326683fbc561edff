"""Warnings of a real API server at submission, evaluated by our own reader of CEL."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.control.job_kinds.test_kubeflow import torch
from tests.control.training_world import job_set, replicated
from tests.support.control_objects import job
from tests.support.quota_builders import group, queue
from unisono.control.submission_limits import submission_limits
from unisono.engine.cluster import new_cluster
from unisono.engine.model.names import FlavorName, LocalQueueKey, NodeName, QueueName
from unisono.engine.model.node import Node
from unisono.engine.model.queue import Flavor, LocalQueue
from unisono.engine.model.resources import amounts
from unisono.engine.state.changes import FlavorSet, LocalQueueSet, NodeSet, QueueSet
from unisono.kinds.expressions.evaluate import Program
from unisono.kube.form import Json
from unisono.runtime.admission.submission import submission

GPU = "nvidia.com/gpu"
POLICIES = {name.removeprefix("unisono-submission-of-"): rules for name, _, rules in submission()}
DATA = {
    "nodes": f"{GPU} 8",
    "queues": "all",
    "queue.default.lq": f"{GPU} 16",
    "queue.default.closed": "! ClusterQueue cq is stopped (stopPolicy Hold)",
}


def told(kind: str, obj: Json, data: dict[str, str] | None = None) -> list[str]:
    """Return what a policy warns of; variables are put in where they are named."""
    spec = POLICIES[kind]
    values: dict[str, Any] = {}
    world = {
        "object": obj,
        "params": {"data": DATA if data is None else data},
        "request": {"namespace": "default"},
        "variables": values,
    }

    def run(expression: str) -> Any:
        program = Program(re.sub(r"\b(object|params|request|variables)\b", r"self.\1", expression))
        assert not program.missing, program.missing
        return program.run(world, None)

    for one in spec["variables"]:
        values[one["name"]] = run(one["expression"])
    return [
        run(one["messageExpression"]) for one in spec["validations"] if not run(one["expression"])
    ]


def queued(obj: Json, name: str = "lq") -> Json:
    obj["metadata"].setdefault("labels", {})["kueue.x-k8s.io/queue-name"] = name
    return obj


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        ("jobs", job("fits", pods=2, gpus=8)),
        ("jobsets", job_set(replicated(gpus=1))),
        ("pytorchjobs", torch()),
    ],
)
def test_what_can_start_is_not_warned_of(kind: str, obj: Json) -> None:
    assert told(kind, queued(obj)) == []


def test_a_pod_that_no_node_is_large_enough_for() -> None:
    assert told("jobs", queued(job("wide", pods=1, gpus=16))) == [
        "can never start on the nodes that there are: a pod needs 16 nvidia.com/gpu, and the "
        "largest node has 8"
    ]


def test_more_than_the_queue_can_ever_use() -> None:
    over = "can never be admitted as the queues are now: it needs 24 nvidia.com/gpu, and its queue "
    assert told("jobs", queued(job("many", pods=3, gpus=8))) == [
        f"{over}can never use more than 16"
    ]
    elastic = queued(job("elastic", pods=3, gpus=8))
    elastic["metadata"].setdefault("annotations", {})["kueue.x-k8s.io/job-min-parallelism"] = "1"
    assert told("jobs", elastic) == []


def test_queues_that_are_missing_or_admit_nothing() -> None:
    assert told("jobs", queued(job("a"), "nope")) == [
        'there is no LocalQueue "nope" in namespace default yet; it waits until there is one'
    ]
    assert told("jobs", queued(job("a"), "closed")) == [
        "it waits: ClusterQueue cq is stopped (stopPolicy Hold)"
    ]


def test_without_the_numbers_nothing_is_said() -> None:
    assert told("jobs", queued(job("a", gpus=99), "nope"), {}) == []


def test_the_numbers_are_those_of_the_scheduler() -> None:
    state = new_cluster()
    state.apply(FlavorSet(Flavor(name=FlavorName("f"))))
    state.apply(QueueSet(queue("open", groups=(group({"f": {GPU: "16"}}),))))
    state.apply(QueueSet(queue("shut", stop="Hold", groups=(group({"f": {GPU: "16"}}),))))
    for name in ("open", "shut"):
        key = LocalQueueKey(f"default/{name}")
        state.apply(LocalQueueSet(LocalQueue(key=key, queue=QueueName(name))))
    for name, gpus in (("n1", 4), ("n2", 8)):
        has = amounts({GPU: gpus, "cpu": 8})
        state.apply(NodeSet(Node(name=NodeName(name), allocatable=has)))
    assert submission_limits(state) == {
        "nodes": f"{GPU} 8",
        "queues": "all",
        "queue.default.open": f"{GPU} 16",
        "queue.default.shut": "! ClusterQueue shut is stopped (stopPolicy Hold)",
    }
