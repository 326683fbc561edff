"""ResourceFlavor, Topology, AdmissionCheck and WorkloadPriorityClass: what queues refer to.

Their v1beta1 and v1beta2 differ in nothing that is read here, so one struct serves both. The alias
`nodeSelector` of a flavor is ours (spec quota §2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from unisono.engine.model import queue as engine
from unisono.engine.model import selection as engine_selection
from unisono.engine.model import snapshot as engine_snapshot
from unisono.engine.model.names import FlavorName
from unisono.kinds.core.nodes import Taint
from unisono.kinds.core.schema import Toleration
from unisono.kinds.core.selection import labels_of, tolerations_of
from unisono.kinds.core.validate import check_tolerations
from unisono.kinds.decode import Schema
from unisono.kinds.meta import Condition, ObjectMeta, wrong_with_label, wrong_with_label_key
from unisono.kinds.notes import Notes

HOSTNAME = "kubernetes.io/hostname"

_MAX_LABELS = 8
_INT32 = Meta(ge=-(2**31), le=2**31 - 1)


class ResourceFlavorSpec(Schema, frozen=True, kw_only=True):
    """Which nodes belong to a flavor."""

    node_labels: Annotated[
        Mapping[str, str],
        Meta(description="Labels of the flavor's nodes; pods get them as their nodeSelector."),
    ] = {}
    node_taints: Annotated[
        tuple[Taint, ...],
        Meta(description="Taints of the flavor's nodes; pods that do not tolerate them stay away."),
    ] = ()
    tolerations: Annotated[
        tuple[Toleration, ...],
        Meta(description="Tolerations that pods get when they are admitted with this flavor."),
    ] = ()
    topology_name: Annotated[
        str, Meta(description="The Topology by which pods of this flavor are placed together.")
    ] = ""
    node_selector: Annotated[
        Mapping[str, str] | None, Meta(description="Another spelling of nodeLabels.")
    ] = None


class ResourceFlavor(Schema, frozen=True, kw_only=True):
    """A kind of node that quota can be given for."""

    api_version: str = "kueue.x-k8s.io/v1beta2"
    kind: str = "ResourceFlavor"
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()
    status: Any = None


def check_flavor(flavor: ResourceFlavor, notes: Notes) -> None:
    """Report what Kueue would refuse, and the alias that it does not know."""
    spec = flavor.spec
    alias = spec.node_selector
    if alias is not None:
        if spec.node_labels and dict(spec.node_labels) != dict(alias):
            notes.problem("spec.nodeSelector", "contradicts nodeLabels; keep nodeLabels only")
        elif notes.strict:
            notes.problem("spec.nodeSelector", 'unknown field; did you mean "nodeLabels"?')
        else:
            message = "is read as nodeLabels; Kueue only knows nodeLabels"
            notes.warn("NodeSelectorAlias", "spec.nodeSelector", message)
    labels = node_labels(spec)
    where = "spec.nodeLabels" if spec.node_labels or alias is None else "spec.nodeSelector"
    for key, value in labels.items():
        wrong = wrong_with_label(key, value)
        if wrong:
            notes.problem(f"{where}[{key}]", wrong)
    lists = (
        (where, labels),
        ("spec.nodeTaints", spec.node_taints),
        ("spec.tolerations", spec.tolerations),
    )
    for path, entries in lists:
        if len(entries) > _MAX_LABELS:
            message = f"has {len(entries)} entries; at most {_MAX_LABELS} are allowed"
            notes.problem(path, message)
    for index, taint in enumerate(spec.node_taints):
        _check_taint(taint, f"spec.nodeTaints[{index}]", notes)
    for problem in check_tolerations(spec.tolerations, "spec.tolerations"):
        notes.problem(problem.path, problem.message)
    if spec.topology_name and not labels:
        message = "needs at least one label in nodeLabels, to know the flavor's nodes by"
        notes.problem("spec.topologyName", message)


def _check_taint(taint: Taint, path: str, notes: Notes) -> None:
    wrong = wrong_with_label_key(taint.key)
    if wrong:
        notes.problem(f"{path}.key", wrong)


def node_labels(spec: ResourceFlavorSpec) -> Mapping[str, str]:
    """Return the labels of a flavor's nodes, under either spelling."""
    return spec.node_labels or spec.node_selector or {}


