"""NodeClaims: a machine that is wanted, as an object; and how far it is.

Its name follows from the purchase, so that writing it twice is writing it once. The provider
of claims (the simulated cloud here, Karpenter on a cluster) sees an ordinary NodeClaim with one
type, one zone and one capacity type. Spec provisioning §5.10 and §5.12.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

from unisono.control.actions import Json
from unisono.control.conditions import find, is_true, seconds
from unisono.engine.model.provisioning import MICRO, NodeClaim
from unisono.kinds.quantity import Quantity, format_amount
from unisono.provision import keys
from unisono.provision.drift import marks_of

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
                **marks_of(pool),
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
    """Return what so many pods of each set ask for, by the usage that was recorded for them."""
    totals: dict[str, int] = {}
    assignments = (workload["status"].get("admission") or {}).get("podSetAssignments") or ()
    for one in assignments:
        here, count = pods.get(one["name"], 0), one.get("count") or 1
        for name, usage in (one.get("resourceUsage") or {}).items():
            each = -(-Quantity.from_raw(usage).amount(name) // count)
            totals[name] = totals.get(name, 0) + each * here
    return {name: format_amount(amount, name) for name, amount in totals.items() if amount}


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
