"""NodeClaims: a machine that is wanted, as an object; how far it is; its drift.

Its name follows from the purchase, so that writing it twice is writing it once. The provider
of claims (the simulated cloud here, Karpenter on a cluster) sees an ordinary NodeClaim with one
type, one zone and one capacity type. Spec provisioning §5.10 and §5.12.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

from unisono.control.actions import Json
from unisono.control.conditions import find, is_true, seconds, with_condition
from unisono.engine.model.provisioning import MICRO, NodeClaim
from unisono.engine.model.selection import Requirement, meets
from unisono.engine.provisioning.catalogue import known_key
from unisono.kinds.core.requests import pod_cost
from unisono.kinds.core.schema import PodSpec
from unisono.kinds.decode import decode
from unisono.kinds.karpenter import NodePool, pool_of, problem_of
from unisono.kinds.quantity import Quantity, format_amount
from unisono.provision import keys
from unisono.provision.catalog.instance_types import machine_types
from unisono.provision.catalog.nodes import machine_labels

State = Literal["launching", "launched", "ready", "refused", "gone"]


def plan_id(workload: Json, planned_at: int) -> str:
    """Return the name of a purchase, from its workload and the time of the decision."""
    text = f"{workload['metadata']['uid']}|{planned_at}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def claim_of(
    node_claim: NodeClaim,
    pool: Json,
    *,
    plan: str,
    size: int,
    holder: str,
    requests: Mapping[str, str],
) -> Json:
    """Return the NodeClaim of one machine that is bought for a workload."""
    made = bare_claim(node_claim, pool, requests)
    made["metadata"]["labels"][keys.PLAN] = plan
    made["metadata"]["annotations"] |= {
        keys.HELD_FOR: holder,
        keys.PLAN_SIZE: str(size),
        keys.DO_NOT_DISRUPT: "true",
    }
    taint = {"key": keys.HELD_FOR, "value": plan, "effect": "NoSchedule"}
    made["spec"]["taints"] = [*(made["spec"].get("taints") or ()), taint]
    return made


def bare_claim(node_claim: NodeClaim, pool: Json, requests: Mapping[str, str]) -> Json:
    """Return the NodeClaim of a machine without a workload."""
    template = pool["spec"].get("template") or {}
    spec, about = template.get("spec") or {}, template.get("metadata") or {}
    reference = spec.get("nodeClassRef") or {}
    wanted = {
        keys.INSTANCE_TYPE: node_claim.machine,
        keys.ZONE: node_claim.zone,
        keys.CAPACITY_TYPE: node_claim.capacity_type,
    }
    copied = ("startupTaints", "taints", "expireAfter", "terminationGracePeriod", "nodeClassRef")
    labels = {**(about.get("labels") or {}), keys.NODE_POOL: pool["metadata"]["name"]}
    if reference.get("kind"):
        labels[f"{reference.get('group')}/{reference['kind'].lower()}"] = reference.get("name", "")
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": node_claim.node,
            "labels": labels,
            "annotations": {
                **(about.get("annotations") or {}),
                **_marks_of(pool),
                keys.PRICE: f"{node_claim.price_micro / MICRO:.6f}".rstrip("0").rstrip("."),
            },
            "ownerReferences": [
                {
                    "apiVersion": pool["apiVersion"],
                    "kind": pool["kind"],
                    "name": pool["metadata"]["name"],
                    "uid": pool["metadata"]["uid"],
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            **{field: spec[field] for field in copied if spec.get(field)},
            "requirements": [
                {"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()
            ],
            "resources": {"requests": dict(requests)},
        },
    }


def requests_on(workload: Json, pods: Mapping[str, int]) -> dict[str, str]:
    """Return what so many pods of each set ask for.

    That is the usage that was recorded for them, and what their template says of resources which no
    quota counts.
    """
    totals: dict[str, int] = {}
    templates = {
        one.get("name", "main"): one["template"] for one in workload["spec"].get("podSets") or ()
    }
    assignments = (workload["status"].get("admission") or {}).get("podSetAssignments") or ()
    for one in assignments:
        here, count = pods.get(one["name"], 0), one.get("count") or 1
        each = _asked(templates.get(one["name"]))
        for name, usage in (one.get("resourceUsage") or {}).items():
            each[name] = -(-Quantity.from_raw(usage).amount(name) // count)
        for name, amount in each.items():
            totals[name] = totals.get(name, 0) + amount * here
    return {name: format_amount(amount, name) for name, amount in totals.items() if amount}


def _asked(template: Json | None) -> dict[str, int]:
    """Return what a pod of a template asks for by itself."""
    if template is None:
        return {}
    spec, _ = decode(PodSpec, template.get("spec") or {}, ignore_unknown=True)
    if spec is None:
        return {}
    cost = pod_cost(spec, annotations=(template.get("metadata") or {}).get("annotations") or {})
    return {str(name): amount for name, amount in cost.requests}


def state_of(claim: Json | None) -> State:
    """Say how far a machine is."""
    if claim is None or "deletionTimestamp" in claim["metadata"]:
        return "gone"
    conditions = (claim.get("status") or {}).get("conditions")
    launched = find(conditions, "Launched")
    if launched is not None and launched["status"] == "False":
        return "refused"
    if is_true(conditions, "Initialized"):
        return "ready"
    return "launched" if is_true(conditions, "Launched") else "launching"


def created_at(claim: Json) -> float:
    """Return when a machine was asked for."""
    return seconds(claim["metadata"].get("creationTimestamp") or "")


def launched_at(claim: Json) -> float:
    """Return since when a machine costs money; 0: it does not."""
    found = find((claim.get("status") or {}).get("conditions"), "Launched")
    if found is None or found["status"] != "True":
        return 0.0
    return seconds(found["lastTransitionTime"])


def wanted_of(claim: Json, key: str) -> str:
    """Return the one value that a claim requires of a label."""
    for one in claim["spec"].get("requirements") or ():
        if one["key"] == key and one["operator"] == "In" and one.get("values"):
            return str(one["values"][0])
    return ""


def pool_name(claim: Json) -> str:
    """Return the pool that a machine is of."""
    return str((claim["metadata"].get("labels") or {}).get(keys.NODE_POOL, ""))


def node_name(claim: Json) -> str:
    """Return the node that a machine is; empty as long as it is none."""
    return str((claim.get("status") or {}).get("nodeName") or "")


# ---- drift ---------------------------------------------------------------------------------------
#
# Nodes that are not what their pool says any more, because the pool was changed.
#
#     NodePoolDrifted       the template has other labels, annotations, taints, another node class
#                           or other times: a hash of it is on the pool, and on every claim made
#                           from it
#     RequirementsDrifted   the pool would not buy such a machine any more
#
# Hashes are compared only if they were made the same way, which their version says; Karpenter's own
# are Karpenter's to compare. Requirements are not part of the hash, as with Karpenter: a pool that
# allows more than before has no nodes that are wrong. Spec provisioning §5.8.

HASH = "karpenter.sh/nodepool-hash"
VERSION = "karpenter.sh/nodepool-hash-version"
OURS = "unisono-v1"
_Drift = Literal["", "NodePoolDrifted", "RequirementsDrifted"]
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


def _marks_of(pool: Json) -> dict[str, str]:
    """Return the annotations by which a new claim remembers its template.

    Those of Karpenter are copied; ours are made from the template that the claim is made from.
    """
    own = pool["metadata"].get("annotations") or {}
    if own.get(VERSION) == OURS:
        return {HASH: hash_of(pool), VERSION: OURS}
    return {key: own[key] for key in (HASH, VERSION) if key in own}


def drift_of(claim: Json, node: Json | None, pool: Json | None) -> _Drift:
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


def with_drift(claim: Json, drift: _Drift, now: float) -> list[Json] | None:
    """Return a claim's conditions with what became of it; None if they say so already."""
    conditions = list((claim.get("status") or {}).get("conditions") or ())
    old = find(conditions, "Drifted")
    if not drift:
        return None if old is None else [one for one in conditions if one["type"] != "Drifted"]
    if old is not None and (old["status"], old["reason"]) == ("True", drift):
        return None
    return with_condition(conditions, "Drifted", "True", drift, drift, now=now)
