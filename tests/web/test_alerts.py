"""The page of alerts: what fires, what it is about, and which users see it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.monitor import objects
from unisono.monitor.active_alerts import (
    _PANELS,
    RULES,
    ActiveAlert,
    AlertBoard,
    dashboard_of,
    of_prometheus,
    panel_of,
)
from unisono.monitor.cache import NODE, WORKLOAD, ClusterCache, fill
from unisono.monitor.dashboards import dashboards
from unisono.web.auth import Permissions, everything
from unisono.web.dashboard import Dashboard
from unisono.web.pages import Pages
from unisono.web.view_models import PageModel

NOW = 1_767_265_200.0
OWNER = everything("kim")
GRAFANA = "https://grafana.example/"


def alert(name: str, state: str = "firing", since: float = NOW - 60, **labels: str) -> ActiveAlert:
    assert state in ("firing", "pending")
    return ActiveAlert(RULES[name], labels, state, since)  # type: ignore[arg-type]  # just asserted


HOT = alert(
    "GPUXidCritical", kubernetes_node="n1", gpu="3", UUID="GPU-1", namespace="ml", pod="p", xid="79"
)
LATE = alert(
    "GangWaitingTooLong", namespace="ml", workload="gang", queue="cq", user="kim", reason="quota"
)
STARVED = alert("QuotaStarvation", "pending", queue="cq", cohort="all", flavor="gpu")
BEHIND = alert("SchedulerNotPlanning")
ALL = (STARVED, LATE, HOT, BEHIND)


def shown(
    *alerts: ActiveAlert,
    permissions: Permissions = OWNER,
    grafana: str = "",
    board: AlertBoard | None = None,
    page: str = "alerts",
) -> PageModel:
    cache = ClusterCache()
    fill(cache, NODE, (objects.node("n1", 8),))
    fill(cache, WORKLOAD, (objects.workload("gang"),))
    if board is None:
        board = AlertBoard()
        board.take(alerts)
    pages = Pages(Dashboard(cache), now=lambda: NOW, alerts=board, grafana=grafana)
    return asyncio.run(pages.show({"page": page}, permissions))


def test_the_urgent_come_first_and_what_is_pending_last() -> None:
    page = shown(*ALL)
    assert list(page.rows) == [
        *("GPUXidCritical", "SchedulerNotPlanning", "GangWaitingTooLong", "QuotaStarvation"),
    ]
    assert page.head == {"trouble": "", "known": True, "critical": 2, "warning": 1, "info": 0}
    hot = page.rows["GPUXidCritical"]["things"][0]
    assert (hot["about"], hot["node"]) == ("n1 GPU 3, XID 79, pod ml/p", "n1")
    assert shown(*ALL, page="overview").head["alerts"] == {"critical": 2, "warning": 1, "info": 0}


def test_many_things_of_one_rule_are_one_row() -> None:
    many = [alert("GPUUnderutilized", kubernetes_node="n1", gpu=str(at)) for at in range(50)]
    (row,) = shown(*many).rows.values()
    assert (row["firing"], len(row["things"])) == (50, 20)


def test_users_see_alerts_about_what_they_may_list() -> None:
    some = Permissions(name="lee", workloads=frozenset({"other"}), nodes=True)
    page = shown(*ALL, permissions=some)
    assert "ml" not in json.dumps(page.rows)
    assert page.rows["GPUXidCritical"]["things"][0]["about"] == "n1 GPU 3, XID 79"
    assert "GangWaitingTooLong" not in page.rows
    assert "QuotaStarvation" not in page.rows  # a queue, which lee may not list
    own = Permissions(name="lee", workloads=frozenset({"ml"}))
    page = shown(*ALL, permissions=own)
    assert "n1" not in json.dumps(page.rows)
    assert page.rows["GPUXidCritical"]["things"][0]["about"] == "XID 79, pod ml/p"
    nothing = shown(*ALL, permissions=Permissions(name="lee"))
    assert list(nothing.rows) == ["SchedulerNotPlanning"]  # it names nothing


def test_only_what_is_there_is_linked() -> None:
    gang = objects.workload("gang")["metadata"]["namespace"]
    known = alert("GangWaitingTooLong", namespace=gang, workload="gang")
    gone = alert("GangWaitingTooLong", namespace=gang, workload="gone")
    things = shown(known, gone).rows["GangWaitingTooLong"]["things"]
    assert [one["gang"] for one in things] == [f"{gang}/gang", ""]


def test_grafana_is_linked_when_its_address_is_known() -> None:
    page = shown(*ALL, grafana=GRAFANA)
    link = urlsplit(page.rows["GangWaitingTooLong"]["things"][0]["panel"])
    assert (link.netloc, link.path) == ("grafana.example", "/d/unisono-gangs")
    assert parse_qs(link.query) == {"var-queue": ["cq"], "viewPanel": ["2"]}
    assert not shown(*ALL).rows["GangWaitingTooLong"]["things"][0]["panel"]


@pytest.mark.parametrize("name", RULES)
def test_every_rule_leads_to_a_panel_that_is_there(name: str) -> None:
    link = urlsplit(panel_of(GRAFANA, name, {}))
    by_uid = {f"/d/{one['uid']}": one for one in dashboards().values()}
    panels = {str(one["id"]) for one in by_uid[link.path]["panels"]}
    assert set(parse_qs(link.query).get("viewPanel", [])) <= panels
    assert set(_PANELS) <= set(RULES)


@pytest.mark.parametrize("dashboard", ["fleet", "gangs", "queues", "workload"])
def test_dashboards_have_the_variables_that_links_set(dashboard: str) -> None:
    labels = dict.fromkeys(("gpu", "queue", "namespace", "workload"), "&x=<")
    query = parse_qs(urlsplit(dashboard_of(GRAFANA, dashboard, labels)).query)
    found = dashboards()[f"{dashboard}.json"]["templating"]["list"]
    assert set(query) <= {f"var-{one['name']}" for one in found}
    assert {value for values in query.values() for value in values} == {"&x=<"}


def test_without_a_source_or_an_answer_the_page_says_so() -> None:
    cache = ClusterCache()
    pages = Pages(Dashboard(cache), now=lambda: NOW)
    assert asyncio.run(pages.show({"page": "alerts"}, OWNER)).head == {"absent": True}
    board = AlertBoard()
    board.take(ALL)
    board.fail("it does not answer")
    page = shown(board=board)
    assert page.head["trouble"] == "it does not answer"
    assert not page.rows  # what was true then may not be true now


def test_the_page_changes_when_alerts_do() -> None:
    board = AlertBoard()
    pages = Pages(Dashboard(ClusterCache()), now=lambda: NOW, alerts=board)
    versions = [pages.version({"page": "alerts"})]
    for change in (lambda: board.take(ALL), lambda: board.take(ALL), lambda: board.fail("gone")):
        _do(change)
        versions.append(pages.version({"page": "alerts"}))
    assert versions[1] != versions[0]
    assert versions[2] == versions[1]
    assert versions[3] != versions[2]


def _do(change: Callable[[], Any]) -> None:
    change()


def test_of_a_prometheus_only_our_rules_count() -> None:
    def told(name: str, **more: str) -> dict[str, Any]:
        labels = {"alertname": name, "severity": "warning", "queue": "cq", **more}
        at = "2026-01-01T10:00:00.123456789Z"
        return {"labels": labels, "state": "firing", "activeAt": at, "value": "1"}

    answer = {"data": {"alerts": [told("QuotaStarvation"), told("OthersRule")]}}
    (found,) = of_prometheus(answer)
    assert (found.rule.name, found.state, int(found.since)) == (
        *("QuotaStarvation", "firing"),
        1_767_261_600,
    )
    broken: Any
    for broken in ({}, {"data": {"alerts": [{"labels": {"alertname": "QuotaStarvation"}}]}}, []):
        with pytest.raises(ValueError, match="no alerts"):
            of_prometheus(broken)
