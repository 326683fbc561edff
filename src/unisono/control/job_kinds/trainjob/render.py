"""From a TrainJob and its runtime to a JobSet (jobs §1.4).

1  overrides and patches go into the pod templates
2  a replicated job has as many pods as its template says, the trainer as many as the runtime's
   policy says; trainer.numNodes replaces that
3  image, command, arguments, resources and variables of the trainer; the initializers' sources
4  the policy's plugin: how the nodes find each other
5  the group for another gang scheduler, if the runtime names one
6  the JobSet: named like the TrainJob, owned by it, one replica of everything

The typed reader in `kinds.trainer.render` knows the same rules as far as a decision needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.gangs.recovery import ACCOUNTING, FIRST_DELAY, MAX_RESTARTS
from unisono.control.job_kinds.jobset.rules import stages_of
from unisono.control.job_kinds.trainjob.ml_policy import (
    apply_jax,
    apply_mpi,
    apply_torch,
    apply_xgboost,
)
from unisono.control.job_kinds.trainjob.parts import (
    INJECTOR,
    Draft,
    change_pods,
    containers,
    pod_template,
    role_of,
    set_variables,
)
from unisono.control.jobs.workload import owner_reference
from unisono.kinds.quantity import Quantity, format_amount
from unisono.kinds.trainer.stock import DATASET_INITIALIZER, MODEL_INITIALIZER, NODE, TRAINER

# What a TrainJob says to the operator of its JobSet.
_CARRIED = (ACCOUNTING, FIRST_DELAY, MAX_RESTARTS, "unisono.dev/recovery-timeout")


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a TrainJob becomes: objects that must be there first, and the JobSet."""

    job_set: Json
    extras: Sequence[Json]


def rendered(train_job: Json, runtime: Json, *, injected: bool = True) -> Rendered:
    """Return what a TrainJob becomes; without what was injected at its start if asked so."""
    draft = Draft(train_job, runtime["spec"], runtime["metadata"]["name"])
    _override(draft, injected=injected)
    _count(draft)
    _train(draft)
    _initialize(draft)
    if draft.policy.get("torch") is not None:
        apply_torch(draft)
    elif draft.policy.get("mpi") is not None:
        apply_mpi(draft)
    elif draft.policy.get("jax") is not None:
        apply_jax(draft)
    elif draft.policy.get("xgboost") is not None:
        apply_xgboost(draft)
    for replicated in draft.jobs:
        replicated["replicas"] = 1
        spec = replicated["template"].setdefault("spec", {})
        spec["parallelism"] = spec["completions"] = draft.counts[replicated["name"]]
    group_pods(draft)
    return Rendered(_job_set(draft, injected=injected), draft.extras)


def _job_set(draft: Draft, *, injected: bool) -> Json:
    spec = draft.train_job["spec"]
    own = draft.train_job["metadata"].get("annotations") or {}
    labels = {**(draft.job_set["metadata"].get("labels") or {}), **(spec.get("labels") or {})}
    annotations = {
        **(draft.job_set["metadata"].get("annotations") or {}),
        **{key: own[key] for key in _CARRIED if key in own},
        **(spec.get("annotations") or {}),
    }
    for patch in _patches(draft.train_job, injected=injected):
        metadata = patch.get("metadata") or {}
        labels |= metadata.get("labels") or {}
        annotations |= metadata.get("annotations") or {}
    return {
        "apiVersion": names.JOB_SET.api_version,
        "kind": names.JOB_SET.kind,
        "metadata": {
            "name": draft.name,
            "namespace": draft.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(draft.train_job)],
        },
        "spec": {**draft.job_set["spec"], "suspend": bool(spec.get("suspend"))},
    }


# ---- 1 overrides -------------------------------------------------------------------------------


def _override(draft: Draft, *, injected: bool) -> None:
    spec = draft.train_job["spec"]
    for override in spec.get("podTemplateOverrides") or ():
        for target in override.get("targetJobs") or ():
            _change(draft, target["name"], override.get("metadata"), override.get("spec"))
    for override in spec.get("podSpecOverrides") or ():
        change = {key: value for key, value in override.items() if key != "targetJobs"}
        for target in override.get("targetJobs") or ():
            _change(draft, target["name"], None, change)
    for patch in _patches(draft.train_job, injected=injected):
        for one in (patch.get("spec") or {}).get("replicatedJobs") or ():
            template = one.get("template") or {}
            pods = (template.get("spec") or {}).get("template") or {}
            _change(draft, one["name"], pods.get("metadata"), pods.get("spec"))
            replicated = draft.job(one["name"])
            metadata = template.get("metadata") or {}
            if replicated is not None and metadata:
                own = replicated["template"].setdefault("metadata", {})
                for key in ("labels", "annotations"):
                    if metadata.get(key):
                        own[key] = {**(own.get(key) or {}), **metadata[key]}


def _patches(train_job: Json, *, injected: bool) -> Iterator[Json]:
    """Yield what each party changes in the runtime's template."""
    for patch in train_job["spec"].get("runtimePatches") or ():
        if injected or patch.get("manager") != INJECTOR:
            yield (patch.get("trainingRuntimeSpec") or {}).get("template") or {}


def _change(draft: Draft, job: str, metadata: Json | None, spec: Json | None) -> None:
    replicated = draft.job(job)
    if replicated is not None:
        change = {"metadata": metadata or {}, "spec": spec or {}}
        change_pods(replicated, {key: value for key, value in change.items() if value})


# ---- 2 counts ----------------------------------------------------------------------------------


