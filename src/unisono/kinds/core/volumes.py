"""Where the volumes of a pod are: only nodes that reach all of them can run it.

A claim that has a volume is as far as that volume's node affinity reaches. One that waits for its
first pod gets a volume where its class allows one. A claim that is missing, or without its
volume, says nothing yet: the pod waits for it on its node. Claims, volumes and storage classes have
here what that needs of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from unisono.engine.model.selection import AffinityTerm, Requirement
from unisono.kinds.core.schema import NodeSelector, PodSpec
from unisono.kinds.core.selection import terms_of
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.registry import Context


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


Reach = tuple[AffinityTerm, ...]  # of one volume; one of the terms holds on every node it reaches


def claims_of(spec: PodSpec) -> Iterator[str]:
    """Yield the names of the claims that a pod mounts."""
    for volume in spec.volumes:
        claim = volume.get("persistentVolumeClaim") if isinstance(volume, Mapping) else None
        if isinstance(claim, Mapping) and isinstance(name := claim.get("claimName"), str):
            yield name


def reaches(spec: PodSpec, context: Context) -> tuple[Reach, ...]:
    """Return from where the volumes of a pod can be reached, as far as that is limited."""
    found = (_reach(name, context) for name in claims_of(spec))
    return tuple(dict.fromkeys(one for one in found if one))


def within_reach(terms: tuple[AffinityTerm, ...], volumes: tuple[Reach, ...]) -> Reach:
    """Return node affinity that asks for the volumes, too: one term of each has to hold."""
    if not volumes:
        return terms
    return tuple(
        tuple(dict.fromkeys(clause for term in chosen for clause in term))
        for chosen in product(terms or ((),), *volumes)
    )


def _reach(name: str, context: Context) -> Reach:
    claim = context.find("PersistentVolumeClaim", name, namespace=context.namespace)
    if claim is None:
        return ()
    if claim.spec.volume_name:
        volume = context.find("PersistentVolume", claim.spec.volume_name)
        affinity = volume.spec.node_affinity if volume is not None else None
        return terms_of(affinity.required) if affinity is not None and affinity.required else ()
    of_class = context.find("StorageClass", claim.spec.storage_class_name or "")
    return _allowed(of_class) if of_class is not None else ()


def _allowed(of_class: StorageClass) -> Reach:
    """Return where a class makes volumes that wait for their first pod."""
    if of_class.volume_binding_mode != "WaitForFirstConsumer":
        return ()
    return tuple(_topology(term) for term in of_class.allowed_topologies)


def _topology(term: TopologySelectorTerm) -> AffinityTerm:
    return tuple(Requirement(one.key, "In", one.values) for one in term.match_label_expressions)
