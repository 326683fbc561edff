"""Claims, volumes and storage classes: as much of them as decides where a pod may run."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from unisono.kinds.core.schema import NodeSelector
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta


class PersistentVolumeClaimSpec(Schema, frozen=True, kw_only=True):
    """Which volume a claim has, or from which class it gets one."""

    is_open: ClassVar[bool] = True

    volume_name: str = ""
    storage_class_name: str | None = None


class PersistentVolumeClaim(Schema, frozen=True, kw_only=True):
    """A volume that pods share by its name."""

    api_version: str = "v1"
    kind: str = "PersistentVolumeClaim"
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: Any = None


class VolumeNodeAffinity(Schema, frozen=True, kw_only=True):
    """From which nodes a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Schema, frozen=True, kw_only=True):
    """Where a volume is."""

    is_open: ClassVar[bool] = True

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(Schema, frozen=True, kw_only=True):
    """Storage that exists."""

    api_version: str = "v1"
    kind: str = "PersistentVolume"
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: Any = None


class TopologySelectorLabelRequirement(Schema, frozen=True, kw_only=True):
    """Values of a label, of which a node has one."""

    key: str
    values: Annotated[tuple[str, ...], Meta(min_length=1)]


class TopologySelectorTerm(Schema, frozen=True, kw_only=True):
    """Labels that a node has, all of them."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Schema, frozen=True, kw_only=True):
    """How volumes are made, and where."""

    is_open: ClassVar[bool] = True

    api_version: str = "storage.k8s.io/v1"
    kind: str = "StorageClass"
    metadata: ObjectMeta = ObjectMeta()
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
