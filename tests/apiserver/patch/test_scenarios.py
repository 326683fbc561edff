"""Scenarios 3 and 5 to 8 of kube-api.md §9, with the schemas that we ship."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json, copied
from unisono.apiserver.patch.apply import apply
from unisono.apiserver.patch.json_patch import merge_patch
from unisono.apiserver.patch.managed_fields import record_update, without_idle_times
from unisono.apiserver.patch.strategic import strategic_merge
from unisono.kinds.shapes.served import served_kinds
from unisono.kinds.shapes.shape import Shape

SHAPES: dict[str, Shape] = {kind.kind: kind.shape for kind in reversed(served_kinds())}


def _options(obj: Json, manager: str, now: float) -> Json:
    return {
        "manager": manager,
        "api_version": obj["apiVersion"],
        "subresource": "",
        "now": now,
        "shape": SHAPES[obj["kind"]],
    }


def applied(
    live: Json | None, config: Json, manager: str, *, force: bool = False, now: float = 0
) -> Json:
    """Apply a configuration."""
    return apply(live, config, force=force, **_options(config, manager, now))


def labelled(live: Json, labels: Json, manager: str) -> Json:
    """Change labels as `kubectl label` does."""
    new = merge_patch(live, {"metadata": {"labels": labels}})
    record_update(live, new, **_options(live, manager, 1))
    return new


def config_map(**labels: str) -> Json:
    """Make a configuration with labels alone."""
    metadata: Json = {"name": "c", **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def owners(obj: Json) -> dict[str, Json]:
    """Return the sets by manager."""
    listed = obj["metadata"].get("managedFields", ())
    return {entry["manager"]: entry["fieldsV1"] for entry in listed}


def _job(amount: Any) -> Json:
    container = {
        "name": "c",
        "image": "i",
        "resources": {"limits": {"nvidia.com/gpu": amount}},
    }
    pod = {"containers": [container], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": pod}},
    }


def test_3_an_integer_amount_twice_changes_nothing() -> None:
    live = _job("1")
    record_update(None, live, **_options(live, "kubectl-client-side-apply", 0))
    # kubectl cannot know that "1" and 1 are the same, so it sends a patch.
    path = {
        "template": {"spec": {"containers": [_job(1)["spec"]["template"]["spec"]["containers"][0]]}}
    }
    patched = strategic_merge(live, {"spec": path}, SHAPES["Job"])
    amounts = patched["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert amounts == {"nvidia.com/gpu": 1}
    amounts["nvidia.com/gpu"] = "1"  # as every amount is written before it is stored
    record_update(live, patched, **_options(live, "kubectl-client-side-apply", 60))
    assert patched == live


def test_3_the_same_on_the_server_side() -> None:
    live = applied(None, _job("1"), "a", now=0)
    labels = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"labels": {"x": "1"}}}
    live = applied(live, labels, "b", now=5)
    again = applied(live, _job(1), "a", now=60)
    container = again["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["limits"]["nvidia.com/gpu"] = "1"
    # The times, and with them the order of the entries, would be another.
    assert again != live
    without_idle_times(live, again)
    assert again == live


def test_5_two_appliers() -> None:
    live = applied(None, config_map(x="1"), "A")
    with pytest.raises(ApiError) as refusal:
        applied(live, config_map(x="2"), "B")
    assert refusal.value.code == 409
    assert [(cause.reason, cause.field) for cause in refusal.value.causes] == [
        ("FieldManagerConflict", ".metadata.labels.x")
    ]
    forced = applied(live, config_map(x="2"), "B", force=True)
    assert forced["metadata"]["labels"] == {"x": "2"}
    assert owners(forced) == {"B": {"f:metadata": {"f:labels": {"f:x": {}}}}}
    without = applied(forced, config_map(), "B")
    assert without["metadata"] == {"name": "c"}


def test_6_an_applier_and_kubectl_label() -> None:
    live = applied(None, config_map(x="1"), "A")
    changed = labelled(live, {"x": "2"}, "kubectl-label")
    with pytest.raises(ApiError) as refusal:
        applied(changed, config_map(x="1"), "A")
    assert [cause.message for cause in refusal.value.causes] == [
        'conflict with "kubectl-label" using v1'
    ]
    removed = labelled(changed, {"x": None}, "kubectl-label")
    again = applied(removed, config_map(x="1"), "A")
    assert again["metadata"]["labels"] == {"x": "1"}


def test_7_a_port_without_a_protocol() -> None:
    def pod(*ports: Json) -> Json:
        container = {"name": "c", "image": "i", **({"ports": list(ports)} if ports else {})}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [container]},
        }

    live = applied(None, pod({"containerPort": 80}), "A")
    owned = owners(live)["A"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert owned["f:ports"] == {
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
    }
    live["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP"  # the default
    assert applied(live, pod({"containerPort": 80}), "A") == live
    less = applied(live, pod(), "A")
    assert less["spec"]["containers"] == [{"name": "c", "image": "i"}]


def test_8_thirteen_updaters() -> None:
    live = config_map()
    live["data"] = {"0": ""}
    record_update(None, live, **_options(live, "m00", 0))
    for number in range(1, 13):
        new = copied(live)
        new["data"][str(number)] = ""
        record_update(live, new, **_options(live, f"m{number:02}", number))
        live = new
    entries = live["metadata"]["managedFields"]
    assert len(entries) == 10
    assert entries[0]["manager"] == "ancient-changes"
    assert entries[0]["fieldsV1"] == {
        "f:data": {".": {}, **{f"f:{number}": {} for number in range(4)}}
    }
    assert [entry["manager"] for entry in entries[1:]] == [
        f"m{number:02}" for number in range(4, 13)
    ]
