"""What pages show to which user."""

from __future__ import annotations

import asyncio
import copy
import json

import pytest

from tests.monitor import objects
from unisono.kube.form import Json
from unisono.kube.mapping import POD, Kind
from unisono.monitor.cache import (
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    NODE,
    NODE_CLAIM,
    NODE_POOL,
    WORKLOAD,
    ClusterCache,
    fill,
)
from unisono.monitor.ledger.rows import PodRow, WorkloadRow
from unisono.web.auth import HIDDEN, Permissions, everything
from unisono.web.dashboard import Dashboard
from unisono.web.pages import Pages
from unisono.web.view_models import PageModel, PageUpdates
from unisono.web.views import timeline as views_of_time
from unisono.web.views.timeline import Past

NOW = 1_767_265_200.0  # 2026-01-01T11:00:00Z
OWNER = everything("kim")


def waiting(name: str = "late") -> Json:
    """Return a workload that waits, with the reason and a date."""
    made = objects.workload(name)
    told = {
        "stage": "quota",
        "facts": [
            {"fact": "QuotaExhausted", "says": "4 GPUs short", "changes": "4 GPUs freed"},
            {"fact": "Planned", "start": (NOW + 600) * 1000, "limit_ms": 3_600_000, "says": "then"},
        ],
    }
    made["status"]["conditions"] = [
        {"type": "QuotaReserved", "status": "False", "reason": "X", "message": "4 GPUs short"},
        {"type": "unisono.dev/Explanation", "status": "True", "message": json.dumps(told)},
    ]
    return made


RUNNING = objects.workload(
    "gang",
    QuotaReserved="2026-01-01T10:01:00Z",
    Admitted="2026-01-01T10:01:30Z",
    PodsReady="2026-01-01T10:02:00Z",
)


def rooted(name: str = "late") -> Json:
    """Return a workload that waits for another job whose Workload has a name of its own."""
    made = waiting(name)
    explained = made["status"]["conditions"][1]
    holder = f"{RUNNING['metadata']['namespace']}/gang"
    told = json.loads(explained["message"])
    told["rootCause"] = {
        "verdict": "later",
        "says": f"starts once {holder} has ended (8 nvidia.com/gpu of a100 on n1)",
        "inTheWay": [{"cause": "Holder", "says": f"{holder} has ended"}],
        "ways": [{"flavors": ["a100"], "says": "a100: no"}, {"flavors": ["t4"], "says": "t4: no"}],
        "nearest": 0,
    }
    explained["message"] = json.dumps(told)
    return made


@pytest.fixture
def cache() -> ClusterCache:
    """Return two nodes, one of them in quarantine; a gang that runs and one that waits."""
    made = ClusterCache()
    broken = objects.node("n2", 4)
    broken["spec"] = {"taints": [{"key": "unisono.dev/quarantine", "value": "Xid79"}]}
    fill(made, NODE, (objects.node("n1", 4), broken))
    fill(made, CLUSTER_QUEUE, (objects.cluster_queue(cohort="small"),))
    fill(made, LOCAL_QUEUE, (objects.local_queue(),))
    fill(
        made, COHORT, ({"metadata": {"name": "small", "uid": "c"}, "spec": {"parentName": "all"}},)
    )
    fill(made, WORKLOAD, (RUNNING, waiting()))
    fill(made, POD, (objects.pod("p0", "n1", 3),))
    return made


def show(
    cache: ClusterCache,
    permissions: Permissions = OWNER,
    *,
    past: Past | None = None,
    late: Json | None = None,
    **asked: str,
) -> PageModel:
    objects_by_name = {"gang": RUNNING, "late": late or waiting()}

    def look(kind: Kind, name: str, namespace: str) -> Json | None:
        return objects_by_name.get(name) if kind == WORKLOAD else None

    async def read(since: int, until: int) -> Past:
        return past or Past()

    dashboard = Dashboard(cache, look)
    dashboard.refresh()
    return asyncio.run(Pages(dashboard, now=lambda: NOW, past=read).show(asked, permissions))


def test_the_overview_has_gpus_heads_and_troubles(cache: ClusterCache) -> None:
    shown = show(cache, page="overview")
    gpus = shown.head["gpus"]
    assert (gpus["there"], gpus["held"], gpus["free"], gpus["down"]) == (8, 3, 1, 4)
    (head,) = shown.head["heads"]
    assert (head["queue"], head["head"]["key"], head["head"]["says"]) == (
        "cq",
        "team-a/late",
        "4 GPUs short",
    )
    assert [one["name"] for one in shown.head["troubles"]] == ["n2"]
    assert shown.head["users"] == [{"user": "kim", "gpus": 8}]
    assert list(shown.rows) == ["team-a/gang"]


