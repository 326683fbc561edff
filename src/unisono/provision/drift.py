"""Nodes that are not what their pool says any more, because the pool was changed.

    NodePoolDrifted       the template has other labels, annotations, taints, an other node class or
                          other times: a hash of it is on the pool, and on every claim made from it
    RequirementsDrifted   the pool would not buy such a machine any more

Hashes are compared only if they were made the same way, which their version says; Karpenter's own
are Karpenter's to compare. Requirements are not part of the hash, as with Karpenter: a pool that
allows more than before has no nodes that are wrong. Spec provisioning §5.8.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Literal

import msgspec

from unisono.control.actions import Json
from unisono.control.conditions import find, with_condition
from unisono.engine.model.selection import Requirement, meets
from unisono.engine.provisioning.catalogue import known_key
from unisono.kinds.decode import decode
from unisono.kinds.karpenter import NodePool, pool_of, problem_of
from unisono.provision.catalog.instance_types import machine_types
from unisono.provision.catalog.nodes import machine_labels

HASH = "karpenter.sh/nodepool-hash"
VERSION = "karpenter.sh/nodepool-hash-version"
OURS = "unisono-v1"
Drift = Literal["", "NodePoolDrifted", "RequirementsDrifted"]
# What of a template does not make nodes different from what they were.
_NOT_HASHED = ("requirements", "resources")


def hash_of(pool: Json) -> str:
    """Return what stands for everything in a pool's template that its nodes have to share."""
    template = pool["spec"].get("template") or {}
    spec = {
        key: _unordered(value)
        for key, value in (template.get("spec") or {}).items()
        if key not in _NOT_HASHED and value
    }
    about = {
        key: value
        for key in ("labels", "annotations")
        if (value := (template.get("metadata") or {}).get(key))
    }
    text = msgspec.json.encode({"metadata": about, "spec": spec}, order="sorted")
    return str(int.from_bytes(hashlib.sha256(text).digest()[:8], "big"))


def _unordered(value: object) -> object:
    """Taints may stand in any order."""
    if isinstance(value, list):
        return sorted(value, key=lambda one: msgspec.json.encode(one, order="sorted"))
    return value


def marks_of(pool: Json) -> dict[str, str]:
    """Return the annotations by which a new claim remembers its template.

    Those of Karpenter are copied; ours are made from the template that the claim is made from.
    """
    own = pool["metadata"].get("annotations") or {}
    if own.get(VERSION) == OURS:
        return {HASH: hash_of(pool), VERSION: OURS}
    return {key: own[key] for key in (HASH, VERSION) if key in own}


def drift_of(claim: Json, node: Json | None, pool: Json | None) -> Drift:
    """Say whether, and how, a machine is not what its pool says."""
    if pool is None or "deletionTimestamp" in pool["metadata"]:
        return ""
    has = claim["metadata"].get("annotations") or {}
    if has.get(VERSION) == OURS and has.get(HASH) != hash_of(pool):
        return "NodePoolDrifted"
    return "RequirementsDrifted" if node is not None and not _is_wanted(node, pool) else ""


def _is_wanted(node: Json, pool: Json) -> bool:
    """Say whether a pool would buy such a node now; labels that no machine has do not count."""
    made, _ = decode(NodePool, pool, ignore_unknown=True)
    if made is None or problem_of(made):
        return True  # it buys nothing, so this is unknown
    own = node["metadata"].get("labels") or {}
    labels = {known_key(key): value for key, value in own.items()}
    for one in pool_of(made).requirements:
        known = Requirement(known_key(one.key), one.operator, one.values)
        is_told = known.key in labels or known.key in _machine_keys()
        if is_told and not meets(known, labels):
            return False
    return True


@cache
def _machine_keys() -> frozenset[str]:
    """Return the labels that some type of machine has."""
    return frozenset(key for one in machine_types().values() for key in machine_labels(one))


def with_drift(claim: Json, drift: Drift, now: float) -> list[Json] | None:
    """Return a claim's conditions with what became of it; None if they say so already."""
    conditions = list((claim.get("status") or {}).get("conditions") or ())
    old = find(conditions, "Drifted")
    if not drift:
        return None if old is None else [one for one in conditions if one["type"] != "Drifted"]
    if old is not None and (old["status"], old["reason"]) == ("True", drift):
        return None
    return with_condition(conditions, "Drifted", "True", drift, drift, now=now)
