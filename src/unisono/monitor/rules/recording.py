"""Recording rules: what alerts and dashboards start from (semantics monitoring §5).

None is recorded under a name that an exporter also writes: such a rule would see itself and flap.
"""

from __future__ import annotations

from typing import NamedTuple

INTERVAL = "30s"

_OF_POD = "on (namespace, pod) group_left"
_OF_GANG = "on (namespace, workload) group_left ()"


class Recording(NamedTuple):
    """One rule."""

    name: str
    expression: str


def _wait(quantile: str) -> str:
    buckets = "sum by (queue, le) (rate(unisono_gang_wait_time_seconds_bucket[30m]))"
    return f"histogram_quantile({quantile}, {buckets})"


def _against_gang(series: str) -> str:
    """Compare a series of a device with the median of its gang."""
    return f"({series}) / {_OF_GANG} quantile by (namespace, workload) (0.5, {series})"


_CLOCK = f"DCGM_FI_DEV_SM_CLOCK * {_OF_POD} (workload) unisono_pod_info"
_BUSY_OF = "unisono:gpu_busy:ratio * on (namespace, pod) group_left"

RECORDINGS: tuple[Recording, ...] = (
    # A stock exporter has no FB_TOTAL; older ones have no FB_RESERVED either.
    Recording(
        "unisono:gpu_memory_total:mib",
        "DCGM_FI_DEV_FB_TOTAL"
        " or (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE + DCGM_FI_DEV_FB_RESERVED)"
        " or (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
    ),
    Recording(
        "unisono:gpu_memory_used:ratio", "DCGM_FI_DEV_FB_USED / unisono:gpu_memory_total:mib"
    ),
    # From the most to the least truthful: GPU_UTIL says only that some kernel ran, and parts of a
    # GPU have none.
    Recording(
        "unisono:gpu_busy:ratio",
        "DCGM_FI_PROF_SM_ACTIVE or DCGM_FI_PROF_GR_ENGINE_ACTIVE or DCGM_FI_DEV_GPU_UTIL / 100",
    ),
    Recording(
        "unisono:gpu_capacity:count",
        'sum(kube_node_status_allocatable{resource="nvidia_com_gpu"})',
    ),
    # Pods that are over or have no node hold nothing.
    Recording(
        "unisono:gpu_allocated:count",
        'sum(kube_pod_container_resource_limits{resource="nvidia_com_gpu", node!=""}'
        " * on (namespace, pod) group_left ()"
        ' (kube_pod_status_phase{phase=~"Pending|Running"} == 1))',
    ),
    Recording(
        "unisono:gpu_allocation:ratio", "unisono:gpu_allocated:count / unisono:gpu_capacity:count"
    ),
    Recording(
        "unisono:gpu_busy:by_workload",
        "avg by (namespace, workload, queue, user)"
        f" ({_BUSY_OF} (workload, queue, user) unisono_pod_info)",
    ),
    Recording("unisono:gpu_busy:by_queue", f"avg by (queue) ({_BUSY_OF} (queue) unisono_pod_info)"),
    Recording(
        "unisono:gpu_power:by_queue",
        f"sum by (queue) (DCGM_FI_DEV_POWER_USAGE * {_OF_POD} (queue) unisono_pod_info)",
    ),
    Recording(
        "unisono:queue_quota:ratio",
        'unisono_queue_gpus{kind="used"} / ignoring (kind)'
        ' (unisono_queue_gpus{kind="nominal"} > 0)',
    ),
    Recording("unisono:wait_p50:30m", _wait("0.5")),
    Recording("unisono:wait_p95:30m", _wait("0.95")),
    Recording("unisono:sm_clock:vs_gang", _against_gang(_CLOCK)),
    Recording("unisono:step_time:vs_gang", _against_gang("unisono_rank_step_seconds")),
)
