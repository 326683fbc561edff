"""The policy of a scenario: what the operator chose for the whole cluster."""

from __future__ import annotations

from typing import Any

from tests.scenarios.nodes import level
from tests.scenarios.reading import Part
from unisono.engine.model.policy import (
    AdmissionFairSharing,
    Backfill,
    FairSharing,
    Placement,
    PodsReady,
    Policy,
    Provisioning,
)


def policy(part: Part) -> Policy:
    """Read the operator's choices; `fair_sharing: true` takes its defaults."""
    given = part.fields(
        "fair_sharing",
        "admission_fair_sharing",
        "pods_ready",
        "undeclared",
        "anti_thrash",
        "strict",
        "placement",
        "backfill",
        "provisioning",
    )
    found: dict[str, Any] = {}
    if "fair_sharing" in given:
        found["fair_sharing"] = _fair_sharing(given["fair_sharing"])
    if "admission_fair_sharing" in given:
        halving = given["admission_fair_sharing"].fields("half_life", "sampling")
        found["admission_fair_sharing"] = AdmissionFairSharing(**_times(halving))
    if "pods_ready" in given:
        found["pods_ready"] = _pods_ready(given["pods_ready"])
    if "undeclared" in given:
        found["undeclared"] = given["undeclared"].one_of("Block", "Ignore")
    if "backfill" in given:
        found["backfill"] = _backfill(given["backfill"])
    if "placement" in given:
        found["placement"] = _placement(given["placement"])
    if "provisioning" in given:
        found["provisioning"] = _provisioning(given["provisioning"])
    for switch in ("anti_thrash", "strict"):
        if switch in given:
            found[switch] = given[switch].flag()
    return Policy(**found)


def _provisioning(part: Part) -> Provisioning:
    given = part.fields("preference", "most_per_hour", "most_at_once")
    found: dict[str, Any] = {}
    if "preference" in given:
        found["preference"] = given["preference"].text()
    if "most_per_hour" in given:
        found["most_per_hour_micro"] = given["most_per_hour"].whole() * 1_000_000
    if "most_at_once" in given:
        found["most_at_once"] = given["most_at_once"].whole()
    return Provisioning(**found)


def _fair_sharing(part: Part) -> FairSharing | None:
    if part.is_scalar():
        return FairSharing() if part.flag() else None
    given = part.fields("strategies")
    known = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    return FairSharing(
        strategies=tuple(item.one_of(*known) for item in given["strategies"].items())
    )


def _pods_ready(part: Part) -> PodsReady:
    times = ("timeout", "recovery_timeout", "backoff_base", "backoff_max")
    given = part.fields(*times, "block_admission", "requeue_by", "backoff_limit")
    found = _times({field: part for field, part in given.items() if field in times})
    if "block_admission" in given:
        found["block_admission"] = given["block_admission"].flag()
    if "requeue_by" in given:
        found["requeue_by"] = given["requeue_by"].one_of("Eviction", "Creation")
    if "backoff_limit" in given:
        found["backoff_limit"] = given["backoff_limit"].whole()
    return PodsReady(**found)


def _backfill(part: Part) -> Backfill | None:
    if part.is_scalar():
        return Backfill() if part.flag() else None
    given = part.fields("dates")
    return Backfill(dates=given["dates"].whole() if "dates" in given else None)


def _placement(part: Part) -> Placement:
    given = part.fields("scoring", "levels", "gpu_mode", "wait_for_leaving")
    found: dict[str, Any] = {}
    if "scoring" in given:
        known = ("auto", "leftover", "binpack", "spread", "fgd", "spare", "none")
        found["scoring"] = given["scoring"].one_of(*known)
    if "levels" in given:
        found["levels"] = tuple(level(item) for item in given["levels"].items())
    if "gpu_mode" in given:
        found["gpu_mode"] = given["gpu_mode"].one_of("preferred", "unconstrained")
    if "wait_for_leaving" in given:
        found["wait_for_leaving_ms"] = given["wait_for_leaving"].milliseconds()
    return Placement(**found)


def _times(given: dict[str, Part]) -> dict[str, Any]:
    return {f"{field}_ms": value.milliseconds() for field, value in given.items()}
