"""NodePools: what people see of them, and static ones, which keep their number of nodes.

Status as Karpenter writes it: how many nodes, what they have together, and whether the pool can be
used. A pool that is deleted goes when its machines are gone; those of running gangs are waited for.
Spec provisioning §5.17 and §5.18.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal

from unisono.control import names
from unisono.control.actions import Create, Delete, Json, Note, Patch, Ref, Steps
from unisono.control.conditions import find, with_condition
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.engine.model.names import NodeName
from unisono.engine.model.provisioning import MAX_PURCHASED_NODES, NodeClaim
from unisono.engine.provisioning.catalogue import Catalogue
from unisono.kinds.decode import decode
from unisono.kinds.digits import whole_number
from unisono.kinds.karpenter import NodePool, problem_of
from unisono.kinds.nearest import nearest
from unisono.kinds.quantity import Quantity, format_amount
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision import keys
from unisono.provision.catalog.instance_types import machine_types
from unisono.provision.claims import HASH, OURS, VERSION, bare_claim, hash_of, node_name, pool_name
from unisono.provision.occupancy import is_empty
from unisono.provision.offerings import OfferingsReader
from unisono.provision.simulated_cloud import read_cloud

_CLOUD = Key(keys.SYSTEM, keys.CLOUD)  # the configuration of the simulated cloud


class NodePools:
    """Keeps pools in order."""

    name = "node-pools"
    watches: Sequence[Kind] = (names.NODE_POOL, names.NODE_CLAIM, names.CONFIG_MAP)

    def __init__(self, reader: OfferingsReader) -> None:
        """Take the reader of offerings, for static pools."""
        self._reader = reader

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A pool, or that of a claim; or what the cloud is like from which they buy."""
        if kind == names.NODE_POOL:
            yield own_key(obj)
        elif kind == names.CONFIG_MAP:
            if own_key(obj) == _CLOUD:
                yield _CLOUD
        elif pool_name(obj):
            yield Key("", pool_name(obj))

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the status of one pool; keep its number if it is static."""
        if key == _CLOUD:
            yield from _warn_about_cloud(view)
            return
        pool = view.get(names.NODE_POOL, key.name)
        if pool is None:
            return
        claims = view.by(names.NODE_CLAIM, "pool", key.name)
        living = [one for one in claims if "deletionTimestamp" not in one["metadata"]]
        if "deletionTimestamp" in pool["metadata"]:
            yield from self._close(pool, living, view)
            return
        marks = {HASH: hash_of(pool), VERSION: OURS}
        own = pool["metadata"].get("annotations") or {}
        if any(own.get(key) != value for key, value in marks.items()):
            pool = yield Patch(Ref.to(pool), {"metadata": {"annotations": marks}})
        problem = _problem(pool)
        if pool["spec"].get("replicas") is not None and not problem:
            yield from self._keep_number(pool, living, view)
        if not problem and _is_new(pool):
            yield from self._warn_if_useless(pool, view)
        status = _status(pool, living, problem, now)
        if status != {name: (pool.get("status") or {}).get(name) for name in status}:
            yield Patch(Ref.to(pool), {"status": status}, "status")

    def _keep_number(self, pool: Json, living: list[Json], view: View) -> Steps:
        """Add machines to a static pool, or let empty ones go."""
        wanted = min(int(pool["spec"]["replicas"]), MAX_PURCHASED_NODES)
        numbers = {_number(one): one for one in living}
        node_claim = self._cheapest(pool, view) if len(living) < wanted else None
        missing = (number for number in range(wanted) if number not in numbers)
        for number in islice(
            missing, max(0, wanted - len(living)) if node_claim is not None else 0
        ):
            name = NodeName(f"{pool['metadata']['name']}-{_suffix(pool, number)}")
            assert node_claim is not None, "nothing is written without it"
            own = NodeClaim(
                node=name,
                pool=node_claim.pool,
                machine=node_claim.machine,
                zone=node_claim.zone,
                capacity_type=node_claim.capacity_type,
                price_micro=node_claim.price_micro,
                pods=(),
            )
            claim = bare_claim(own, pool, {})
            claim["metadata"]["annotations"][keys.STATIC] = str(number)
            yield Create(claim)
        too_many = len(living) - wanted
        for claim in sorted(living, key=_number, reverse=True):
            if too_many <= 0:
                break
            node = view.get(names.NODE, node_name(claim)) if node_name(claim) else None
            if node is None or is_empty(node, view):
                yield Delete(Ref.to(claim))
                too_many -= 1

    def _warn_if_useless(self, pool: Json, view: View) -> Steps:
        """Warn with an event if a pool cannot provision anything: a typo shows here."""
        offerings = self._reader.read(view, with_static=True)
        refusal = Catalogue(offerings).refused.get(pool["metadata"]["name"]) if offerings else None
        if refusal is not None:
            hint = _nearest_type(pool)
            text = f"it cannot provision any machine: {refusal.detail}{hint}"
            yield Note(Ref.to(pool), "NoOffers", text, "Warning")

    def _cheapest(self, pool: Json, view: View) -> NodeClaim | None:
        offerings = self._reader.read(view, with_static=True)
        if offerings is None:
            return None
        buyable = [
            offering
            for offering in Catalogue(offerings).offerings
            if offering.pool.name == pool["metadata"]["name"]
            and offering.offer.capacity_type != "spot"
        ]
        best = min(
            buyable,
            key=lambda one: (one.offer.price_micro, one.offer.zone, one.machine.name),
            default=None,
        )
        if best is None:
            return None
        return NodeClaim(
            node=NodeName(""),
            pool=best.pool.name,
            machine=best.machine.name,
            zone=best.offer.zone,
            capacity_type=best.offer.capacity_type,
            price_micro=best.offer.price_micro,
            pods=(),
        )

    def _close(self, pool: Json, living: list[Json], view: View) -> Steps:
        """Let the machines of a deleted pool go; those of running gangs when they have ended."""
        is_forced = (pool["metadata"].get("annotations") or {}).get(keys.FORCE) == "true"
        for claim in living:
            node = view.get(names.NODE, node_name(claim)) if node_name(claim) else None
            if is_forced or node is None or is_empty(node, view):
                yield Delete(Ref.to(claim))
            else:
                note = f"{node['metadata']['name']} is in use; the pool goes when it is not"
                yield Note(Ref.to(pool), "DeletionBlockedByGang", note, "Warning")


def _number(claim: Json) -> int:
    text = (claim["metadata"].get("annotations") or {}).get(keys.STATIC, "")
    number = whole_number(text)
    return -1 if number is None else number


def _suffix(pool: Json, number: int) -> str:
    return hashlib.sha256(f"{pool['metadata']['uid']}|{number}".encode()).hexdigest()[:8]


def _warn_about_cloud(view: View) -> Steps:
    """Warn with an event about configuration of the cloud that is not read."""
    written = view.get(names.CONFIG_MAP, keys.CLOUD, keys.SYSTEM)
    problem = read_cloud(written)[1]
    if written is not None and problem:
        yield Note(Ref.to(written), "CloudNotUnderstood", problem, "Warning")


def _is_new(pool: Json) -> bool:
    """Say whether a pool was written since it was looked at last."""
    ready = find((pool.get("status") or {}).get("conditions"), "Ready")
    seen = ready.get("observedGeneration") if ready is not None else None
    return bool(seen != pool["metadata"].get("generation"))


def _nearest_type(pool: Json) -> str:
    """Return which machine type was probably meant."""
    template = (pool["spec"].get("template") or {}).get("spec") or {}
    for one in template.get("requirements") or ():
        if one["key"] == keys.INSTANCE_TYPE and one["operator"] == "In":
            for name in one.get("values") or ():
                near = nearest(name, sorted(machine_types()))
                if name not in machine_types() and near:
                    return f'; did you mean "{near}" instead of "{name}"?'
    return ""


def _problem(pool: Json) -> str:
    made, problems = decode(NodePool, pool, ignore_unknown=True)
    if made is None:
        return problems[0].message if problems else "it cannot be read"
    return problem_of(made)


def _status(pool: Json, living: list[Json], problem: str, now: float) -> Json:
    totals: dict[str, int] = {}
    for claim in living:
        for name, text in ((claim.get("status") or {}).get("capacity") or {}).items():
            totals[name] = totals.get(name, 0) + Quantity.from_raw(text).amount(name)
    conditions = list((pool.get("status") or {}).get("conditions") or ())
    generation = pool["metadata"].get("generation")
    healthy = "ValidationFailed" if problem else "ValidationSucceeded"
    facts = {
        "ValidationSucceeded": (not problem, healthy, problem),
        "NodeClassReady": (True, "NodeClassReady", ""),
        "Ready": (not problem, healthy if problem else "Ready", problem),
    }
    for kind, (holds, reason, message) in facts.items():
        old = find(conditions, kind)
        status: Literal["True", "False"] = "True" if holds else "False"
        seen = (status, message, generation)
        if old is None or (old["status"], old["message"], old.get("observedGeneration")) != seen:
            conditions = with_condition(
                conditions, kind, status, reason, message, now=now, generation=generation
            )
    resources = {name: format_amount(amount, name) for name, amount in sorted(totals.items())}
    resources["nodes"] = str(len(living))
    return {"nodes": len(living), "resources": resources, "conditions": conditions}
