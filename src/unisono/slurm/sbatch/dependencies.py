"""`--dependency`: numbers of jobs become names of objects (spec slurm §4)."""

from __future__ import annotations

from unisono.kinds.digits import is_digits
from unisono.slurm.client import ApiClient
from unisono.slurm.labels import JOBS
from unisono.slurm.lite_typing import Json
from unisono.slurm.sbatch.arrays import Array, read_array
from unisono.slurm.sbatch.layout import BadRequest

# Tasks of an array that a dependency may stand for: each is named in an annotation.
_MOST_AWAITED = 1000
_DEPENDENCIES = ("after", "afterany", "afterok", "afternotok", "aftercorr", "singleton")


def dependency(api: ApiClient, text: str, namespace: str, array: Array | None) -> str:
    """Return a dependency with names of objects instead of numbers of jobs.

    `aftercorr` of an array on an array stays, with the other's name, until a task is made; of
    anything else it means `afterok`, as in Slurm.
    """
    join = "?" if "?" in text else ","
    terms = []
    for term in text.split(join):
        kind, *numbers = term.strip().split(":")
        if kind not in _DEPENDENCIES and not is_digits(kind):
            raise BadRequest("Job dependency problem")
        if is_digits(kind):
            kind, numbers = "afterany", [kind, *numbers]
        names = [kind]
        for number in numbers:
            if number.startswith("+") or (
                kind != "after" and not is_digits(number.partition("_")[0])
            ):
                raise BadRequest("Job dependency problem")
            identity, plus, minutes = number.partition("+")
            other = _corresponding(api, identity, namespace, array) if kind == "aftercorr" else ""
            if other:
                terms.append(f"aftercorr:{other}")
                continue
            names += [f"{one}{plus}{minutes}" for one in _names_of(api, identity, namespace)]
        if kind == "aftercorr":
            names[0] = "afterok"
        if len(names) > 1 or kind == "singleton":
            terms.append(":".join(names))
    return join.join(terms)


def _corresponding(api: ApiClient, number: str, namespace: str, array: Array | None) -> str:
    """Return the name of an array that has every task of ours; empty if it is no array."""
    found = _array_of(api, number, namespace)
    if array is None or found is None or "_" in number:
        return ""
    whole = read_array(found["spec"]["array"]["tasks"])
    if any(whole.place(one) is None for part in array.parts for one in part):
        raise BadRequest("Job dependency problem")
    return str(found["metadata"]["name"])


def _array_of(api: ApiClient, number: str, namespace: str) -> Json | None:
    found = _jobs_of(api, number.partition("_")[0], namespace)
    return next((one for one in found if one["spec"].get("array")), None)


def _jobs_of(api: ApiClient, identity: str, namespace: str) -> list[Json]:
    found = api.get(f"{JOBS}?labelSelector=unisono.dev%2Fslurm-job%3D{identity}")["items"]
    return [one for one in found if one["metadata"]["namespace"] == namespace]


def _names_of(api: ApiClient, number: str, namespace: str) -> list[str]:
    """Return the names of the objects of a job, which must exist; of an array, all of its tasks."""
    identity, _, index = number.partition("_")
    own = _jobs_of(api, identity, namespace)
    if not own:
        raise BadRequest("Job dependency problem")
    array = next((one for one in own if one["spec"].get("array")), None)
    name = str((array or own[0])["metadata"]["name"])
    if index:
        return [f"{name}-{index}"]
    if array is None:
        return [name]
    whole = read_array(array["spec"]["array"]["tasks"])
    if whole.size > _MOST_AWAITED:
        raise BadRequest("Job dependency problem")
    return [f"{name}-{whole.at(place)}" for place in range(whole.size)]
