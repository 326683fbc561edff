"""Pods of a Ray cluster: the command that starts Ray in them, and what it has to know."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from unisono.control.actions import Json
from unisono.control.job_kinds import ray
from unisono.control.jobs.pods import pod_from, pod_name, whole_units
from unisono.control.jobs.workload import owner_reference
from unisono.kinds.batch import MAX_PARALLELISM
from unisono.kinds.quantity import Quantity

_WAIT = "wait-gcs-ready"
_SHARED = "shared-mem"
_SHARED_AT = "/dev/shm"


def service_name(cluster: Json) -> str:
    """Return the name of the Service in front of the head."""
    return f"{cluster['metadata']['name']}-head-svc"


def head_address(cluster: Json) -> str:
    """Return the full name of the head."""
    return f"{service_name(cluster)}.{cluster['metadata']['namespace']}.svc.cluster.local"


def service(cluster: Json) -> Json:
    """Return the Service of the head; its name stands for the pod itself."""
    metadata = cluster["metadata"]
    labels = {ray.CLUSTER_LABEL: metadata["name"], ray.NODE_TYPE: "head"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": service_name(cluster),
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels,
            "ports": [
                {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
                for name, port in ray.PORTS.items()
            ],
        },
    }


def new_pod(cluster: Json, group: Group, index: int) -> Json:
    """Return one pod of a group.

    Its name follows from its place: its replacement has the same one, so there are never two.
    """
    metadata = cluster["metadata"]
    template: Json = copy.deepcopy(group.template)
    kind = "head" if group.is_head else "worker"
    base = (
        f"{metadata['name']}-head" if group.is_head else f"{metadata['name']}-{group.name}-worker"
    )
    labels = {
        ray.CLUSTER_LABEL: metadata["name"],
        ray.NODE_TYPE: kind,
        ray.GROUP: group.label,
        ray.IS_NODE: "yes",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    name = pod_name(base, metadata["uid"], group.label, index)
    # Where Ray is only simulated, the head is there at once.
    annotations = {ray.INDEX: str(index), f"unisono.dev/run-seconds.{_WAIT}": "0"}
    pod = pod_from(template, cluster, name, labels=labels, annotations=annotations)
    container = pod["spec"]["containers"][0]
    _start(pod, container, group, cluster)
    _share_memory(pod, container)
    variables = _variables(cluster, group)
    for each in pod["spec"]["containers"]:
        _add(each, variables)
    if not group.is_head:
        _wait_for_head(pod, container, cluster)
    return pod


def start_command(container: Json, group: Group, cluster: Json) -> str:
    """Return the line that starts Ray in a container.

    >>> head = Group("head", "headgroup", 1, 1, 1, {}, {"dashboard-host": "0.0.0.0"}, is_head=True)
    >>> start_command({"resources": {"limits": {"cpu": "2"}}}, head, {})
    'ray start --head --block --dashboard-agent-listen-port=52365 --dashboard-host=0.0.0.0 \
--metrics-export-port=8080 --num-cpus=2'
    """
    filled = {
        "block": "true",
        "dashboard-agent-listen-port": "52365",
        "metrics-export-port": "8080",
        **_amounts(container),
    }
    if group.is_head:
        filled["dashboard-host"] = "0.0.0.0"
    else:
        filled["address"] = f"{head_address(cluster)}:{ray.GCS_PORT}"
    filled |= {key: str(value) for key, value in group.start.items()}
    flags = [
        f"--{key}" if value.lower() == "true" else f"--{key}={_quoted(value)}"
        for key, value in sorted(filled.items())
        if value.lower() != "false"
    ]
    return " ".join(["ray start", *(["--head"] if group.is_head else []), *flags])


def _quoted(value: str) -> str:
    """Quote for the shell unless the author has done so; variables must stay variables."""
    is_plain = value[:1] in "'\"" or "$" in value
    return value if is_plain else shlex.quote(value)


def _amounts(container: Json) -> dict[str, str]:
    found: dict[str, str] = {}
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    cpu = limits.get("cpu") or (resources.get("requests") or {}).get("cpu")
    if cpu is not None:
        found["num-cpus"] = str(whole_units(Quantity.from_raw(cpu).amount("cpu"), "cpu"))
    if "memory" in limits:
        found["memory"] = str(Quantity.from_raw(limits["memory"]).units)
    gpus = [Quantity.from_raw(amount).units for name, amount in limits.items() if is_gpu(name)]
    if sum(gpus):
        found["num-gpus"] = str(sum(gpus))
    return found


def is_gpu(resource: str) -> bool:
    """Say whether a resource is a GPU."""
    return resource.endswith("gpu")


def _start(pod: Json, container: Json, group: Group, cluster: Json) -> None:
    line = start_command(container, group, cluster)
    _add(container, [{"name": "KUBERAY_GEN_RAY_START_CMD", "value": line}])
    if (pod["metadata"]["annotations"]).get(ray.OVERWRITE) == "true":
        return
    own = " ".join([*(container.get("command") or ()), *(container.get("args") or ())])
    before = f"{own} && " if own else ""
    container["command"] = ["/bin/bash", "-c", "--"]
    container["args"] = [f"{before}ulimit -n 65536; {line}"]


def _variables(cluster: Json, group: Group) -> list[Json]:
    port = str(ray.GCS_PORT)
    host = "127.0.0.1" if group.is_head else head_address(cluster)
    variables: list[Json] = [
        _read("RAY_CLUSTER_NAME", f"metadata.labels['{ray.CLUSTER_LABEL}']"),
        _read("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        _read("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
        _read("RAY_NODE_TYPE_NAME", f"metadata.labels['{ray.GROUP}']"),
        {"name": "RAY_PORT", "value": port},
        {"name": "RAY_ADDRESS", "value": f"{host}:{port}"},
        {"name": "RAY_USAGE_STATS_KUBERAY_IN_USE", "value": "1"},
    ]
    if not group.is_head:
        variables += [
            {"name": "FQ_RAY_IP", "value": host},
            {"name": "RAY_IP", "value": service_name(cluster)},
        ]
    return variables


def _read(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _add(container: Json, variables: list[Json]) -> None:
    own = container.get("env") or []
    named = {one["name"] for one in own}
    container["env"] = [*own, *(one for one in variables if one["name"] not in named)]


def _share_memory(pod: Json, container: Json) -> None:
    """Ray keeps objects in shared memory, of which a container has 64 MiB by itself."""
    mounts = container.get("volumeMounts") or []
    if any(one["mountPath"] == _SHARED_AT for one in mounts):
        return
    resources = container.get("resources") or {}
    size = (resources.get("requests") or resources.get("limits") or {}).get("memory")
    volume = {"medium": "Memory", **({"sizeLimit": size} if size else {})}
    pod["spec"]["volumes"] = [
        *(pod["spec"].get("volumes") or ()),
        {"name": _SHARED, "emptyDir": volume},
    ]
    container["volumeMounts"] = [*mounts, {"name": _SHARED, "mountPath": _SHARED_AT}]


def _wait_for_head(pod: Json, container: Json, cluster: Json) -> None:
    address = f"{head_address(cluster)}:{ray.GCS_PORT}"
    amounts = {"cpu": "200m", "memory": "256Mi"}
    waiting: Json = {
        "name": _WAIT,
        "image": container.get("image", ""),
        "command": ["/bin/bash", "-c", "--"],
        "args": [
            f"until ray health-check --address {address} > /dev/null 2>&1; do"
            ' echo "waiting for the head"; sleep 5; done'
        ],
        "env": copy.deepcopy(container.get("env") or []),
        "resources": {"requests": amounts, "limits": amounts},
    }
    if container.get("volumeMounts"):
        waiting["volumeMounts"] = copy.deepcopy(container["volumeMounts"])
    pod["spec"]["initContainers"] = [waiting, *(pod["spec"].get("initContainers") or ())]


# ---- groups --------------------------------------------------------------------------------------
#
# The pods that a Ray cluster is to have: one head, and so many of each worker group.

HEAD = "head"


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of one template."""

    name: str  # as its pod set is called
    label: str  # as Ray calls it
    count: int
    least: int
    most: int
    template: Json
    start: Json  # parameters of `ray start`
    is_head: bool = False
    hosts: int = 1  # pods that make up one replica


