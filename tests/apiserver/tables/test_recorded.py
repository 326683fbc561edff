"""Our tables against those that a real kube-apiserver made of the same objects (`record`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import kind
from unisono.apiserver.tables.table import PRINTERS, as_table
from unisono.kinds.shapes.served import Column

RECORDED: dict[str, dict[str, Any]] = {
    f"{entry['group']}/{entry['plural']}": entry
    for entry in json.loads((Path(__file__).parent / "recorded.json").read_text())
}


def _table(entry: dict[str, Any]) -> dict[str, Any]:
    columns = tuple(
        Column(name=name, type=type_name, json_path=path)
        for name, type_name, path in entry.get("columns", ())
    )
    served = kind(
        entry["group"], entry["version"], entry["kind"], plural=entry["plural"], columns=columns
    )
    objects = [row["object"] for row in entry["rows"]]
    return as_table(
        served,
        objects,
        now=entry["now"],
        include="Object",
        list_metadata={},
        with_columns=True,
    )


@pytest.mark.parametrize("key", RECORDED)
def test_the_columns_are_the_same(key: str) -> None:
    entry = RECORDED[key]
    ours = [
        [column["name"], column["type"], column["format"], column["priority"]]
        for column in _table(entry)["columnDefinitions"]
    ]
    assert ours == entry["headings"]


@pytest.mark.parametrize("key", RECORDED)
def test_the_cells_are_the_same(key: str) -> None:
    entry = RECORDED[key]
    theirs = {row["object"]["metadata"]["name"]: row["cells"] for row in entry["rows"]}
    ours = {row["object"]["metadata"]["name"]: row["cells"] for row in _table(entry)["rows"]}
    assert ours == theirs
    assert theirs, "nothing was recorded"


def test_most_printers_are_held_against_a_real_one() -> None:
    assert set(PRINTERS) - set(RECORDED) == {
        # The same printer under another key, or nothing but a name and a date.
        "admissionregistration.k8s.io/mutatingadmissionpolicies",
        "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        # Ours say more than the name and the date: scope and versions.
        "apiextensions.k8s.io/customresourcedefinitions",
        "rbac.authorization.k8s.io/clusterrolebindings",
        "rbac.authorization.k8s.io/clusterroles",
    }
