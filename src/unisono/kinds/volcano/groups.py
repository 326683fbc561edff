"""`scheduling.volcano.sh/v1beta1` PodGroup: pods with its annotation form a gang.

    minMember        so many pods start together; 0 makes no gang
    minTaskMember    … of each task (annotation volcano.sh/task-spec), unless the tasks' minima add
                     up to more than minMember: Volcano then ignores them, and so do we
    networkTopology  how close all pods must be
    subGroupPolicy   pods that come in blocks: how large a block is, how many of them must start,
                     and how close the pods of one block must be
    minResources     Volcano's shortcut before it looks at nodes; nothing is left to decide with it

Spec placement §1.1 and §7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from unisono.engine.model import selection as engine
from unisono.kinds.decode import Schema
from unisono.kinds.meta import LabelSelector, ObjectMeta, check_selector, selector_of
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Context, GangRules, GroupHooks, Kind, Slices
from unisono.kinds.volcano.network_topology import (
    NetworkTopology,
    check_network,
    in_blocks,
    topology_of,
)

_Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
DEFAULT_QUEUE = "default"


class SubGroupPolicy(Schema, frozen=True, kw_only=True):
    """Pods of the group that come in blocks."""

    name: str = ""
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    sub_group_size: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    min_sub_groups: _Count | None = None
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Schema, frozen=True, kw_only=True):
    """Which pods of the group must start together, and where."""

    min_member: Annotated[
        int, Meta(ge=0, le=2**31 - 1, description="So many pods start together, or none.")
    ] = 0
    min_task_member: Mapping[str, _Count] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: Mapping[str, Quantity] = {}
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class PodGroupStatus(Schema, frozen=True, kw_only=True):
    """What became of the gang."""

    is_open: ClassVar[bool] = True

    phase: str = ""
    conditions: tuple[Any, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(Schema, frozen=True, kw_only=True):
    """A gang of the pods that carry its annotation."""

    api_version: str = "scheduling.volcano.sh/v1beta1"
    kind: str = "PodGroup"
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


def check_group(group: PodGroup, notes: Notes) -> None:
    """Report what Volcano would refuse."""
    spec = group.spec
    check_network(spec.network_topology, "spec.networkTopology", notes)
    for name, quantity in spec.min_resources.items():
        if quantity.nano < 0:
            path = f"spec.minResources[{name}]"
            notes.problem(path, f"is {quantity.text}; it must not be negative")
    for index, policy in enumerate(spec.sub_group_policy):
        at = f"spec.subGroupPolicy[{index}]"
        check_network(policy.network_topology, f"{at}.networkTopology", notes)
        if policy.label_selector is not None:
            for problem in check_selector(policy.label_selector, f"{at}.labelSelector"):
                notes.problem(problem.path, problem.message)


def is_gang(group: PodGroup, part: str) -> bool:
    """Say whether the group asks for anything that its pods could not have one by one."""
    spec = group.spec
    return bool(spec.min_member or spec.network_topology or spec.sub_group_policy)


def rules_of(group: PodGroup, part: str, context: Context) -> GangRules:
    """Return what makes a gang of the group's pods."""
    spec = group.spec
    whole = topology_of(spec.network_topology, "spec.networkTopology", context)
    slices = []
    for index, policy in enumerate(spec.sub_group_policy):
        path = f"spec.subGroupPolicy[{index}].networkTopology"
        block = topology_of(policy.network_topology, path, context)
        size = policy.sub_group_size or 1
        slices.append(
            Slices(
                name=policy.name or str(index),
                selector=_members(policy),
                size=size,
                least=policy.min_sub_groups or 0,
                topology=in_blocks(whole, block, size),
            )
        )
    return GangRules(
        least=max(1, spec.min_member),
        task_least=spec.min_task_member,
        topology=whole,
        slices=tuple(slices),
        priority_class=spec.priority_class_name,
    )


def _members(policy: SubGroupPolicy) -> engine.LabelSelector:
    """Return which pods come in blocks: those selected that say which block they are of."""
    chosen = selector_of(policy.label_selector or LabelSelector())
    keys = tuple(engine.Requirement(key, "Exists") for key in policy.match_label_keys)
    return engine.LabelSelector(chosen.requirements + keys)


def queue_of_group(group: PodGroup) -> str:
    """Return the Volcano queue that the group is in."""
    return group.spec.queue or DEFAULT_QUEUE


KINDS = (
    Kind(
        group="scheduling.volcano.sh",
        version="v1beta1",
        kind="PodGroup",
        struct=PodGroup,
        namespaced=True,
        check=check_group,
        gang=GroupHooks(rules=rules_of, is_gang=is_gang, queue=queue_of_group),
    ),
)
