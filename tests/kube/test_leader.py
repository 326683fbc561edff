"""The rules of an election, decided by hand: no loop, no API, no real time."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.kube.form import Json
from unisono.kube.leader_election import Election, LeaseTimes


def lease(version: int, holder: str, **spec: Any) -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "unisono", "namespace": "sys", "resourceVersion": str(version)},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec},
    }


def written(election: Election, version: int, wall: float = 0.0) -> Json:
    """Return what the API would answer to the claim."""
    claim = election.claim("unisono", "sys", wall)
    claim["metadata"]["resourceVersion"] = str(version)
    return claim


def test_the_first_creates_and_leads() -> None:
    one = Election("one")
    one.saw(None, 0.0)
    assert one.action(0.0) == "create"
    claim = written(one, 1, wall=1767268800.25)
    assert claim["spec"] == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T12:00:00.250000Z",
        "renewTime": "2026-01-01T12:00:00.250000Z",
        "leaseTransitions": 0,
    }
    one.wrote(claim, 0.0, 0.1)
    assert one.is_leading(0.1)
    assert one.action(2.0) == "renew"


def test_a_renewal_keeps_when_it_began_and_names_the_state_it_replaces() -> None:
    one = Election("one")
    one.saw(None, 0.0)
    one.wrote(written(one, 1, wall=0.0), 0.0, 0.0)
    renewal = one.claim("unisono", "sys", 2.0)
    assert renewal["metadata"]["resourceVersion"] == "1"
    assert renewal["spec"]["acquireTime"] == "1970-01-01T00:00:00.000000Z"
    assert renewal["spec"]["renewTime"] == "1970-01-01T00:00:02.000000Z"


def test_a_holder_is_dead_when_its_record_has_not_changed_for_its_own_duration() -> None:
    two = Election("two")
    # Whatever the clock of the other machine says, it is not compared.
    two.saw(lease(7, "one", renewTime="1999-01-01T00:00:00.000000Z"), 100.0)
    assert two.action(114.9) == "wait"
    two.saw(lease(7, "one"), 114.0)  # the same state again is no sign of life
    assert two.action(115.0) == "take"
    two.saw(lease(8, "one"), 115.0)
    assert two.action(129.9) == "wait"
    two.saw(lease(9, "one", leaseDurationSeconds=60), 130.0)
    assert two.action(189.0) == "wait", "the holder's duration counts, not ours"


def test_taking_over_counts_as_a_transition() -> None:
    two = Election("two")
    two.saw(lease(7, "one", leaseTransitions=4), 0.0)
    assert two.claim("unisono", "sys", 0.0)["spec"]["leaseTransitions"] == 5


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    one, two = Election("one"), Election("two")
    one.saw(None, 0.0)
    one.wrote(written(one, 1), 0.0, 0.0)
    given_back = one.release("unisono", "sys", 5.0)
    assert given_back["spec"]["holderIdentity"] == ""
    assert given_back["spec"]["leaseDurationSeconds"] == 1, "the API wants more than nothing"
    given_back["metadata"]["resourceVersion"] = "2"
    one.wrote(given_back, 5.0, 5.0)
    assert not one.is_leading(5.0)
    two.saw(given_back, 5.0)
    assert two.action(5.0) == "take"


def test_the_leader_stops_by_itself_before_another_can_take_over() -> None:
    one, two = Election("one"), Election("two")
    one.saw(None, 0.0)
    claim = written(one, 1)
    one.wrote(claim, asked_at=0.0, now=4.0)  # the answer was slow: the careful end counts
    two.saw(claim, 0.0)  # seen at the earliest possible moment
    assert one.is_leading(9.9)
    assert not one.is_leading(10.0)
    assert two.action(14.9) == "wait"
    assert one.leads_until() < two.expires_at()


def test_a_lease_that_another_holds_ends_it_at_once() -> None:
    one = Election("one")
    one.saw(None, 0.0)
    one.wrote(written(one, 1), 0.0, 0.0)
    one.saw(lease(2, "two"), 1.0)
    assert not one.is_leading(1.0)
    assert one.action(1.0) == "wait"


def test_a_claim_whose_answer_was_lost_is_repeated() -> None:
    one = Election("one")
    one.saw(None, 0.0)
    arrived = written(one, 1)
    one.saw(arrived, 3.0)
    assert not one.is_leading(3.0), "we do not know yet that it is ours"
    assert one.action(3.0) == "take"
    assert one.claim("unisono", "sys", 3.0)["spec"]["leaseTransitions"] == 0


def test_an_empty_lease_has_no_holder() -> None:
    one = Election("one")
    bare = lease(1, "x")
    del bare["spec"]
    one.saw(bare, 0.0)
    assert (one.holder, one.action(0.0)) == ("", "take")


def test_terms_under_which_two_could_lead_are_a_bug() -> None:
    with pytest.raises(AssertionError, match="retry < deadline < lease"):
        LeaseTimes(lease_s=10, renew_deadline_s=10)
