"""Rules, scraping and routing as the files that Prometheus, its operator and Alertmanager read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from unisono.monitor.rules.alerts import ALERTS
from unisono.monitor.rules.recording import INTERVAL, RECORDINGS

Json = dict[str, Any]

# The default place of an alert's runbook: in the documents of the project.
RUNBOOKS = "docs/reference/alerts.md"


def rule_groups(runbooks: str = RUNBOOKS) -> list[Json]:
    """Return all groups of rules."""
    recording = [{"record": one.name, "expr": one.expression} for one in RECORDINGS]
    groups: list[Json] = [{"name": "unisono-recording", "interval": INTERVAL, "rules": recording}]
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
                _hides(["GPUXidCritical"], ["StragglerDetected", "TrainingStalled"], "pod"),
                _hides(["GPUXidCritical"], ["RestartStorm"], "namespace"),
                _hides(["GPULost"], ["StragglerDetected"], "node"),
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