def groups_of(spec: Json) -> list[Group]:
    """Return the groups of a cluster's spec, the head first."""
    head = spec["headGroupSpec"]
    return [
        Group(
            HEAD,
            "headgroup",
            1,
            1,
            1,
            with_autoscaler(head.get("template") or {}, spec),
            head.get("rayStartParams") or {},
            is_head=True,
        ),
        *_workers(spec),
    ]


def _workers(spec: Json) -> Iterator[Group]:
    for group in spec.get("workerGroupSpecs") or ():
        hosts = max(1, group.get("numOfHosts", 1))
        least = group.get("minReplicas", 0)
        most = group.get("maxReplicas", MAX_PARALLELISM)
        count = 0 if group.get("suspend") else min(max(group.get("replicas", 0), least), most)
        yield Group(
            group["groupName"].lower(),
            group["groupName"],
            count * hosts,
            least * hosts,
            most * hosts,
            group.get("template") or {},
            group.get("rayStartParams") or {},
            hosts=hosts,
        )


def with_autoscaler(template: Json, spec: Json) -> Json:
    """Return the head's template with the autoscaler beside it, if the cluster wants one."""
    containers = (template.get("spec") or {}).get("containers") or []
    is_there = any(one["name"] == "autoscaler" for one in containers)
    if not spec.get("enableInTreeAutoscaling") or is_there or not containers:
        return template
    options = spec.get("autoscalerOptions") or {}
    amounts = {"cpu": "500m", "memory": "512Mi"}
    sidecar: Json = {
        "name": "autoscaler",
        "image": options.get("image") or containers[0].get("image", ""),
        "command": ["/bin/bash", "-c", "--"],
        "args": [
            "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME)"
            " --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
        ],
        "resources": options.get("resources") or {"requests": amounts, "limits": amounts},
    }
    for field in ("env", "envFrom", "volumeMounts", "securityContext", "imagePullPolicy"):
        if options.get(field):
            sidecar[field] = copy.deepcopy(options[field])
    return {**template, "spec": {**template["spec"], "containers": [*containers, sidecar]}}
