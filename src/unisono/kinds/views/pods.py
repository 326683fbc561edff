"""Pods, their containers, and the templates that they are made from."""

from __future__ import annotations

from unisono.kinds.views.base import (
    Amounts,
    Flag,
    Number,
    NumberIfAny,
    Part,
    PartIfAny,
    Parts,
    Raws,
    Text,
    TextMap,
    Texts,
    View,
    seconds_of,
)
from unisono.kinds.views.objects import Object, ObjectMeta, Status


class Resources(View):
    """What a container asks for, and what it may not exceed."""

    __slots__ = ()

    requests = Amounts("requests")
    limits = Amounts("limits")


class EnvVar(View):
    """An environment variable."""

    __slots__ = ()

    name = Text("name")
    value = Text("value")


class ContainerPort(View):
    """A port that a container listens at."""

    __slots__ = ()

    name = Text("name")
    container_port = Number("containerPort")
    host_port = Number("hostPort")
    protocol = Text("protocol", "TCP")


class VolumeMount(View):
    """Where a volume appears in a container."""

    __slots__ = ()

    name = Text("name")
    mount_path = Text("mountPath")
    sub_path = Text("subPath")
    read_only = Flag("readOnly")


class Container(View):
    """One container."""

    __slots__ = ()

    name = Text("name")
    image = Text("image")
    command = Texts("command")
    args = Texts("args")
    working_dir = Text("workingDir")
    env = Parts("env", EnvVar)
    ports = Parts("ports", ContainerPort)
    resources = Part("resources", Resources)
    restart_policy = Text("restartPolicy")
    volume_mounts = Parts("volumeMounts", VolumeMount)

    @property
    def is_sidecar(self) -> bool:
        """Whether it keeps running beside the containers (init containers only)."""
        return self.restart_policy == "Always"


class Toleration(View):
    """A taint that a pod accepts."""

    __slots__ = ()

    key = Text("key")
    operator = Text("operator")
    value = Text("value")
    effect = Text("effect")


class SchedulingGate(View):
    """What keeps a pod from being scheduled."""

    __slots__ = ()

    name = Text("name")


class PodSpec(View):
    """What a pod is made of."""

    __slots__ = ()

    node_name = Text("nodeName")
    node_selector = TextMap("nodeSelector")
    containers = Parts("containers", Container)
    init_containers = Parts("initContainers", Container)
    overhead = Amounts("overhead")
    resources = Part("resources", Resources)
    tolerations = Parts("tolerations", Toleration)
    scheduling_gates = Parts("schedulingGates", SchedulingGate)
    scheduler_name = Text("schedulerName")
    priority = NumberIfAny("priority")
    priority_class_name = Text("priorityClassName")
    preemption_policy = Text("preemptionPolicy")
    restart_policy = Text("restartPolicy")
    host_network = Flag("hostNetwork")
    hostname = Text("hostname")
    subdomain = Text("subdomain")
    termination_grace_period_seconds = NumberIfAny("terminationGracePeriodSeconds")
    active_deadline_seconds = NumberIfAny("activeDeadlineSeconds")
    volumes = Raws("volumes")
    resource_claims = Raws("resourceClaims")


class PodTemplate(View):
    """What every pod of a set is made from."""

    __slots__ = ()

    metadata = Part("metadata", ObjectMeta)
    spec = Part("spec", PodSpec)


class Running(View):
    """Since when a container runs."""

    __slots__ = ()

    started_at = Text("startedAt")


class Waiting(View):
    """Why a container does not run yet."""

    __slots__ = ()

    reason = Text("reason")
    message = Text("message")


class Terminated(View):
    """How a container ended."""

    __slots__ = ()

    exit_code = Number("exitCode")
    signal = Number("signal")
    reason = Text("reason")
    message = Text("message")
    started_at = Text("startedAt")
    finished_at = Text("finishedAt")


class ContainerState(View):
    """What a container does; one of the three is there, even if it says nothing more."""

    __slots__ = ()

    waiting = PartIfAny("waiting", Waiting)
    running = PartIfAny("running", Running)
    terminated = PartIfAny("terminated", Terminated)


class ContainerStatus(View):
    """What a kubelet reports of one container."""

    __slots__ = ()

    name = Text("name")
    ready = Flag("ready")
    restart_count = Number("restartCount")
    state = Part("state", ContainerState)
    last_state = Part("lastState", ContainerState)


class PodStatus(Status):
    """What became of a pod."""

    __slots__ = ()

    phase = Text("phase", "Pending")
    reason = Text("reason")
    message = Text("message")
    nominated_node_name = Text("nominatedNodeName")
    host_ip = Text("hostIP")
    pod_ip = Text("podIP")
    start_time = Text("startTime")
    container_statuses = Parts("containerStatuses", ContainerStatus)
    init_container_statuses = Parts("initContainerStatuses", ContainerStatus)

    @property
    def started(self) -> float:
        """When a kubelet took it, in seconds since 1970; 0 if none did."""
        return seconds_of(self.start_time)


class Pod(Object):
    """One pod."""

    __slots__ = ()

    spec = Part("spec", PodSpec)
    status = Part("status", PodStatus)

    @property
    def phase(self) -> str:
        """Its phase; Pending as long as nothing was reported."""
        return self.status.phase

    @property
    def is_over(self) -> bool:
        """Whether it ended, and holds nothing any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_gated(self) -> bool:
        """Whether a scheduling gate keeps it from being scheduled."""
        return bool(self.spec.raw.get("schedulingGates"))
