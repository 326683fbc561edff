"""The dashboards: what operators and researchers look at.

The first three panels of the fleet are those that GPU guides print, expressions and all; memory
also works where the exporter writes no FB_TOTAL.
"""

from __future__ import annotations

from tools.dashboards.build import Board, Panel, Query, Section, Variable
from tools.dashboards.sections import BROKEN, GPU_TIME, LEAVING, MACHINES, ranks

_GPU = 'gpu=~"$gpu", instance=~"$instance"'
_DEVICE = "{{kubernetes_node}} - GPU {{gpu}}"
_QUEUE = 'queue=~"$queue"'
_GANG = 'namespace=~"$namespace", workload=~"$workload"'
_GREEN, _AMBER, _RED = "green", "orange", "red"

_QUEUES = Variable("queue", "Queue", "label_values(unisono_queue_gpus, queue)")


def _gpus(kind: str) -> str:
    return f'sum by (queue) (unisono_queue_gpus{{kind="{kind}", {_QUEUE}}})'


def _dcgm(field: str) -> str:
    return f"{field}{{{_GPU}}}"


def _wait(quantile: float, part: str) -> str:
    buckets = (
        f'sum by (le) (rate(unisono_gang_wait_time_seconds_bucket{{part="{part}", {_QUEUE}}}'
        "[$__rate_interval]))"
    )
    return f"histogram_quantile({quantile}, {buckets})"


