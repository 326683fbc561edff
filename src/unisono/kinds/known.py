"""Every kind that we know, in one registry, and the one intake for objects of them, from any API.

The embedded API asks it before it stores something, and the controller when it reads something from
another API. What it lets pass has no negative amount, no count beyond 32 bits and no
value of another type than the kind's; what it does not let pass never reaches the engine's state.

Two sorts of rules: those of single fields stand in the structs and are read by `decode`, those of
an object as a whole are the `check` of its kind (`registry`). Fields that we do not know are left
to the controllers that know them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unisono.engine.model.errors import InvalidManifest
from unisono.kinds import (
    batch,
    coscheduling,
    jobset,
    karpenter,
    kubeflow,
    ray,
    scheduling,
    slurm,
    workload_kinds,
)
from unisono.kinds.core import kinds as core
from unisono.kinds.decode import Problem, decode
from unisono.kinds.kueue import kinds as kueue
from unisono.kinds.notes import Finding, Notes
from unisono.kinds.policy import scheduling as scheduling_policy
from unisono.kinds.policy import schema as policy
from unisono.kinds.registry import Kind, Registry, registry
from unisono.kinds.trainer import kinds as trainer
from unisono.kinds.volcano import flows as volcano_flows
from unisono.kinds.volcano import groups as volcano_groups
from unisono.kinds.volcano import jobs as volcano_jobs
from unisono.kinds.volcano import network_topology as volcano_network_topology
from unisono.kinds.volcano import queues as volcano_queues

# One entry per module that defines kinds: add yours here.
KNOWN: Registry = registry(
    core.KINDS,
    batch.KINDS,
    coscheduling.KINDS,
    jobset.KINDS,
    karpenter.KINDS,
    kubeflow.KINDS,
    kueue.KINDS,
    policy.KINDS,
    ray.KINDS,
    scheduling.KINDS,
    scheduling_policy.KINDS,
    slurm.KINDS,
    trainer.KINDS,
    volcano_flows.KINDS,
    volcano_groups.KINDS,
    volcano_jobs.KINDS,
    volcano_network_topology.KINDS,
    volcano_queues.KINDS,
    workload_kinds.KINDS,
)


class Examined(NamedTuple):
    """A typed manifest, or everything that is wrong with it; and what deserves a warning."""

    manifest: Any | None
    problems: Sequence[Problem]
    warnings: Sequence[Finding]


def examine(kind: Kind, obj: Mapping[str, object]) -> Examined:
    """Read an object by all rules of its kind."""
    manifest, problems = decode(kind.struct, obj, ignore_unknown=True)
    if manifest is None:
        return Examined(None, problems, ())
    notes = Notes(file="", document=0)
    if kind.check is not None:
        kind.check(manifest, notes)
    wrong = [Problem(one.path, one.message) for one in notes.problems]
    return Examined(None if wrong else manifest, wrong, notes.warnings)


def taken_in(kind: Kind, obj: Mapping[str, object]) -> Any:
    """Return an object as the version that is stored has it; raise what is wrong with it first."""
    found = examine(kind, obj)
    refuse(found.problems)
    return kind.upgrade(found.manifest) if kind.upgrade is not None else found.manifest


def refuse(problems: Sequence[Problem]) -> None:
    """Raise the first of some problems, and say how many there are."""
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise InvalidManifest(problems[0].path, f"{problems[0].message}{more}")


def wrong_with(obj: Mapping[str, object]) -> str:
    """Return what is wrong with an object, in one line; empty if nothing is, or we do not know it.

    >>> wrong_with({"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"a": 1}}})
    'metadata.labels[a]: must be a string, not the number 1; put it in quotes'
    """
    kind = KNOWN.kinds.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
    if kind is None:
        return ""
    try:
        refuse(examine(kind, obj).problems)
    except InvalidManifest as error:
        return str(error)
    return ""