def test_queues_have_their_cohorts_and_what_is_used(cache: ClusterCache) -> None:
    row = show(cache, page="queues").rows["cq"]
    assert row["cohorts"] == ["all", "small"]
    (flavor,) = row["flavors"]
    assert (flavor["used"], flavor["nominal"], flavor["borrowed"]) == (8, 16, 0)
    assert (row["runs"], row["waits"], row["wanted"]) == (1, 1, 8)


def test_a_circle_of_cohorts_ends(cache: ClusterCache) -> None:
    above = {"metadata": {"name": "all", "uid": "d"}, "spec": {"parentName": "small"}}
    fill(cache, COHORT, (above,))
    assert show(cache, page="queues").rows["cq"]["cohorts"] == ["all", "small"]


def test_workloads_are_narrowed_and_counted(cache: ClusterCache) -> None:
    fill(cache, WORKLOAD, (objects.workload(f"w{at}") for at in range(240)))
    first = show(cache, page="workloads", state="waits")
    assert (first.head["found"], first.head["pages"], len(first.rows)) == (241, 3, 100)
    last = show(cache, page="workloads", state="waits", at="3")
    assert len(last.rows) == 41
    assert not set(first.rows) & set(last.rows)
    found = show(cache, page="workloads", q="LATE kim")
    assert list(found.rows) == ["team-a/late"]
    assert show(cache, page="workloads", queue="other").head["found"] == 0
    assert show(cache, page="workloads", at="x").head["page"] == 1


def test_a_gang_tells_why_it_waits_and_what_would_change_it(cache: ClusterCache) -> None:
    head = show(cache, page="gang", namespace="team-a", name="late").head
    assert head["facts"] == [
        {"fact": "QuotaExhausted", "says": "4 GPUs short", "changes": "4 GPUs freed"}
    ]
    assert (head["place"], head["inLine"], head["start"]) == (1, 1, NOW + 600)
    assert (head["promised"], head["limit"]) == (True, 3600)


def test_the_root_cause_comes_first_and_names_jobs(cache: ClusterCache) -> None:
    named = copy.deepcopy(RUNNING)
    named["metadata"]["ownerReferences"][0]["name"] = "train"
    late = rooted()
    fill(cache, WORKLOAD, (named, late))
    head = show(cache, late=late, page="gang", namespace="team-a", name="late").head
    says = "starts once team-a/train has ended (8 nvidia.com/gpu of a100 on n1)"
    assert head["says"] == head["rootCause"]["says"] == says
    assert head["rootCause"]["inTheWay"] == ["team-a/train has ended"]
    assert head["rootCause"]["ways"] == ["a100: no", "t4: no"]
    assert show(cache, page="overview").head["heads"][0]["head"]["says"] == says
    late["status"]["conditions"][1]["message"] = json.dumps({"rootCause": [], "facts": []})
    assert (
        show(cache, late=late, page="gang", namespace="team-a", name="late").head["rootCause"]
        is None
    )


def bought(phase: str) -> Json:
    """Return a workload with a purchase in a phase."""
    made = waiting()
    machine = {
        "pool": "gpu",
        "type": "g6e.48xlarge",
        "zone": "z",
        "sold": "on-demand",
        "price": 37_000_000,
        "pods": {"main": 1},
        "nodes": ["a", "b"],
    }
    text = {"attempt": 1, "planned_at": 1, "ready_by": int(NOW) - 60, "machines": [machine]}
    purchase = {"type": "unisono.dev/Purchase", "status": "False", "reason": phase}
    made["status"]["conditions"].append(purchase | {"message": json.dumps(text)})
    if phase == "Waiting":
        made["status"]["admission"] = {"clusterQueue": "cq", "podSetAssignments": []}
    return made


def test_a_purchase_that_was_taken_back_is_not_shown(cache: ClusterCache) -> None:
    shown = {
        phase: show(cache, late=bought(phase), page="gang", namespace="team-a", name="late").head
        for phase in ("Waiting", "RolledBack", "TimedOut")
    }
    assert shown["Waiting"]["purchase"]["price"] == 74
    assert shown["Waiting"]["purchase"]["ready"] is False
    assert shown["RolledBack"]["purchase"] is None
    assert shown["TimedOut"]["purchase"] is None


