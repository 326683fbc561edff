"""Where the volumes of a pod are on this machine, and where its containers see them.

| volume                                   | directory                               | lives until |
| ---------------------------------------- | --------------------------------------- | ----------- |
| emptyDir, configMap, secret, downwardAPI | PODS/uid/volumes/name                   | the pod     |
| persistentVolumeClaim, ephemeral         | CLAIMS/namespace/claim                  | the claim   |
| hostPath                                 | itself, if the instance allows it       | for ever    |

With namespaces a container sees a volume at its mountPath. Without, paths in its command and its
environment are rewritten to where the volume is (`Rewriting`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from unisono.control.actions import Json
from unisono.kinds.meta import wrong_with_subdomain
from unisono.kinds.quantity import Quantity
from unisono.runner.process.environment import expand
from unisono.runner.process.references import CannotStartYet, References

_FAILED = "FailedMount"
_LONGEST_SHOWN = 80  # of a name that is none, in a message


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A directory or file of this machine at a path of a container."""

    source: str
    target: str
    read_only: bool = False
    # Pods write below this directory: no link of theirs is followed from here to the source.
    inside: str = ""
    as_owner: bool = False  # the pod names it itself: only what its own user could open
    # In memory, of this size, and of this container alone (0: as large as it gets).
    memory_bytes: int | None = None


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    """A volume of a pod as it is on this machine."""

    path: str
    files: Files | None = None  # what is to stand in it; None if that is the pod's affair
    creates: bool = True
    memory_bytes: int | None = None
    read_only: bool = False
    inside: str = ""  # whence on pods may have put links; empty: its own path


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Directories of this instance that volumes live in."""

    pod: str  # of this pod
    claims: str
    host_paths: tuple[str, ...] = ()  # what hostPath volumes may lead to


def volumes_of(pod: Json, places: Places, references: References) -> dict[str, Volume]:
    """Return the volumes of a pod by name; raise NotYet if one cannot be had."""
    return {
        volume["name"]: _volume(volume, pod, places, references)
        for volume in pod["spec"].get("volumes") or ()
    }


def _volume(volume: Json, pod: Json, places: Places, references: References) -> Volume:
    name = _plain(volume["name"])
    own = f"{places.pod}/volumes/{name}"
    files = files_of(volume, references)
    if files is not None:
        return Volume(path=own, files=files, read_only=True)
    namespace = pod["metadata"].get("namespace", "")
    if (claim := volume.get("persistentVolumeClaim")) is not None:
        path = f"{places.claims}/{namespace}/{_plain(claim['claimName'])}"
        return Volume(path=path, read_only=bool(claim.get("readOnly")))
    if volume.get("ephemeral") is not None:
        return Volume(path=f"{places.claims}/{namespace}/{pod['metadata']['name']}-{name}")
    if (host := volume.get("hostPath")) is not None:
        return _host_path(host, places)
    others = [key for key in volume if key not in ("name", "emptyDir")]
    if others:
        raise CannotStartYet(f'volume "{name}": {others[0]} is not supported here', _FAILED)
    empty = volume.get("emptyDir") or {}
    limit = None
    if empty.get("medium") == "Memory":
        size = empty.get("sizeLimit")
        limit = Quantity.from_raw(size).units if size is not None else 0
    return Volume(path=own, memory_bytes=limit)


def _plain(name: object) -> str:
    """Return a name that is to be one part of a path; what templates say is not always checked."""
    wrong = wrong_with_subdomain(str(name))
    if wrong:
        raise CannotStartYet(f"volume {str(name)[:_LONGEST_SHOWN]!r}: {wrong}", _FAILED)
    return str(name)


def _host_path(host: Json, places: Places) -> Volume:
    path = str(PurePosixPath(host["path"]))
    is_plain = ".." not in PurePosixPath(path).parts
    above = [one for one in places.host_paths if PurePosixPath(path).is_relative_to(one)]
    if not is_plain or not above:
        allowed = ", ".join(places.host_paths) or "none"
        raise CannotStartYet(f"hostPath {path} is not allowed here (allowed: {allowed})", _FAILED)
    creates = str(host.get("type") or "") == "DirectoryOrCreate"
    return Volume(path=path, creates=creates, inside=str(PurePosixPath(above[0])))


def mounts_of(
    container: Json, pod: Json, volumes: Mapping[str, Volume], known: Mapping[str, str]
) -> list[Mount]:
    """Return what a container sees where; outer paths come before inner ones."""
    shared = _shared_memory(pod)
    found = []
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(mount["name"])
        if volume is None:
            raise CannotStartYet(f'volume "{mount["name"]}" is not in the pod', _FAILED)
        below = mount.get("subPath") or expand(mount.get("subPathExpr") or "", known)
        parts = PurePosixPath(below).parts
        if ".." in parts or below.startswith("/"):
            raise CannotStartYet(f"subPath {below!r} leads out of its volume", _FAILED)
        is_private = volume.memory_bytes is not None and mount["name"] not in shared and not below
        found.append(
            Mount(
                source="/".join((volume.path, *parts)),
                target=str(PurePosixPath("/", mount["mountPath"])),
                read_only=bool(mount.get("readOnly")) or volume.read_only,
                # Our files are links (`disk.put_files`), and pods do not write there.
                inside=(volume.inside or volume.path) if volume.files is None else "",
                memory_bytes=volume.memory_bytes if is_private else None,
            )
        )
    return sorted(found, key=lambda mount: (mount.target.count("/"), mount.target))


def _shared_memory(pod: Json) -> set[str]:
    """Return the volumes that more than one container mounts."""
    spec = pod["spec"]
    seen: set[str] = set()
    shared: set[str] = set()
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        mine = {mount["name"] for mount in container.get("volumeMounts") or ()}
        shared |= mine & seen
        seen |= mine
    return shared


class Rewriting:
    """Replaces paths of volumes, or names of pods, by those of this machine in texts."""

    def __init__(self, instead: Mapping[str, str], *, inside: str = r"\w./-") -> None:
        """Take what to put in the place of what; a word is whole if no `inside` adjoins it."""
        self._instead = instead
        words = sorted(instead, key=lambda word: (-len(word), word))
        whole = "|".join(map(re.escape, words))
        after = inside.replace("/", "")  # a path goes on below a volume
        self._pattern = re.compile(rf"(?<![{inside}])(?:{whole})(?![{after}])") if words else None

    def __call__(self, text: str) -> str:
        """Return a text as it is to be said here."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._instead[found[0]], text)


