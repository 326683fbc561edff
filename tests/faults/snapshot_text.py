"""How a cluster stands, in a few lines: what one wants to see when a run ended badly."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults import reading
from tests.faults.cluster import Cluster
from unisono.control import names


def snapshot_text(cluster: Cluster) -> Iterator[str]:
    """Yield a line for every node, queue, workload and pod."""
    for _, node in sorted(cluster.objects[names.NODE].items()):
        ready = [one["status"] for one in reading.conditions(node) if one["type"] == "Ready"]
        gpus = node["status"]["allocatable"].get(reading.GPU, 0)
        taints = [one["key"] for one in node["spec"].get("taints") or ()]
        yield f"node {node['metadata']['name']}: {gpus} GPUs, ready {ready}, taints {taints}"
    for _, queue in sorted(cluster.objects[names.CLUSTER_QUEUE].items()):
        stop = queue["spec"].get("stopPolicy", "None")
        yield f"queue {queue['metadata']['name']}: {reading.nominal(queue)} GPUs, stopped {stop}"
    for (_, name), workload in sorted(cluster.objects[names.WORKLOAD].items()):
        given = "".join(
            f" {set_name}@{node}x{count}"
            for (set_name, node), count in reading.places(workload).items()
        )
        going = ", going" if reading.is_going(workload) else ""
        yield f"workload {name}{given}{going} of {workload['spec'].get('queueName')}"
        for one in reading.conditions(workload):
            if one["type"] != names.EXPLANATION:
                text = one.get("message", "")[:120]
                yield f"    {one['type']} {one['status']} {one['reason']}: {text}"
    for (_, name), pod in sorted(cluster.objects[names.POD].items()):
        of = (reading.workload_of(pod) or ("", "-"))[1]
        going = " going" if reading.is_going(pod) else ""
        held = "".join(f" {one}" for one in pod["metadata"].get("finalizers") or ())
        phase = (pod.get("status") or {}).get("phase")
        yield f"pod {name} of {of}: {phase}{going} on {reading.node_of(pod) or '-'}{held}"
