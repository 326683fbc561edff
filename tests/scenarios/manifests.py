"""Manifests inside a story: applied one after the other, as `kubectl apply` would.

An object that is applied again replaces the older one. All objects so far are read as one world,
and the engine hears of what is new in it; workloads that it knows already keep what became of them,
unless they wait and what was applied changes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.scenarios.outcomes import mismatch
from tests.scenarios.reading import Part
from tests.scenarios.words import key_of
from unisono.engine.model.multifactor import UsageRecord
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload
from unisono.engine.state import changes
from unisono.engine.state.changes import Change
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.decode import decode, encode
from unisono.kinds.kueue import kinds as kueue_kinds
from unisono.kinds.kueue.queues import ClusterQueue, ClusterQueueV1Beta1
from unisono.kinds.snapshot.build import World, read_world

ROOT = Path(__file__).resolve().parents[2]  # paths in a story start here


class Manifests:
    """Everything that a story applied."""

    def __init__(self) -> None:
        self._documents: dict[tuple[str, str, str], str] = {}
        self._world: World | None = None
        self._told: dict[WorkloadKey, Workload] = {}  # as the engine heard of them last
        self._used: list[UsageRecord] = []  # a history is told once

    def apply(self, part: Part, now: Instant) -> None:
        """Take a block of YAML, or files, and read the world again."""
        inline = isinstance(part.value, str) and "\n" in part.value
        texts = [part.text()] if inline else [_text(part, name) for name in part.names()]
        for text in texts:
            for document in text.split("\n---\n"):
                self._documents[_identity(part, document)] = document
        files = [
            ("/".join(filter(None, identity)), document.encode())
            for identity, document in self._documents.items()
        ]
        self._world = read_world(files, now=now)
        problems = [problem.line() for problem in self._world.problems]
        if problems:
            raise mismatch(part, "; ".join(problems))

    def changes(self, state: ClusterState) -> Iterator[Change]:
        """Yield what the engine has not heard yet."""
        assert self._world is not None, "something was applied"
        found = self._world.snapshot
        if found.policy != state.policy:
            yield changes.PolicySet(found.policy)
        for record in found.usage:
            if record not in self._used:
                self._used.append(record)
                yield changes.UsageSet(record)
        yield from map(changes.FlavorSet, found.flavors)
        yield from map(changes.CheckSet, found.checks)
        yield from map(changes.TopologySet, found.topologies)
        yield from map(changes.NamespaceSet, found.namespaces)
        yield from map(changes.CohortSet, found.cohorts)
        yield from map(changes.QueueSet, found.queues)
        yield from map(changes.LocalQueueSet, found.local_queues)
        yield from map(changes.NodeSet, found.nodes)
        yield from map(changes.PodOnNode, found.pods)
        yield from self._workloads(found, state)

    def _workloads(self, found: Snapshot, state: ClusterState) -> Iterator[Change]:
        """Yield workloads that are new, or pending and edited; deleted ones stay deleted."""
        for admitted in found.admitted_workloads:
            if admitted.workload.key not in self._told:
                yield changes.WorkloadHolds(admitted)
        for workload in found.waiting:
            older = self._told.get(workload.key)
            if older is None or (older != workload and workload.key in state.waiting):
                yield changes.WorkloadWaits(workload)
        known = [*found.waiting, *(admitted.workload for admitted in found.admitted_workloads)]
        self._told.update((workload.key, workload) for workload in known)

    def check_warnings(self, part: Part) -> None:
        """Compare the codes of all warnings about what was applied."""
        warnings = self._world.warnings if self._world else ()
        wanted, actual = sorted(part.names()), sorted(warning.code for warning in warnings)
        if wanted != actual:
            lines = "; ".join(warning.line() for warning in warnings)
            raise mismatch(part, f"expected {wanted}, got {actual}: {lines}")

    def check_unmanaged(self, part: Part) -> None:
        """Compare which jobs run without us."""
        wanted = sorted(key_of(name) for name in part.names())
        actual = sorted(self._world.unmanaged if self._world else ())
        if wanted != actual:
            raise mismatch(part, f"expected {wanted}, got {actual}")

    def check_versions(self, part: Part) -> None:
        """Compare fields of applied objects, read in the versions named."""
        for version, objects in part.entries():
            for name, fields in objects.entries():
                shown = self._queue_in(fields, name, version)
                for path, wanted in fields.entries():
                    actual = _plain(_at(wanted, shown, path))
                    if actual != wanted.value:
                        raise mismatch(wanted, f"expected {wanted.value}, got {actual}")

    def _queue_in(self, part: Part, name: str, version: str) -> msgspec.Struct:
        """Return a ClusterQueue, the one kind whose versions differ most, in a version."""
        kind, _, queue = name.partition("/")
        text = self._documents.get((kind, "", queue))
        if kind != "ClusterQueue" or text is None:
            part.fail(f"there is no ClusterQueue {queue}")
        old, problems = decode(ClusterQueueV1Beta1, yaml.safe_load(text))
        if old is None:
            part.fail(f"is not in v1beta1: {problems}")
        new = kueue_kinds.upgrade_queue(old)
        readings: Mapping[str, ClusterQueue | ClusterQueueV1Beta1] = {
            kueue_kinds.V1BETA2: new,
            kueue_kinds.V1BETA1: kueue_kinds.downgrade_queue(new),
        }
        if version not in readings:
            part.fail(f"there is no version {version}; there are {', '.join(readings)}")
        return readings[version]


def _text(part: Part, name: str) -> str:
    path = ROOT / name
    if not path.is_file():
        part.fail(f"there is no file {name}")
    return path.read_text(encoding="utf-8")


def _identity(part: Part, document: str) -> tuple[str, str, str]:
    """Return kind, namespace and name: what is applied under the same ones replaces the older."""
    found = yaml.safe_load(document)
    if not isinstance(found, dict):
        part.fail(f"is no manifest: {document!r}")
    metadata = found.get("metadata") or {}
    name = metadata.get("name") or next(iter(found))  # not everything is a Kubernetes object
    return str(found.get("kind", "")), str(metadata.get("namespace", "")), str(name)


def _at(part: Part, value: Any, path: str) -> Any:
    """Follow a path of names as the API writes them; a default counts as written."""
    for word in path.split("."):
        names = dict(
            zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
            if isinstance(value, msgspec.Struct)
            else ()
        )
        if word not in names:
            part.fail(f"there is no {word} in {path}")
        value = getattr(value, names[word])
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return encode(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
