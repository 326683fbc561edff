"""Rules and dashboards: whole, parseable, and what the guides print is unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tools.dashboards.__main__ import FOLDER
from tools.dashboards.boards import BOARDS
from tools.dashboards.build import json_of
from unisono.monitor.dashboards import config_maps, dashboards, provisioned
from unisono.monitor.dcgm.exporter import FIELDS
from unisono.monitor.rules.alerts import ALERTS
from unisono.monitor.rules.files import (
    RECORDINGS,
    alertmanager,
    counters,
    prometheus_rule,
    rule_file,
    rule_tests,
    scrape_config,
)

ROOT = Path(__file__).resolve().parents[2]


def plain(expression: str) -> str:
    """Fill in what Grafana would."""
    for name, value in (("$__rate_interval", "1m"), ("$__range", "1h")):
        expression = expression.replace(name, value)
    return re.sub(r"\$\w+", ".*", expression)


def expressions(board: dict[str, Any]) -> Iterator[str]:
    """Yield every expression of a dashboard."""
    for panel in board["panels"]:
        for target in panel.get("targets") or ():
            yield target["expr"]


@pytest.mark.parametrize("name", sorted(dashboards()))
def test_a_dashboard_is_sound(name: str) -> None:
    board = dashboards()[name]
    panels = board["panels"]
    assert board["uid"] == f"unisono-{name.removesuffix('.json')}"
    assert len({one["id"] for one in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for one in panels:
        place = one["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, one["title"]
        taken |= cells
        if one["type"] != "row":
            assert one["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    declared = {one["name"] for one in board["templating"]["list"]}
    for expression in expressions(board):
        promql_parser.parse(plain(expression))
        used = {one for one in re.findall(r"\$(\w+)", expression) if not one.startswith("__")}
        assert used <= declared, expression


def test_the_dashboards_are_those_that_the_tool_makes() -> None:
    made = {f"{one.uid.removeprefix('unisono-')}.json": json_of(one) for one in BOARDS}
    there = {one.name: one.read_text(encoding="utf-8") for one in FOLDER.glob("*.json")}
    assert made == there, "run: python -m tools.dashboards"


def test_the_panels_of_the_guides_are_there() -> None:
    fleet = {one["title"]: one for one in dashboards()["fleet.json"]["panels"]}
    use = fleet["GPU Utilization by Node"]["targets"][0]
    assert use["expr"] == 'DCGM_FI_DEV_GPU_UTIL{gpu=~"$gpu"}'
    assert use["legendFormat"] == "{{kubernetes_node}} - GPU {{gpu}}"
    memory = fleet["GPU Memory Usage"]["targets"][0]["expr"]
    assert memory.startswith('DCGM_FI_DEV_FB_USED{gpu=~"$gpu"} / DCGM_FI_DEV_FB_TOTAL * 100 or ')
    allocation = fleet["Cluster GPU Allocation"]["targets"][0]["expr"]
    assert allocation == (
        'sum(kube_pod_container_resource_limits{resource="nvidia_com_gpu"})'
        ' / sum(kube_node_status_allocatable{resource="nvidia_com_gpu"}) * 100'
    )


@pytest.mark.parametrize("rule", [*RECORDINGS, *ALERTS], ids=lambda rule: rule.name)
def test_an_expression_is_promql(rule: Any) -> None:
    promql_parser.parse(rule.expression)


def test_the_alerts_of_the_guides_keep_name_threshold_time_and_severity() -> None:
    found = {one.name: (one.expression, one.lasting, one.severity) for one in ALERTS[:3]}
    device = "max by (kubernetes_node, gpu, UUID)"
    hot, full, idle = (
        found[name] for name in ("GPUHighTemperature", "GPUMemoryExhausted", "GPUUnderutilized")
    )
    assert hot == (f"{device} (DCGM_FI_DEV_GPU_TEMP) > 85", "5m", "warning")
    assert idle == (f"{device} (DCGM_FI_DEV_GPU_UTIL) < 20", "30m", "info")
    guides = f"{device} (DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_TOTAL) > 0.95 or "
    assert full[0].startswith(guides)
    assert full[1:] == ("5m", "critical")


def test_every_alert_has_six_unit_tests_of_promtool() -> None:
    names = [one["name"] for one in yaml.safe_load(rule_tests())["tests"]]
    kinds = ("fires", "quiet", "resolves", "first", "churn", "restart")
    assert names == [f"{one.name}: {kind}" for one in ALERTS for kind in kinds]


@pytest.mark.parametrize("alert", [one for one in ALERTS if "DCGM_" in one.expression])
def test_an_alert_about_a_device_is_grouped_by_it(alert: Any) -> None:
    """A label of a pod would end it with the pod; the others are about pods, nodes or targets."""
    about_others = ("GPUAllocatedIdle", "GPUClockBelowGang", "GPUMetricsUnattributed")
    nodes = ("GPUExporterDown", "GPUMetricsMissing")
    if alert.name not in (*about_others, *nodes):
        assert "(kubernetes_node, gpu, UUID" in alert.expression


@pytest.mark.parametrize(
    ("name", "label"),
    [("unisono_gang_wait_time_seconds", "part"), ("unisono_cycle_duration_seconds", "phase")],
)
def test_no_rule_adds_up_parts_and_their_whole(name: str, label: str) -> None:
    expressions = [one.expression for one in RECORDINGS] + [one.expression for one in ALERTS]
    found = [one for text in expressions for one in re.findall(rf"{name}\w*(?:{{[^}}]*}})?", text)]
    assert found
    assert all(f'{label}="' in one for one in found)


def test_the_counters_file_has_all_that_rules_and_dashboards_look_at() -> None:
    there = {line.split(",")[0] for line in counters().splitlines() if line[:1] != "#"}
    assert all(len(line.split(",")) == 3 for line in counters().splitlines() if line[:1] != "#")
    boards = [one for board in dashboards().values() for one in expressions(board)]
    rules = [*(one.expression for one in RECORDINGS), *(one.expression for one in ALERTS)]
    used = {name for one in (*boards, *rules) for name in re.findall(r"DCGM_\w+", one)}
    assert used <= there


def test_every_alert_is_explained() -> None:
    page = (ROOT / "docs/reference/alerts.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert headings == [one.name for one in ALERTS]


def test_files_are_yaml_of_the_right_shape() -> None:
    groups = yaml.safe_load(rule_file("https://example.com/alerts"))["groups"]
    names = [rule.get("alert") for group in groups for rule in group["rules"] if "alert" in rule]
    assert sorted(names) == sorted(one.name for one in ALERTS)
    first = groups[1]["rules"][0]
    assert first["annotations"]["runbook"] == "https://example.com/alerts#gpuhightemperature"
    rule = yaml.safe_load(prometheus_rule("ns", "kps"))
    assert rule["metadata"]["labels"]["release"] == "kps"
    scraped = yaml.safe_load(scrape_config(metrics=["a:1"], gpus=["b:2"], rules="r.yaml"))
    assert scraped["scrape_configs"][1]["honor_labels"] is True
    assert yaml.safe_load(alertmanager("http://x/"))["receivers"][0]["name"] == "team"
    maps = list(yaml.safe_load_all(config_maps("ns")))
    assert all(json.loads(next(iter(one["data"].values()))) for one in maps)
    assert "provisioning-dashboards.yaml" in provisioned()


def test_a_stock_exporter_leaves_no_panel_empty_without_a_word() -> None:
    """Scenario 18: what needs a field that is off by default says which line to add."""
    there = {one.name for one in FIELDS if one.is_default}
    there |= {f"DCGM_FI_DEV_{one}" for one in ("XID_ERRORS", "UNCORRECTABLE_REMAPPED_ROWS")}
    for board in dashboards().values():
        for panel in board["panels"]:
            for target in panel.get("targets") or ():
                expression = target["expr"]
                fields = set(re.findall(r"DCGM_\w+", expression))
                others = "unisono:gpu_memory_used:ratio" in expression
                for missing in sorted(fields - there):
                    line = f"{missing}, "
                    assert others or line in panel.get("description", ""), panel["title"]
