"""Events and Leases: what components report, and leader election."""

from __future__ import annotations

import pytest

from tests.conformance.client import Api, changed
from tests.conformance.objects import event, lease


def test_an_event_has_two_faces(api: Api, namespace: str) -> None:
    old = api.of("v1", "events", namespace)
    old.create(event("a", namespace, count=3, source={"component": "runner", "host": "n1"})).ok(201)
    new = api.of("events.k8s.io/v1", "events", namespace).read("a").ok()
    assert (new["kind"], new["apiVersion"]) == ("Event", "events.k8s.io/v1")
    assert new["regarding"]["name"] == "train"
    assert (new["note"], new["reason"], new["type"]) == (
        "the pod has started",
        "Started",
        "Normal",
    )
    assert new["deprecatedCount"] == 3
    assert new["deprecatedSource"] == {"component": "runner", "host": "n1"}


def test_a_new_event_can_be_read_as_an_old_one(api: Api, namespace: str) -> None:
    manifest = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "a"},
        "regarding": {"kind": "Pod", "name": "train", "namespace": namespace},
        "eventTime": "2024-01-01T00:00:00.123456Z",
        "reportingController": "unisono.example/scheduler",
        "reportingInstance": "one",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": "on n1",
    }
    made = api.of("events.k8s.io/v1", "events", namespace).create(manifest).ok(201)
    assert made["eventTime"] == "2024-01-01T00:00:00.123456Z"
    old = api.of("v1", "events", namespace).read("a").ok()
    assert (old["involvedObject"]["name"], old["message"]) == ("train", "on n1")
    assert old["reportingComponent"] == "unisono.example/scheduler"


def test_an_event_lives_in_the_namespace_of_its_object(api: Api, namespace: str) -> None:
    answer = api.of("v1", "events", namespace).create(event("a", "elsewhere"))
    assert {field for _, field in answer.causes()} == {"involvedObject.namespace"}


def test_events_can_be_selected(api: Api, namespace: str) -> None:
    events = api.of("v1", "events", namespace)
    events.create(event("a", namespace, source={"component": "runner"})).ok(201)
    events.create(event("b", namespace, type="Warning", reason="Failed")).ok(201)
    about = {**event("c", namespace)["involvedObject"], "kind": "Job", "apiVersion": "batch/v1"}
    events.create(event("c", namespace, involvedObject={**about, "fieldPath": "spec"})).ok(201)
    uid = about["uid"]
    for selector, names in {
        "involvedObject.name=train": "a b c",
        "involvedObject.kind=Job": "c",
        "involvedObject.kind=Pod,involvedObject.name=train": "a b",
        f"involvedObject.namespace={namespace}": "a b c",
        f"involvedObject.uid={uid}": "a b c",
        "involvedObject.apiVersion=batch/v1": "c",
        "involvedObject.fieldPath=spec": "c",
        "type=Warning": "b",
        "type!=Normal": "b",
        "reason=Failed": "b",
        "source=runner": "a",
        "metadata.name=a": "a",
    }.items():
        assert events.names(fieldSelector=selector) == names.split(), selector
    events.list(fieldSelector="message=x").refused(400, "BadRequest")


def test_an_event_can_be_counted(api: Api, namespace: str) -> None:
    events = api.of("v1", "events", namespace)
    events.create(event("a", namespace, count=1)).ok(201)
    patch = {"count": 2, "lastTimestamp": "2024-01-01T00:00:00Z"}
    patched = events.patch("a", patch).ok()
    assert (patched["count"], patched["lastTimestamp"]) == (2, "2024-01-01T00:00:00Z")


def test_events_can_be_watched(api: Api, namespace: str) -> None:
    events = api.of("v1", "events", namespace)
    start = events.list().ok()["metadata"]["resourceVersion"]
    with events.watch(resourceVersion=start) as stream:
        events.create(event("a", namespace)).ok(201)
        events.patch("a", {"count": 2}).ok()
        events.delete("a").ok()
        assert stream.take(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


class TestLeases:
    """A lease is held until it is not renewed."""

    def test_times_have_microseconds(self, api: Api, namespace: str) -> None:
        leases = api.of("coordination.k8s.io/v1", "leases", namespace)
        times = {
            "acquireTime": "2024-01-01T00:00:00.000000Z",
            "renewTime": "2024-01-01T00:00:05.123456Z",
        }
        made = leases.create(lease("a", {**times, "leaseTransitions": 0})).ok(201)
        assert made["spec"] == {
            "holderIdentity": "one",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 0,
            **times,
        }

    def test_only_one_can_take_it(self, api: Api, namespace: str) -> None:
        leases = api.of("coordination.k8s.io/v1", "leases", namespace)
        seen = leases.create(lease("a")).ok(201)
        leases.replace(changed(seen, spec={**seen["spec"], "holderIdentity": "two"})).ok()
        leases.replace(changed(seen, spec={**seen["spec"], "holderIdentity": "three"})).refused(
            409, "Conflict"
        )

    @pytest.mark.parametrize(
        ("spec", "field"),
        [
            ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds"),
            ({"leaseTransitions": -1}, "spec.leaseTransitions"),
        ],
        ids=str,
    )
    def test_numbers_are_checked(
        self, api: Api, namespace: str, spec: dict[str, int], field: str
    ) -> None:
        answer = api.of("coordination.k8s.io/v1", "leases", namespace).create(lease("a", spec))
        assert answer.causes() == {("FieldValueInvalid", field)}

    def test_a_released_lease_has_no_holder(self, api: Api, namespace: str) -> None:
        leases = api.of("coordination.k8s.io/v1", "leases", namespace)
        leases.create(lease("a")).ok(201)
        released = leases.patch("a", {"spec": {"holderIdentity": ""}}).ok()
        assert released["spec"]["holderIdentity"] == ""
