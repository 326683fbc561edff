"""Files in a pod's volumes: config maps, secrets, downward API, and projections of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from unisono.control.actions import Json
from unisono.runner.process.references import CannotStartYet, References

_DEFAULT_MODE = 0o644


class File(msgspec.Struct, frozen=True):
    """The content of a file, and its mode."""

    content: bytes
    mode: int = _DEFAULT_MODE


Files = Mapping[str, File]  # by path inside the volume


def files_of(volume: Json, references: References) -> Files | None:
    """Return the files of a volume; None if it is not one that is made of files."""
    for kind, read in _READERS.items():
        if (source := volume.get(kind)) is not None:
            mode = source.get("defaultMode")
            return read(source, references, _DEFAULT_MODE if mode is None else int(mode))
    return None


def _config_map(source: Json, references: References, mode: int) -> Files:
    is_optional = bool(source.get("optional"))
    contents = references.config_map(source.get("name", ""), is_optional=is_optional)
    return _chosen(contents, source.get("items"), mode, is_optional=is_optional)


def _secret(source: Json, references: References, mode: int) -> Files:
    is_optional = bool(source.get("optional"))
    name = source.get("secretName") or source.get("name") or ""
    contents = references.secret(name, is_optional=is_optional)
    return _chosen(contents, source.get("items"), mode, is_optional=is_optional)


def _downward(source: Json, references: References, mode: int) -> Files:
    found = {}
    for item in source.get("items") or ():
        if ref := item.get("fieldRef"):
            text = references.field(ref["fieldPath"])
        else:
            ref = item.get("resourceFieldRef") or {}
            text = references.resource(ref, str(ref.get("containerName", "")))
        found[_inside(item["path"])] = File(text.encode(), _mode(item, mode))
    return found


def _projected(source: Json, references: References, mode: int) -> Files:
    found: dict[str, File] = {}
    for one in source.get("sources") or ():
        for kind, read in _READERS.items():
            if (part := one.get(kind)) is not None:
                found |= read(part, references, mode)
        if token := one.get("serviceAccountToken"):
            found[_inside(token["path"])] = File(b"", 0o600)
    return found


def _chosen(
    contents: Mapping[str, bytes] | None,
    items: Sequence[Json] | None,
    mode: int,
    *,
    is_optional: bool,
) -> Files:
    if contents is None:
        return {}
    if not items:
        return {key: File(value, mode) for key, value in contents.items()}
    found = {}
    for item in items:
        if item["key"] in contents:
            found[_inside(item["path"])] = File(contents[item["key"]], _mode(item, mode))
        elif not is_optional:
            raise CannotStartYet(
                f"references non-existent config key: {item['key']}", "FailedMount"
            )
    return found


def _mode(item: Json, default: int) -> int:
    mode = item.get("mode")
    return default if mode is None else int(mode)


def _inside(path: str) -> str:
    """Return a path that stays inside its volume."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or path.startswith("/"):
        raise CannotStartYet(f"path {path!r} leads out of its volume", "FailedMount")
    return "/".join(parts)


_READERS: Mapping[str, Callable[[Json, References, int], Files]] = {
    "configMap": _config_map,
    "secret": _secret,
    "downwardAPI": _downward,
    "projected": _projected,
}
