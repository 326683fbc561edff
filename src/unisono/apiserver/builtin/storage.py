"""Claims, volumes and storage classes, as far as pods name them; nothing is provisioned."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.field_errors import forbidden, not_supported, required
from unisono.apiserver.builtin.fields import at, child, fill, fill_text
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.overriding import override

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


class ClaimStrategy(Strategy):
    """A PersistentVolumeClaim."""

    has_generation = False

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """A new claim waits for a volume."""
        obj["status"] = {"phase": "Pending"}

    @override
    def default(self, obj: Json) -> None:
        """Fill in that it wants a file system."""
        fill_text(child(obj, "spec"), volumeMode="Filesystem")

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what is missing, and changes of anything but the size."""
        spec = at(obj, "spec")
        yield from _check_modes(spec)
        if not at(spec, "resources", "requests").get("storage"):
            yield required("spec.resources[storage]")
        if old is not None and _frozen(spec) != _frozen(at(old, "spec")):
            why = "spec is immutable after creation except resources.requests"
            yield forbidden("spec", why)


class VolumeStrategy(Strategy):
    """A PersistentVolume."""

    has_generation = False

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """A new volume is not claimed yet."""
        obj["status"] = {"phase": "Pending"}

    @override
    def default(self, obj: Json) -> None:
        """Fill in that it holds a file system and is kept."""
        fill_text(
            child(obj, "spec"), volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain"
        )

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what is missing."""
        spec = at(obj, "spec")
        yield from _check_modes(spec)
        if not at(spec, "capacity").get("storage"):
            yield required("spec.capacity[storage]")


class StorageClassStrategy(Strategy):
    """A StorageClass."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Fill in what becomes of volumes, and when they are bound."""
        fill_text(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield changes of what volumes were made with."""
        if not obj.get("provisioner"):
            yield required("provisioner")
        for field in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
            if old is not None and obj.get(field) != old.get(field):
                yield forbidden(field, "updates to it are forbidden")


def _check_modes(spec: Json) -> Iterator[Cause]:
    modes = spec.get("accessModes")
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes or ():
        if mode not in _MODES:
            yield not_supported("spec.accessModes", mode, _MODES)


def _frozen(spec: Json) -> Json:
    """Return a claim's spec without its size and what binding it fills in."""
    free = ("resources", "volumeName", "volumeAttributesClassName", "storageClassName")
    rest = {key: value for key, value in spec.items() if key not in free}
    fill(rest, volumeMode="Filesystem")
    return rest
