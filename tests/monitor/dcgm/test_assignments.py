"""Which pod has which device: the lowest free ones, broken ones last."""

from __future__ import annotations

import json

from tests.monitor import objects
from unisono.kinds import views
from unisono.monitor.dcgm.assignments import DeviceAssignments
from unisono.monitor.gpu_faults import ANNOTATION
from unisono.monitor.records import NodeRecord, PodRecord, node_record, pod_record


def node(faults: dict[str, dict[str, object]], message: str) -> NodeRecord:
    """Return a node of eight GPUs that reports faults."""
    made = objects.node("n1", gpus=8)
    made["metadata"].setdefault("annotations", {})[ANNOTATION] = json.dumps(faults)
    made["status"]["conditions"].append(
        {"type": "GPUProblem", "status": "True", "reason": "Xid79", "message": message}
    )
    return node_record(views.Node(made))


def pod(name: str, gpus: int) -> PodRecord:
    return pod_record(views.Pod(objects.pod(name, "n1", gpus)))


def test_a_new_pod_avoids_a_broken_device_as_long_as_there_are_others() -> None:
    broken = node({"0": {"xid": 79}}, "GPU 0 reports Xid79")
    holders = DeviceAssignments()
    first = holders.give_out([pod("p0", 7)], {"n1": broken})
    assert ("n1", 0) not in first
    every = holders.give_out([pod("p0", 7), pod("p1", 1)], {"n1": broken})
    assert every["n1", 0].pod.name == "p1"


def test_only_what_is_broken_is_avoided() -> None:
    found = DeviceAssignments().give_out(
        [pod("p0", 2)], {"n1": node({"0": {"xid": 31}, "1": {"hot": 20}}, "GPU 3 reports Xid79")}
    )
    assert {index for _, index in found} == {0, 1}


def test_pods_keep_their_devices_when_one_breaks() -> None:
    holders = DeviceAssignments()
    holders.give_out([pod("p0", 2)])
    found = holders.give_out([pod("p0", 2)], {"n1": node({"0": {"xid": 79}}, "GPU 0: Xid79")})
    assert {index for _, index in found} == {0, 1}
