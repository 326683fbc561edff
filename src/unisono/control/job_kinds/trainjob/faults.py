"""What is wrong with a TrainJob in view of its runtime: the rules of its kind, asked here again.

The API asks them when a TrainJob is submitted. Its runtime may have come, gone or changed since.
"""

from __future__ import annotations

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.manifests import LiveContext, Manifests
from unisono.control.view import View
from unisono.kinds.decode import decode
from unisono.kinds.known import KNOWN


class Faults:
    """Finds faults; remembers how the objects that the rules ask for read."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._view: View | None = None
        self._manifests: Manifests | None = None

    def of(self, job: Json, runtime: Json | None, view: View) -> list[str]:
        """Return sentences that say what to change; empty if nothing is wrong."""
        kind = KNOWN.kinds[names.TRAIN_JOB.api_version, names.TRAIN_JOB.kind]
        assert kind.job is not None, "a TrainJob is a job"
        manifest, problems = decode(kind.struct, job, ignore_unknown=True)
        if manifest is None:
            return [f"{one.path}: {one.message}" for one in problems]
        context = LiveContext(self._read(view), job["metadata"]["namespace"])
        kind.job.pod_sets(manifest, context)
        found = [f"{one.path}: {one.message}" for one in context.notes.problems]
        if not found and runtime is None:
            ref = job["spec"].get("runtimeRef") or {}
            what, name = ref.get("kind", names.CLUSTER_TRAINING_RUNTIME.kind), ref.get("name", "")
            return [f'spec.runtimeRef.name: there is no {what} "{name}"; create it']
        return found

    def _read(self, view: View) -> Manifests:
        if self._manifests is None or self._view is not view:
            self._view, self._manifests = view, Manifests(view)
        return self._manifests