def path_rewriting(mounts: Sequence[Mount]) -> Rewriting:
    """Say paths of volumes as they are on this machine.

    >>> seen = Mount(source="/here/v", target="/data")
    >>> path_rewriting([seen])("--in=/data/x:/data --not=/my/data,/data2,s3://b/data")
    '--in=/here/v/x:/here/v --not=/my/data,/data2,s3://b/data'
    """
    return Rewriting({mount.target: mount.source for mount in mounts if mount.target != "/"})


def wanted_directories(volumes: Iterable[Volume], mounts: Iterable[Mount]) -> list[tuple[str, str]]:
    """Return the directories that have to be there before a container starts.

    Each is said in two parts: one of ours, and what comes below it, where pods write.
    """
    made = [
        (volume.inside or volume.path, volume.path[len(volume.inside or volume.path) + 1 :])
        for volume in volumes
        if volume.creates
    ]
    plain = [volume for volume in volumes if volume.creates and volume.files is None]
    for mount in mounts:
        for volume in plain:
            if mount.source.startswith(f"{volume.path}/"):  # a subPath that does not exist yet
                inside = volume.inside or volume.path
                made.append((inside, mount.source[len(inside) + 1 :]))
    return list(dict.fromkeys(made))


# ---- files of volumes ----------------------------------------------------------------------------
#
# Files in a pod's volumes: config maps, secrets, downward API, and projections of them.

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