def test_a_gang_that_runs_has_its_times_and_members(cache: ClusterCache) -> None:
    shown = show(cache, page="gang", namespace="team-a", name="gang")
    times = shown.head["times"]
    assert times["nodes"] - times["quota"] == 30
    assert times["ready"] - times["nodes"] == 30
    assert shown.rows["p0"]["node"] == "n1"
    assert shown.head["facts"] == []


def test_the_map_has_the_workload_of_each_gpu(cache: ClusterCache) -> None:
    rows = show(cache, page="map").rows
    assert rows["n1"]["by"] == [("team-a/gang", 3), ("", 1)]
    assert rows["n2"]["bad"] == "quarantine: Xid79"


def test_nodes_tell_of_pools_purchases_and_idleness(cache: ClusterCache) -> None:
    pool = {
        "metadata": {"name": "gpu", "uid": "pool"},
        "spec": {"disruption": {"consolidateAfter": "10m"}, "template": {}},
    }
    idle = claim("c1", node="n2")
    idle["metadata"]["annotations"]["unisono.dev/idle-since"] = "2026-01-01T10:58:00Z"
    coming = claim("c2")
    coming["metadata"]["annotations"]["unisono.dev/gang"] = "team-a/late"
    fill(cache, NODE_POOL, (pool,))
    fill(cache, NODE_CLAIM, (idle, coming))
    shown = show(cache, page="nodes")
    assert shown.rows["n2"]["idleUntil"] == NOW + 480
    assert shown.rows["n1"]["by"] == [["team-a/gang", 3]]
    (one,) = shown.head["claims"]
    assert (one["name"], one["for"], one["state"]) == ("c2", "team-a/late", "launching")
    assert shown.head["pools"][0]["keeps"] == 600
    assert shown.head["idleCost"] == 55.04
    assert show(cache, page="nodes", q="nothing").rows == {}
    alone = show(cache, page="node", name="n1").head
    assert (alone["held"], alone["by"][0]) == (3, "team-a/gang")
    assert show(cache, page="node", name="none").head == {"absent": True}


def claim(name: str, node: str = "") -> Json:
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {"karpenter.sh/nodepool": "gpu"},
            "annotations": {},
        },
        "spec": {},
        "status": {
            "nodeName": node,
            "conditions": [{"type": "Initialized", "status": "True"}] if node else [],
        },
    }


# ---- the timeline --------------------------------------------------------------------------------


def old_try(number: int, *, ended: float, outcome: str = "Finished") -> WorkloadRow:
    return WorkloadRow(
        uid=f"old-{number}",
        attempt=1,
        namespace="team-a",
        name=f"old-{number}",
        kind="Job",
        owner=f"o{number}",
        queue="cq",
        local_queue="q",
        user="lee",
        team="a",
        priority_class="",
        flavor="h100",
        gpus=8,
        pods=1,
        since=int(ended - 900),
        reserved=int(ended - 600),
        admitted=int(ended - 600),
        ready=int(ended - 590),
        ended=int(ended),
        outcome=outcome,
    )


def test_the_timeline_has_past_present_and_plans(cache: ClusterCache) -> None:
    past = Past((old_try(1, ended=NOW - 60), old_try(2, ended=NOW - 7200, outcome="Preempted")))
    shown = show(cache, past=past, page="timeline", span="14400")
    kinds = {bar["name"]: bar["kind"] for bar in shown.rows.values()}
    assert kinds == {"o1": "over", "o2": "left", "gang": "runs", "late": "planned"}
    planned = next(bar for bar in shown.rows.values() if bar["kind"] == "planned")
    assert (planned["from"], planned["to"]) == (NOW + 600, NOW + 4200)
    assert shown.head["since"] < NOW < shown.head["until"]


@pytest.mark.parametrize(("most", "planned"), [(2, 1), (1, 1), (1, 0)])
def test_neither_plans_nor_what_ran_push_the_others_out(
    cache: ClusterCache, most: int, planned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_of_time, "MOST_BARS", most)
    monkeypatch.setattr(views_of_time, "_MOST_PLANNED", planned)
    past = Past(tuple(old_try(number, ended=NOW - 60) for number in range(9)))
    shown = show(cache, past=past, page="timeline", span="14400")
    kinds = [bar["kind"] for bar in shown.rows.values()]
    assert len(kinds) == most
    assert kinds.count("planned") == planned
    assert shown.head["left"] == 11 - most


