"""Ranks and devices: which rank holds a gang up, and which GPU is broken."""

from __future__ import annotations

import json

import pytest

from tests.monitor import objects
from unisono.kube.form import Json
from unisono.kube.mapping import POD
from unisono.monitor.cache import NODE, WORKLOAD, fill
from unisono.monitor.dcgm.devices import uuid_of
from unisono.monitor.metrics.registry import MetricsRegistry

Labelled = dict[str, float]


def figures_of(*nodes: Json) -> MetricsRegistry:
    made = MetricsRegistry(clock=lambda: 1_767_261_600.0, version="1", mode="test")
    fill(made.cache, NODE, nodes)
    fill(made.cache, WORKLOAD, (objects.workload("gang", Admitted="2026-01-01T10:00:00Z"),))
    return made


def samples(figures: MetricsRegistry, name: str, label: str) -> Labelled:
    return {
        sample.labels[label]: sample.value
        for family in figures.families()
        if family.name == name
        for sample in family.samples
    }


def reporting(name: str, *steps: float) -> Json:
    said = {"step": 7, "at": "2026-01-01T10:00:00Z", "paces": steps}
    return objects.pod(name, on="n1", annotations={"unisono.dev/progress": json.dumps(said)})


def test_ranks_are_compared_by_the_median_of_their_steps() -> None:
    figures = figures_of(objects.node("n1"))
    steps = (1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01, 1.25)
    pods = [reporting(f"p{at}", 9.0, one, one) for at, one in enumerate(steps)]
    fill(figures.cache, POD, [*pods, objects.pod("quiet", on="n1"), reporting("new")])
    times = samples(figures, "unisono_rank_step_seconds", "pod")
    assert times == {f"p{at}": one for at, one in enumerate(steps)}
    scores = samples(figures, "unisono_straggler_score", "pod")
    assert (scores.keys(), round(scores["p7"], 2)) == (times.keys(), 12.19)
    last = samples(figures, "unisono_rank_last_step_timestamp_seconds", "pod")
    assert (last.keys() - times.keys(), last["new"]) == ({"new"}, 1_767_261_600.0)


def test_ranks_that_are_over_have_no_series() -> None:
    figures = figures_of(objects.node("n1"))
    over = reporting("p0", 1.0)
    over["status"]["phase"] = "Succeeded"
    fill(figures.cache, POD, (over,))
    assert samples(figures, "unisono_rank_step_seconds", "pod") == {}


def broken(name: str, reason: str, message: str = "", **faults: Json) -> Json:
    node = objects.node(name)
    node["spec"]["providerID"] = f"unisono:///zone/{name}"
    node["status"]["conditions"].append(
        {"type": "GPUProblem", "status": "True", "reason": reason, "message": message}
    )
    if faults:
        text = json.dumps({index.strip("_"): one for index, one in faults.items()})
        node["metadata"]["annotations"]["unisono.dev/gpu-faults"] = text
    return node


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (objects.node("n1"), [("*", "", 1)]),
        (broken("n1", "Xid79", "GPU 3 reports Xid79"), [("3", "Xid79", 0)]),
        (broken("n1", "GpuCountMismatch", "7 of 8"), [("*", "GpuCountMismatch", 0)]),
        (broken("n1", "Xid31"), [("*", "", 1)]),
        (
            broken("n1", "Xid79", "", _0={"xid": 79}, _2={"ecc": 1}, _4={"xid": 31}, _5={"hot": 9}),
            [("0", "Xid79", 0), ("2", "UncorrectableEcc", 0)],
        ),
        (objects.node("n1", 0), []),
    ],
    ids=["well", "named", "unknown", "application", "injected", "no gpus"],
)
def test_a_broken_device_is_named_and_a_node_that_is_well_has_one_series(
    node: Json, expected: list[tuple[str, str, int]]
) -> None:
    figures = figures_of(node)
    (family,) = (one for one in figures.families() if one.name == "unisono_gpu_healthy")
    found = list(family.samples)
    assert [(one.labels["gpu"], one.labels["reason"], one.value) for one in found] == expected
    for one in found:
        device = one.labels["gpu"]
        assert one.labels["UUID"] == (uuid_of(("n1", int(device))) if device != "*" else "")
