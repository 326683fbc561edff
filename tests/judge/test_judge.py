"""Explanations of random clusters are true; and the judge notices the ones that are not."""

from __future__ import annotations

import sys
from typing import TypeVar

import msgspec
import pytest

from tests.judge.judgement import judge
from tests.judge.situations import situation
from unisono.engine.diagnosis import diagnose, minimal
from unisono.engine.diagnosis.diagnose import _Case
from unisono.engine.diagnosis.in_steps import InSteps
from unisono.engine.model.diagnosis import Diagnosis, MissingNodes
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.snapshot import Snapshot

# `python -m tests.judge --runs 20000` judges many more.
SEEDS = range(12)

T = TypeVar("T")


def faults(
    diagnoses: object = diagnose, seeds: range = SEEDS
) -> list[tuple[int, WorkloadKey, tuple[str, ...]]]:
    return [
        (seed, one.workload, one.faults)
        for seed in seeds
        for one in judge(situation(seed), diagnoses=diagnoses)  # type: ignore[arg-type]
        if one.faults
    ]


def _at_once(answer: T) -> InSteps[T]:
    """Return an answer without a trial."""
    yield
    return answer


def _all_of(always: list[T], elements: list[T], is_enough: object) -> InSteps[list[T]]:
    return _at_once(elements)


def _all_of_them(elements: list[T], is_enough: object) -> InSteps[list[T]]:
    return _at_once(elements)


def test_no_explanation_is_false() -> None:
    assert faults() == []


def test_notices_that_a_cause_is_left_out() -> None:
    def incomplete(world: Snapshot, key: WorkloadKey) -> Diagnosis | None:
        found = diagnose(world, key)
        if found is None or len(found.in_the_way) < 2:
            return found
        return msgspec.structs.replace(found, in_the_way=found.in_the_way[1:])

    assert ("not sufficient",) in [why for _, _, why in faults(incomplete, SEEDS[:8])]


def test_notices_that_too_many_nodes_are_asked_for() -> None:
    def generous(world: Snapshot, key: WorkloadKey) -> Diagnosis | None:
        found = diagnose(world, key)
        if found is None:
            return None
        more = tuple(
            msgspec.structs.replace(one, count=one.count + 1)
            if isinstance(one, MissingNodes)
            else one
            for one in found.in_the_way
        )
        return msgspec.structs.replace(found, in_the_way=more)

    found = [why for _, _, whys in faults(generous, SEEDS[:8]) for why in whys]
    assert any(why.startswith("less is enough") for why in found)


def test_notices_that_it_is_called_hopeless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Case, "_date_on_the_empty_cluster", lambda self: _at_once(None))
    assert faults(seeds=SEEDS[:8])


def test_notices_causes_that_are_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimal, "_explain", _all_of)
    everything = sys.modules["unisono.engine.diagnosis.diagnose"]  # the package has the function
    monkeypatch.setattr(everything, "without_needless", _all_of_them)
    found = [why for _, _, whys in faults(seeds=SEEDS[:8]) for why in whys]
    assert any(why.startswith("not minimal") for why in found)


def test_notices_a_way_that_is_called_impossible() -> None:
    def closed(world: Snapshot, key: WorkloadKey) -> Diagnosis | None:
        found = diagnose(world, key)
        if found is None:
            return None
        ways = tuple(msgspec.structs.replace(one, possible=False) for one in found.ways)
        return msgspec.structs.replace(found, ways=ways)

    found = [why for _, _, whys in faults(closed, SEEDS[:8]) for why in whys]
    assert any(why.startswith("it can start with") for why in found)


def test_notices_that_nothing_is_explained() -> None:
    assert len(faults(lambda world, key: None, SEEDS[:2])) > 1