FLEET = Board(
    "unisono-fleet",
    "Unisono / GPU fleet",
    "Utilisation, memory, temperature and power of every GPU, from dcgm-exporter.",
    (
        Section(
            "Use",
            (
                Panel(
                    "GPU Utilization by Node",
                    [Query('DCGM_FI_DEV_GPU_UTIL{gpu=~"$gpu"}', _DEVICE)],
                    unit="percent",
                    least=0,
                    most=100,
                ),
                Panel(
                    "GPU Memory Usage",
                    [
                        Query(
                            'DCGM_FI_DEV_FB_USED{gpu=~"$gpu"} / DCGM_FI_DEV_FB_TOTAL * 100'
                            ' or unisono:gpu_memory_used:ratio{gpu=~"$gpu"} * 100',
                            _DEVICE,
                        )
                    ],
                    unit="percent",
                    least=0,
                    most=100,
                ),
                Panel(
                    "Cluster GPU Allocation",
                    [
                        Query(
                            'sum(kube_pod_container_resource_limits{resource="nvidia_com_gpu"})'
                            ' / sum(kube_node_status_allocatable{resource="nvidia_com_gpu"}) * 100'
                        )
                    ],
                    kind="gauge",
                    unit="percent",
                    width=6,
                    least=0,
                    most=100,
                    description="Counts pods that ended or wait for a node, too, so it may be"
                    " more than 100; the panel beside it does not.",
                ),
                Panel(
                    "GPUs allocated to pods",
                    [Query("unisono:gpu_allocation:ratio")],
                    kind="gauge",
                    unit="percentunit",
                    width=6,
                    least=0,
                    most=1,
                ),
                Panel(
                    "Busy, by queue",
                    [Query("unisono:gpu_busy:by_queue", "{{queue}}")],
                    unit="percentunit",
                    least=0,
                    most=1,
                ),
            ),
        ),
        Section(
            "Devices",
            (
                Panel(
                    "GPU Temperature",
                    [Query(_dcgm("DCGM_FI_DEV_GPU_TEMP"), _DEVICE)],
                    unit="celsius",
                    width=18,
                ),
                Panel(
                    "GPU Avg. Temp",
                    [Query(f"avg({_dcgm('DCGM_FI_DEV_GPU_TEMP')})")],
                    kind="gauge",
                    unit="celsius",
                    width=6,
                    least=0,
                    most=100,
                    thresholds=((None, _GREEN), (83, _AMBER), (87, _RED)),
                ),
                Panel(
                    "GPU Power Usage",
                    [Query(_dcgm("DCGM_FI_DEV_POWER_USAGE"), _DEVICE)],
                    unit="watt",
                    width=18,
                ),
                Panel(
                    "GPU Power Total",
                    [Query(f"sum({_dcgm('DCGM_FI_DEV_POWER_USAGE')})")],
                    kind="gauge",
                    unit="watt",
                    width=6,
                    least=0,
                    most=2400,
                    thresholds=((None, _GREEN), (1800, _AMBER), (2200, _RED)),
                ),
                Panel(
                    "GPU SM Clocks",
                    [Query(f"{_dcgm('DCGM_FI_DEV_SM_CLOCK')} * 1000000", _DEVICE)],
                    unit="hertz",
                ),
                Panel(
                    "GPU Utilization",
                    [Query(_dcgm("DCGM_FI_DEV_GPU_UTIL"), _DEVICE)],
                    unit="percent",
                    least=0,
                    most=100,
                ),
                Panel(
                    "Tensor Core Utilization",
                    [Query(_dcgm("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), _DEVICE)],
                    unit="percentunit",
                    least=0,
                    most=1,
                ),
                Panel(
                    "GPU Framebuffer Mem Used",
                    [Query(_dcgm("DCGM_FI_DEV_FB_USED"), _DEVICE)],
                    unit="mbytes",
                ),
            ),
        ),
    ),
    (
        Variable("instance", "Exporter", "label_values(DCGM_FI_DEV_GPU_TEMP, instance)"),
        Variable("gpu", "GPU", "label_values(DCGM_FI_DEV_GPU_TEMP, gpu)"),
    ),
)

QUEUES = Board(
    "unisono-queues",
    "Unisono / Queues and quota",
    "Quota, usage, borrowing, lending and pending workloads of queues.",
    (
        Section(
            "Quota",
            (
                Panel(
                    "GPUs by queue",
                    [
                        Query(_gpus("used"), "{{queue}} used"),
                        Query(_gpus("nominal"), "{{queue}} own"),
                    ],
                ),
                Panel(
                    "Quota in use",
                    [Query(f"unisono:queue_quota:ratio{{{_QUEUE}}}", "{{queue}} {{flavor}}")],
                    kind="bargauge",
                    unit="percentunit",
                    least=0,
                ),
                Panel("Borrowed", [Query(_gpus("borrowed"), "{{queue}}")], width=8),
                Panel("Lent", [Query(_gpus("lent"), "{{queue}}")], width=8),
                Panel(
                    "Requested by pending jobs",
                    [Query(_gpus("pending"), "{{queue}}")],
                    width=8,
                ),
            ),
        ),
        Section(
            "Workloads",
            (
                Panel(
                    "Workloads by state",
                    [Query(f"sum by (state) (unisono_queue_workloads{{{_QUEUE}}})", "{{state}}")],
                ),
                Panel(
                    "Share of all GPUs in use",
                    [
                        Query(
                            f'unisono_queue_fair_share{{kind="share", {_QUEUE}}}',
                            "{{queue}}",
                        )
                    ],
                    unit="percentunit",
                    least=0,
                    most=1,
                ),
            ),
        ),
    ),
    (_QUEUES,),
)

GANGS = Board(
    "unisono-gangs",
    "Unisono / Gangs and waits",
    "Pending workloads: reasons and waits; and the waits of started workloads.",
    (
        Section(
            "Waiting",
            (
                Panel(
                    "Longest waits",
                    [Query(f"topk(20, unisono_gang_pending_seconds{{{_QUEUE}}})")],
                    kind="table",
                    unit="s",
                    width=24,
                ),
                Panel(
                    "Waiting, by reason",
                    [
                        Query(
                            f"count by (reason) (unisono_gang_pending_seconds{{{_QUEUE}}})",
                            "{{reason}}",
                        )
                    ],
                ),
                Panel(
                    "Longest wait now",
                    [
                        Query(
                            f"max by (queue) (unisono_gang_pending_seconds{{{_QUEUE}}})",
                            "{{queue}}",
                        )
                    ],
                    unit="s",
                ),
            ),
        ),
        Section(
            "Waits of started workloads",
            (
                Panel(
                    "Total",
                    [Query(_wait(0.5, "total"), "median"), Query(_wait(0.95, "total"), "p95")],
                    unit="s",
                ),
                Panel(
                    "p95 by part",
                    [
                        Query(_wait(0.95, "quota"), "quota"),
                        Query(_wait(0.95, "capacity"), "capacity"),
                        Query(_wait(0.95, "start"), "start"),
                    ],
                    unit="s",
                ),
            ),
        ),
    ),
    (_QUEUES,),
)

WORKLOAD = Board(
    "unisono-workload",
    "Unisono / Workload detail",
    "One gang: its pods, its GPU metrics, and stragglers.",
    (
        Section(
            "Gang",
            (
                Panel(
                    "Pods",
                    [Query(f"unisono_gang_pods{{{_GANG}}}", "{{workload}} {{state}}")],
                ),
                Panel(
                    "Busy",
                    [Query(f"unisono:gpu_busy:by_workload{{{_GANG}}}", "{{workload}}")],
                    unit="percentunit",
                    least=0,
                    most=1,
                ),
                Panel(
                    "Clock relative to the gang's median",
                    [Query(f"unisono:sm_clock:vs_gang{{{_GANG}}}", "{{pod}} GPU {{gpu}}")],
                    unit="percentunit",
                ),
                Panel(
                    "Memory",
                    [
                        Query(
                            "unisono:gpu_memory_used:ratio * on (namespace, pod)"
                            f" group_left (workload) unisono_pod_info{{{_GANG}}}",
                            "{{pod}} GPU {{gpu}}",
                        )
                    ],
                    unit="percentunit",
                    least=0,
                    most=1,
                ),
            ),
        ),
        ranks(_GANG),
    ),
    (
        Variable("namespace", "Namespace", "label_values(unisono_gang_pods, namespace)"),
        Variable("workload", "Workload", "label_values(unisono_gang_pods, workload)"),
    ),
)

CAPACITY = Board(
    "unisono-capacity",
    "Unisono / Capacity and cost",
    "Nodes, their cost, idle nodes, and the fragmentation of free GPUs.",
    (
        Section(
            "Capacity",
            (
                Panel(
                    "GPUs",
                    [
                        Query("unisono:gpu_capacity:count", "there"),
                        Query("unisono:gpu_allocated:count", "held by pods"),
                    ],
                ),
                Panel(
                    "Fragmented GPUs, by pod size",
                    [Query("unisono_fragmentation_ratio", "{{flavor}} pods of {{size}}")],
                    unit="percentunit",
                    least=0,
                    most=1,
                ),
            ),
        ),
        Section(
            "Cost",
            (
                Panel(
                    "All nodes, per hour",
                    [Query("unisono_hourly_cost_usd")],
                    kind="stat",
                    unit="currencyUSD",
                    width=6,
                ),
                Panel(
                    "Idle nodes, per hour",
                    [
                        Query(
                            "sum(unisono_node_price_usd_per_hour and on (node)"
                            " (unisono_node_idle_seconds > 0)) or vector(0)"
                        )
                    ],
                    kind="stat",
                    unit="currencyUSD",
                    width=6,
                ),
                Panel(
                    "Idle time of nodes",
                    [Query("unisono_node_idle_seconds", "{{node}}")],
                    unit="s",
                ),
            ),
        ),
        GPU_TIME,
        MACHINES,
    ),
)

RELIABILITY = Board(
    "unisono-reliability",
    "Unisono / Reliability",
    "Device errors, restarts, preemptions, and the speed of the scheduler.",
    (
        Section(
            "Devices",
            (
                BROKEN,
                Panel(
                    "Last XID error",
                    [Query("DCGM_FI_DEV_XID_ERRORS", _DEVICE)],
                    description="0: none. It stays until the driver is reset.",
                ),
                Panel(
                    "Rows remapped for uncorrectable errors",
                    [Query("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", _DEVICE)],
                ),
                Panel(
                    "GPUs lost by nodes",
                    [
                        Query(
                            'kube_node_status_capacity{resource="nvidia_com_gpu"} - on (node)'
                            ' kube_node_status_allocatable{resource="nvidia_com_gpu"}',
                            "{{node}}",
                        )
                    ],
                ),
                Panel(
                    "Thermal throttling",
                    [
                        Query(
                            "rate(DCGM_FI_DEV_THERMAL_VIOLATION[$__rate_interval]) / 1e9",
                            _DEVICE,
                        )
                    ],
                    unit="percentunit",
                    description="Needs the field DCGM_FI_DEV_THERMAL_VIOLATION; add this line to"
                    " the exporter's counters: DCGM_FI_DEV_THERMAL_VIOLATION, counter, Throttling"
                    " duration due to thermal constraints (in ns).",
                ),
            ),
        ),
        Section(
            "Workloads",
            (
                Panel(
                    "Restarts per hour",
                    [
                        Query(
                            "sum by (reason) (increase(unisono_workload_restarts_total[1h]))",
                            "{{reason}}",
                        )
                    ],
                ),
                Panel(
                    "Preemptions per hour",
                    [
                        Query(
                            "sum by (queue, reason) (increase(unisono_preemptions_total[1h]))",
                            "{{queue}} {{reason}}",
                        )
                    ],
                ),
                LEAVING,
            ),
        ),
        Section(
            "Scheduler",
            (
                Panel(
                    "Duration of scheduling cycles",
                    [
                        Query(
                            f"histogram_quantile({quantile}, sum by (le)"
                            ' (rate(unisono_cycle_duration_seconds_bucket{phase="total"}'
                            "[$__rate_interval])))",
                            name,
                        )
                        for quantile, name in ((0.5, "median"), (0.99, "p99"))
                    ],
                    unit="s",
                ),
            ),
        ),
    ),
)

BOARDS = (FLEET, QUEUES, GANGS, WORKLOAD, CAPACITY, RELIABILITY)