def test_a_time_that_is_over_does_not_move(cache: ClusterCache) -> None:
    past = Past((old_try(1, ended=NOW - 60), old_try(2, ended=NOW - 7200)))
    shown = show(cache, past=past, page="timeline", span="3600", end=str(int(NOW - 6000)))
    assert [bar["name"] for bar in shown.rows.values()] == ["o2"]
    assert (shown.head["until"], shown.head["live"]) == (NOW - 6000, False)


def test_lanes_of_nodes_show_parts_of_gangs(cache: ClusterCache) -> None:
    row = old_try(1, ended=NOW - 60)
    pods = tuple(
        PodRow(
            uid=f"x{rank}",
            namespace="team-a",
            name=f"x{rank}",
            workload=row.uid,
            node="n2",
            gpus=2,
            bound=row.admitted + rank,
            ended=row.ended,
            outcome="Succeeded",
        )
        for rank in range(2)
    )
    shown = show(cache, past=Past((row,), pods), page="timeline", by="node", span="14400")
    lanes = {bar["lane"]: bar for bar in shown.rows.values() if bar["kind"] != "planned"}
    assert (lanes["n2"]["gpus"], lanes["n2"]["key"]) == (4, "team-a/old-1")
    assert (lanes["n1"]["kind"], lanes["n1"]["gpus"]) == ("runs", 3)


# ---- what a user may see -------------------------------------------------------------------------


def test_others_gangs_are_seen_only_as_taken(cache: ClusterCache) -> None:
    permissions = Permissions(name="lee", workloads=frozenset({"team-b"}), nodes=True, queues=True)
    overview = show(cache, permissions, page="overview")
    assert overview.rows == {}
    assert overview.head["users"] == []
    assert overview.head["heads"][0]["head"] is None
    assert show(cache, permissions, page="map").rows["n1"]["by"] == [(HIDDEN, 3), ("", 1)]
    assert show(cache, permissions, page="nodes").rows["n1"]["by"] == [[HIDDEN, 3]]
    assert show(cache, permissions, page="node", name="n1").rows == {}
    assert show(cache, permissions, page="workloads").head["found"] == 0
    assert show(cache, permissions, page="queues").rows["cq"]["head"] is None
    assert show(cache, permissions, page="gang", namespace="team-a", name="gang").head == {
        "absent": True
    }
    assert show(cache, permissions, page="timeline").rows == {}
    bars = show(cache, permissions, page="timeline", by="node").rows.values()
    assert {(bar["key"], bar["name"], bar["user"]) for bar in bars} == {(HIDDEN, "", "")}
    everything_told = json.dumps([show(cache, permissions, page=page).head for page in PAGES])
    assert "gang" not in everything_told.replace("gangs", "")
    assert "late" not in everything_told


PAGES = ("overview", "queues", "workloads", "map", "nodes", "timeline")


def test_what_may_not_be_listed_is_not_shown(cache: ClusterCache) -> None:
    without_rights = Permissions(name="lee")
    assert show(cache, without_rights, page="overview").head["gpus"] is None
    assert show(cache, without_rights, page="queues").head == {
        "denied": "list clusterqueues.kueue.x-k8s.io"
    }
    for page in ("map", "nodes", "node"):
        assert show(cache, without_rights, page=page).head == {"denied": "list nodes"}
    assert show(cache, without_rights, page="timeline", by="node").head == {"denied": "list nodes"}


def test_members_need_the_right_to_list_pods(cache: ClusterCache) -> None:
    permissions = Permissions(name="lee", workloads=frozenset({"team-a"}))
    shown = show(cache, permissions, page="gang", namespace="team-a", name="gang")
    assert shown.head["members"] == 1
    assert shown.rows == {}


# ---- what is sent --------------------------------------------------------------------------------


def test_only_what_changed_is_sent_again() -> None:
    told = PageUpdates()
    one, two = {"n": 1}, {"n": 2}
    assert told.news(PageModel({"a": 1}, {"x": one, "y": two})) == {
        "head": {"a": 1},
        "order": ["x", "y"],
        "set": {"x": one, "y": two},
    }
    assert told.news(PageModel({"a": 1}, {"x": one, "y": {"n": 2}})) is None
    assert told.news(PageModel({"a": 1}, {"x": one, "y": {"n": 3}})) == {"set": {"y": {"n": 3}}}
    assert told.news(PageModel({"a": 2}, {"x": one})) == {"head": {"a": 2}, "order": ["x"]}
