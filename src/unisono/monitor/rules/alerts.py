"""Alert rules: what an administrator should look at, and what to do (semantics monitoring §6).

The first three are those that GPU guides print, with the same names, thresholds, times and
severities. GPUMemoryExhausted also works where the exporter does not write FB_TOTAL.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from unisono.monitor.gpu_faults import CRITICAL_XIDS

Severity = Literal["info", "warning", "critical"]

_DEVICE = "{{ $labels.kubernetes_node }} GPU {{ $labels.gpu }}"
_POD = "{{ with $labels.pod }}; pod {{ $labels.namespace }}/{{ . }}{{ end }}"
_GANG = "{{ $labels.namespace }}/{{ $labels.workload }}"
_BY_DEVICE = "sum by (kubernetes_node, gpu, UUID, namespace, pod)"
_THERMAL = 'clock_event=~"hw_thermal|sw_thermal|hw_slowdown|hw_power_brake"'


class Alert(NamedTuple):
    """One rule; `lasting` is for how long it has to hold."""

    name: str
    group: str
    expression: str
    lasting: str
    severity: Severity
    summary: str
    description: str


def _pods(state: str) -> str:
    return f'unisono_gang_pods{{state="{state}"}}'


def _gpus(kind: str) -> str:
    return f'unisono_queue_gpus{{kind="{kind}"}}'


_XIDS = " or ".join(f"(DCGM_FI_DEV_XID_ERRORS == {xid})" for xid in CRITICAL_XIDS)

# A step that fails is tried again within seconds, and every workload is examined within a cycle.
BEHIND_SECONDS = 60
UNEXPLAINED_SECONDS = 300

ALERTS: tuple[Alert, ...] = (
    Alert(
        "GPUHighTemperature",
        "gpu-alerts",
        "DCGM_FI_DEV_GPU_TEMP > 85",
        "5m",
        "warning",
        "GPU temperature > 85°C",
        f"{_DEVICE} is at {{{{ $value }}}} °C{_POD}. Look at the air flow of its rack; it slows"
        " down from 87 °C on.",
    ),
    Alert(
        "GPUMemoryExhausted",
        "gpu-alerts",
        "DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_TOTAL > 0.95 or unisono:gpu_memory_used:ratio > 0.95",
        "5m",
        "critical",
        "GPU memory almost full",
        f"{{{{ $value | humanizePercentage }}}} of the memory of {_DEVICE} is in use{_POD}. A"
        " smaller batch or a larger GPU keeps the job from running out.",
    ),
    Alert(
        "GPUUnderutilized",
        "gpu-alerts",
        "DCGM_FI_DEV_GPU_UTIL < 20",
        "30m",
        "info",
        "GPU underutilized - consider right-sizing",
        f"{_DEVICE} is {{{{ $value }}}} % busy{_POD}. Includes GPUs that are not"
        " allocated; see GPUAllocatedIdle for those that are.",
    ),
    Alert(
        "GPUAllocatedIdle",
        "gpu-health",
        'unisono:gpu_busy:ratio{pod!=""} * on (namespace, pod)'
        " group_left (workload, queue, user) unisono_pod_info < 0.05",
        "30m",
        "warning",
        "An allocated GPU is idle",
        f"{_DEVICE} has been idle for half an hour. It is allocated to {_GANG} of user"
        " {{ $labels.user }} in queue {{ $labels.queue }}: request fewer GPUs, or end the job.",
    ),
    Alert(
        "GPUXidCritical",
        "gpu-health",
        _XIDS,
        "0s",
        "critical",
        "A GPU needs a reset",
        f"{_DEVICE} reported XID {{{{ $value }}}}{_POD}. The node gets no new gangs; drain it and"
        " reset the device.",
    ),
    Alert(
        "GPUXidOther",
        "gpu-health",
        "sum by (kubernetes_node, gpu, UUID, xid, namespace, pod) (DCGM_EXP_XID_ERRORS_COUNT) > 0",
        "0s",
        "info",
        "A GPU reported an error",
        f"{_DEVICE} reported XID {{{{ $labels.xid }}}}{_POD}. 13, 31, 43, 45, 68 and 109 come from"
        " the application.",
    ),
    Alert(
        "GPUEccUncorrectable",
        "gpu-health",
        "increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[10m]) > 0"
        " or increase(DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS[10m]) > 0",
        "0s",
        "critical",
        "A GPU has uncorrectable memory errors",
        f"{_DEVICE} had uncorrectable errors within ten minutes{_POD}. Results may be wrong:"
        " restart the job on another node and reset the device.",
    ),
    Alert(
        "GPURowRemapFailure",
        "gpu-health",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE > 0",
        "0s",
        "critical",
        "A GPU can remap no more rows",
        f"{_DEVICE} could not remap a broken row{_POD}. The device has to be replaced.",
    ),
    Alert(
        "GPUThermalThrottling",
        "gpu-health",
        "rate(DCGM_FI_DEV_THERMAL_VIOLATION[5m]) / 1e9 > 0.1"
        f" or {_BY_DEVICE} (DCGM_EXP_CLOCK_EVENTS_COUNT{{{_THERMAL}}}) > 0",
        "10m",
        "warning",
        "A GPU is throttled by heat",
        f"{_DEVICE} throttles{_POD}: the whole gang waits for its slowest device.",
    ),
    Alert(
        "GPULost",
        "gpu-health",
        'kube_node_status_capacity{resource="nvidia_com_gpu"} - on (node)'
        ' kube_node_status_allocatable{resource="nvidia_com_gpu"} > 0',
        "5m",
        "warning",
        "A node has lost GPUs",
        "{{ $labels.node }} lacks {{ $value }} of its GPUs. Look at its kernel log for XID 79.",
    ),
    Alert(
        "GPUExporterDown",
        "gpu-health",
        'up{job=~".*dcgm.*|unisono-gpu"} == 0',
        "5m",
        "warning",
        "GPU metrics are missing",
        "{{ $labels.instance }} has not answered for five minutes; usage is unknown meanwhile.",
    ),
    Alert(
        "GPUMetricsUnattributed",
        "gpu-health",
        # Without a single match `count` is silent, and so would the alert be.
        "1 - (count(DCGM_FI_DEV_GPU_TEMP * on (namespace, pod) group_left () unisono_pod_info)"
        " or vector(0)) / unisono:gpu_allocated:count > 0.2",
        "10m",
        "info",
        "GPU metrics lack pod labels",
        "{{ $value | humanizePercentage }} of the GPUs in use have no pod in their metrics. Scrape"
        " the exporter with honor_labels: true and run it with DCGM_EXPORTER_KUBERNETES=true.",
    ),
    Alert(
        "GangWaitingTooLong",
        "gangs",
        "unisono_gang_pending_seconds > on (queue) group_left () unisono_queue_wait_slo_seconds",
        "1m",
        "warning",
        "A workload exceeds the wait objective of its queue",
        f"{_GANG} has been waiting for {{{{ $value | humanizeDuration }}}} in queue"
        " {{ $labels.queue }}, for {{ $labels.reason }}; `unisono why` says more.",
    ),
    Alert(
        "GangPartiallyRunning",
        "gangs",
        f"{_pods('bound')} > 0 and ignoring (state)"
        f" ({_pods('bound')} < ignoring (state) {_pods('required')})",
        "2m",
        "critical",
        "A gang is only partly placed",
        f"{_GANG} has {{{{ $value }}}} pods on nodes, and not all of them. This must not happen:"
        " please report it with the recording of the decision.",
    ),
    Alert(
        "QuotaStarvation",
        "gangs",
        f"{_gpus('pending')} > 0 and ignoring (kind)"
        f" ({_gpus('used')} < ignoring (kind) {_gpus('nominal')})",
        "30m",
        "warning",
        "A queue waits although it has unused quota",
        "Queue {{ $labels.queue }} requests {{ $value }} GPUs and does not use all of its quota."
        " They do not fit on the nodes, or other queues use these: see `unisono queues`.",
    ),
    Alert(
        "WorkloadCannotStart",
        "gangs",
        "sum by (queue, reason) (unisono_unstartable_workloads) > 0",
        "1m",
        "info",
        "A workload cannot start",
        "{{ $value }} workloads in queue {{ $labels.queue }} cannot start without a"
        " change ({{ $labels.reason }}); `unisono why` says which.",
    ),
    Alert(
        "StragglerDetected",
        "gangs",
        "unisono_straggler_score > 3",
        "10m",
        "warning",
        "A rank is slower than its gang",
        f"Rank {{{{ $labels.rank }}}} of {_GANG} on {{{{ $labels.node }}}} delays the others.",
    ),
    Alert(
        "GPUClockBelowGang",
        "gangs",
        "unisono:sm_clock:vs_gang < 0.9 and on (UUID) unisono:gpu_busy:ratio > 0.8",
        "10m",
        "warning",
        "A busy GPU is slower than those of its gang",
        f"{_DEVICE} runs at {{{{ $value | humanizePercentage }}}} of the clock of {_GANG}: it is"
        " hot, short of power, or limited, and the others wait for it.",
    ),
    Alert(
        "TrainingStalled",
        "gangs",
        "time() - unisono_rank_last_step_timestamp_seconds > 900"
        " and on (namespace, workload) unisono_workload_running == 1",
        "0s",
        "warning",
        "A training job is stalled",
        f"{_GANG} made its last step {{{{ $value | humanizeDuration }}}} ago.",
    ),
    Alert(
        "RestartStorm",
        "gangs",
        "sum by (namespace, workload, queue) (increase(unisono_workload_restarts_total[1h])) >= 3",
        "0s",
        "warning",
        "A workload restarts repeatedly",
        f"{_GANG} restarted {{{{ $value }}}} times within an hour; `unisono describe` shows why.",
    ),
    Alert(
        "ProvisioningFailing",
        "capacity",
        'sum by (nodepool) (increase(unisono_provision_plans_total{result=~"failed|timeout"}[30m]))'
        " >= 3",
        "0s",
        "warning",
        "Provisioning fails",
        "{{ $value }} purchases of NodePool {{ $labels.nodepool }} failed within half an hour.",
    ),
    Alert(
        "CapacityStockOut",
        "capacity",
        "min by (instance_type, capacity_type) (unisono_offering_unavailable) == 1",
        "15m",
        "info",
        "An instance type is unavailable in all zones",
        "{{ $labels.instance_type }} ({{ $labels.capacity_type }}) is unavailable in all zones.",
    ),
    Alert(
        "PaidNodeIdle",
        "capacity",
        "unisono_node_idle_seconds > 1800 and on (node) unisono_node_price_usd_per_hour > 1",
        "0s",
        "warning",
        "A paid node is idle",
        "{{ $labels.node }} ({{ $labels.instance_type }}) has been idle for"
        " {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "SpendAboveBudget",
        "capacity",
        "unisono_hourly_cost_usd > unisono_hourly_cost_limit_usd",
        "10m",
        "warning",
        "The cluster exceeds its cost limit",
        "All nodes together cost {{ $value }} US dollars per hour.",
    ),
    Alert(
        "SchedulerSlow",
        "scheduler",
        "histogram_quantile(0.99, sum by (le)"
        ' (rate(unisono_cycle_duration_seconds_bucket{phase="total"}[5m]))) > 1',
        "10m",
        "warning",
        "Scheduling cycles are slow",
        "The 99th percentile of a scheduling cycle is {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "ObjectsQuarantined",
        "scheduler",
        "sum by (kind, stage) (unisono_quarantined_objects) > 0",
        "0s",
        "warning",
        "Objects are quarantined",
        "{{ $value }} {{ $labels.kind }} objects failed at stage {{ $labels.stage }}; their events"
        " and `unisono why` say what is wrong with each. All others are scheduled as usual.",
    ),
    Alert(
        "PlansRefused",
        "scheduler",
        "increase(unisono_refused_plans_total[10m]) > 0",
        "0s",
        "warning",
        "The auditor refused a plan",
        "{{ $value }} plans broke a rule within ten minutes. Their sound parts were applied."
        " This is a bug: report it with the recording in the folder refusals.",
    ),
    Alert(
        "ControllersCrashing",
        "scheduler",
        "increase(unisono_controller_crashes_total[10m]) > 10 or unisono_failing_keys > 10",
        "10m",
        "warning",
        "Controllers fail on many objects",
        "{{ $value }} failures; the log has the traces, and events name the objects.",
    ),
    Alert(
        "WorkloadUnexplained",
        "scheduler",
        f"unisono_unexplained_seconds > {UNEXPLAINED_SECONDS}",
        "0s",
        "warning",
        "A workload waits without an explanation",
        "The oldest workload without an explanation has waited for"
        " {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "SchedulerNotPlanning",
        "scheduler",
        f"unisono_scheduler_behind_seconds > {BEHIND_SECONDS}",
        "0s",
        "critical",
        "The scheduler cannot plan",
        "No plan could be made for {{ $value | humanizeDuration }}; nothing starts. The log says"
        " why.",
    ),
    Alert(
        "SchedulerNotWriting",
        "scheduler",
        f"unisono_unwritten_seconds > {BEHIND_SECONDS}",
        "0s",
        "critical",
        "Decisions cannot be written",
        "The API has taken no decision for {{ $value | humanizeDuration }}; nothing starts.",
    ),
    Alert(
        "SchedulerDown",
        "scheduler",
        "absent(unisono_build_info)",
        "5m",
        "critical",
        "Unisono is down",
        "No metrics of Unisono: it is down, or not scraped; workloads are not scheduled.",
    ),
)
