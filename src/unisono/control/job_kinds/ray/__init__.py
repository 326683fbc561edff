"""RayCluster and RayJob: their kinds, labels and ports."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.kube.mapping import Kind

CLUSTER = Kind("ray.io/v1", "RayCluster")
JOB = Kind("ray.io/v1", "RayJob")
CRON_JOB = Kind("ray.io/v1", "RayCronJob")
SERVICE = Kind("ray.io/v1", "RayService")
OURS = ("", None, "ray.io/kuberay-operator")

CLUSTER_LABEL = "ray.io/cluster"
NODE_TYPE = "ray.io/node-type"
GROUP = "ray.io/group"
IS_NODE = "ray.io/is-ray-node"
# The number of a pod in its group: what takes its place has the same.
INDEX = "unisono.dev/index"
OVERWRITE = "ray.io/overwrite-container-cmd"
GCS_PORT = 6379

PORTS: Mapping[str, int] = {
    "gcs-server": GCS_PORT,
    "client": 10001,
    "dashboard": 8265,
    "metrics": 8080,
    "serve": 8000,
}
