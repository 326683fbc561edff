"""What a job or a Workload says of itself in annotations of ours; both are read alike.

    unisono.dev/array: sweep%2       jobs that belong together: at most two of `sweep` run at a
                                     time. Slurm writes the same as `--array=0-15%2`
    unisono.dev/depends-on: afterok:prepare:clean,after:monitor+5     all of them
    unisono.dev/depends-on: afterok:a?afternotok:b                    any of them
    unisono.dev/topology, …          about machines that are bought for it
    unisono.dev/time-limit, …        how long it runs, from when and until when: see `times`
    unisono.dev/notify, …            notifications: see `notifying`

Types of dependencies are `afterok`, `afterany`, `afternotok`, `after` (optionally so many minutes
later) and `singleton`. Jobs are named like `prepare`, or `other-namespace/prepare`; the name of an
array counts within a namespace. A Workload repeats what its job says, so that both ask for the
same. Spec backfill §11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

import msgspec

from unisono.engine.model.multifactor import SubmitOptions
from unisono.engine.model.names import Instant
from unisono.engine.model.provisioning import Packing, ProvisioningOptions
from unisono.engine.model.workload import Dependency, DependencyKind, Workload
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.notifying import read_notifying
from unisono.kinds.policy.multifactor import submit_options_of
from unisono.kinds.scalar import duration_ms
from unisono.kinds.times import (
    BEGIN,
    DEADLINE,
    DEFAULT_LIMIT,
    TIME_LIMIT,
    TIME_MIN,
    Times,
    instant_of,
    limit_ms,
    times_of,
)

ARRAY = "unisono.dev/array"
DEPENDS_ON = "unisono.dev/depends-on"
# What a Workload has to repeat of its job, besides `BUYING`.
ON_JOBS = (TIME_LIMIT, TIME_MIN, BEGIN, DEADLINE, ARRAY, DEPENDS_ON)


class JobAnnotations(msgspec.Struct, frozen=True, kw_only=True):
    """What was read; `submit_options` also from labels."""

    submit_options: SubmitOptions
    times: Times
    array: str
    array_limit: int
    depends: tuple[Dependency, ...]
    depends_on_any: bool
    buying: ProvisioningOptions

    def applied_to(self, workload: Workload) -> Workload:
        """Return a workload with all of it."""
        return msgspec.structs.replace(
            workload,
            submit_options=self.submit_options,
            time_limit_ms=self.times.limit_ms,
            limit_from=self.times.limit_from,
            least_limit_ms=self.times.least_ms,
            begin_at=self.times.begin_at,
            deadline=self.times.deadline,
            array=self.array,
            array_limit=self.array_limit,
            depends=self.depends,
            depends_on_any=self.depends_on_any,
            buying=self.buying,
        )


def read_job_annotations(
    metadata: ObjectMeta,
    namespace: str,
    notes: Notes,
    *,
    created_at: Instant,
    active_s: int | None,
) -> JobAnnotations:
    """Read labels and annotations; what cannot be read is a problem of that field."""
    annotations = metadata.annotations
    times = times_of(annotations, notes, created_at=created_at, active_s=active_s)
    array, array_limit = array_of(annotations, namespace, notes)
    depends, on_any = dependencies_of(annotations, namespace, notes)
    read_notifying(annotations, notes)
    return JobAnnotations(
        submit_options=submit_options_of(metadata, notes),
        times=times,
        array=array,
        array_limit=array_limit,
        depends=depends,
        depends_on_any=on_any,
        buying=buying_of(annotations, notes),
    )


_READ_IN_ORDER = (TIME_LIMIT, TIME_MIN, DEFAULT_LIMIT, BEGIN, DEADLINE, ARRAY, DEPENDS_ON)
_READ = frozenset(_READ_IN_ORDER)


def wrong_with_annotations(annotations: Mapping[str, object]) -> dict[str, str]:
    """Return the annotations of ours that cannot be read, and why not."""
    found: dict[str, str] = {}
    if _READ.isdisjoint(annotations):
        return found  # as nearly always
    for key in _READ_IN_ORDER:
        text = annotations.get(key)
        if not isinstance(text, str):
            continue
        try:
            if key in (TIME_LIMIT, TIME_MIN, DEFAULT_LIMIT):
                limit_ms(text)
            elif key == ARRAY:
                read_array(text)
            elif key == DEPENDS_ON:
                read_dependencies(text, "default")
            else:
                instant_of(text, Instant(0))
        except ValueError as reason:
            found[f"metadata.annotations[{key}]"] = str(reason)
    return found


# ---- arrays --------------------------------------------------------------------------------------

_ARRAY_FORM = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?)%([1-9][0-9]{0,8})")


def read_array(text: str) -> tuple[str, int]:
    """Return name and limit; raise ValueError with the reason.

    >>> read_array("sweep%2")
    ('sweep', 2)
    """
    found = _ARRAY_FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'"{text}" is not an array; write it like sweep%2: at most two at a time')
    return found[1], int(found[2])


def array_of(annotations: Mapping[str, str], namespace: str, notes: Notes) -> tuple[str, int]:
    """Return the array of a job and its limit, an empty name without one."""
    text = annotations.get(ARRAY)
    if text is None:
        return "", 0
    try:
        name, limit = read_array(text)
    except ValueError as reason:
        notes.problem(f"metadata.annotations[{ARRAY}]", str(reason))
        return "", 0
    return f"{namespace}/{name}", limit


# ---- dependencies --------------------------------------------------------------------------------

Dependencies = tuple[tuple[Dependency, ...], bool]  # on which, and whether any of them will do

_NAME = re.compile(r"(?:([a-z0-9][a-z0-9.-]*)/)?([a-z0-9][a-z0-9.-]*)(?:\+([0-9]{1,6}))?")
_KINDS: dict[str, DependencyKind] = {kind: kind for kind in get_args(DependencyKind)}
_DEPENDENCY_FORMS = (
    "write it like afterok:prepare, after:a:b+5 or singleton, joined by , (all) or ? (any)"
)
_MINUTE_MS = 60_000


def read_dependencies(text: str, namespace: str) -> Dependencies:
    """Return what a job depends on; raise ValueError with the reason.

    >>> [one.on for one in read_dependencies("afterok:a:b/c", "ml")[0]]
    ['ml/a', 'b/c']
    """
    stripped = text.strip()
    if "," in stripped and "?" in stripped:
        raise ValueError(f'"{text}" joins by , and by ?; {_DEPENDENCY_FORMS}')
    is_any = "?" in stripped
    terms = stripped.split("?" if is_any else ",")
    found = tuple(one for term in terms for one in _term(term.strip(), namespace, text))
    return found, is_any


def _term(term: str, namespace: str, text: str) -> list[Dependency]:
    word, *names = term.split(":")
    kind = _KINDS.get(word)
    if kind is None or bool(names) == (kind == "singleton"):
        raise ValueError(f'"{text}" is not a dependency; {_DEPENDENCY_FORMS}')
    if kind == "singleton":
        return [Dependency(kind=kind)]
    made = []
    for name in names:
        shape = _NAME.fullmatch(name)
        if shape is None or (shape[3] is not None and kind != "after"):
            raise ValueError(f'"{name}" is not the name of a job; {_DEPENDENCY_FORMS}')
        on = f"{shape[1] or namespace}/{shape[2]}"
        made.append(Dependency(kind=kind, on=on, delay_ms=int(shape[3] or 0) * _MINUTE_MS))
    return made


def dependencies_of(annotations: Mapping[str, str], namespace: str, notes: Notes) -> Dependencies:
    """Return what a job says that it depends on."""
    text = annotations.get(DEPENDS_ON)
    if text is None:
        return (), False
    try:
        return read_dependencies(text, namespace)
    except ValueError as reason:
        notes.problem(f"metadata.annotations[{DEPENDS_ON}]", str(reason))
        return (), False


# ---- machines to buy -----------------------------------------------------------------------------

SCOPE = "unisono.dev/topology"
MIXED = "unisono.dev/mixed-gpu"
SPOT = "unisono.dev/allow-spot"
PACKING = "unisono.dev/packing"
RESTART_COST = "unisono.dev/restart-cost"
BLOCK_END = "unisono.dev/accept-block-end"
DISRUPTABLE = "unisono.dev/disruptable"  # it may be moved to save money
# What a Workload repeats of its job.
BUYING = (SCOPE, MIXED, SPOT, PACKING, RESTART_COST, BLOCK_END, DISRUPTABLE)
_PACKINGS: Mapping[str, Packing] = {
    "MinCost": "MinCost",
    "Balanced": "Balanced",
    "FewestNodes": "FewestNodes",
}


def buying_of(annotations: Mapping[str, object], notes: Notes) -> ProvisioningOptions:
    """Return the wishes of a job; one that cannot be read is warned about and does not count."""
    if not any(key in annotations for key in BUYING):
        return ProvisioningOptions()
    spot = str(annotations.get(SPOT, ""))
    if spot not in ("", "true", "false", "mixed"):
        _warn(notes, SPOT, f'"{spot}" is not true, false or mixed')
    packing = str(annotations.get(PACKING, ""))
    if packing and packing not in _PACKINGS:
        _warn(notes, PACKING, f'"{packing}" is not {", ".join(_PACKINGS)}')
    return ProvisioningOptions(
        scope=str(annotations.get(SCOPE, "")),
        mixed_models=annotations.get(MIXED) == "true",
        spot="mixed" if spot == "mixed" else "true" if spot == "true" else "",
        packing=_PACKINGS.get(packing),
        restart_ms=_restart(annotations, notes),
        accepts_block_end=annotations.get(BLOCK_END) == "true",
    )


def _restart(annotations: Mapping[str, object], notes: Notes) -> int | None:
    text = annotations.get(RESTART_COST)
    if text is None:
        return None
    try:
        return duration_ms(str(text))
    except ValueError as reason:
        _warn(notes, RESTART_COST, str(reason))
        return None


def _warn(notes: Notes, key: str, message: str) -> None:
    notes.warn("FieldIgnored", f"metadata.annotations[{key}]", message)