def _count(draft: Draft) -> None:
    wanted = draft.trainer.get("numNodes")
    mpi = draft.policy.get("mpi")
    for replicated in draft.jobs:
        name, is_trainer = replicated["name"], role_of(replicated) == TRAINER
        spec = replicated["template"].get("spec") or {}
        count = int(spec.get("parallelism") or 1)
        if is_trainer:
            count = int(draft.policy.get("numNodes") or 1)
        if wanted is not None and mpi is not None:
            if name == NODE:
                count = max(1, wanted - 1) if mpi.get("runLauncherAsNode") else wanted
        elif wanted is not None and is_trainer:
            count = wanted
        draft.counts[name] = max(1, count)


# ---- 3 trainer and initializers ----------------------------------------------------------------


def _train(draft: Draft) -> None:
    trainer = draft.trainer
    mpi = draft.policy.get("mpi") or {}
    for replicated in draft.jobs:
        is_trainer = role_of(replicated) == TRAINER
        if not is_trainer and not (mpi.get("runLauncherAsNode") and replicated["name"] == NODE):
            continue
        for container in containers(replicated):
            for key in ("image", "command", "args") if is_trainer else ("image",):
                if trainer.get(key):
                    container[key] = trainer[key]
            resources = trainer.get("resourcesPerNode") or {}
            if resources.get("requests") or resources.get("limits"):
                container["resources"] = resources
            set_variables(container, trainer.get("env") or ())


def _initialize(draft: Draft) -> None:
    sources = draft.train_job["spec"].get("initializer") or {}
    for role, part in ((DATASET_INITIALIZER, "dataset"), (MODEL_INITIALIZER, "model")):
        source = sources.get(part)
        if not source:
            continue
        for replicated in draft.jobs:
            if role_of(replicated) != role:
                continue
            for container in containers(replicated, role):
                address = source.get("storageUri")
                if address:
                    set_variables(container, [{"name": "STORAGE_URI", "value": address}])
                set_variables(container, source.get("env") or ())
                secret = source.get("secretRef")
                if secret:
                    there = container.get("envFrom") or []
                    container["envFrom"] = [*there, {"secretRef": secret}]


# ---- pod groups ----------------------------------------------------------------------------------
#
# The PodGroup that a runtime asks for, for the gang scheduler it was written for (jobs §1.4).
# Initializers never run at the same time as the trainers, so a group that counted them could
# never be whole. Its size is that of the largest set of pods that start together.

_COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
_VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
_VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
_TIMEOUT_SECONDS = 60


def group_pods(draft: Draft) -> None:
    """Add the PodGroup to what is made, and name it in the pods."""
    policy = draft.runtime.get("podGroupPolicy") or {}
    coscheduling, volcano = policy.get("coscheduling"), policy.get("volcano")
    if coscheduling is not None:
        _mark(draft, {"labels": {_COSCHEDULING_LABEL: draft.name}})
        timeout = coscheduling.get("scheduleTimeoutSeconds", _TIMEOUT_SECONDS)
        spec = {**_sums(draft), "scheduleTimeoutSeconds": timeout}
        draft.extras.append(_group(draft, "scheduling.x-k8s.io/v1alpha1", spec))
    elif volcano is not None:
        _mark(draft, {"annotations": {_VOLCANO_ANNOTATION: draft.name}})
        spec = _sums(draft)
        for key, value in (
            ("queue", _queue(draft)),
            ("priorityClassName", _priority(draft)),
            ("networkTopology", volcano.get("networkTopology")),
        ):
            if value:
                spec[key] = value
        draft.extras.append(_group(draft, "scheduling.volcano.sh/v1beta1", spec))


def _mark(draft: Draft, metadata: Json) -> None:
    for replicated in draft.jobs:
        change_pods(replicated, {"metadata": metadata})


def _group(draft: Draft, api_version: str, spec: Json) -> Json:
    return {
        "apiVersion": api_version,
        "kind": "PodGroup",
        "metadata": {
            "name": draft.name,
            "namespace": draft.namespace,
            "ownerReferences": [owner_reference(draft.train_job)],
        },
        "spec": spec,
    }


def _sums(draft: Draft) -> Json:
    """Return how many pods start together, and what they request."""
    stages = stages_of(draft.job_set["spec"])
    sizes: dict[int, int] = {}
    totals: dict[int, dict[str, int]] = {}
    for replicated in draft.jobs:
        stage, count = stages[replicated["name"]], draft.counts[replicated["name"]]
        sizes[stage] = sizes.get(stage, 0) + count
        total = totals.setdefault(stage, {})
        for name, amount in _requests(replicated).items():
            total[name] = total.get(name, 0) + amount * count
    largest = max(sizes, key=lambda stage: (sizes[stage], stage), default=0)
    needs = totals.get(largest, {})
    return {
        "minMember": sizes.get(largest, 0),
        "minResources": {name: format_amount(amount, name) for name, amount in needs.items()},
    }


def _requests(replicated: Json) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for container in pod_template(replicated)["spec"].get("containers") or ():
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, value in wanted.items():
            found[name] = found.get(name, 0) + Quantity.from_raw(value).amount(name)
    return found


def _queue(draft: Draft) -> str:
    own = draft.train_job["metadata"].get("annotations") or {}
    given = draft.train_job["spec"].get("annotations") or {}
    runtime = draft.job_set["metadata"].get("annotations") or {}
    return str(
        given.get(_VOLCANO_QUEUE) or own.get(_VOLCANO_QUEUE) or runtime.get(_VOLCANO_QUEUE, "")
    )


def _priority(draft: Draft) -> str:
    for replicated in draft.jobs:
        name = pod_template(replicated)["spec"].get("priorityClassName")
        if name:
            return str(name)
    return ""
