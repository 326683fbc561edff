"""A TrainJob being rendered: the JobSet so far, and ways to change parts of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from unisono.control.actions import Json
from unisono.control.jobs.pods import strategic, with_variables
from unisono.kinds.quantity import Quantity
from unisono.kinds.trainer.stock import ANCESTOR, NODE, TRAINER

# The manager of injected patches: left out when the gang is described, replaced when it starts.
INJECTOR = "kueue.x-k8s.io/manager"


@dataclass(slots=True)
class Draft:
    """What is rendered; `counts` says how many pods each replicated job has."""

    train_job: Json
    runtime: Json  # the runtime's spec
    runtime_name: str
    job_set: Json = field(init=False)  # metadata and spec
    counts: dict[str, int] = field(default_factory=dict)
    extras: list[Json] = field(default_factory=list)  # objects besides the JobSet

    def __post_init__(self) -> None:
        """Begin with a copy of the runtime's template."""
        self.job_set = copy.deepcopy(self.runtime.get("template") or {})
        self.job_set.setdefault("metadata", {})
        self.job_set.setdefault("spec", {}).setdefault("replicatedJobs", [])

    @property
    def name(self) -> str:
        """The name of the TrainJob, and of its JobSet."""
        return str(self.train_job["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Where everything is made."""
        return str(self.train_job["metadata"]["namespace"])

    @property
    def trainer(self) -> Json:
        """What the TrainJob says of its nodes."""
        return self.train_job["spec"].get("trainer") or {}

    @property
    def policy(self) -> Json:
        """How the nodes find each other."""
        return self.runtime.get("mlPolicy") or {}

    @property
    def jobs(self) -> list[Json]:
        """The replicated jobs."""
        return list(self.job_set["spec"]["replicatedJobs"])

    @property
    def subdomain(self) -> str:
        """The name of the Service through which pods find each other."""
        network = self.job_set["spec"].get("network") or {}
        return str(network.get("subdomain") or self.name)

    def host(self, replicated: str, pod: int = 0) -> str:
        """Return the name under which a pod is found."""
        return f"{self.name}-{replicated}-0-{pod}.{self.subdomain}"

    def trainers(self) -> Iterator[Json]:
        """Yield the replicated jobs that train."""
        return (one for one in self.jobs if role_of(one) == TRAINER)

    def job(self, name: str) -> Json | None:
        """Return a replicated job by name."""
        return next((one for one in self.jobs if one["name"] == name), None)


def role_of(replicated: Json) -> str:
    """Return which part of a training job a replicated job plays; empty if none."""
    metadata = replicated["template"].get("metadata") or {}
    return str((metadata.get("labels") or {}).get(ANCESTOR, ""))


def pod_template(replicated: Json) -> Json:
    """Return the pod template of a replicated job, to be changed in place."""
    spec: Json = replicated["template"].setdefault("spec", {})
    template: Json = spec.setdefault("template", {})
    template.setdefault("spec", {})
    return template


def change_pods(replicated: Json, change: Json) -> None:
    """Merge a change into the pod template of a replicated job."""
    template = pod_template(replicated)
    replicated["template"]["spec"]["template"] = strategic(template, change)


def containers(replicated: Json, name: str = NODE) -> Iterator[Json]:
    """Yield the containers of a name, to be changed in place."""
    for one in pod_template(replicated)["spec"].get("containers") or ():
        if one["name"] == name:
            yield one


def set_variables(container: Json, variables: Sequence[Json]) -> None:
    """Set variables of a container; those that are there under the same name are replaced."""
    if variables:
        container["env"] = with_variables(container.get("env"), variables)


def add_variables(container: Json, variables: Sequence[Json]) -> None:
    """Set variables of a container that it does not have yet."""
    own = {one["name"] for one in container.get("env") or ()}
    set_variables(container, [one for one in variables if one["name"] not in own])


def add_port(container: Json, port: int) -> None:
    """Declare a port of a container."""
    ports = container.get("ports") or []
    if not any(one.get("containerPort") == port for one in ports):
        container["ports"] = [*ports, {"containerPort": port}]


def amount(resources: Json, is_meant: Callable[[str], bool]) -> Quantity | None:
    """Return how much of a resource is requested, or else the limit of it; None if neither."""
    for part in ("requests", "limits"):
        for name, value in (resources.get(part) or {}).items():
            if is_meant(name):
                return Quantity.from_raw(value)
    return None


def gpus_of(container: Json) -> int:
    """Return how many GPUs a container has."""
    found = amount(container.get("resources") or {}, lambda name: "gpu" in name.lower())
    return found.units if found is not None else 0