def flavor_of(flavor: ResourceFlavor) -> engine.Flavor:
    """Return the engine's form of a flavor."""
    spec = flavor.spec
    return engine.Flavor(
        name=FlavorName(flavor.metadata.name),
        node_labels=labels_of(node_labels(spec)),
        node_taints=tuple(
            engine_selection.Taint(taint.key, taint.value, taint.effect)
            for taint in spec.node_taints
        ),
        tolerations=tolerations_of(spec.tolerations),
        topology=spec.topology_name,
    )


# ---- Topology ----------------------------------------------------------------------------------


class TopologyLevel(Schema, frozen=True, kw_only=True):
    """One level, by the node label that tells its domains apart."""

    node_label: str


class TopologySpec(Schema, frozen=True, kw_only=True):
    """Levels from the widest to the narrowest."""

    levels: Annotated[tuple[TopologyLevel, ...], Meta(min_length=1, max_length=16)]


class Topology(Schema, frozen=True, kw_only=True):
    """How nodes are grouped into racks, blocks and the like."""

    api_version: str = "kueue.x-k8s.io/v1beta2"
    kind: str = "Topology"
    metadata: ObjectMeta = ObjectMeta()
    spec: TopologySpec


def check_topology(topology: Topology, notes: Notes) -> None:
    """Report levels that are no labels, stand twice, or go on below the host."""
    seen: set[str] = set()
    levels = topology.spec.levels
    for index, level in enumerate(levels):
        path = f"spec.levels[{index}].nodeLabel"
        wrong = wrong_with_label_key(level.node_label)
        if wrong:
            notes.problem(path, wrong)
        if level.node_label in seen:
            notes.problem(path, f'"{level.node_label}" stands twice')
        if level.node_label == HOSTNAME and index < len(levels) - 1:
            notes.problem(path, f"{HOSTNAME} can only be the last level")
        seen.add(level.node_label)


# ---- AdmissionCheck ----------------------------------------------------------------------------

# The controller that asks an autoscaler for nodes, by the name that Kueue gave it.
PROVISIONING = "kueue.x-k8s.io/provisioning-request"


class AdmissionCheckParameters(Schema, frozen=True, kw_only=True):
    """Which object configures the check."""

    api_group: str
    kind: str
    name: str


class AdmissionCheckSpec(Schema, frozen=True, kw_only=True):
    """Which controller performs the check."""

    controller_name: str
    parameters: AdmissionCheckParameters | None = None
    retry_delay_minutes: int | None = None  # v1beta1 only, and without effect there


class AdmissionCheckStatus(Schema, frozen=True, kw_only=True):
    """Whether a controller performs the check."""

    is_open: ClassVar[bool] = True

    conditions: tuple[Condition, ...] = ()


class AdmissionCheck(Schema, frozen=True, kw_only=True):
    """Something besides quota that has to agree before a workload starts."""

    api_version: str = "kueue.x-k8s.io/v1beta2"
    kind: str = "AdmissionCheck"
    metadata: ObjectMeta = ObjectMeta()
    spec: AdmissionCheckSpec
    status: AdmissionCheckStatus = AdmissionCheckStatus()


MULTI_KUEUE = "kueue.x-k8s.io/multikueue"


def check_admission_check(check: AdmissionCheck, notes: Notes) -> None:
    """Report the field that went with v1beta1; warn of a controller that is not there."""
    if check.spec.controller_name == MULTI_KUEUE:
        message = "jobs are not sent to other clusters here: workloads wait for this check"
        notes.warn("FieldIgnored", "spec.controllerName", message)
    if check.spec.retry_delay_minutes is not None and check.api_version.endswith("/v1beta2"):
        notes.problem("spec.retryDelayMinutes", "unknown field; v1beta2 has no delay to set")


def check_of(
    check: AdmissionCheck, *, others_bring_nodes: bool = False
) -> engine_snapshot.AdmissionCheck:
    """Return the engine's form; a check is inactive only if its controller says so.

    Where an autoscaler of others brings nodes, there are none before its check has agreed.
    """
    inactive = any(
        one.type == "Active" and one.status == "False" for one in check.status.conditions
    )
    brings = others_bring_nodes and check.spec.controller_name == PROVISIONING
    return engine_snapshot.AdmissionCheck(check.metadata.name, not inactive, brings)


# ---- WorkloadPriorityClass ---------------------------------------------------------------------


class WorkloadPriorityClass(Schema, frozen=True, kw_only=True):
    """A name for a priority in the queue that does not touch the pods' own priority."""

    api_version: str = "kueue.x-k8s.io/v1beta2"
    kind: str = "WorkloadPriorityClass"
    metadata: ObjectMeta = ObjectMeta()
    value: Annotated[int, _INT32]
    description: str = ""
