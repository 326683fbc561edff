"""`scheduling.x-k8s.io/v1alpha1` PodGroup: pods with its label start together, or none does.

    minMember                at least so many pods must have a place; more start if they fit
    minResources             a shortcut of the coscheduling plugin, which looks at the cluster's sum
                             before it looks at nodes; nothing is left to decide with it here
    scheduleTimeoutSeconds   how long the plugin lets placed pods wait; here none is placed alone

A group is known in its own namespace only. Spec placement §2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Context, GangRules, GroupHooks, Kind
from unisono.kinds.scalar import Timestamp


class PodGroupSpec(Schema, frozen=True, kw_only=True):
    """How many pods make the gang."""

    min_member: Annotated[
        int, Meta(ge=1, le=2**31 - 1, description="So many pods start together, or none.")
    ]
    min_resources: Mapping[str, Quantity] = {}
    schedule_timeout_seconds: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None


class PodGroupStatus(Schema, frozen=True, kw_only=True):
    """What became of the gang."""

    is_open: ClassVar[bool] = True

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: Timestamp | None = None


class PodGroup(Schema, frozen=True, kw_only=True):
    """A gang of the pods that carry its label."""

    api_version: str = "scheduling.x-k8s.io/v1alpha1"
    kind: str = "PodGroup"
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec
    status: PodGroupStatus = PodGroupStatus()


def _check(group: PodGroup, notes: Notes) -> None:
    for name, quantity in group.spec.min_resources.items():
        if quantity.nano < 0:
            path = f"spec.minResources[{name}]"
            notes.problem(path, f"is {quantity.text}; it must not be negative")


def _rules(group: PodGroup, part: str, context: Context) -> GangRules:
    return GangRules(least=group.spec.min_member)


KINDS = (
    Kind(
        group="scheduling.x-k8s.io",
        version="v1alpha1",
        kind="PodGroup",
        struct=PodGroup,
        namespaced=True,
        check=_check,
        gang=GroupHooks(rules=_rules),
    ),
)
