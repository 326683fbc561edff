"""Devices by dynamic resource allocation: named, and held, until we can place them.

A pod asks for such devices in three ways:

    spec.resourceClaims                                  claims, or templates of claims
    limits[deviceclass.resource.kubernetes.io/CLASS]     the devices of a class, as a resource
    limits[NAME]                                         where a class has extendedResourceName NAME

No node says how many of them it has, and no quota counts a claim. Such a pod would be admitted for
its cpu alone, onto a node without a single device. So what asks for them waits, with this reason.
A resource that some node has by itself (from a device plugin) is an ordinary one, whatever classes
say of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import ClassVar

from unisono.kinds.core.schema import Container, PodSpec
from unisono.kinds.decode import Problem, Schema
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.registry import Context
from unisono.kinds.views import Raw

BY_CLASS = "deviceclass.resource.kubernetes.io/"
NOT_SUPPORTED = "dynamic resource allocation is not supported yet"
_MOST_NAMED = 3  # claims in one sentence


class DeviceClassSpec(Schema, frozen=True, kw_only=True):
    """Which devices a class means; only the resource name that stands for them is read."""

    is_open: ClassVar[bool] = True

    extended_resource_name: str | None = None


class DeviceClass(Schema, frozen=True, kw_only=True):
    """Devices that pods may claim (resource.k8s.io/v1)."""

    api_version: str = "resource.k8s.io/v1"
    kind: str = "DeviceClass"
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


def may_claim_devices(spec: Raw, named: Set[object]) -> bool:
    """Say whether an unread pod spec could ask for devices, so that most need not be decoded.

    `named` has the extendedResourceName of every class.

    >>> limits = {"cpu": 1, "nvidia.com/gpu": 1}
    >>> pod = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    >>> may_claim_devices(pod, set()), may_claim_devices(pod, {"nvidia.com/gpu"})
    (False, True)
    """
    if "resourceClaims" in spec:
        return True
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        for container in containers if type(containers) is list else ():
            if type(container) is not dict:
                continue
            resources = container.get("resources")
            if type(resources) is not dict:
                continue
            for part in ("limits", "requests"):
                amounts = resources.get(part)
                for resource in amounts if type(amounts) is dict else ():
                    if resource in named or resource.startswith(BY_CLASS):
                        return True
    return False


def device_claims(spec: PodSpec, context: Context) -> Iterator[Problem]:
    """Yield what a pod asks of dynamic resource allocation; paths start at its spec.

    Each message is one sentence that says why the pod waits, and what to write instead.
    """
    if spec.resource_claims:
        named = [str(one.get("name")) for one in spec.resource_claims if isinstance(one, Mapping)]
        noun = "resource claim" if len(named) == 1 else "resource claims"
        more = len(named) - _MOST_NAMED
        listed = ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        yield Problem(
            "resourceClaims",
            f"asks for devices by {noun} {listed}: {NOT_SUPPORTED}; ask for them in the limits of"
            " a container, as in nvidia.com/gpu: 1",
        )
    for path, resource in _asked(spec):
        of_class = resource.removeprefix(BY_CLASS) if resource.startswith(BY_CLASS) else ""
        of_class = of_class or _class_of(resource, context)
        if of_class and not _has_node(resource, context):
            yield Problem(
                f"{path}[{resource}]",
                f"asks for {resource} of DeviceClass {of_class}, and no node has it from a device"
                f" plugin: {NOT_SUPPORTED}",
            )


def _asked(spec: PodSpec) -> Iterator[tuple[str, str]]:
    """Yield each resource that containers ask for once, and where the first one does."""
    seen: set[str] = set()
    every: tuple[tuple[str, tuple[Container, ...]], ...] = (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    )
    for field, containers in every:
        for index, container in enumerate(containers):
            for part in ("limits", "requests"):
                for resource, amount in getattr(container.resources, part).items():
                    if "/" in resource and amount.nano > 0 and resource not in seen:
                        seen.add(resource)
                        yield f"{field}[{index}].resources.{part}", resource


def _class_of(resource: str, context: Context) -> str:
    """Return the class whose devices pods ask for by a resource; empty if there is none."""
    return min(
        (
            one.metadata.name
            for one in context.every("DeviceClass")
            if one.spec.extended_resource_name == resource
        ),
        default="",
    )


def _has_node(resource: str, context: Context) -> bool:
    return any(
        (amount := (node.status.allocatable or node.status.capacity).get(resource)) is not None
        and amount.nano > 0
        for node in context.every("Node")
    )
