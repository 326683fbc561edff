"""What Kubernetes refuses in the volumes of a pod."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from unisono.apiserver.builtin.causes import (
    about,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from unisono.apiserver.builtin.reach import Json, at, numbered
from unisono.apiserver.errors import Cause
from unisono.kinds.meta import wrong_with_dns_label
from unisono.kinds.quantity import Quantity

_HOST_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MAX_MODE = 0o777
# Which field a source cannot do without.
_NEEDED = (
    ("hostPath", "path"),
    ("configMap", "name"),
    ("persistentVolumeClaim", "claimName"),
    ("secret", "secretName"),
    ("nfs", "server"),
    ("nfs", "path"),
    ("csi", "driver"),
)


def check_volumes(spec: Json, path: str) -> Generator[Cause, None, set[str]]:
    """Yield the faults of volumes; return their names."""
    seen: set[str] = set()
    for at_, volume in numbered(spec, "volumes", path):
        name = str(volume.get("name") or "")
        if not name:
            yield required(f"{at_}.name")
        else:
            yield from about(f"{at_}.name", name, wrong_with_dns_label(name))
        if name in seen:
            yield duplicate(f"{at_}.name", name)
        seen.add(name)
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if len(sources) > 1:
            yield forbidden(f"{at_}.{sources[1]}", "may not specify more than 1 volume type")
        yield from _check_source(volume, at_)
    return seen


def _check_source(volume: Json, path: str) -> Iterator[Cause]:
    for source, field in _NEEDED:
        if isinstance(volume.get(source), dict) and not volume[source].get(field):
            yield required(f"{path}.{source}.{field}")
    host = at(volume, "hostPath")
    if ".." in str(host.get("path") or "").split("/"):
        yield invalid(f"{path}.hostPath.path", host["path"], "must not contain '..'")
    if host and host.get("type") not in (None, *_HOST_TYPES):
        yield not_supported(f"{path}.hostPath.type", host["type"], _HOST_TYPES)
    nfs = at(volume, "nfs").get("path")
    if nfs and not str(nfs).startswith("/"):
        yield invalid(f"{path}.nfs.path", nfs, "must be an absolute path")
    limit = at(volume, "emptyDir").get("sizeLimit")
    if limit is not None and _is_negative(limit):
        yield forbidden(f"{path}.emptyDir.sizeLimit", "must be a valid resource quantity")
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        inside = at(volume, source)
        yield from _check_mode(inside.get("defaultMode"), f"{path}.{source}.defaultMode")
        if source in ("secret", "configMap"):
            yield from _check_files(inside, f"{path}.{source}")


def _check_files(source: Json, path: str) -> Iterator[Cause]:
    for at_, file in numbered(source, "items", path):
        if not file.get("key"):
            yield required(f"{at_}.key")
        target = str(file.get("path") or "")
        if not target:
            yield required(f"{at_}.path")
        yield from about(f"{at_}.path", target, wrong_with_relative_path(target))
        yield from _check_mode(file.get("mode"), f"{at_}.mode")


def wrong_with_relative_path(path: str) -> str:
    """Say why a path leads out of its place; empty if it does not."""
    if path.startswith("/"):
        return "must be a relative path"
    return "must not contain '..'" if ".." in path.split("/") else ""


def _check_mode(mode: object, path: str) -> Iterator[Cause]:
    if isinstance(mode, int) and not 0 <= mode <= _MAX_MODE:
        yield invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _is_negative(amount: object) -> bool:
    try:
        return Quantity.from_raw(amount).nano < 0
    except ValueError:
        return False
