"""Kubernetes' own gangs: Workload, PodGroup and CompositePodGroup of `scheduling.k8s.io`.

    v1alpha1           Workload.podGroups[].policy, which pods name in spec.workloadRef; every
                       replica key is a gang of its own
    v1alpha2           PodGroup, which pods name in spec.schedulingGroup; its Workload only holds
                       the templates that PodGroups were made from
    v1alpha3, v1beta1  the same with shorter names; v1alpha3 has CompositePodGroup on top

    policy gang: {minCount: N}     so many pods start together; more start if they fit
    policy basic: {}               pods start one by one, as if there were no group
    a topology key                 all pods on nodes with one value of that label
    CompositePodGroup, gang        the groups below it start together, each with its own minimum

One struct reads all versions of a kind: they differ in a few names. Spec placement §3.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta, wrong_with_label_key
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context, GangRules, GroupHooks, Kind

GROUP = "scheduling.k8s.io"
_MOST_TEMPLATES = 8
_Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class GangPolicy(Schema, frozen=True, kw_only=True):
    """Pods (or groups) that start together."""

    min_count: _Positive | None = None
    min_group_count: _Positive | None = None  # of a CompositePodGroup


class SchedulingPolicy(Schema, frozen=True, kw_only=True):
    """Together, or one by one: exactly one of the two."""

    basic: Any = None
    gang: GangPolicy | None = None


class TopologyConstraint(Schema, frozen=True, kw_only=True):
    """All pods on nodes with the same value of a label."""

    key: str = ""
    topology_key: str = ""  # the name in v1alpha2

    @property
    def label(self) -> str:
        """The key of the node label."""
        return self.key or self.topology_key


class SchedulingConstraints(Schema, frozen=True, kw_only=True):
    """Where the pods have to be."""

    topology: Annotated[tuple[TopologyConstraint, ...], Meta(max_length=1)] = ()
    topology_constraints: Annotated[tuple[TopologyConstraint, ...], Meta(max_length=1)] = ()

    @property
    def all(self) -> tuple[tuple[str, TopologyConstraint], ...]:
        """Every constraint with its path."""
        return (
            *((f"topology[{index}].key", one) for index, one in enumerate(self.topology)),
            *(
                (f"topologyConstraints[{index}].topologyKey", one)
                for index, one in enumerate(self.topology_constraints)
            ),
        )


class PodGroupTemplate(Schema, frozen=True, kw_only=True):
    """What PodGroups are made from; in v1alpha1 the group itself."""

    name: Annotated[str, Meta(min_length=1)]
    policy: SchedulingPolicy | None = None  # v1alpha1
    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[Any, ...] = ()
    disruption_mode: Any = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class CompositePodGroupTemplate(Schema, frozen=True, kw_only=True):
    """What CompositePodGroups are made from."""

    is_open: ClassVar[bool] = True

    name: Annotated[str, Meta(min_length=1)]


class WorkloadSpec(Schema, frozen=True, kw_only=True):
    """Templates of groups, or (v1alpha1) the groups."""

    controller_ref: Any = None
    pod_groups: Annotated[tuple[PodGroupTemplate, ...], Meta(max_length=_MOST_TEMPLATES)] = ()
    pod_group_templates: Annotated[
        tuple[PodGroupTemplate, ...], Meta(max_length=_MOST_TEMPLATES)
    ] = ()
    composite_pod_group_templates: Annotated[
        tuple[CompositePodGroupTemplate, ...], Meta(max_length=_MOST_TEMPLATES)
    ] = ()


class Workload(Schema, frozen=True, kw_only=True):
    """Groups of pods that belong to one job."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: WorkloadSpec
    status: Any = None


class PodGroupSpec(Schema, frozen=True, kw_only=True):
    """Which pods start together, and where."""

    scheduling_policy: SchedulingPolicy
    scheduling_constraints: SchedulingConstraints | None = None
    pod_group_template_ref: Any = None  # v1alpha2
    workload_ref: Any = None
    parent_composite_pod_group_name: str | None = None
    resource_claims: tuple[Any, ...] = ()
    disruption_mode: Any = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class PodGroup(Schema, frozen=True, kw_only=True):
    """A gang of the pods that name it."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: PodGroupSpec
    status: Any = None


class CompositePodGroupSpec(Schema, frozen=True, kw_only=True):
    """How many groups start together."""

    scheduling_policy: SchedulingPolicy
    parent_composite_pod_group_name: str | None = None
    workload_ref: Any = None
    priority_class_name: str = ""
    priority: int | None = None


class CompositePodGroup(Schema, frozen=True, kw_only=True):
    """A gang of groups."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: CompositePodGroupSpec
    status: Any = None


# ---- rules -------------------------------------------------------------------------------------


def check_policy(
    policy: SchedulingPolicy | None, path: str, notes: Notes, *, count: str = "minCount"
) -> None:
    """Report a policy that is none, or two at once, or a gang of unknown size."""
    if policy is None or (policy.basic is None) == (policy.gang is None):
        notes.problem(path, "needs exactly one of basic and gang")
    elif policy.gang is not None:
        known = policy.gang.min_count if count == "minCount" else policy.gang.min_group_count
        if known is None:
            notes.problem(f"{path}.gang.{count}", "is required")


