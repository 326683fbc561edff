"""What the registry knows of TrainJob and its runtimes, and what the operator would refuse."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.model.workload import PodSet
from unisono.kinds.core.pod_sets import check_template_sets, pod_sets
from unisono.kinds.core.validate import check_amounts
from unisono.kinds.decode import Problem
from unisono.kinds.jobset import ReplicatedJob, check_dependencies, replicated_sets
from unisono.kinds.meta import holds
from unisono.kinds.nearest import did_you_mean
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context, JobHooks, Kind
from unisono.kinds.trainer.render import (
    check_override,
    check_target,
    overrides_of,
    rendered,
    role_of,
)
from unisono.kinds.trainer.schema import (
    GROUP,
    RuntimeRef,
    Trainer,
    TrainingRuntime,
    TrainingRuntimeSpec,
    TrainJob,
    TrainJobSpec,
)
from unisono.kinds.trainer.stock import (
    DATASET_INITIALIZER,
    DEFAULT_RUNTIME,
    LAUNCHER,
    MODEL_INITIALIZER,
    NODE,
    STOCK_RUNTIMES,
    TRAINER,
)

CLUSTER_RUNTIME = "ClusterTrainingRuntime"
NAMESPACED_RUNTIME = "TrainingRuntime"

# The operator sets these itself; a job that set them too would train with the wrong peers.
_TORCH_ENV = frozenset(
    {
        "PET_NNODES",
        "PET_NPROC_PER_NODE",
        "PET_NODE_RANK",
        "PET_MASTER_ADDR",
        "PET_MASTER_PORT",
    }
)
_PROCESS_WORDS = ("auto", "cpu", "gpu")
# Role -> the container that plays it.
_CONTAINER_OF = {
    TRAINER: NODE,
    DATASET_INITIALIZER: DATASET_INITIALIZER,
    MODEL_INITIALIZER: MODEL_INITIALIZER,
}


def _check_job(job: TrainJob, notes: Notes) -> None:
    """Report what is wrong with a TrainJob whatever its runtime."""
    spec = job.spec
    if spec == TrainJobSpec():
        notes.lenient(
            "EmptySpec",
            "spec",
            f"is empty: taken as one pod of {DEFAULT_RUNTIME} that asks for nothing; write at"
            " least runtimeRef and trainer",
        )
        return
    if spec.runtime_ref is None:
        notes.problem("spec.runtimeRef", "is required")
    elif spec.runtime_ref.kind not in (CLUSTER_RUNTIME, NAMESPACED_RUNTIME):
        known = f"{CLUSTER_RUNTIME} or {NAMESPACED_RUNTIME}"
        notes.problem("spec.runtimeRef.kind", f'must be {known}, not "{spec.runtime_ref.kind}"')
    elif spec.runtime_ref.api_group != GROUP:
        found = spec.runtime_ref.api_group
        notes.problem("spec.runtimeRef.apiGroup", f'must be {GROUP}, not "{found}"')
    _report(_trainer_faults(spec.trainer or Trainer()), notes)
    seen: set[str] = set()
    for override in overrides_of(spec):
        if override.spec_path not in seen:
            _report(check_override(override), notes)
        seen.add(override.spec_path)


def _report(problems: Iterator[Problem], notes: Notes) -> None:
    for problem in problems:
        notes.problem(problem.path, problem.message)


def _trainer_faults(trainer: Trainer) -> Iterator[Problem]:
    if resources := trainer.resources_per_node:
        yield from check_amounts(resources.requests, "spec.trainer.resourcesPerNode.requests")
        yield from check_amounts(resources.limits, "spec.trainer.resourcesPerNode.limits")
    processes = trainer.num_proc_per_node
    if isinstance(processes, str) and processes not in _PROCESS_WORDS:
        yield Problem(
            "spec.trainer.numProcPerNode",
            f'must be a number or one of {", ".join(_PROCESS_WORDS)}, not "{processes}"',
        )
    elif isinstance(processes, int) and processes < 1:
        yield Problem("spec.trainer.numProcPerNode", f"is {processes}; it must be at least 1")


def _pod_sets(job: TrainJob, context: Context) -> tuple[PodSet, ...]:
    ref = job.spec.runtime_ref or RuntimeRef(name=DEFAULT_RUNTIME)
    runtime = _runtime(ref, context)
    if runtime is None:
        return ()
    faults = list(_faults_with(job.spec, runtime))
    _report(iter(faults), context.notes)
    return () if faults else pod_sets(rendered(job.spec, runtime, job.metadata.name), context)


def _runtime(ref: RuntimeRef, context: Context) -> TrainingRuntimeSpec | None:
    """Return the runtime that a job names, or report that there is none."""
    if ref.kind == NAMESPACED_RUNTIME:
        found = context.find(NAMESPACED_RUNTIME, ref.name, namespace=context.namespace)
        known = context.every(NAMESPACED_RUNTIME, namespace=context.namespace)
        names = [runtime.metadata.name for runtime in known]
        where = f"namespace {context.namespace}"
    else:
        found = context.find(CLUSTER_RUNTIME, ref.name)
        names = [runtime.metadata.name for runtime in context.every(CLUSTER_RUNTIME)]
        names.extend(STOCK_RUNTIMES)
        where = "the documents or among the stock runtimes"
    if isinstance(found, TrainingRuntime):
        return found.spec
    if ref.kind != NAMESPACED_RUNTIME and ref.name in STOCK_RUNTIMES:
        return STOCK_RUNTIMES[ref.name]
    hint = did_you_mean(ref.name, names) or "; add its manifest"
    context.notes.missing(
        "spec.runtimeRef.name", f'there is no {ref.kind} "{ref.name}" in {where}{hint}'
    )
    return None


def _faults_with(spec: TrainJobSpec, runtime: TrainingRuntimeSpec) -> Iterator[Problem]:
    """Yield what does not go together with the runtime."""
    jobs = runtime.template.spec.replicated_jobs
    for override in overrides_of(spec):
        yield from check_target(override, jobs)
    roles = {role_of(job) for job in jobs}
    initializer = spec.initializer
    for role, name, wanted in (
        (DATASET_INITIALIZER, "dataset", initializer.dataset if initializer else None),
        (MODEL_INITIALIZER, "model", initializer.model if initializer else None),
    ):
        if wanted is not None and role not in roles:
            yield Problem(
                f"spec.initializer.{name}", f"the runtime has no job with the role {role}"
            )
    yield from _policy_faults(spec.trainer or Trainer(), runtime)


def _policy_faults(trainer: Trainer, runtime: TrainingRuntimeSpec) -> Iterator[Problem]:
    policy = runtime.ml_policy
    if policy is None:
        return
    if policy.torch is not None:
        for index, variable in enumerate(trainer.env):
            if variable.name in _TORCH_ENV:
                at = f"spec.trainer.env[{index}].name"
                yield Problem(at, f"{variable.name} is set by the runtime; choose another name")
    if policy.mpi is None:
        return
    if isinstance(trainer.num_proc_per_node, str):
        yield Problem("spec.trainer.numProcPerNode", "must be a number for an MPI runtime")
    names = {job.name for job in runtime.template.spec.replicated_jobs}
    several = trainer.num_nodes is not None and trainer.num_nodes > 1
    if several and policy.mpi.run_launcher_as_node and not {LAUNCHER, NODE} <= names:
        yield Problem(
            "spec.trainer.numNodes",
            f"must be 1: the runtime has no jobs {LAUNCHER} and {NODE} to spread over",
        )


def _is_finished(job: TrainJob) -> bool:
    return holds(job.status.conditions, "Complete", "Failed")


def _reclaimable(job: TrainJob) -> tuple[tuple[str, int], ...]:
    """One pod for each job that succeeded: initializers have one, and trainers end everything."""
    return tuple((one.name, one.succeeded) for one in job.status.jobs_status if one.succeeded > 0)


def _check_runtime(runtime: TrainingRuntime, notes: Notes) -> None:
    jobs = runtime.spec.template.spec.replicated_jobs
    path = "spec.template.spec.replicatedJobs"
    if not jobs:
        notes.problem(path, "is required: there is nothing to run")
    check_template_sets(replicated_sets(jobs, path), notes)
    check_dependencies(jobs, path, notes)
    for index, job in enumerate(jobs):
        _check_role(job, f"{path}[{index}]", notes)
    policy = runtime.spec.ml_policy
    if policy is not None:
        ways = (policy.torch, policy.mpi, policy.jax, policy.xgboost, policy.flux)
        if sum(way is not None for way in ways) > 1:
            message = "at most one of torch, mpi, jax, xgboost and flux may be set"
            notes.problem("spec.mlPolicy", message)


def _check_role(job: ReplicatedJob, path: str, notes: Notes) -> None:
    """A job with a role has one replica and a container that is named after the role."""
    container = _CONTAINER_OF.get(role_of(job))
    if container is None:
        return
    if job.replicas != 1:
        notes.problem(f"{path}.replicas", f"is {job.replicas}; a job with a role has exactly 1")
    names = {one.name for one in job.template.spec.template.spec.containers}
    if container not in names:
        at = f"{path}.template.spec.template.spec.containers"
        notes.problem(at, f'a job with the role {role_of(job)} needs a container "{container}"')


def _runtime_kind(kind: str, *, namespaced: bool) -> Kind:
    return Kind(
        group=GROUP,
        version="v1alpha1",
        kind=kind,
        struct=TrainingRuntime,
        namespaced=namespaced,
        check=_check_runtime,
    )


KINDS = (
    Kind(
        group=GROUP,
        version="v1alpha1",
        kind="TrainJob",
        struct=TrainJob,
        namespaced=True,
        check=_check_job,
        job=JobHooks(pod_sets=_pod_sets, is_finished=_is_finished, reclaimable=_reclaimable),
    ),
    _runtime_kind(CLUSTER_RUNTIME, namespaced=False),
    _runtime_kind(NAMESPACED_RUNTIME, namespaced=True),
)
