"""Rules, scraping and routing as the files that Prometheus, its operator and Alertmanager read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import yaml

from unisono.monitor.rules.alerts import ALERTS
from unisono.monitor.rules.devices import POD_INFO, RECORDED_FAULTS

if TYPE_CHECKING:
    from unisono.kube.form import Json

# The default place of an alert's runbook: in the documents of the project.
RUNBOOKS = "docs/reference/alerts.md"


def rule_groups(runbooks: str = RUNBOOKS) -> list[Json]:
    """Return all groups of rules."""
    recording = [{"record": one.name, "expr": one.expression} for one in RECORDINGS]
    groups: list[Json] = [{"name": "unisono-recording", "interval": _INTERVAL, "rules": recording}]
    names = dict.fromkeys(one.group for one in ALERTS)
    for name in names:
        groups.append(
            {
                "name": name,
                "rules": [
                    {
                        "alert": one.name,
                        "expr": one.expression,
                        "for": one.lasting,
                        "labels": {"severity": one.severity},
                        "annotations": {
                            "summary": one.summary,
                            "description": one.description,
                            "runbook": f"{runbooks}#{one.name.lower()}",
                        },
                    }
                    for one in ALERTS
                    if one.group == name
                ],
            }
        )
    return groups


def rule_file(runbooks: str = RUNBOOKS) -> str:
    """Return what a Prometheus reads under `rule_files`."""
    return written({"groups": rule_groups(runbooks)})


def prometheus_rule(namespace: str, release: str, runbooks: str = RUNBOOKS) -> str:
    """Return the same as an object for the Prometheus operator; `release` is what it selects."""
    return written(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {
                "name": "unisono",
                "namespace": namespace,
                "labels": {"app.kubernetes.io/name": "unisono", "release": release},
            },
            "spec": {"groups": rule_groups(runbooks)},
        }
    )


def rule_tests(rules: str = "unisono-rules.yaml") -> str:
    """Return unit tests of the alerts for promtool; `rules` is the rule file beside them."""
    from unisono.monitor.rules.unit_tests import unit_tests

    return written(unit_tests(rules))


def counters() -> str:
    """Return the counters that a dcgm-exporter should export: its stock list, and what we add."""
    from unisono.monitor.dcgm.exporter import COUNTERS

    stock = [one for one in COUNTERS if one.is_default]
    more = [one for one in COUNTERS if not one.is_default]
    lines = ["# The stock list of dcgm-exporter."]
    lines += [f"{one.name}, {one.type}, {one.help}" for one in stock]
    lines.append("# What rules and dashboards use besides; a stock exporter does not have these.")
    lines += [f"{one.name}, {one.type}, {one.help}" for one in more]
    lines.append("DCGM_FI_DRIVER_VERSION, label, Driver version.")
    return "\n".join(lines) + "\n"


def counters_config_map(namespace: str) -> str:
    """Return the same as a ConfigMap, which the exporter's chart and the GPU operator take."""
    return written(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "dcgm-counters", "namespace": namespace},
            "data": {"counters.csv": counters(), "dcgm-metrics.csv": counters()},
        }
    )


def scrape_config(
    *, metrics: Sequence[str], gpus: Sequence[str], rules: str = "", interval: str = "15s"
) -> str:
    """Return a whole configuration of Prometheus for these addresses."""
    config: Json = {
        "global": {"scrape_interval": interval, "evaluation_interval": interval},
        "scrape_configs": [
            {"job_name": "unisono", "static_configs": [{"targets": list(metrics)}]},
            {
                "job_name": "dcgm",
                # The exporter's labels name the pod of a device; ours must not hide them.
                "honor_labels": True,
                "static_configs": [{"targets": list(gpus)}],
                "metric_relabel_configs": [
                    {
                        "source_labels": ["Hostname"],
                        "regex": "(.+)",
                        "target_label": "kubernetes_node",
                    }
                ],
            },
        ],
    }
    if rules:
        config["rule_files"] = [rules]
        config["alerting"] = {
            "alertmanagers": [{"static_configs": [{"targets": ["127.0.0.1:9093"]}]}]
        }
    return written(config)


def alertmanager(webhook: str) -> str:
    """Return an example of routing: urgent ones at once, hints weekly, effects behind causes."""
    return written(
        {
            "route": {
                "receiver": "team",
                "group_by": ["alertname", "queue"],
                "group_wait": "30s",
                "group_interval": "5m",
                "repeat_interval": "12h",
                "routes": [
                    {"matchers": ['severity="critical"'], "receiver": "team", "group_wait": "5s"},
                    {
                        "matchers": ['severity="info"'],
                        "receiver": "digest",
                        "group_by": ["alertname"],
                        "group_wait": "1h",
                        "repeat_interval": "1w",
                    },
                ],
            },
            "inhibit_rules": [
                _hides(
                    ["GPUXidCritical"],
                    ["GPUHighTemperature", "GPUThermalThrottling", "GPUClockBelowGang"],
                    "UUID",
                ),
                _hides(["GPULost"], ["StragglerDetected"], "node"),
                _hides(["GPUExporterDown"], ["GPUMetricsMissing", "GPUMetricsUnattributed"]),
                _hides(
                    ["SchedulerDown"],
                    ["GangWaitingTooLong", "GangPartiallyRunning", "QuotaStarvation"],
                ),
            ],
            "receivers": [
                {"name": "team", "webhook_configs": [{"url": webhook, "send_resolved": True}]},
                {"name": "digest", "webhook_configs": [{"url": webhook, "send_resolved": False}]},
            ],
        }
    )


