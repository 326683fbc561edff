"""Verdicts that are remembered."""

from __future__ import annotations

from copy import deepcopy

from tests.apiserver.builtin.test_jobs import job
from tests.apiserver.surroundings import refusals
from unisono.apiserver.caches import VerdictCache


def test_the_same_parts_have_the_same_key() -> None:
    assert VerdictCache.key({"a": 1, "b": 2}, "x") == VerdictCache.key({"b": 2, "a": 1}, "x")
    assert VerdictCache.key({"a": 1}, "x") != VerdictCache.key({"a": 1}, "y")


def test_the_oldest_verdict_is_forgotten() -> None:
    seen: VerdictCache[int] = VerdictCache(most=2)
    for number in range(3):
        seen.keep(VerdictCache.key(number), number)
    assert seen.get(VerdictCache.key(0)) is None
    assert seen.get(VerdictCache.key(2)) == 2


def test_a_sound_job_does_not_vouch_for_another() -> None:
    sound = job({"parallelism": 3})
    assert refusals("batch/jobs", deepcopy(sound)) == []
    assert refusals("batch/jobs", deepcopy(sound)) == []
    broken = deepcopy(sound)
    broken["spec"]["backoffLimit"] = -1
    assert refusals("batch/jobs", broken) == [("Invalid", "spec.backoffLimit")]
    labelled = deepcopy(sound)
    labelled["spec"]["template"]["metadata"] = {"labels": {"a b": "c"}}
    assert refusals("batch/jobs", labelled) == [("Invalid", "spec.template.metadata.labels")]
    named = deepcopy(sound)
    named["spec"]["selector"] = {"matchLabels": {"a": "b"}}
    assert ("Invalid", "spec.selector") in refusals("batch/jobs", named)
