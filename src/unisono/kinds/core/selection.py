"""Which nodes a pod accepts and would like: selector, affinity and tolerations as engine values.

What it demands of other pods is in `pod_rules`. Spec placement §5.3 and §5.4, quota §7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from unisono.engine.model.selection import AffinityTerm, Labels, Requirement, Toleration
from unisono.engine.model.workload import WeightedTerm
from unisono.kinds.core.schema import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from unisono.kinds.core.schema import Toleration as TolerationManifest

# The only node field that Kubernetes lets an affinity term match; kept as a key of its own.
NODE_NAME_FIELD = "metadata.name"

# A term without any clause matches no node. No node name is among no values.
_NEVER: AffinityTerm = (Requirement(NODE_NAME_FIELD, "In", ()),)


def labels_of(mapping: Mapping[str, str]) -> Labels:
    """Return labels (or a node selector) in canonical order."""
    return tuple(sorted(mapping.items()))


def affinity_terms(affinity: Affinity | None) -> tuple[AffinityTerm, ...]:
    """Return the required node affinity terms, of which one must hold; none means no demand."""
    if affinity is None or affinity.node_affinity is None:
        return ()
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return ()
    return terms_of(required)


def terms_of(selector: NodeSelector) -> tuple[AffinityTerm, ...]:
    """Return the terms of a node selector, of which one must hold."""
    return tuple(_term(term) for term in selector.node_selector_terms)


def preferred_terms(affinity: Affinity | None) -> tuple[WeightedTerm, ...]:
    """Return the node affinity terms that are only preferred.

    A term without any clause, or without weight, says nothing.
    """
    if affinity is None or affinity.node_affinity is None:
        return ()
    preferred = affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    return tuple(
        WeightedTerm(one.weight, clauses)
        for one in preferred
        if one.weight > 0 and (clauses := _clauses(one.preference))
    )


def _term(term: NodeSelectorTerm) -> AffinityTerm:
    return _clauses(term) or _NEVER


def _clauses(term: NodeSelectorTerm) -> AffinityTerm:
    return tuple(_requirement(one) for one in (*term.match_expressions, *term.match_fields))


def _requirement(clause: NodeSelectorRequirement) -> Requirement:
    return Requirement(clause.key, clause.operator, clause.values)


def tolerations_of(manifests: tuple[TolerationManifest, ...]) -> tuple[Toleration, ...]:
    """Return the tolerations that count.

    Lt and Gt need a feature gate that is off by default; until then they tolerate nothing.
    `tolerationSeconds` delays an eviction and has no part in choosing a node.
    """
    counted: list[Toleration] = []
    for manifest in manifests:
        if manifest.operator in ("Lt", "Gt"):
            continue
        # An empty operator is Equal, as in Kubernetes.
        operator: Literal["Equal", "Exists"] = (
            "Exists" if manifest.operator == "Exists" else "Equal"
        )
        counted.append(Toleration(manifest.key, operator, manifest.value, manifest.effect))
    return tuple(counted)