def _hides(causes: Sequence[str], effects: Sequence[str], *equal: str) -> Json:
    rule: Json = {
        "source_matchers": [f'alertname=~"{"|".join(causes)}"'],
        "target_matchers": [f'alertname=~"{"|".join(effects)}"'],
    }
    if equal:
        rule["equal"] = list(equal)
    return rule


def written(value: Json) -> str:
    """Write YAML as people would: in the order given, expressions on one line."""
    return yaml.safe_dump(value, sort_keys=False, width=10_000, allow_unicode=True)


# ---- recording rules -----------------------------------------------------------------------------
#
# What alerts and dashboards start from (semantics monitoring §5).
#
# None is recorded under a name that an exporter also writes: such a rule would see itself and flap.

_INTERVAL = "30s"

_OF_POD = "on (namespace, pod) group_left"
_OF_GANG = "on (namespace, workload) group_left ()"


class _Recording(NamedTuple):
    """One rule."""

    name: str
    expression: str


def _wait(quantile: str) -> str:
    # The parts of a wait are in the same histogram: together they would be no wait at all.
    series = 'unisono_gang_wait_time_seconds_bucket{part="total"}'
    buckets = f"sum by (queue, le) (rate({series}[30m]))"
    return f"histogram_quantile({quantile}, {buckets})"


def _against_gang(series: str) -> str:
    """Compare a series of a device with the median of its gang."""
    return f"({series}) / {_OF_GANG} quantile by (namespace, workload) (0.5, {series})"


_CLOCK = f"DCGM_FI_DEV_SM_CLOCK * {_OF_POD} (workload) {POD_INFO}"
_BUSY_OF = "unisono:gpu_busy:ratio * on (namespace, pod) group_left"

RECORDINGS: tuple[_Recording, ...] = (
    # A stock exporter has no FB_TOTAL; older ones have no FB_RESERVED either.
    _Recording(
        "unisono:gpu_memory_total:mib",
        "DCGM_FI_DEV_FB_TOTAL"
        " or (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE + DCGM_FI_DEV_FB_RESERVED)"
        " or (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
    ),
    _Recording(
        "unisono:gpu_memory_used:ratio", "DCGM_FI_DEV_FB_USED / unisono:gpu_memory_total:mib"
    ),
    # From the most to the least truthful: GPU_UTIL says only that some kernel ran, and parts of a
    # GPU have none.
    _Recording(
        "unisono:gpu_busy:ratio",
        "DCGM_FI_PROF_SM_ACTIVE or DCGM_FI_PROF_GR_ENGINE_ACTIVE or DCGM_FI_DEV_GPU_UTIL / 100",
    ),
    _Recording(
        "unisono:gpu_capacity:count",
        'sum(kube_node_status_allocatable{resource="nvidia_com_gpu"})',
    ),
    # Pods that are over or have no node hold nothing.
    _Recording(
        "unisono:gpu_allocated:count",
        'sum(kube_pod_container_resource_limits{resource="nvidia_com_gpu", node!=""}'
        " * on (namespace, pod) group_left ()"
        ' (kube_pod_status_phase{phase=~"Pending|Running"} == 1))',
    ),
    _Recording(
        "unisono:gpu_allocation:ratio", "unisono:gpu_allocated:count / unisono:gpu_capacity:count"
    ),
    _Recording(
        "unisono:gpu_busy:by_workload",
        "avg by (namespace, workload, queue, user)"
        f" ({_BUSY_OF} (workload, queue, user) {POD_INFO})",
    ),
    _Recording("unisono:gpu_busy:by_queue", f"avg by (queue) ({_BUSY_OF} (queue) {POD_INFO})"),
    _Recording(
        "unisono:gpu_power:by_queue",
        f"sum by (queue) (DCGM_FI_DEV_POWER_USAGE * {_OF_POD} (queue) {POD_INFO})",
    ),
    _Recording(
        "unisono:queue_quota:ratio",
        'unisono_queue_gpus{kind="used"} / ignoring (kind)'
        ' (unisono_queue_gpus{kind="nominal"} > 0)',
    ),
    *(_Recording(name, expression) for name, expression in RECORDED_FAULTS),
    _Recording("unisono:wait_p50:30m", _wait("0.5")),
    _Recording("unisono:wait_p95:30m", _wait("0.95")),
    _Recording("unisono:sm_clock:vs_gang", _against_gang(_CLOCK)),
    _Recording("unisono:step_time:vs_gang", _against_gang("unisono_rank_step_seconds")),
)
