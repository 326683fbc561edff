"""Pods and the object that makes a gang of them, put together (spec placement §7).

Equal pods form one pod set. The gang may start when every set has its minimum, and the sets
together have `least` pods:

    the minimum of a set    what its task or its blocks demand, and what the other sets could not
                            make up for
    tasks' minima           ignored if they add up to more than `least`, as Volcano does
    fewer pods than least   the gang can never start: "2 of 4 pods exist"

A pod that failed is gone, one that succeeded has done its part. Groups under a composite group
start together, each with its own minimum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from unisono.engine.model.selection import selects
from unisono.engine.model.workload import PodSet, TopologyRequest
from unisono.kinds.core.pod_groups import ROLE_HASH, GroupLink, alike, set_of_pods, task_of
from unisono.kinds.core.pod_sets import pod_sets
from unisono.kinds.core.schema import Pod
from unisono.kinds.registry import Context, GangRules, GroupHooks, least_of_each

_OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Part:
    """Pods that name one group, and that group if it was given."""

    link: GroupLink
    pods: tuple[Pod, ...]
    group: Any = None
    hooks: GroupHooks | None = None

    @property
    def is_finished(self) -> bool:
        """Whether all of its pods are over; what a status says of the group only follows them."""
        return all(pod.status.phase in _OVER for pod in self.pods)


@dataclass(frozen=True, slots=True)
class Gang:
    """One group, or several that a composite group holds together."""

    parts: tuple[Part, ...]
    composite: Any = None
    hooks: GroupHooks | None = None  # of the composite group
    children: int = 0  # groups right below the composite one

    @property
    def is_finished(self) -> bool:
        """Whether nothing of it will run again."""
        return all(part.is_finished for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Role:
    """Equal pods of one part."""

    pods: list[Pod]
    task: str
    slices: int | None  # which of the rules' slices they are in

    @property
    def done(self) -> int:
        return sum(pod.status.phase == "Succeeded" for pod in self.pods)


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A gang, and how important it is; no pod sets means that there is nothing to run."""

    pod_sets: tuple[PodSet, ...] = ()
    min_total: int | None = None  # None: every pod set needs its minimum, and that is all
    reclaimable: tuple[tuple[str, int], ...] = ()  # pods of each set that are done for good
    priority_class: str = ""  # the PriorityClass that it names itself
    priority: int | None = None  # worked out already


def read_gang(gang: Gang, context: Context) -> JobRequest:
    """Return what a gang asks for; note why it could never start."""
    read = [_read_part(part, context) for part in gang.parts]
    above = _composite_rules(gang, context)
    rules = [rules for rules, _ in read] if above is None else [above]
    names = _names([role for _, roles in read for role in roles])
    made: list[PodSet] = []
    for part, (wanted, roles) in zip(gang.parts, read, strict=True):
        own = names[len(made) : len(made) + len(roles)]
        made.extend(_part_sets(part, wanted, roles, own, context))
    return JobRequest(
        pod_sets=tuple(made),
        min_total=_min_total(read),
        reclaimable=tuple(_reclaimable(names, [role for _, roles in read for role in roles])),
        priority_class=_priority_class(rules, gang),
        priority=next((one.priority for one in rules if one.priority is not None), None),
    )


def _composite_rules(gang: Gang, context: Context) -> GangRules | None:
    """Return the rules of a composite group; its minimum counts groups, and all of them start."""
    if gang.hooks is None:
        return None
    rules = gang.hooks.rules(gang.composite, "", context)
    if rules is not None and rules.least > gang.children:
        context.notes.misconfigured(f"{gang.children} of {rules.least} pod groups exist")
    elif rules is not None and rules.least < gang.children:
        path = "spec.schedulingPolicy.gang.minGroupCount"
        message = f"is {rules.least}, but all {gang.children} groups start together"
        context.notes.warn("FieldIgnored", path, message)
    return rules


def _living(pods: Iterable[Pod]) -> list[Pod]:
    """Leave out pods that failed or are being deleted, unless the whole gang is on its way out."""
    there = [pod for pod in pods if pod.status.phase != "Failed"]
    staying = [pod for pod in there if pod.metadata.deletion_timestamp is None]
    return staying or [pod for pod in there if pod.spec.node_name]


def _read_part(part: Part, context: Context) -> tuple[GangRules, list[_Role]]:
    living = _living(part.pods)
    rules = None
    if part.hooks is not None:
        rules = part.hooks.rules(part.group, part.link.part, context)
    if rules is None:
        context.notes.misconfigured(_missing(part))
        rules = GangRules(least=len(living))
    elif living and len(living) < rules.least:
        context.notes.misconfigured(f"{len(living)} of {rules.least} pods exist")
    return rules, _roles(living, rules)


