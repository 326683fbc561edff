"""Where the volumes of a pod are: only nodes that reach all of them can run it.

A claim that has a volume is as far as that volume's node affinity reaches. One that waits for its
first pod gets a volume where its class allows one. A claim that is missing, or without its
volume, says nothing yet: the pod waits for it on its node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from unisono.engine.model.selection import AffinityTerm, Requirement
from unisono.kinds.core.schema import PodSpec
from unisono.kinds.core.selection import terms_of
from unisono.kinds.core.storage import StorageClass, TopologySelectorTerm
from unisono.kinds.registry import Context

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
