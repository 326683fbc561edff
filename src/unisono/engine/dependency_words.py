"""Words for dependencies: Slurm's word first, then what has to become of whom."""

from __future__ import annotations

from unisono.engine.model.explanation import DependencyNeverSatisfied, DependencyPending

_PENDING = {
    "afterok": "to succeed",
    "afterany": "to end",
    "afternotok": "to fail",
    "after": "to start, and for as long after that as it says",
    "singleton": "to end: one of them runs at a time",
}

_THEN = {
    "afterok": "it may start when {on} has succeeded; if that fails, it never starts",
    "afterany": "it may start when {on} has ended, however that goes",
    "afternotok": "it may start when {on} has failed; if that succeeds, it never starts",
    "after": "it may start when {on} has started and that time is over",
    "singleton": "it may start when {on} has ended",
}


def dependency_sentence(fact: DependencyPending | DependencyNeverSatisfied) -> str:
    """Say what a workload waits for.

    >>> dependency_sentence(DependencyPending(kind="afterok", on="ml/prepare"))
    'Dependency: waits for ml/prepare to succeed (afterok)'
    """
    if isinstance(fact, DependencyPending):
        return f"Dependency: waits for {fact.on} {_PENDING[fact.kind]} ({fact.kind})"
    ended = "failed or was deleted" if fact.kind == "afterok" else "succeeded"
    return f"DependencyNeverSatisfied: {fact.on} {ended} ({fact.kind})"


def dependency_outlook(fact: DependencyPending) -> str:
    """Say what has to become of whom, and what if it becomes otherwise."""
    return f"nothing to do: {_THEN[fact.kind].format(on=fact.on)}"