def check_constraints(constraints: SchedulingConstraints | None, path: str, notes: Notes) -> None:
    """Report topology keys that are no label keys."""
    for place, one in constraints.all if constraints else ():
        wrong = wrong_with_label_key(one.label)
        if wrong:
            notes.problem(f"{path}.{place}", f"must be the key of a node label: {wrong}")


def topology_key(constraints: SchedulingConstraints | None) -> TopologyRequest | None:
    """Return what the constraints ask for: everything in one domain of a label."""
    found = constraints.all if constraints else ()
    return TopologyRequest("required", found[0][1].label) if found else None


def _check_workload(workload: Workload, notes: Notes) -> None:
    spec = workload.spec
    given = [
        name
        for name, templates in (
            ("podGroups", spec.pod_groups),
            ("podGroupTemplates", spec.pod_group_templates),
            ("compositePodGroupTemplates", spec.composite_pod_group_templates),
        )
        if templates
    ]
    if len(given) > 1:
        notes.problem(f"spec.{given[1]}", f"and {given[0]} exclude each other")
    for name, field, templates in (
        ("podGroups", "policy", spec.pod_groups),
        ("podGroupTemplates", "schedulingPolicy", spec.pod_group_templates),
    ):
        seen: set[str] = set()
        for index, one in enumerate(templates):
            at = f"spec.{name}[{index}]"
            policy = one.policy if field == "policy" else one.scheduling_policy
            check_policy(policy, f"{at}.{field}", notes)
            check_constraints(one.scheduling_constraints, f"{at}.schedulingConstraints", notes)
            if one.name in seen:
                notes.problem(f"{at}.name", f'"{one.name}" is used twice')
            seen.add(one.name)


def _check_group(group: PodGroup, notes: Notes) -> None:
    check_policy(group.spec.scheduling_policy, "spec.schedulingPolicy", notes)
    path = "spec.schedulingConstraints"
    check_constraints(group.spec.scheduling_constraints, path, notes)


def _check_composite(group: CompositePodGroup, notes: Notes) -> None:
    path = "spec.schedulingPolicy"
    check_policy(group.spec.scheduling_policy, path, notes, count="minGroupCount")


# ---- gangs -------------------------------------------------------------------------------------


def _least(policy: SchedulingPolicy | None) -> int:
    gang = policy.gang if policy is not None else None
    return (gang.min_count if gang is not None else None) or 1


def _inner_group(workload: Workload, part: str) -> PodGroupTemplate | None:
    return next((one for one in workload.spec.pod_groups if one.name == part), None)


def _workload_rules(workload: Workload, part: str, context: Context) -> GangRules | None:
    found = _inner_group(workload, part)
    return GangRules(least=_least(found.policy)) if found is not None else None


def _is_inner_gang(workload: Workload, part: str) -> bool:
    """A part that does not exist keeps its pods together: none of them can start."""
    found = _inner_group(workload, part)
    return found is None or found.policy is None or found.policy.gang is not None


def _group_rules(group: PodGroup, part: str, context: Context) -> GangRules:
    return GangRules(
        least=_least(group.spec.scheduling_policy),
        topology=topology_key(group.spec.scheduling_constraints),
        priority_class=group.spec.priority_class_name,
        priority=group.spec.priority,
    )


def _is_gang(group: PodGroup, part: str) -> bool:
    return (
        group.spec.scheduling_policy.gang is not None
        or topology_key(group.spec.scheduling_constraints) is not None
    )


def _composite_rules(group: CompositePodGroup, part: str, context: Context) -> GangRules:
    gang = group.spec.scheduling_policy.gang
    return GangRules(
        least=(gang.min_group_count if gang is not None else None) or 1,  # groups, not pods
        priority_class=group.spec.priority_class_name,
        priority=group.spec.priority,
    )


def _is_gang_of_groups(group: CompositePodGroup, part: str) -> bool:
    return group.spec.scheduling_policy.gang is not None


def _parent(group: PodGroup | CompositePodGroup) -> tuple[str, str] | None:
    name = group.spec.parent_composite_pod_group_name
    return (f"CompositePodGroup.{GROUP}", name) if name else None


KINDS: tuple[Kind, ...] = (
    *(
        Kind(
            group=GROUP,
            version=version,
            kind="Workload",
            struct=Workload,
            namespaced=True,
            check=_check_workload,
            gang=GroupHooks(rules=_workload_rules, is_gang=_is_inner_gang),
        )
        for version in ("v1beta1", "v1alpha3", "v1alpha2", "v1alpha1")
    ),
    *(
        Kind(
            group=GROUP,
            version=version,
            kind="PodGroup",
            struct=PodGroup,
            namespaced=True,
            check=_check_group,
            gang=GroupHooks(rules=_group_rules, is_gang=_is_gang, parent=_parent),
        )
        for version in ("v1beta1", "v1alpha3", "v1alpha2")
    ),
    Kind(
        group=GROUP,
        version="v1alpha3",
        kind="CompositePodGroup",
        struct=CompositePodGroup,
        namespaced=True,
        check=_check_composite,
        gang=GroupHooks(rules=_composite_rules, is_gang=_is_gang_of_groups, parent=_parent),
    ),
)
