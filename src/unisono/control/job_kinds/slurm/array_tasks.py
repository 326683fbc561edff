"""Tasks of an array become jobs of their own when it is their turn (spec slurm §5).

Until then an array is one object, however many tasks it has. So many are pending at a time; when
one starts, the next is made. The last one keeps the number of the array, as in Slurm.
"""

from __future__ import annotations

import copy

from unisono.control.actions import Create, Json, Patch, Ref, Steps, Together
from unisono.control.conditions import timestamp
from unisono.control.job_kinds import slurm
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View
from unisono.kinds.job_annotations import DEPENDS_ON
from unisono.kinds.notifying import NOTIFIED, NOTIFY, tells_each_task
from unisono.kinds.slurm import ENDED
from unisono.slurm.sbatch.arrays import MOST_TASKS, Array, BadArray, for_task, read_array
from unisono.slurm.sbatch.document import apart

# Tasks that wait as jobs of their own: enough to start at once what finds a place, as many as
# Slurm plans ahead for one array (bf_max_job_array_resv).
WAITING = 20
_STARTED = ("CONFIGURING", "RUNNING", "COMPLETING")


def array_of(job: Json) -> str:
    """Return the name of the array that a job is a task of; empty if it is none."""
    for owner in job["metadata"].get("ownerReferences") or ():
        if owner["kind"] == slurm.JOB.kind and job["spec"].get("task"):
            return str(owner["name"])
    return ""


def open_tasks(array: Json, view: View, now: float) -> Steps:
    """Make the next tasks; end the array with the last of them."""
    spec, status = array["spec"], array.get("status") or {}
    try:
        whole = read_array(spec["array"]["tasks"])
        read_array(spec["array"].get("cancelled") or "0")
    except BadArray as error:
        # sbatch checks arrays itself; the author of the object sees here what is wrong with it.
        wrong = {"state": "FAILED", "reason": "BadConstraints", "endTime": timestamp(now)}
        message = f"spec.array: {error}; write tasks like 0-15,20 up to {MOST_TASKS - 1}"
        yield Patch(Ref.to(array), {"status": {**wrong, "message": message}}, "status")
        return
    limit = int(spec["array"].get("limit") or 0)
    tasks = view.owned(slurm.JOB, array["metadata"]["uid"])
    states = [str((one.get("status") or {}).get("state") or "PENDING") for one in tasks]
    living = [one for one, state in zip(tasks, states, strict=True) if state not in ENDED]
    waiting = sum(state not in ENDED and state not in _STARTED for state in states)
    opened = int(status.get("opened") or 0)
    stop = str(spec.get("stop") or "")
    if stop.startswith("cancel"):
        yield from _pass_on(living, stop)
        opened = whole.size
    else:
        opened, made = _next(array, whole, opened, living=len(living), waiting=waiting, limit=limit)
        if made:
            yield Together([Create(task) for task in made])
            living += made
    changes: Json = {}
    if opened != int(status.get("opened") or 0):
        changes["opened"] = opened
    changes |= _status_of(array, states, opened, whole, living=len(living), limit=limit, now=now)
    if changes:
        yield Patch(Ref.to(array), {"status": changes}, "status")


def _next(
    array: Json, whole: Array, opened: int, *, living: int, waiting: int, limit: int
) -> tuple[int, list[Json]]:
    """Return how far the array is then, and the tasks to make now."""
    room = WAITING - waiting
    if limit:
        room = min(room, limit - living)
    cancelled = array["spec"]["array"].get("cancelled") or ""
    skipped = read_array(cancelled) if cancelled else None
    made: list[Json] = []
    while room > 0 and opened < whole.size:
        number = whole.at(opened)
        if skipped is None or skipped.place(number) is None:
            made.append(_task(array, whole, opened, number))
            room -= 1
        opened += 1
    return opened, made


def _task(array: Json, whole: Array, place: int, number: int) -> Json:
    """Return a task as a job of its own."""
    metadata, spec = array["metadata"], copy.deepcopy(array["spec"])
    first = int(spec["jobId"])
    # Numbers after the array's are its tasks' in order; the last has the array's own.
    spec["jobId"] = first if place == whole.size - 1 else first + 1 + place
    spec["task"] = {"arrayJobId": first, "index": number}
    spec.pop("array")
    spec.pop("stop", None)
    nodes = sum(int(group["nodes"]) for group in spec.get("groups") or ())
    for group in spec.get("groups") or ():
        apart(group["template"], spec["jobId"], nodes)
    owner = {**owner_reference(array, blocks=False), "controller": False}
    labels = {**(metadata.get("labels") or {}), slurm.JOB_ID: str(spec["jobId"])}
    annotations = {**(metadata.get("annotations") or {}), "unisono.dev/task": str(number)}
    if DEPENDS_ON in annotations:
        annotations[DEPENDS_ON] = for_task(annotations[DEPENDS_ON], number)
    if not tells_each_task(annotations):
        annotations.pop(NOTIFY, None)  # the array as a whole is told of
    annotations.pop(NOTIFIED, None)
    return {
        "apiVersion": array["apiVersion"],
        "kind": array["kind"],
        "metadata": {
            "name": f"{metadata['name']}-{number}",
            "namespace": metadata["namespace"],
            "labels": {**labels, slurm.ARRAY_ID: str(first)},
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _pass_on(living: list[Json], stop: str) -> Steps:
    unstopped = [one for one in living if not one["spec"].get("stop")]
    if unstopped:
        yield Together([Patch(Ref.to(one), {"spec": {"stop": stop}}) for one in unstopped])


def _status_of(
    array: Json,
    states: list[str],
    opened: int,
    whole: Array,
    *,
    living: int,
    limit: int,
    now: float,
) -> Json:
    """Return what is different about the state of an array."""
    status = array.get("status") or {}
    if opened >= whole.size and not living:
        cancelled = str(array["spec"].get("stop") or "").startswith("cancel")
        failed = any(state not in ("COMPLETED", "CANCELLED") for state in states)
        state = "CANCELLED" if cancelled else "FAILED" if failed else "COMPLETED"
        return {"state": state, "reason": "None", "endTime": timestamp(now)}
    runs = any(state in _STARTED for state in states)
    state = "RUNNING" if opened >= whole.size and runs else "PENDING"
    is_full = limit and living >= limit
    reason = "JobArrayTaskLimit" if is_full else "Priority" if runs else "Resources"
    new = {"state": state, "reason": "None" if state == "RUNNING" else reason}
    return {key: value for key, value in new.items() if status.get(key) != value}
