"""What people do with the page: as themselves, confirmed, and not for other sites."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.web.acting import JOB, KUEUE, NODE, WORKLOAD, Acting, acting, job, until
from unisono.kube.errors import NotFound
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

CLUSTER_QUEUE = Kind(KUEUE, "ClusterQueue")
POLICY = Kind("unisono.dev/v1", "Policy")
HOLD = "unisono.dev/hold"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    with acting(tmp_path_factory.mktemp("acting")) as made:
        runs = made.workload_of("runs")
        until(lambda: _has(made, runs, "QuotaReserved"))
        yield made


@pytest.fixture
def waits(cluster: Acting) -> Iterator[Json]:
    """Return the Workload of a job that waits for quota."""
    cluster.run(lambda api: api.create(job("waits")))
    workload = cluster.workload_of("waits")
    until(lambda: _explained(cluster, workload))
    yield workload
    with contextlib.suppress(NotFound):
        cluster.run(lambda api: api.delete(JOB, "waits", "default"))
    until(lambda: _is_gone(cluster, JOB, "waits"))
    until(lambda: _is_gone(cluster, WORKLOAD, workload["metadata"]["name"]))


def _is_gone(cluster: Acting, kind: Kind, name: str) -> bool:
    try:
        cluster.get(kind, name)
    except NotFound:
        return True
    return False


def _has(cluster: Acting, workload: Json, condition: str) -> bool:
    found = cluster.get(WORKLOAD, workload["metadata"]["name"])
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)


def _explained(cluster: Acting, workload: Json) -> bool:
    found = cluster.get(WORKLOAD, workload["metadata"]["name"])
    return bool((found.get("status") or {}).get("conditions"))


def _on(workload: Json, action: str, **fields: str) -> Json:
    metadata = workload["metadata"]
    place = {"namespace": metadata["namespace"], "name": metadata["name"]}
    return {"target": "workload", "action": action, **place, "fields": fields}


def _done(cluster: Acting, user: str, workload: Json, action: str, **fields: str) -> str:
    metadata = workload["metadata"]
    return cluster.do(
        user,
        action,
        "workload",
        metadata["name"],
        namespace=metadata["namespace"],
        fields=fields,
    )


def test_a_gang_is_held_and_released(cluster: Acting, waits: Json) -> None:
    shown = cluster.preview("alice", _on(waits, "hold"))
    assert shown["title"] == "Hold job/waits"
    assert shown["commands"] == [
        "kubectl annotate -n default job/waits unisono.dev/hold=user --overwrite"
    ]
    assert _done(cluster, "alice", waits, "hold") == "job/waits is on hold"
    assert cluster.get(JOB, "waits")["metadata"]["annotations"][HOLD] == "user"
    offers = cluster.offers("alice", "workload", waits["metadata"]["name"], "default")
    assert "release" in offers
    assert "hold" not in offers
    assert _done(cluster, "alice", waits, "release") == "job/waits is released"
    assert HOLD not in cluster.get(JOB, "waits")["metadata"].get("annotations", {})


def test_the_consequence_comes_first(cluster: Acting, waits: Json) -> None:
    higher = cluster.preview("alice", _on(waits, "priority", **{"class": "high"}))
    assert "Its priority becomes 1000; it is 0." in higher["says"]
    assert "It starts at once." in higher["follows"]
    assert "Is evicted and waits again: default/runs." in higher["follows"]
    moved = cluster.preview("alice", _on(waits, "queue", queue="other"))
    assert moved["follows"] == [
        "It starts at once.",
        "Tried on a copy of the cluster with 2 workloads.",
    ]
    runs = cluster.workload_of("runs")
    cancelled = cluster.preview("alice", _on(runs, "cancel"))
    assert "Starts then: default/waits." in cancelled["follows"]
    assert "It cannot be undone." in cancelled["says"]


def test_another_queue_starts_it(cluster: Acting, waits: Json) -> None:
    assert _done(cluster, "alice", waits, "queue", queue="other") == "job/waits is in queue other"
    until(lambda: _has(cluster, waits, "QuotaReserved"))
    offers = cluster.offers("alice", "workload", waits["metadata"]["name"], "default")
    assert sorted(offers) == ["cancel", "priority"]  # what runs cannot be held or moved
    code, said = cluster.ask("alice", "actions/preview", _on(waits, "hold"))
    assert (code, said) == (409, "it is no longer pending")


def test_priority_and_cancel(cluster: Acting, waits: Json) -> None:
    _done(cluster, "alice", waits, "priority", **{"class": "low"})
    name = waits["metadata"]["name"]
    until(lambda: cluster.get(WORKLOAD, name)["spec"]["priority"] == -5)
    assert _done(cluster, "alice", waits, "cancel") == "job/waits is cancelled"
    until(lambda: _is_gone(cluster, JOB, "waits"))


def test_a_user_without_the_right_is_refused(cluster: Acting, waits: Json) -> None:
    offers = cluster.offers("bob", "workload", waits["metadata"]["name"], "default")
    assert offers["hold"]["missing"] == "patch jobs.batch in namespace default"
    assert offers["cancel"]["missing"] == "delete jobs.batch in namespace default"
    for action in ("hold", "cancel"):
        shown = cluster.preview("bob", _on(waits, action))
        assert "you lack the permission" in shown["refusal"]
        assert shown["confirm"] == ""
    # Not even with a confirmation: another user's is not theirs, and the API refuses on its own.
    hold = _on(waits, "hold")
    confirm = cluster.preview("alice", hold)["confirm"]
    code, said = cluster.ask("bob", "actions", {**hold, "confirm": confirm})
    assert (code, said) == (409, "this is not what was confirmed; look at what follows again")
    assert HOLD not in cluster.get(JOB, "waits")["metadata"].get("annotations", {})


def test_the_api_refuses_even_what_the_page_would_allow(
    cluster: Acting, waits: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        return None

    async def fine(*_: object) -> str:
        return ""

    monkeypatch.setattr("unisono.web.actions.page_actions._missing", nothing)
    monkeypatch.setattr("unisono.web.actions.page_actions._rehearsed", fine)
    body = _on(waits, "hold")
    confirm = cluster.preview("bob", body)["confirm"]
    code, said = cluster.ask("bob", "actions", {**body, "confirm": confirm})
    assert code == 403
    assert 'User "bob" cannot patch resource "jobs"' in said


def test_nothing_is_done_that_was_not_confirmed(cluster: Acting, waits: Json) -> None:
    body = _on(waits, "priority", **{"class": "low"})
    confirm = cluster.preview("alice", body)["confirm"]
    other = _on(waits, "priority", **{"class": "high"})
    expires, _, proof = confirm.partition(".")
    for given, sent in (
        (body, ""),
        (body, "1." + proof),
        (body, f"{int(expires) + 1}.{proof}"),
        (other, confirm),
        (_on(waits, "cancel"), confirm),
    ):
        code, said = cluster.ask("alice", "actions", {**given, "confirm": sent})
        assert code == 409, said
        assert "confirm" in said
    assert "deletionTimestamp" not in cluster.get(JOB, "waits")["metadata"]


def test_other_sites_cannot_act(cluster: Acting, waits: Json) -> None:
    body = _on(waits, "hold")
    for path in ("actions", "actions/preview"):
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            assert cluster.ask("alice", path, body, **headers)[0] == 403
        assert cluster.ask("alice", path, body, Content_Type="text/plain")[0] == 415
        assert cluster.ask("alice", path, body, Host="rebound.example")[0] == 403
        assert cluster.ask("", path, body)[0] == 401
        assert cluster.ask("", path, body, Cookie="unisono-token=a-token")[0] == 401


@pytest.mark.parametrize(
    "broken",
    [
        {"target": "secret"},
        {"name": "../../secrets/x"},
        {"name": ".."},
        {"name": ""},
        {"name": "a" * 300},
        {"namespace": "default/pods"},
        {"fields": {"class": "x" * 600}},
        {"fields": {str(n): "" for n in range(9)}},
        {"fields": {"class": 1}},
        {"surprise": True},
    ],
)
def test_bodies_have_bounds(cluster: Acting, waits: Json, broken: Json) -> None:
    code, _ = cluster.ask("alice", "actions/preview", {**_on(waits, "hold"), **broken})
    assert code == 400


def test_large_bodies_and_unknown_actions_are_refused(cluster: Acting, waits: Json) -> None:
    assert cluster.ask("alice", "actions", b"{" + b" " * 9000)[0] == 413
    assert cluster.ask("alice", "actions", b"[1")[0] == 400
    code, said = cluster.ask("alice", "actions/preview", _on(waits, "explode"))
    assert (code, said) == (409, "there is no action explode")


def test_queues_are_stopped_and_resumed_by_users_with_that_right(cluster: Acting) -> None:
    missing = cluster.offers("alice", "queue", "spare")["stop"]["missing"]
    assert missing == "patch clusterqueues.kueue.x-k8s.io"
    shown = cluster.preview(
        "owner",
        {"target": "queue", "action": "stop", "name": "cq", "fields": {"policy": "HoldAndDrain"}},
    )
    assert "Is evicted and waits again: default/runs." in shown["follows"]
    fields = {"policy": "Hold"}
    assert cluster.do("owner", "stop", "queue", "spare", fields=fields) == "queue spare is stopped"
    assert cluster.get(CLUSTER_QUEUE, "spare", "")["spec"]["stopPolicy"] == "Hold"
    assert cluster.do("owner", "resume", "queue", "spare") == "queue spare admits again"
    assert cluster.get(CLUSTER_QUEUE, "spare", "")["spec"]["stopPolicy"] == "None"


def _free_node(cluster: Acting) -> str:
    """Return the name of the node on which nothing runs."""
    found = cluster.run(lambda api: api.list(Kind("v1", "Pod"), "default")).items
    used = {one["spec"].get("nodeName") for one in found}
    nodes = cluster.run(lambda api: api.list(NODE)).items
    return str(
        next(one["metadata"]["name"] for one in nodes if one["metadata"]["name"] not in used)
    )


def test_nodes_are_cordoned_and_uncordoned(cluster: Acting) -> None:
    name = _free_node(cluster)
    offers = cluster.offers("alice", "node", name)
    assert offers["cordon"]["missing"] == "patch nodes"
    fields = {"reason": "new fans | please"}
    assert cluster.do("owner", "cordon", "node", name, fields=fields) == f"node {name} is cordoned"
    node = cluster.get(NODE, name, "")
    assert node["spec"]["unschedulable"] is True
    reason, _, _ = node["metadata"]["annotations"]["unisono.dev/drain-reason"].partition("|")
    assert reason == "new fans / please"  # as scontrol writes it
    cluster.do("owner", "uncordon", "node", name)
    assert not cluster.get(NODE, name, "")["spec"].get("unschedulable")


def test_draining_says_which_gangs_lose_pods(cluster: Acting) -> None:
    pod = until(
        lambda: next(
            (
                one
                for one in cluster.run(lambda api: api.list(Kind("v1", "Pod"), "default")).items
                if one["spec"].get("nodeName")
            ),
            None,
        )
    )
    node = pod["spec"]["nodeName"]
    shown = cluster.preview(
        "owner", {"target": "node", "action": "drain", "name": node, "fields": {"reason": "fans"}}
    )
    assert (
        shown["says"][1]
        == "2 pods on it are evicted; this gang loses pods: default/"
        + (cluster.workload_of("runs")["metadata"]["name"])
        + "."
    )
    assert "Is evicted, and starts again at once: default/runs." in shown["follows"]
    assert [command.split()[:2] for command in shown["commands"]] == [
        ["unisono", "scontrol"],
        ["kubectl", "drain"],
    ]


def test_a_quarantine_is_lifted(cluster: Acting) -> None:
    name = _free_node(cluster)
    taint = {"key": "unisono.dev/quarantine", "value": "mine", "effect": "NoSchedule"}
    changes = {"spec": {"taints": [taint]}}
    cluster.run(lambda api: api.patch(NODE, name, "", changes))
    assert "lift-quarantine" in cluster.offers("owner", "node", name)
    shown = cluster.do("owner", "lift-quarantine", "node", name)
    assert shown == f"node {name} is out of quarantine"
    assert not cluster.get(NODE, name, "")["spec"].get("taints")


def test_the_first_reservation_needs_the_right_to_create(cluster: Acting) -> None:
    """Without a Policy one is made: the right to patch would come too late."""
    found = cluster.run(lambda api: api.list(POLICY)).items
    expected = "patch" if found else "create"
    missing = cluster.offers("alice", "node", _free_node(cluster))["reserve"]["missing"]
    assert missing in (f"{expected} policies.unisono.dev", "list policies.unisono.dev")


def test_maintenance_is_planned(cluster: Acting) -> None:
    name = _free_node(cluster)
    fields = {"name": "fans", "start": "2099-01-01T08:00", "hours": "4"}
    done = cluster.do("owner", "reserve", "node", name, fields=fields)
    assert done == f"node {name} is reserved from 2099-01-01T08:00:00Z for 4h"
    cluster.do("owner", "reserve", "node", name, fields={**fields, "name": "more"})
    (policy,) = cluster.run(lambda api: api.list(POLICY)).items
    assert [one["name"] for one in policy["reservations"]] == ["fans", "more"]
    assert policy["reservations"][0]["nodes"] == [name]
    body = {"target": "node", "action": "reserve", "name": name}
    for wrong, said in (
        ({"name": "fans"}, "Name: a reservation fans is there already"),
        ({"start": "soon"}, "From: soon is no time; write it as 2026-02-01T08:00"),
        ({"hours": "0"}, "Hours: must be a whole number from 1 to 8784"),
        ({"start": "2001-01-01T08:00"}, "From: that maintenance would be over already"),
        ({"hours": ""}, "Hours: is required"),
    ):
        answer = cluster.ask("owner", "actions/preview", {**body, "fields": {**fields, **wrong}})
        assert answer == (409, said)
