"""Volumes, claims and storage classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.printer import (
    AGE,
    NAME,
    UNSET,
    Content,
    column,
    flagged_name,
    inside,
    named,
    of,
    printer,
    wide,
)

# In this order they stand in a cell.
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def _modes(modes: Any) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _phase(obj: Mapping[str, Any], now: float) -> Content:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(inside(obj, "status", "phase") or "")


def _class(obj: Mapping[str, Any], now: float) -> Content:
    old = inside(obj, "metadata", "annotations", _OLD_CLASS)
    return str(old or inside(obj, "spec", "storageClassName") or "")


def _claim_capacity(claim: Mapping[str, Any], now: float) -> Content:
    # Until it is bound a claim has nothing; what it asks for would mislead.
    if not inside(claim, "spec", "volumeName"):
        return ""
    return str(inside(claim, "status", "capacity", "storage") or "0")


def _claim_modes(claim: Mapping[str, Any], now: float) -> Content:
    if not inside(claim, "spec", "volumeName"):
        return ""
    return _modes(inside(claim, "status", "accessModes"))


def _volume_modes(volume: Mapping[str, Any], now: float) -> Content:
    return _modes(inside(volume, "spec", "accessModes"))


def _claim(volume: Mapping[str, Any], now: float) -> Content:
    reference = inside(volume, "spec", "claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


_STATUS = column("Status", _phase, "Whether it is bound.")
_STORAGE_CLASS = column("StorageClass", _class, "Of which class it is.")
_ATTRIBUTES = column(
    "VolumeAttributesClass",
    of("spec", "volumeAttributesClassName", absent=UNSET),
    "Which changeable attributes it wants.",
)
_VOLUME_MODE = wide(
    "VolumeMode", of("spec", "volumeMode", absent=UNSET), "A file system or a bare device."
)

CLAIMS = printer(
    NAME,
    _STATUS,
    column("Volume", of("spec", "volumeName"), "The volume that it is bound to."),
    column("Capacity", _claim_capacity, "How much room there is."),
    column("Access Modes", _claim_modes, "Who may mount it, and how."),
    _STORAGE_CLASS,
    _ATTRIBUTES,
    AGE,
    _VOLUME_MODE,
)

VOLUMES = printer(
    NAME,
    column("Capacity", of("spec", "capacity", "storage", absent="0"), "How much room there is."),
    column("Access Modes", _volume_modes, "Who may mount it, and how."),
    column(
        "Reclaim Policy",
        of("spec", "persistentVolumeReclaimPolicy"),
        "What becomes of it when its claim goes.",
    ),
    _STATUS,
    column("Claim", _claim, "The claim that has it."),
    _STORAGE_CLASS,
    _ATTRIBUTES,
    column("Reason", of("status", "reason"), "Why it is in this state."),
    AGE,
    _VOLUME_MODE,
)

STORAGE_CLASSES = printer(
    named(flagged_name("storageclass.kubernetes.io/is-default-class")),
    column("Provisioner", of("provisioner"), "Who makes the volumes."),
    column(
        "ReclaimPolicy", of("reclaimPolicy", absent="Delete"), "What becomes of a volume later."
    ),
    column(
        "VolumeBindingMode",
        of("volumeBindingMode", absent="Immediate"),
        "Whether a volume is made at once or when a pod needs it.",
    ),
    column(
        "AllowVolumeExpansion",
        of("allowVolumeExpansion", absent=False),
        "Whether a claim may grow.",
    ),
    AGE,
)
