"""What a program is given so that it can stop and resume: the contract of restarts (jobs §7.3).

| variable                 | meaning                                                              |
| ------------------------ | -------------------------------------------------------------------- |
| `UNISONO_CHECKPOINT_DIR` | a directory of the job's own, the same for all its pods and attempts |
| `UNISONO_PROGRESS_FILE`  | write a line of JSON with `step` there, and its progress is known     |
| `UNISONO_LAST_PROGRESS`  | the last step that the job has reported                              |
| `UNISONO_RESTART_COUNT`  | 0 at first; set by the job's operator instead, if it counts restarts |

The directory lives as long as the job's Workload, or as an unqueued Job; that of a pod by itself as
long as the pod. The annotation `unisono.dev/checkpoint-dir` names another one, on a volume.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unisono.control import names
from unisono.control.actions import Json, Steps
from unisono.control.controller import own_key
from unisono.control.health.progress import progress_of
from unisono.control.view import View
from unisono.kinds.meta import wrong_with_subdomain
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.runner.process.mounts import Mount, Volume

CHECKPOINT_DIR = "unisono.dev/checkpoint-dir"
# Where containers that have their own view of files see the two directories.
_CHECKPOINTS = "/unisono/checkpoints"
_PROGRESS = "/unisono/progress"


@dataclass(frozen=True, slots=True)
class CheckpointContract:
    """Variables, volumes and mounts that a container gets by the contract."""

    env: Mapping[str, str]
    volumes: Sequence[Volume]
    mounts: Sequence[Mount]


def checkpoint_contract(
    pod: Json, container: str, run: int, view: View, *, own: str, kept: str
) -> CheckpointContract:
    """Return what one run of a container gets.

    `own` is the directory of the pod on this machine, `kept` where that of jobs are.
    """
    workload = _workload(pod, view)
    annotations = {} if workload is None else workload["metadata"].get("annotations") or {}
    kept_for = checkpoint_owner(pod)
    namespace = pod["metadata"].get("namespace", "")
    checkpoints = f"{kept}/{namespace}/{kept_for}" if kept_for else f"{own}/checkpoints"
    progress = f"{own}/progress"
    reached = progress_of(annotations)
    env = {
        "UNISONO_CHECKPOINT_DIR": _CHECKPOINTS,
        "UNISONO_PROGRESS_FILE": f"{_PROGRESS}/{container}.json",
        "UNISONO_LAST_PROGRESS": str(reached.step) if reached is not None else "",
        "UNISONO_RESTART_COUNT": str(run),
    }
    volumes = [Volume(path=progress), Volume(path=checkpoints)]
    mounts = [
        Mount(source=progress, target=_PROGRESS),
        Mount(source=checkpoints, target=_CHECKPOINTS),
    ]
    own_place = annotations.get(CHECKPOINT_DIR) or _annotations(pod).get(CHECKPOINT_DIR, "")
    if own_place:
        env["UNISONO_CHECKPOINT_DIR"] = own_place
        volumes, mounts = volumes[:1], mounts[:1]
    return CheckpointContract(env, volumes, mounts)


def checkpoint_owner(pod: Json) -> str:
    """Return the name that the pods of one job share over all attempts; empty if there is none."""
    workload = str(_annotations(pod).get(names.WORKLOAD_ANNOTATION) or "")
    if workload and not wrong_with_subdomain(workload):  # it is to be one part of a path
        return workload
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == names.JOB.kind:
            return f"{owner['name']}-{owner['uid']}"
    return ""


def _annotations(pod: Json) -> Mapping[str, str]:
    return pod["metadata"].get("annotations") or {}


def _workload(pod: Json, view: View) -> Json | None:
    name = _annotations(pod).get(names.WORKLOAD_ANNOTATION)
    if not name or not view.has(names.WORKLOAD):
        return None
    return view.peek(names.WORKLOAD, name, pod["metadata"]["namespace"])


class CheckpointCleaner:
    """Removes the directories of jobs that are gone."""

    name = "checkpoints"
    watches: Sequence[Kind] = (names.WORKLOAD, names.JOB)

    def __init__(self, directory: Path) -> None:
        """Look after a directory."""
        self._directory = directory
        self._has_begun = False

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """What is gone, by the name of its directory."""
        key = own_key(obj)
        if view.get(kind, key.name, key.namespace) is None:
            is_job = kind == names.JOB
            name = f"{key.name}-{obj['metadata']['uid']}" if is_job else key.name
            yield Key(key.namespace, name)
        elif not self._has_begun:
            yield Key("", "")

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Remove one directory, and at the start all directories of unknown jobs."""
        if not self._has_begun:
            self._has_begun = True
            known = {
                (one["metadata"]["namespace"], one["metadata"]["name"])
                for one in view.all(names.WORKLOAD)
            } | {
                (
                    one["metadata"]["namespace"],
                    f"{one['metadata']['name']}-{one['metadata']['uid']}",
                )
                for one in view.all(names.JOB)
            }
            for path in self._directory.glob("*/*"):
                if (path.parent.name, path.name) not in known:
                    shutil.rmtree(path, ignore_errors=True)
        if key.name:
            shutil.rmtree(self._directory / key.namespace / key.name, ignore_errors=True)
        yield from ()