def _missing(part: Part) -> str:
    kind = part.link.kind.partition(".")[0]
    if part.group is None:
        return f'there is no {kind} "{part.link.name}"'
    return f'{kind} "{part.link.name}" has no pod group "{part.link.part}"'


def _roles(pods: list[Pod], rules: GangRules) -> list[_Role]:
    def apart(pod: Pod) -> tuple[str, int | None]:
        labels = dict(pod.metadata.labels)
        matching = (
            index for index, one in enumerate(rules.slices) if selects(one.selector, labels)
        )
        return task_of(pod), next(matching, None)

    return [_Role(role, *apart(role[0])) for role in alike(pods, apart=apart)]


def _names(roles: Sequence[_Role]) -> list[str]:
    """Name the sets: `main`, else by task where there is one of it, else by their first pods."""
    if len(roles) == 1:
        return [roles[0].task or "main"]
    tasks = Counter(role.task for role in roles)
    return [
        role.task
        if role.task and tasks[role.task] == 1
        else role.pods[0].metadata.annotations.get(ROLE_HASH) or role.pods[0].metadata.name
        for role in roles
    ]


# ---- minima ------------------------------------------------------------------------------------


def _minima(roles: Sequence[_Role], rules: GangRules, context: Context) -> list[int]:
    """Return the least number of pods of each role."""
    counts = [len(role.pods) for role in roles]
    minima = list(least_of_each(rules.least, counts))
    for least, what, members in _demands(roles, rules):
        exist = sum(counts[index] for index in members)
        if exist < least:
            context.notes.misconfigured(f"{exist} of {least} pods of {what} exist")
        shares = least_of_each(least, [counts[index] for index in members])
        for index, share in zip(members, shares, strict=True):
            minima[index] = max(minima[index], share)
    return minima


def _demands(
    roles: Sequence[_Role], rules: GangRules
) -> Iterator[tuple[int, str, tuple[int, ...]]]:
    """Yield minima of parts of the gang: how many, of what, and which roles that is."""
    if sum(rules.task_least.values()) <= rules.least:
        for task, least in rules.task_least.items():
            members = tuple(index for index, role in enumerate(roles) if role.task == task)
            yield least, f"task {task}", members
    for number, one in enumerate(rules.slices):
        members = tuple(index for index, role in enumerate(roles) if role.slices == number)
        if one.least:
            yield one.least * one.size, f"sub-group policy {one.name}", members


def _min_total(read: Sequence[tuple[GangRules, list[_Role]]]) -> int | None:
    """Return how many pods must start together; None if that is all of them."""
    pods = [sum(len(role.pods) for role in roles) for _, roles in read]
    least = [min(rules.least, count) for (rules, _), count in zip(read, pods, strict=True)]
    return sum(least) if least != pods else None


# ---- pod sets ----------------------------------------------------------------------------------


def _part_sets(
    part: Part, rules: GangRules, roles: list[_Role], names: list[str], context: Context
) -> Iterator[PodSet]:
    minima = _minima(roles, rules, context)
    sets = [
        set_of_pods(role.pods, name, len(role.pods))
        for role, name in zip(roles, names, strict=True)
    ]
    sliced = Counter(role.slices for role in roles)
    for made, role, least in zip(pod_sets(sets, context), roles, minima, strict=True):
        topology = rules.topology or made.topology
        if role.slices is not None and rules.slices[role.slices].topology is not None:
            if sliced[role.slices] == 1:
                topology = rules.slices[role.slices].topology
            else:
                _warn_of_mixed_blocks(role.slices, context)
        yield msgspec.structs.replace(
            made,
            min_count=least if least < made.count else None,
            topology=topology,
            group=part.link.workload if _shares_domain(rules.topology, roles) else made.group,
        )


def _shares_domain(topology: TopologyRequest | None, roles: Sequence[_Role]) -> bool:
    """All pods of a group with a topology go to one domain; one set does so by itself."""
    return topology is not None and len(roles) > 1


def _warn_of_mixed_blocks(number: int, context: Context) -> None:
    path = f"spec.subGroupPolicy[{number}].networkTopology"
    message = "has no effect: its pods are of several templates, and a block holds equal pods"
    if not any(warning.path == path for warning in context.notes.warnings):
        context.notes.warn("FieldIgnored", path, message)


def _reclaimable(names: Sequence[str], roles: Sequence[_Role]) -> Iterator[tuple[str, int]]:
    for name, role in zip(names, roles, strict=True):
        if role.done:
            yield name, role.done


def _priority_class(rules: Sequence[GangRules], gang: Gang) -> str:
    own = next((one.priority_class for one in rules if one.priority_class), "")
    pods = (pod.spec.priority_class_name for part in gang.parts for pod in part.pods)
    return own or next((name for name in pods if name), "")
