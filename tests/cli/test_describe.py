"""`unisono describe`: sections that a person can read, for any kind."""

from __future__ import annotations

from typing import Any

from tests.cli.conftest import Shell, config_map, pod
from unisono.cli.describe import described
from unisono.kube.tables import Column, Row, Table


def test_an_object_and_its_events(shell: Shell) -> None:
    shell.type("apply", "-f", shell.file(pod("p", labels={"team": "x"}))).ok()
    uid = shell.json("pod", "p")["metadata"]["uid"]
    event = {
        "metadata": {"name": "p.1"},
        "involvedObject": {
            "kind": "Pod",
            "name": "p",
            "namespace": shell.namespace,
            "uid": uid,
            "apiVersion": "v1",
        },
        "type": "Warning",
        "reason": "Tired",
        "message": "needs a rest",
        "source": {"component": "a-controller"},
    }
    shell.cluster.api.of("v1", "events", shell.namespace).create(event).ok(201)
    text = shell.type("describe", "pod", "p").ok()
    assert text.startswith("Name: ")
    assert "Kind:         Pod (v1)" in text
    assert "Labels:       team=x" in text
    assert "  - name: main" in text
    assert "Warning  Tired   a-controller  needs a rest" in text


def test_all_of_a_kind(shell: Shell) -> None:
    shell.type("apply", "-f", shell.file(config_map("a"), config_map("b"))).ok()
    text = shell.type("describe", "cm").ok()
    assert text.count("Events: none") == 2


def test_an_object_that_is_not_there(shell: Shell) -> None:
    assert shell.type("describe", "pod", "p").code == 1
    said = shell.type("describe", "pods")
    assert (said.code, said.err) == (0, "unisono: nothing found\n")


def _object(**parts: Any) -> dict[str, Any]:
    metadata = {"name": "a", "creationTimestamp": "1970-01-01T00:00:00Z"}
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **parts}


def test_columns_and_conditions_tell_how_it_is() -> None:
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "Waiting",
        "message": "not\nyet",
        "lastTransitionTime": "1970-01-01T00:01:00Z",
    }
    table = Table([Column("Name"), Column("Queue"), Column("Age")], [Row(["a", "team-a", "2m"])])
    text = described(_object(status={"conditions": [condition], "ready": 0}), table, (), 120.0)
    assert text.splitlines() == [
        "Name:     a",
        "Kind:     Thing (v1)",
        "Created:  1970-01-01T00:00:00Z (2m ago)",
        "Queue:    team-a",
        "Conditions:",
        "  TYPE   STATUS  SINCE  REASON   MESSAGE",
        "  Ready  False     60s  Waiting  not yet",
        "Status:",
        "  ready: 0",
        "Events: none",
    ]


def test_a_secret_stays_one() -> None:
    secret = _object(kind="Secret", data={"key": "c2VjcmV0"})
    text = described(secret, Table(), (), 0.0)
    assert "key: 6 bytes" in text
    assert "c2VjcmV0" not in text
