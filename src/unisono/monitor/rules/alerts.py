"""Alert rules: what an administrator should look at, and what to do (semantics monitoring §6).

The first three are those that GPU guides print, with the same names, thresholds, times and
severities. GPUMemoryExhausted also works where the exporter does not write FB_TOTAL.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from unisono.monitor.rules.devices import (
    BY_DEVICE,
    CRITICAL_NOW,
    CRITICAL_XID_PATTERN,
    ECC_NOW,
    POD_INFO,
    REMAP_FAILED_NOW,
    by_device,
    increase,
)

Severity = Literal["info", "warning", "critical"]

_DEVICE = "{{ $labels.kubernetes_node }} GPU {{ $labels.gpu }}"
_GANG = "{{ $labels.namespace }}/{{ $labels.workload }}"
# A fault is the device's, whichever pods come and go: its pod of now is looked up for the text.
_POD = (
    '{{ range query (printf "unisono:gpu_pod:info{UUID=%q,gpu=%q,kubernetes_node=%q}"'
    " $labels.UUID $labels.gpu $labels.kubernetes_node) }}; pod {{ .Labels.namespace }}/"
    "{{ .Labels.pod }}{{ with .Labels.user }} of {{ . }}{{ end }}{{ end }}"
)
_CLOSED = (
    '{{ with query (printf "unisono_node_quarantined{node=%q}" $labels.kubernetes_node) }}'
    "{{ if eq (. | first | value) 1.0 }}The node is in quarantine and gets no new pods"
    "{{ else }}The node is NOT in quarantine, as too many are: it still gets pods{{ end }}"
    "{{ else }}See in `unisono nodes` whether the node still gets pods{{ end }}"
)
_COUNT = '{{ $value | printf "%.0f" }}'
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


# The last error of a device, where its exporter does not count them; it stands until the driver is
# reset, so it is told for an hour.
_LAST_XID = (
    "(unisono:gpu_xid:last > 0 unless unisono:gpu_xid:last == unisono:gpu_xid:last offset 1h)"
)
_COUNTED_XIDS = f'DCGM_EXP_XID_ERRORS_COUNT{{xid!~"0|{CRITICAL_XID_PATTERN}"}}'
_THROTTLED = (
    f"{by_device(f'DCGM_EXP_CLOCK_EVENTS_COUNT{{{_THERMAL}}}')} > 0"
    " or rate(unisono:gpu_thermal_violation:ns[5m]) / 1e9 > 0.1"
)
# Without either metric: where a GPU begins to slow down.
_HOT = (
    f"({by_device('DCGM_FI_DEV_GPU_TEMP')} >= 87"
    f" unless on ({BY_DEVICE}) unisono:gpu_thermal_violation:ns"
    f" unless on () DCGM_EXP_CLOCK_EVENTS_COUNT)"
)
_DCGM_UP = 'up{job=~".*dcgm.*|unisono-gpu"}'
_NODE_GPUS = 'max by (node) (kube_node_status_allocatable{resource="nvidia_com_gpu"})'
_SEEN_GPUS = (
    "label_replace(count by (kubernetes_node) (group by (kubernetes_node, gpu, UUID)"
    ' (DCGM_FI_DEV_GPU_TEMP)), "node", "$1", "kubernetes_node", "(.+)")'
)
# Where no node's metrics bear its name, nothing can be said of any.
_IS_NAMED = f"count({_NODE_GPUS} and on (node) {_SEEN_GPUS}) > 0"

# A step that fails is tried again within seconds, and every workload is examined within a cycle.
BEHIND_SECONDS = 60
UNEXPLAINED_SECONDS = 300

ALERTS: tuple[Alert, ...] = (
    Alert(
        "GPUHighTemperature",
        "gpu-alerts",
        f"{by_device('DCGM_FI_DEV_GPU_TEMP')} > 85",
        "5m",
        "warning",
        "GPU temperature > 85°C",
        f"{_DEVICE} is at {{{{ $value }}}} °C{_POD}. Look at the air flow of its rack; it slows"
        " down from 87 °C on.",
    ),
    Alert(
        "GPUMemoryExhausted",
        "gpu-alerts",
        f"{by_device('DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_TOTAL')} > 0.95"
        f" or {by_device('unisono:gpu_memory_used:ratio')} > 0.95",
        "5m",
        "critical",
        "GPU memory almost full",
        f"{{{{ $value | humanizePercentage }}}} of the memory of {_DEVICE} is in use{_POD}. A"
        " smaller batch or a larger GPU keeps the job from running out.",
    ),
    Alert(
        "GPUUnderutilized",
        "gpu-alerts",
        f"{by_device('DCGM_FI_DEV_GPU_UTIL')} < 20",
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
        f" group_left (workload, queue, user) {POD_INFO} < 0.05",
        "30m",
        "warning",
        "An allocated GPU is idle",
        f"{_DEVICE} has been idle for half an hour. It is allocated to {_GANG} of user"
        " {{ $labels.user }} in queue {{ $labels.queue }}: request fewer GPUs, or end the job.",
    ),
    Alert(
        "GPUXidCritical",
        "gpu-health",
        f"{CRITICAL_NOW} or unisono:gpu_xid:critical",
        "0s",
        "critical",
        "A GPU needs a reset",
        f"{_DEVICE} reported XID {{{{ $value }}}}{_POD}. {_CLOSED}; drain it and reset the device.",
    ),
    Alert(
        "GPUXidOther",
        "gpu-health",
        f"(max by ({BY_DEVICE}, xid) ({_COUNTED_XIDS}) > 0"
        f' or count_values by ({BY_DEVICE}) ("xid", {_LAST_XID}'
        f" unless on ({BY_DEVICE}) DCGM_EXP_XID_ERRORS_COUNT))"
        f" unless on ({BY_DEVICE}) ({CRITICAL_NOW} or unisono:gpu_xid:critical)",
        "0s",
        "info",
        "A GPU reported an error",
        f"{_DEVICE} reported XID {{{{ $labels.xid }}}}{_POD}. 13, 31, 43, 45, 68 and 109 come from"
        " the application.",
    ),
    Alert(
        "GPUEccUncorrectable",
        "gpu-health",
        f"{ECC_NOW} or unisono:gpu_ecc:uncorrectable",
        "0s",
        "critical",
        "A GPU has uncorrectable memory errors",
        f"{_DEVICE} had uncorrectable errors and was not reset since{_POD}. Results may be wrong:"
        f" restart the job on another node and reset the device. {_CLOSED}.",
    ),
    Alert(
        "GPURowRemapFailure",
        "gpu-health",
        f"{REMAP_FAILED_NOW} or unisono:gpu_row_remap:failed",
        "0s",
        "critical",
        "A GPU can remap no more rows",
        f"{_DEVICE} could not remap a broken row{_POD}. The device has to be replaced. {_CLOSED}.",
    ),
    Alert(
        "GPUThermalThrottling",
        "gpu-health",
        f"{_THROTTLED} or {_HOT}",
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
        f"{_DCGM_UP} == 0 or (absent(DCGM_FI_DEV_GPU_TEMP) unless on () ({_DCGM_UP} == 0)"
        f" and on () {_NODE_GPUS} > 0)",
        "5m",
        "warning",
        "GPU metrics are missing",
        "{{ with $labels.instance }}{{ . }} has not answered{{ else }}No GPU has had metrics"
        "{{ end }} for five minutes; usage is unknown meanwhile.",
    ),
    Alert(
        "GPUMetricsMissing",
        "gpu-health",
        # One page may serve all nodes, so its target is up while those of one node are gone.
        f"({_NODE_GPUS} - on (node) {_SEEN_GPUS} > 0"
        f" or ({_NODE_GPUS} > 0 unless on (node) {_SEEN_GPUS}))"
        f" and on () ({_IS_NAMED})",
        "5m",
        "warning",
        "A node has GPUs without metrics",
        "{{ $value }} GPUs of {{ $labels.node }} have had no metrics for five minutes, though the"
        " node offers them: nothing is known of their faults. Look at its exporter.",
    ),
    Alert(
        "QuarantineLimitReached",
        "gpu-health",
        "min by (node, reason) (unisono_node_quarantined) == 0",
        "0s",
        "critical",
        "A broken node still gets pods",
        "{{ $labels.node }} is broken ({{ $labels.reason }}) and open: as many nodes of its"
        " instance type are in quarantine as may be. Check whether all of them are broken; cordon"
        " this one to keep pods away.",
    ),
    Alert(
        "GPUMetricsUnattributed",
        "gpu-health",
        # Without a single match `count` is silent, and so would the alert be.
        f"1 - (count(DCGM_FI_DEV_GPU_TEMP * on (namespace, pod) group_left () {POD_INFO})"
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
        "unisono_gang_pending_seconds > on (queue) group_left ()"
        " max by (queue) (unisono_queue_wait_slo_seconds)",
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
        "sum by (namespace, workload, queue)"
        f" ({increase('unisono_workload_restarts_total', '1h')}) >= 3",
        "0s",
        "warning",
        "A workload restarts repeatedly",
        f"{_GANG} restarted {_COUNT} times within an hour; `unisono describe` shows why.",
    ),
    Alert(
        "ProvisioningFailing",
        "capacity",
        "sum by (nodepool) ("
        + increase('unisono_provision_plans_total{result=~"failed|timeout"}', "30m")
        + ") >= 3",
        "0s",
        "warning",
        "Provisioning fails",
        f"{_COUNT} purchases of NodePool {{{{ $labels.nodepool }}}} failed within half an hour.",
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
        f"sum({increase('unisono_refused_plans_total', '10m')}) > 0",
        "0s",
        "warning",
        "The auditor refused a plan",
        f"{_COUNT} plans broke a rule within ten minutes. Their sound parts were applied."
        " This is a bug: report it with the recording in the folder refusals.",
    ),
    Alert(
        "ControllersCrashing",
        "scheduler",
        f"sum({increase('unisono_controller_crashes_total', '10m')}) > 10"
        " or max(unisono_failing_keys) > 10",
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
