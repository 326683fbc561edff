"""The pod sets of a gang of pods: equal pods make one, a group's rules say how many must start.

Spec placement §7; the rules of each kind of group are read by `kinds`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unisono.control.actions import Json
from unisono.control.jobs.adapter import PodSetOfJob, with_topology
from unisono.control.manifests import LiveContext
from unisono.control.pod_gangs.membership import Gang
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.core.pod_groups import FAST_ADMISSION, ROLE_HASH, TOTAL_COUNT, VOLCANO_TASK
from unisono.kinds.digits import whole_number
from unisono.kinds.known import KNOWN
from unisono.kinds.registry import GangRules, least_of_each
from unisono.kinds.registry import Kind as KnownKind

# What decides about a pod's place; pods that differ in nothing of it are alike.
_DECISIVE = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "resources",
    "overhead",
    "priorityClassName",
    "runtimeClassName",
)
_TEMPLATE_LEAVES_OUT = ("nodeName", "schedulingGates", "schedulingGroup", "workloadRef")
_ROLE_LETTERS = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """The pod sets of a gang, or why there are none yet."""

    sets: Sequence[PodSetOfJob] = ()
    why_not: str = ""
    is_gang: bool = True  # False: its pods start one by one


def asked_by(
    gang: Gang, group: Json | None, pods: Sequence[Json], context: LiveContext, *, done: int = 0
) -> Asked:
    """Return what living pods that name one gang ask for; so many others have succeeded."""
    if gang.is_alone:
        return Asked(_sets(pods, [1], None))
    if gang.is_kueue_group:
        return _kueue_group(gang, pods, done)
    kind = gang.kind
    if group is None or kind is None:
        word = kind.kind if kind is not None else "group"
        return Asked(why_not=f'there is no {word} "{gang.name}"')
    known = KNOWN.look_up(group["apiVersion"], group["kind"])
    manifest = context.find(
        f"{kind.kind}.{kind.api_version.partition('/')[0]}", gang.name, namespace=context.namespace
    )
    if not isinstance(known, KnownKind) or known.gang is None or manifest is None:
        return Asked(why_not=f'{kind.kind} "{gang.name}" cannot be read')
    if not known.gang.is_gang(manifest, gang.part):
        return Asked(is_gang=False)
    rules = known.gang.rules(manifest, gang.part, context)
    if rules is None:
        return Asked(why_not=f'{kind.kind} "{gang.name}" has no pod group "{gang.part}"')
    return _by_rules(rules, pods, done)


def _left(least: int, done: int) -> int:
    """Return how many pods have to start yet, when so many have succeeded."""
    # Once all that must have succeeded, the pods that are there now are another round.
    return least - done if done < least else least


def _by_rules(rules: GangRules, pods: Sequence[Json], done: int) -> Asked:
    least = _left(rules.least, done)
    if len(pods) < least:
        return Asked(why_not=f"{len(pods) + rules.least - least} of {rules.least} pods exist")
    roles = roles_of(pods)
    counts = [len(members) for members in roles.values()]
    minima = list(least_of_each(least, counts))
    if sum(rules.task_least.values()) <= least:
        for place, members in enumerate(roles.values()):
            least = rules.task_least.get(task_of(members[0]), 0)
            minima[place] = max(minima[place], min(least, counts[place]))
    missing = least - sum(minima)
    for place, count in enumerate(counts):
        more = min(max(0, missing), count - minima[place])
        minima[place] += more
        missing -= more
    return Asked(_sets(pods, minima, rules))


def _kueue_group(gang: Gang, pods: Sequence[Json], done: int) -> Asked:
    totals = {_annotation(pod, TOTAL_COUNT) for pod in pods}
    queues = {_label(pod, "kueue.x-k8s.io/queue-name") for pod in pods}
    for what, differing in (("total count", totals), ("queue", queues)):
        if len(differing) > 1:
            listed = ", ".join(f'"{one}"' for one in sorted(differing))
            return Asked(why_not=f"the pods of the group disagree about its {what}: {listed}")
    text = totals.pop()
    total = whole_number(text, MAX_COUNT)
    if not total:
        wrong = f'is "{text[:40]}", which is no number of pods' if text else "is missing"
        return Asked(why_not=f"annotation {TOTAL_COUNT} {wrong}")
    left = _left(total, done)
    there = len(pods) + total - left
    if there > total:
        return Asked(why_not=f"the group has {there} pods, more than the {total} it speaks of")
    roles = roles_of(pods)
    if there < total:
        is_fast = _annotation(pods[0], FAST_ADMISSION) == "true"
        if not (is_fast and len(roles) == 1):
            return Asked(why_not=f"{there} of {total} pods exist")
        return Asked(_sets(pods, [left], None, total=left))
    return Asked(_sets(pods, [len(members) for members in roles.values()], None))


def _sets(
    pods: Sequence[Json], minima: Sequence[int], rules: GangRules | None, *, total: int = 0
) -> list[PodSetOfJob]:
    roles = roles_of(pods)
    made = []
    for (role, members), least in zip(roles.items(), minima, strict=True):
        count = total or len(members)
        template = _template(members, role)
        if rules is not None and rules.topology is not None:
            group = "gang" if len(roles) > 1 else ""
            template = with_topology(template, rules.topology, group)
        if rules is not None and rules.priority_class:
            template["spec"].setdefault("priorityClassName", rules.priority_class)
        made.append(
            PodSetOfJob(
                name="main" if len(roles) == 1 else f"role-{role}",
                count=count,
                template=template,
                min_count=max(1, least) if least < count else None,
            )
        )
    return made


def _template(members: Sequence[Json], role: str) -> Json:
    """Return what equal pods have in common, as the template of their set."""
    first = members[0]
    labels = dict(first["metadata"].get("labels") or {})
    for pod in members[1:]:
        other = pod["metadata"].get("labels") or {}
        labels = {key: value for key, value in labels.items() if other.get(key) == value}
    annotations = {
        key: value
        for key, value in (first["metadata"].get("annotations") or {}).items()
        if key.startswith("kueue.x-k8s.io/podset-")
    }
    spec = {key: value for key, value in first["spec"].items() if key not in _TEMPLATE_LEAVES_OUT}
    return {
        "metadata": {"labels": labels, "annotations": {**annotations, ROLE_HASH: role}},
        "spec": spec,
    }


def roles_of(pods: Sequence[Json]) -> dict[str, list[Json]]:
    """Return the pods in groups of equal ones, by first appearance."""
    found: dict[str, list[Json]] = {}
    for pod in pods:
        found.setdefault(role_of(pod), []).append(pod)
    return found


def role_of(pod: Json) -> str:
    """Return a word for everything that decides about a pod's place; its own, if it has one."""
    given = _annotation(pod, ROLE_HASH)
    if given:
        return given
    spec = pod["spec"]
    decisive: list[object] = [
        [
            (one.get("resources"), one.get("restartPolicy"), one.get("ports"))
            for one in spec.get(part) or ()
        ]
        for part in ("initContainers", "containers")
    ]
    decisive += [spec.get(field) for field in _DECISIVE]
    decisive.append(task_of(pod))
    text = json.dumps(decisive, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_ROLE_LETTERS]


def task_of(pod: Json) -> str:
    """Return the task of a Volcano job that a pod says it has a part in."""
    return _annotation(pod, VOLCANO_TASK) or _label(pod, VOLCANO_TASK)


def set_names(workload: Json) -> Mapping[str, str]:
    """Return the pod sets of a Workload by the role of their pods."""
    return {
        ((one["template"].get("metadata") or {}).get("annotations") or {}).get(ROLE_HASH, ""): one[
            "name"
        ]
        for one in workload["spec"].get("podSets") or ()
    }


def _annotation(pod: Json, key: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(key, ""))


def _label(pod: Json, key: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(key, ""))
