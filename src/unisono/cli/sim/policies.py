"""Policies to simulate: one of ours by its name, or what a file says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.sim.setup import Rules

POLICY_WORDS = """\
A POLICY is a name (`unisono sim run --policy list` shows them) or a file: a Policy, a
SchedulingPolicy or a Kueue Configuration, as `unisono up --policy` reads them. A file may also hold
ClusterQueues, LocalQueues, Cohorts, ResourceFlavors and Topologies; jobs then go to the queue that
is called like theirs in the trace. Otherwise all of them share one queue that owns the cluster.
"""
_SUFFIXES = (".yaml", ".yml", ".json")


def policies_of(names: Sequence[str]) -> list[Rules]:
    """Return the rules of names and files, in their order, each once."""
    found: dict[str, Rules] = {}
    for name in dict.fromkeys(names):
        rules = _policy(name)
        if rules.name in found:
            raise InvalidManifest("--policy", f'two policies are called "{rules.name}"')
        found[rules.name] = rules
    if not found:
        raise InvalidManifest("--policy", "names no policy")
    return [*found.values()]


def _policy(name: str) -> Rules:
    from unisono.sim.setup import POLICIES

    if name in POLICIES:
        return POLICIES[name]
    path = Path(name)
    if path.suffix in _SUFFIXES or path.is_dir():
        return _from_file(path)
    known = ", ".join(POLICIES)
    raise InvalidManifest("--policy", f'there is no policy "{name}"; there are {known}, or a file')


def _from_file(path: Path) -> Rules:
    from unisono.engine.model.names import Instant
    from unisono.kinds.snapshot.build import read_world
    from unisono.runtime.manifest_files import files_of
    from unisono.sim.setup import Rules

    world = read_world(files_of(str(path)), now=Instant(0))
    if world.problems:
        raise InvalidManifest("", "\n".join(problem.line() for problem in world.problems))
    for warning in world.warnings:
        print(f"unisono: warning: {warning.line()}", file=sys.stderr)
    read = world.snapshot
    if read.nodes or read.waiting or read.holdings or world.unmanaged:
        message = f"{path} has nodes or jobs; nodes come from --nodes, and jobs from the trace"
        raise InvalidManifest("--policy", message)
    layout = read if read.queues else None
    return Rules(path.stem, f"as {path.name} says", read.policy, layout=layout)
