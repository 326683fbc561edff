"""From client-side to server-side apply with kubectl."""

from __future__ import annotations

import json
from typing import Any

from tests.apiserver.patch.gadgets import gadget
from tests.apiserver.patch.test_apply import applied, conflicts, refused
from tests.apiserver.patch.test_managed_fields import entries, update
from unisono.apiserver.objects import Json
from unisono.apiserver.patch.apply import MAX_ANNOTATION_BYTES, NOTE


def client_side(spec: Json, note: Any = None) -> Json:
    """Make an object as `kubectl apply` does: with a note of the whole configuration."""
    text = note if isinstance(note, str) else json.dumps(note or gadget(spec))
    made = gadget(spec, annotations={NOTE: text})
    return update(None, made, "kubectl-client-side-apply")


def test_kubectl_takes_over_its_own_fields() -> None:
    live = client_side({"text": "a", "number": 1})
    done = applied(live, gadget({"text": "b"}), "kubectl")
    assert done["spec"] == {"text": "b", "number": 1}
    assert entries(done)["kubectl"] == {"f:spec": {"f:text": {}}}
    assert done["metadata"]["annotations"][NOTE] == (
        '{"apiVersion":"patch.example.com/v1","kind":"Gadget","metadata":{"name":"one"},'
        '"spec":{"text":"b"}}\n'
    )


def test_others_do_not() -> None:
    live = client_side({"text": "a"})
    refusal = refused(live, gadget({"text": "b"}), "helm")
    assert [field for field, _ in conflicts(refusal)] == [".spec.text"]


def test_a_field_that_changed_since_is_not_kubectls() -> None:
    live = client_side({"text": "a", "number": 1})
    live["spec"]["text"] = "changed"
    refusal = refused(live, gadget({"text": "b", "number": 2}), "kubectl")
    assert [field for field, _ in conflicts(refusal)] == [".spec.text"]


def test_a_note_that_says_nothing() -> None:
    foreign = {**gadget({"text": "a"}), "apiVersion": "patch.example.com/v0"}
    for note in ("not json", "5", foreign, gadget({"ports": [5]})):
        live = client_side({"text": "a"}, note)
        refusal = refused(live, gadget({"text": "b"}), "kubectl")
        assert [field for field, _ in conflicts(refusal)] == [".spec.text"]


def test_without_a_note_none_is_made() -> None:
    live = applied(None, gadget({"text": "a"}), "kubectl")
    assert "annotations" not in applied(live, gadget({"text": "b"}), "kubectl")["metadata"]


def test_a_note_that_does_not_fit_is_dropped() -> None:
    live = client_side({"text": "a"})
    config = gadget({"open": {"long": "x" * MAX_ANNOTATION_BYTES}})
    done = applied(live, config, "kubectl", force=True)
    assert NOTE not in done["metadata"]["annotations"]
