"""Runtimes of TrainJobs: found, and kept as long as a TrainJob uses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.controller import own_key
from unisono.control.jobs.pods import is_deleting
from unisono.control.manifests import LiveContext, Manifests
from unisono.control.view import View
from unisono.kinds.decode import decode
from unisono.kinds.known import KNOWN
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

IN_USE = "trainer.kubeflow.org/resource-in-use"
BY_RUNTIME = "runtime"
_BY_NAME = {one.kind: one for one in (names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME)}


def runtime_key(kind: Kind, key: Key) -> str:
    """Return how the index of TrainJobs calls a runtime."""
    return f"{kind.kind}/{key.namespace}/{key.name}"


def runtimes_used(job: Json) -> Iterable[str]:
    """Index TrainJobs by their runtime."""
    kind, key = _reference(job)
    return (runtime_key(kind, key),) if kind is not None and key.name else ()


def runtime_of(job: Json, view: View) -> Json | None:
    """Return the runtime that a TrainJob names."""
    kind, key = _reference(job)
    return view.get(kind, key.name, key.namespace) if kind is not None else None


def _reference(job: Json) -> tuple[Kind | None, Key]:
    ref = (job.get("spec") or {}).get("runtimeRef") or {}
    kind = _BY_NAME.get(ref.get("kind", names.CLUSTER_TRAINING_RUNTIME.kind))
    is_namespaced = kind == names.TRAINING_RUNTIME
    namespace = job["metadata"].get("namespace", "") if is_namespaced else ""
    return kind, Key(namespace, ref.get("name", ""))


class RuntimesInUse:
    """Keeps a finalizer on every runtime that a TrainJob refers to.

    The key of a runtime for all namespaces has none.
    """

    name = "training-runtimes"
    watches: Sequence[Kind] = (
        names.TRAIN_JOB,
        names.TRAINING_RUNTIME,
        names.CLUSTER_TRAINING_RUNTIME,
    )

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A runtime, or the one that a TrainJob uses."""
        if kind == names.TRAIN_JOB:
            _, key = _reference(obj)
            return (key,) if key.name else ()
        return (own_key(obj),)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Set or take the finalizer."""
        kind = names.TRAINING_RUNTIME if key.namespace else names.CLUSTER_TRAINING_RUNTIME
        runtime = view.get(kind, key.name, key.namespace)
        if runtime is None:
            return
        finalizers = runtime["metadata"].get("finalizers") or []
        is_used = bool(view.by(names.TRAIN_JOB, BY_RUNTIME, runtime_key(kind, key)))
        if is_used and IN_USE not in finalizers and not is_deleting(runtime):
            changed = [*finalizers, IN_USE]
        elif not is_used and IN_USE in finalizers:
            changed = [one for one in finalizers if one != IN_USE]
        else:
            return
        yield Patch(Ref.to(runtime), {"metadata": {"finalizers": changed}})


# ---- faults --------------------------------------------------------------------------------------
#
# What is wrong with a TrainJob in view of its runtime. The API checks it when a TrainJob is
# submitted; its runtime may have come, gone or changed since.


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
