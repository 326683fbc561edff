"""Batch scripts among manifests: each becomes the SlurmJob that `sbatch` would store.

Everything that `sbatch` asks a cluster is asked of the other documents: how large nodes are, which
partitions there are, which job a number means. Scripts are numbered in the order given, from 1.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.names import Instant
from unisono.kinds.documents import read_documents
from unisono.kinds.job_annotations import ARRAY
from unisono.kinds.overriding import override
from unisono.runtime.manifest_files import File, is_script
from unisono.slurm.client import ApiAccess, ApiClient, ClientError
from unisono.slurm.commands.context import Context, Refused
from unisono.slurm.commands.sbatch import prepare, read_submission
from unisono.slurm.labels import JOB_ID, JOBS
from unisono.slurm.sbatch.document import apart
from unisono.slurm.sbatch.layout import BadRequest
from unisono.slurm.site import MAP, rules_of
from unisono.slurm.times import written

if TYPE_CHECKING:
    from unisono.kube.form import Json

# Of a larger array no more are looked at: they are alike, and the first ones tell it all.
_MOST_TASKS = 100
_LOCAL_QUEUES = "/localqueues/"


def with_scripts(files: Sequence[File], now: Instant, user: str = "root") -> list[File]:
    """Return the files with SlurmJobs in the place of batch scripts."""
    if not any(is_script(name) for name, _ in files):
        return list(files)
    known = _Known([file for file in files if not is_script(file[0])])
    made: list[File] = []
    number = 1
    for name, content in files:
        if not is_script(name):
            made.append((name, content))
            continue
        jobs, number = _jobs(name, content, known, number, now, user)
        items = {"apiVersion": "v1", "kind": "List", "items": jobs}
        made.append((name, json.dumps(items).encode()))
    return made


def _jobs(
    name: str, content: bytes, known: _Known, number: int, now: Instant, user: str
) -> tuple[list[Json], int]:
    """Return the jobs of a script, and the number of the next."""
    context = Context(
        user=user,
        user_id=0,
        group_id=0,
        host="",
        directory="/",
        environment={},
        now=now / 1000,
        connect=lambda options: known,
        read=lambda path: content.decode(errors="replace"),
    )
    try:
        submission = read_submission([name], context)
        assert submission is not None, "there are no options that ask for help"
        rules = rules_of(known.find(MAP))
        made, job, _, _ = prepare(known, submission, context, rules, number)
    except (Refused, BadRequest) as error:
        raise InvalidManifest(name, str(error)) from error
    made["metadata"]["creationTimestamp"] = written(now / 1000)
    known.jobs.append(made)
    if job.array is None:
        return [made], number + 1
    return _tasks(made, job.array), number + job.array.size


def _tasks(made: Json, array: Any) -> list[Json]:
    """Return the first tasks of an array; its limit is the engine's to keep."""
    found: list[Json] = []
    name = made["metadata"]["name"]
    for place in range(min(array.size, _MOST_TASKS)):
        one = copy.deepcopy(made)
        index = array.at(place)
        identity = made["spec"]["jobId"] + 1 + place
        one["metadata"]["name"] = f"{name}-{index}"
        one["metadata"]["labels"][JOB_ID] = str(identity)
        if array.limit:
            one["metadata"]["annotations"][ARRAY] = f"{name}%{array.limit}"
        spec = one["spec"]
        spec.pop("array")
        spec |= {"jobId": identity, "task": {"arrayJobId": made["spec"]["jobId"], "index": index}}
        nodes = sum(group["nodes"] for group in spec["groups"])
        for group in spec["groups"]:
            apart(group["template"], identity, nodes)
        found.append(one)
    return found


class _Known(ApiClient):
    """What the other documents say, as an API would."""

    def __init__(self, files: Sequence[File]) -> None:
        super().__init__(ApiAccess("http://documents"))
        self.jobs: list[Json] = []
        self._all = [dict(one.raw) for file in files for one in read_documents(*file).documents]

    @override
    def call(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json"
    ) -> bytes:
        assert method == "GET", "nothing is stored"
        return json.dumps(self._found(path)).encode()

    def _found(self, path: str) -> Json:
        if path.startswith(JOBS):
            wanted = path.rpartition("%3D")[2]
            own = [one for one in self.jobs if one["metadata"]["labels"][JOB_ID] == wanted]
            return {"items": own}
        if path == "/api/v1/nodes":
            return {"items": [one for one in self._all if one["kind"] == "Node"]}
        name = path.rpartition("/")[2]
        kind = "LocalQueue" if _LOCAL_QUEUES in path else "ConfigMap"
        for one in self._all:
            if one["kind"] == kind and (one.get("metadata") or {}).get("name") == name:
                return one
        raise ClientError(f"there is no {kind} {name}", 404)
