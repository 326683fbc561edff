"""NodeOverlays at work: other prices and more devices, over the catalogue; and what people see.

Of several for the same thing the heaviest counts, of equals the one that sorts last by name.
An overlay that makes no sense is not ready, says why, and changes nothing. Spec provisioning §1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.conditions import find, with_condition
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.engine.model.provisioning import CAPACITY_TYPE, REGION, ZONE, Offer
from unisono.kinds.decode import decode
from unisono.kinds.karpenter import (
    NodeOverlay,
    Overlay,
    overlay_of,
    problem_of_overlay,
)
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision.catalog.instance_types import MachineType
from unisono.provision.catalog.nodes import COMMON_LABELS, machine_labels


def overlays_in(view: View) -> tuple[Overlay, ...]:
    """Return the overlays of a cluster that can be used."""
    if not view.has(names.NODE_OVERLAY):
        return ()
    return usable_overlays(view.all(names.NODE_OVERLAY))


def usable_overlays(written: Iterable[Json]) -> tuple[Overlay, ...]:
    """Return those overlays that can be used."""
    read = (decode(NodeOverlay, obj, ignore_unknown=True)[0] for obj in written)
    return tuple(
        overlay_of(made) for made in read if made is not None and not problem_of_overlay(made)
    )


def _in_order(overlays: Iterable[Overlay]) -> list[Overlay]:
    """Return overlays, those first that yield to later ones."""
    return sorted(overlays, key=lambda one: (one.weight, one.name))


def with_devices(
    types: Mapping[str, MachineType], overlays: Sequence[Overlay]
) -> dict[str, MachineType]:
    """Return machine types with the devices that overlays add."""
    more = [one for one in _in_order(overlays) if one.capacity]
    return {name: _with_devices(machine, more) for name, machine in types.items()}


def _with_devices(machine: MachineType, overlays: Sequence[Overlay]) -> MachineType:
    labels = {**COMMON_LABELS, **machine_labels(machine)} if overlays else {}
    added: dict[str, str] = {}
    for one in overlays:
        if one.is_for(labels):
            added.update(one.capacity)
    if not added:
        return machine
    return msgspec.structs.replace(machine, allocatable={**machine.allocatable, **added})


def with_prices(
    offers: Sequence[Offer], types: Mapping[str, MachineType], overlays: Sequence[Overlay]
) -> tuple[Offer, ...]:
    """Return offers with the prices that overlays say."""
    dearer = [one for one in reversed(_in_order(overlays)) if one.sets_price]
    if not dearer:
        return tuple(offers)
    labels = {name: {**COMMON_LABELS, **machine_labels(machine)} for name, machine in types.items()}
    return tuple(_priced(offer, labels.get(offer.machine, {}), dearer) for offer in offers)


def _priced(offer: Offer, labels: Mapping[str, str], overlays: Sequence[Overlay]) -> Offer:
    place = {ZONE: offer.zone, REGION: offer.region, CAPACITY_TYPE: offer.capacity_type}
    for one in overlays:
        if one.is_for({**labels, **place}):
            return msgspec.structs.replace(offer, price_micro=one.priced(offer.price_micro))
    return offer


class Overlays:
    """Says of overlays whether they count."""

    name = "node-overlays"
    watches: Sequence[Kind] = (names.NODE_OVERLAY,)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """An overlay itself."""
        yield own_key(obj)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write whether one can be used."""
        obj = view.get(names.NODE_OVERLAY, key.name)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        made, problems = decode(NodeOverlay, obj, ignore_unknown=True)
        problem = problem_of_overlay(made) if made is not None else problems[0].message
        status: Literal["True", "False"] = "False" if problem else "True"
        conditions = list((obj.get("status") or {}).get("conditions") or ())
        old = find(conditions, "Ready")
        if old is not None and (old["status"], old["message"]) == (status, problem):
            return
        for kind in ("ValidationSucceeded", "Ready"):
            reason = "ValidationFailed" if problem else kind
            conditions = with_condition(conditions, kind, status, reason, problem, now=now)
        yield Patch(Ref.to(obj), {"status": {"conditions": conditions}}, "status")
