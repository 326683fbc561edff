"""How machines are bought, as a Policy says it (spec provisioning §5.19)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from unisono.engine.model import policy as engine
from unisono.engine.model.provisioning import MICRO, Packing
from unisono.kinds.decode import Schema
from unisono.kinds.notes import Notes
from unisono.kinds.scalar import Duration


class Provisioning(Schema, frozen=True, kw_only=True):
    """How machines are bought for gangs that find no place."""

    same_zone: Annotated[
        bool, Meta(description="All machines of a gang with GPUs are in one zone.")
    ] = True
    same_gpu_model: Annotated[
        bool, Meta(description="All machines of a pod set have one model of GPU.")
    ] = True
    packing: Annotated[Packing, Meta(description="How pods of a gang share machines.")] = "Balanced"
    single_packing: Annotated[
        Packing, Meta(description="The same for workloads of one pod, and for pods without GPUs.")
    ] = "MinCost"
    slack: Annotated[
        float, Meta(ge=0, le=10, description="How much dearer than the cheapest Balanced may be.")
    ] = 0.25
    spot: Annotated[
        Literal["opt-in", "allow", "never"],
        Meta(description="Whether gangs may be on machines that can be taken away."),
    ] = "opt-in"
    interruptions_per_node_hour: Annotated[
        float, Meta(ge=0, description="How often a spot machine is taken away in an hour.")
    ] = 0.05
    restart_cost: Annotated[
        Duration | None, Meta(description="Work that one interruption costs a gang.")
    ] = None
    max_hourly_cost: Annotated[
        float | None, Meta(description="What all bought machines may cost an hour, in US$.")
    ] = None
    max_concurrent_plans: Annotated[
        int, Meta(ge=1, description="Purchases under way in one NodePool at a time.")
    ] = 4
    preference: Annotated[
        Literal["reclaim-then-provision", "provision-then-preempt", "provision-only"],
        Meta(description="Whether others leave before machines are bought, after, or never."),
    ] = "reclaim-then-provision"
    launch_timeout: Annotated[
        Duration | None, Meta(description="How long a machine may take to be launched.")
    ] = None
    ready_timeout: Annotated[
        Duration | None, Meta(description="How long a machine may take from launch to readiness.")
    ] = None
    gang_timeout: Annotated[
        Duration | None, Meta(description="How long all machines of a gang may take.")
    ] = None
    retry_base: Annotated[
        Duration | None, Meta(description="The pause after a first purchase that failed in time.")
    ] = None
    retry_max: Annotated[
        Duration | None, Meta(description="The longest pause after purchases that failed.")
    ] = None
    reuse_window: Annotated[
        Duration | None,
        Meta(description="How long machines of a failed purchase are offered to others."),
    ] = None


class BuyingTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long a purchase may take and what happens after; in seconds."""

    launch: float = 300.0
    ready: float = 900.0
    gang: float = 1200.0
    retry_base: float = 60.0
    retry_max: float = 1800.0
    reuse: float = 60.0


def provisioning_of(section: Provisioning) -> engine.Provisioning:
    """Return what decisions read."""
    default = engine.Provisioning()
    cost = section.max_hourly_cost
    return engine.Provisioning(
        same_zone=section.same_zone,
        same_model=section.same_gpu_model,
        packing=section.packing,
        single_packing=section.single_packing,
        slack_milli=round(section.slack * 1000),
        spot=section.spot,
        interruptions_milli=round(section.interruptions_per_node_hour * 1000),
        restart_ms=default.restart_ms if section.restart_cost is None else section.restart_cost.ms,
        most_per_hour_micro=None if cost is None else round(cost * MICRO),
        most_at_once=section.max_concurrent_plans,
        preference=section.preference,
    )


def buying_times(section: Provisioning) -> BuyingTimes:
    """Return the settings for carrying out purchases."""
    default = BuyingTimes()

    def seconds(written: Duration | None, otherwise: float) -> float:
        return otherwise if written is None else written.ms / 1000

    return BuyingTimes(
        launch=seconds(section.launch_timeout, default.launch),
        ready=seconds(section.ready_timeout, default.ready),
        gang=seconds(section.gang_timeout, default.gang),
        retry_base=seconds(section.retry_base, default.retry_base),
        retry_max=seconds(section.retry_max, default.retry_max),
        reuse=seconds(section.reuse_window, default.reuse),
    )


def check_provisioning(section: Provisioning, notes: Notes) -> None:
    """Report durations that make no sense."""
    for name, duration in (
        ("restartCost", section.restart_cost),
        ("launchTimeout", section.launch_timeout),
        ("readyTimeout", section.ready_timeout),
        ("gangTimeout", section.gang_timeout),
        ("retryBase", section.retry_base),
        ("retryMax", section.retry_max),
        ("reuseWindow", section.reuse_window),
    ):
        if duration is not None and duration.ms < 0:
            notes.problem(f"provisioning.{name}", "cannot be negative")
