"""Tables: the server prints the columns that a command line shows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import Api, Collection, Manifest
from tests.conformance.objects import (
    config_map,
    cron_job,
    deployment,
    disruption_budget,
    event,
    job,
    lease,
    pod,
    secret,
    service,
)
from tests.conformance.widgets import widget

TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


def table(api: Api, path: str, **query: Any) -> Any:
    """Return the table of a path."""
    got = api.get(path, headers={"Accept": TABLE}, **query).ok()
    assert (got["kind"], got["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    return got


def cells(api: Api, path: str, **query: Any) -> Manifest:
    """Return the only row as a mapping from column to cell."""
    got = table(api, path, **query)
    (row,) = got["rows"]
    names = [column["name"] for column in got["columnDefinitions"]]
    assert len(names) == len(row["cells"])
    return dict(zip(names, row["cells"], strict=True))


_ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}

# api version, plural, object, columns, further columns of the wide form
_KINDS = [
    ("v1", "configmaps", config_map("a"), "Name,Data,Age", ""),
    ("v1", "secrets", secret("a"), "Name,Type,Data,Age", ""),
    (
        "v1",
        "pods",
        pod("a"),
        "Name,Ready,Status,Restarts,Age",
        "IP,Node,Nominated Node,Readiness Gates",
    ),
    (
        "v1",
        "services",
        service("a"),
        "Name,Type,Cluster-IP,External-IP,Port(s),Age",
        "Selector",
    ),
    ("v1", "serviceaccounts", _ACCOUNT, "Name,Age", ""),
    (
        "batch/v1",
        "jobs",
        job("a"),
        "Name,Status,Completions,Duration,Age",
        "Containers,Images,Selector",
    ),
    (
        "batch/v1",
        "cronjobs",
        cron_job("a"),
        "Name,Schedule,Timezone,Suspend,Active,Last Schedule,Age",
        "Containers,Images,Selector",
    ),
    (
        "apps/v1",
        "deployments",
        deployment("a"),
        "Name,Ready,Up-to-date,Available,Age",
        "Containers,Images,Selector",
    ),
    ("coordination.k8s.io/v1", "leases", lease("a"), "Name,Holder,Age", ""),
    (
        "policy/v1",
        "poddisruptionbudgets",
        disruption_budget("a", {"x": "y"}, minimum=2),
        "Name,Min Available,Max Unavailable,Allowed Disruptions,Age",
        "",
    ),
]


@pytest.mark.parametrize(
    ("version", "plural", "manifest", "columns", "wide"), _KINDS, ids=[each[1] for each in _KINDS]
)
def test_columns(
    api: Api, namespace: str, version: str, plural: str, manifest: Manifest, columns: str, wide: str
) -> None:
    things = api.of(version, plural, namespace)
    things.create(manifest).ok(201)
    got = table(api, things.path)
    definitions = got["columnDefinitions"]
    shown = [each["name"] for each in definitions if each["priority"] == 0]
    hidden = [each["name"] for each in definitions if each["priority"] > 0]
    assert shown == columns.split(",")
    assert hidden == (wide.split(",") if wide else [])
    assert (definitions[0]["type"], definitions[0]["format"]) == ("string", "name")
    assert set(definitions[0]) == {"name", "type", "format", "description", "priority"}
    assert cells(api, things.at("a"))["Name"] == "a"


def test_columns_of_cluster_kinds(api: Api, namespace: str) -> None:
    def names(version: str, plural: str) -> list[str]:
        got = table(api, api.of(version, plural).path, limit=1)
        return [each["name"] for each in got["columnDefinitions"] if each["priority"] == 0]

    assert names("v1", "namespaces") == ["Name", "Status", "Age"]
    assert names("v1", "nodes") == ["Name", "Status", "Roles", "Age", "Version"]
    assert names("scheduling.k8s.io/v1", "priorityclasses") == [
        "Name",
        "Value",
        "Global-Default",
        "Age",
        "PreemptionPolicy",
    ]


def test_columns_of_events(api: Api, namespace: str) -> None:
    events = api.of("v1", "events", namespace)
    events.create(event("a", namespace)).ok(201)
    got = table(api, events.path)
    shown = [each["name"] for each in got["columnDefinitions"] if each["priority"] == 0]
    assert shown == ["Last Seen", "Type", "Reason", "Object", "Message"]
    row = cells(api, events.at("a"))
    assert (row["Type"], row["Reason"], row["Object"], row["Message"]) == (
        "Normal",
        "Started",
        "pod/train",
        "the pod has started",
    )


def test_the_list_behind_a_table(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    for name in ("a", "b", "c"):
        maps.create(config_map(name)).ok(201)
    first = table(api, maps.path, limit=2)
    assert [row["cells"][0] for row in first["rows"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 1
    assert first["metadata"]["resourceVersion"]
    second = table(api, maps.path, limit=2, **{"continue": first["metadata"]["continue"]})
    assert [row["cells"][0] for row in second["rows"]] == ["c"]


def test_an_empty_table(api: Api, namespace: str) -> None:
    got = table(api, api.of("v1", "pods", namespace).path)
    assert not got["rows"]
    assert got["columnDefinitions"]


def test_what_a_row_carries(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    made = maps.create(config_map("a", {"k": "v"}, labels={"x": "1"})).ok(201)

    def carried(**query: str) -> Any:
        return table(api, maps.path, **query)["rows"][0].get("object")

    for query in ({}, {"includeObject": "Metadata"}):
        thing = carried(**query)
        assert (thing["kind"], thing["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert thing["metadata"]["labels"] == {"x": "1"}
        assert "data" not in thing
    assert carried(includeObject="Object") == made
    assert carried(includeObject="None") is None
    answer = api.get(maps.path, headers={"Accept": TABLE}, includeObject="Some")
    answer.refused(400, "BadRequest")


def test_watching_tables(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    start = pods.list().ok()["metadata"]["resourceVersion"]
    with api.watch(pods.path, headers={"Accept": TABLE}, resourceVersion=start) as events:
        for name in ("a", "b"):
            pods.create(pod(name)).ok(201)
        seen = [events.next() for _ in range(2)]
    assert [kind for kind, _ in seen] == ["ADDED", "ADDED"]
    assert [thing["rows"][0]["cells"][0] for _, thing in seen] == ["a", "b"]
    assert len(seen[0][1]["columnDefinitions"]) == 9
    assert seen[1][1]["columnDefinitions"] is None
    assert all(thing["kind"] == "Table" for _, thing in seen)


def test_custom_columns(api: Api, widgets: Collection) -> None:
    widgets.create(widget("a")).ok(201)
    got = table(api, widgets.path)
    columns = [(each["name"], each["type"], each["priority"]) for each in got["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("Size", "integer", 0),
        ("Ready", "string", 0),
        ("Colour", "string", 1),
        ("Age", "date", 0),
    ]
    assert got["columnDefinitions"][2]["description"] == "whether it is ready"
    row = cells(api, widgets.path)
    assert (row["Name"], row["Size"], row["Ready"], row["Colour"]) == ("a", 1, None, "red")
    assert row["Age"].endswith("s")
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    widgets.patch("a", ready, sub="status").ok()
    assert cells(api, widgets.at("a"))["Ready"] == "True"
