"""Faults of devices as expressions: one series for each GPU, which stands while the fault does.

An exporter writes the pod that has a GPU into the labels of its series. A fault has nothing to do
with it: a series that ends with its pod would end the alert, and let its time begin anew. So all of
these are grouped by node, GPU and UUID, and the pod is looked up when the alert is written.

A fault that was seen is kept until its end is seen: XID 79 is overwritten by the errors that follow
it, and a GPU that has fallen off its bus has no metrics at all. What is kept is the recorded series
itself, so it survives a restart of Prometheus; it is dropped when its node is gone.
"""

from __future__ import annotations

from unisono.monitor.gpu_faults import CRITICAL_XIDS

BY_DEVICE = "kubernetes_node, gpu, UUID"
CRITICAL_XID_PATTERN = "|".join(map(str, CRITICAL_XIDS))


def by_device(expression: str) -> str:
    """Return one series for each device, whichever pod has it."""
    return f"max by ({BY_DEVICE}) ({expression})"


def increase(series: str, window: str) -> str:
    """Return by how much a counter grew, the first event included.

    A series that is born with its first event has no sample before it, so to `increase` it never
    happened. What was not there when the window began has grown by all that it is.
    """
    born = f"({series} unless {series} offset {window})"
    grown = f"increase({series}[{window}])"
    return f"({born} > {grown} or {grown} or {born})"


# While one leader follows another both tell of the same pods.
POD_INFO = "group by (namespace, pod, workload, queue, user) (unisono_pod_info)"

_XID = "DCGM_FI_DEV_XID_ERRORS"
CRITICAL_NOW = by_device(
    " or ".join(
        [
            *(f"{_XID} == {xid}" for xid in CRITICAL_XIDS),
            # Two errors between two scrapes: the exporter's own count, where it is switched on,
            # has both.
            *(
                f'(DCGM_EXP_XID_ERRORS_COUNT{{xid="{xid}"}} > 0) * 0 + {xid}'
                for xid in CRITICAL_XIDS
            ),
        ]
    )
)
# Volatile errors are forgotten by a reset, remapped rows never: of those only new ones count.
ECC_NOW = (
    f"({by_device('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL')} > 0"
    " or unisono:gpu_remapped_rows:count > min_over_time(unisono:gpu_remapped_rows:count[10m]))"
)
REMAP_FAILED_NOW = f"{by_device('DCGM_FI_DEV_ROW_REMAP_FAILURE')} > 0"

# The energy counter begins anew with the driver.
_RESET = "resets(unisono:gpu_energy:mj[10m]) > 0"
_NODE_OF = '"kubernetes_node", "$1", "node", "(.*)"'


def _kept(name: str, now: str, over: str) -> tuple[str, str]:
    """Return a fault that lasts until it is over; a critical one is never over by itself."""
    before = (
        f"({name} unless on ({BY_DEVICE}) ({over}) and on (kubernetes_node) unisono:gpu_node:info)"
    )
    return name, f"{now} or {before}"


RECORDED_FAULTS: tuple[tuple[str, str], ...] = (
    (
        "unisono:gpu_pod:info",
        f"group by ({BY_DEVICE}, namespace, pod, workload, queue, user)"
        ' (DCGM_FI_DEV_GPU_TEMP{pod!=""} * on (namespace, pod) group_left (workload, queue, user)'
        f" {POD_INFO})"
        f" or group by ({BY_DEVICE}, namespace, pod)"
        ' (DCGM_FI_DEV_GPU_TEMP{pod!=""} unless on (namespace, pod) unisono_pod_info)',
    ),
    (
        "unisono:gpu_node:info",
        "group by (kubernetes_node) (DCGM_FI_DEV_GPU_TEMP"
        f" or label_replace(last_over_time(unisono_gpu_healthy[1h]), {_NODE_OF})"
        ' or label_replace(kube_node_status_capacity{resource="nvidia_com_gpu"},'
        f" {_NODE_OF}))",
    ),
    ("unisono:gpu_xid:last", by_device(_XID)),
    ("unisono:gpu_remapped_rows:count", by_device("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS")),
    ("unisono:gpu_thermal_violation:ns", by_device("DCGM_FI_DEV_THERMAL_VIOLATION")),
    ("unisono:gpu_energy:mj", by_device("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")),
    _kept("unisono:gpu_xid:critical", CRITICAL_NOW, "unisono:gpu_xid:last == 0"),
    _kept(
        "unisono:gpu_ecc:uncorrectable",
        ECC_NOW,
        f"{by_device('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL')} == 0"
        f" or unisono:gpu_remapped_rows:count == 0 or {_RESET}",
    ),
    _kept(
        "unisono:gpu_row_remap:failed",
        REMAP_FAILED_NOW,
        f"{by_device('DCGM_FI_DEV_ROW_REMAP_FAILURE')} == 0",
    ),
)
