"""Tables as a whole: columns, rows, what they carry, and how long 10,000 pods take."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.manifests import kind
from unisono.apiserver.objects import Json
from unisono.apiserver.tables.table import PRINTERS, as_table, printer_of
from unisono.apiserver.times import timestamp
from unisono.kinds.expressions.jsonpath import compile_path
from unisono.kinds.shapes.served import Column, Served, served_kinds

NOW = 1_000_000.0

# What printers look at, for objects that no schema has seen.
FIELDS = (
    "spec",
    "status",
    "conditions",
    "containers",
    "containerStatuses",
    "initContainers",
    "initContainerStatuses",
    "state",
    "terminated",
    "template",
    "selector",
    "matchLabels",
    "matchExpressions",
    "rules",
    "ports",
    "subsets",
    "hard",
    "versions",
    "series",
    "lastTimestamp",
    "subjects",
    "roleRef",
    "data",
    "metrics",
)

WIDGET = kind("example.com", "v1", "Widget")
POD = kind("", "v1", "Pod")


def _object(name: str, seconds: float = 60, **more: Any) -> Json:
    metadata = {
        "name": name,
        "namespace": "default",
        "creationTimestamp": timestamp(NOW - seconds),
        "labels": {"a": "b"},
    }
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, **more}


def _table(
    served: Served, objects: list[Json], *, include: str = "Metadata", with_columns: bool = True
) -> Json:
    return as_table(
        served,
        objects,
        now=NOW,
        include=include,
        list_metadata={"resourceVersion": "7"},
        with_columns=with_columns,
    )


def test_a_table_has_the_metadata_of_its_list() -> None:
    table = _table(WIDGET, [])
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"] == {"resourceVersion": "7"}
    assert table["rows"] == []


def test_a_row_carries_metadata_or_the_object_or_nothing() -> None:
    obj = _object("w", spec={"x": 1})
    (row,) = _table(WIDGET, [obj])["rows"]
    assert row["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
    obj["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    (row,) = _table(WIDGET, [obj])["rows"]
    assert "managedFields" not in row["object"]["metadata"]
    (row,) = _table(WIDGET, [obj], include="Object")["rows"]
    assert row["object"] is obj
    (row,) = _table(WIDGET, [obj], include="None")["rows"]
    assert row == {"cells": ["w", "60s"]}


def test_later_events_of_a_watch_have_no_columns() -> None:
    assert _table(WIDGET, [], with_columns=False)["columnDefinitions"] is None


def test_a_kind_without_columns_has_a_name_and_an_age() -> None:
    columns = _table(WIDGET, [])["columnDefinitions"]
    assert [column["name"] for column in columns] == ["Name", "Age"]
    assert columns[0] == {
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": columns[0]["description"],
        "priority": 0,
    }


def test_declared_columns_follow_the_name() -> None:
    queue = kind(
        "kueue.x-k8s.io",
        "v1beta2",
        "ClusterQueue",
        columns=(
            Column(name="Cohort", type="string", json_path=".spec.cohortName"),
            Column(
                name="Strategy",
                type="string",
                json_path=".spec.queueingStrategy",
                priority=1,
                description="How it queues.",
            ),
            Column(name="Pending", type="integer", json_path=".status.pendingWorkloads"),
            Column(
                name="Ready", type="string", json_path='.status.conditions[?(@.type=="X")].status'
            ),
            Column(name="Broken", type="string", json_path=".spec[["),
        ),
    )
    full = _object(
        "q",
        spec={"cohortName": "all"},
        status={"pendingWorkloads": 0, "conditions": [{"type": "X", "status": "True"}]},
    )
    table = _table(queue, [full, _object("empty")], include="None")
    assert [row["cells"] for row in table["rows"]] == [
        ["q", "all", None, 0, "True", None],
        ["empty", None, None, None, None, None],
    ]
    strategy = table["columnDefinitions"][2]
    assert (strategy["priority"], strategy["description"]) == (1, "How it queues.")


@pytest.mark.parametrize(
    ("type_name", "value", "cell"),
    [
        ("string", {"b": [1]}, '{"b":[1]}'),
        ("string", True, "true"),
        ("integer", 2.9, 2),
        ("integer", True, None),
        ("number", 2.5, 2.5),
        ("boolean", "true", None),
        ("date", "1970-01-12T13:45:00Z", "100s"),
        ("date", "soon", "<invalid>"),
    ],
)
def test_a_cell_is_of_its_columns_type(type_name: str, value: Any, cell: Any) -> None:
    served = kind(
        "example.com",
        "v1",
        "Widget",
        columns=(Column(name="X", type=type_name, json_path=".spec.x"),),
    )
    (row,) = _table(served, [_object("w", spec={"x": value})])["rows"]
    assert row["cells"] == ["w", cell]


def test_the_newest_event_comes_last() -> None:
    event = kind("", "v1", "Event")
    old = _object("a", lastTimestamp=timestamp(NOW - 9), involvedObject={"kind": "Pod"})
    new = _object("b", lastTimestamp=timestamp(NOW - 5), involvedObject={"kind": "Pod"})
    again = _object(
        "c",
        eventTime="1970-01-01T00:00:00.000000Z",
        series={"count": 3, "lastObservedTime": timestamp(NOW - 7)},
        regarding={"kind": "Job", "name": "j"},
        note="said",
    )
    rows = _table(event, [new, again, old])["rows"]
    assert [row["cells"][0] for row in rows] == ["9s", "7s", "5s"]
    assert rows[1]["cells"][3] == "job/j"
    assert rows[1]["cells"][6] == "said"
    assert rows[1]["cells"][8] == 3


def test_definitions_show_their_scope_and_versions() -> None:
    definition = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    versions = [{"name": "v2", "served": True}, {"name": "v1", "served": False}]
    obj = _object("w", spec={"scope": "Cluster", "versions": versions})
    (row,) = _table(definition, [obj])["rows"]
    assert row["cells"] == ["w", "Cluster", "v2", timestamp(NOW - 60)]


# ---- what holds for all of them ------------------------------------------------------------------


@pytest.mark.parametrize("key", PRINTERS)
def test_a_printer_makes_a_cell_for_every_column_of_an_empty_object(key: str) -> None:
    printer = PRINTERS[key]
    bare = {"metadata": {"name": "x"}}
    empty = {"metadata": {"name": "x"}, "spec": {}, "status": {}}
    for obj in (bare, empty):
        cells = printer.cells(obj, NOW)
        assert len(cells) == len(printer.headings)
        assert all(cell is None or isinstance(cell, str | int | float) for cell in cells)
        orjson.dumps(cells)


@pytest.mark.parametrize("key", PRINTERS)
def test_every_column_is_explained(key: str) -> None:
    for heading in PRINTERS[key].headings:
        assert heading.description.endswith("."), heading
        assert heading.type in ("string", "integer", "boolean", "date")
    assert sum(heading.format == "name" for heading in PRINTERS[key].headings) == 1


def test_every_kind_that_is_served_can_be_printed() -> None:
    for served in served_kinds():
        printer = printer_of(served)
        for column in served.columns:
            compile_path(column.json_path)
        assert len(printer.cells({"metadata": {"name": "x"}}, NOW)) == len(printer.headings)


def test_every_printer_prints_something_that_is_served() -> None:
    assert set(PRINTERS) <= {served.key for served in served_kinds()}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.sampled_from(sorted(PRINTERS)), st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_an_odd_object_does_not_hide_the_others(key: str, fields: Json) -> None:
    group, _, plural = key.partition("/")
    served = kind(group, "v1", "Thing", plural=plural)
    odd = {**fields, "metadata": {"name": "odd"}}
    rows = _table(served, [odd, {"metadata": {"name": "fine"}}])["rows"]
    assert sorted(row["object"]["metadata"]["name"] for row in rows) == ["fine", "odd"]
    for row in rows:
        assert row["object"]["metadata"]["name"] in str(row["cells"])
        orjson.dumps(row)


def test_a_thousand_pods_are_a_thousand_rows() -> None:
    state = {"name": "c", "state": {"running": {}}, "ready": True, "restartCount": 1}
    pods = [
        _object(
            f"p{at}",
            at,
            spec={"containers": [{"name": "c"}], "nodeName": "n"},
            status={
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [state],
                "podIPs": [{"ip": "10.0.0.1"}],
            },
        )
        for at in range(1_000)
    ]
    assert len(_table(POD, pods)["rows"]) == 1_000
