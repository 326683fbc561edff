"""A cluster without nodes whose machines can be bought, on a clock that jumps."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tests.support.control_world import World
from unisono.control import names
from unisono.control.assembly import INDEXES, KINDS, Assembly, embedded
from unisono.control.view import View
from unisono.kinds.policy.settings import DEFAULTS, Settings
from unisono.kube.form import Json
from unisono.kube.transport import Transport
from unisono.provision import assembly as provisioning
from unisono.provision.offerings import OfferingsReader
from unisono.runner.addresses import Addresses
from unisono.runner.logs import LogFolder
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation

ALL_KINDS = (*KINDS, *provisioning.KINDS)
ALL_INDEXES = {**INDEXES, **provisioning.INDEXES}


def assembled(
    view: View, settings: Settings, logs: Path, *, cloud_is_ours: bool = True
) -> Assembly:
    """Return all controllers of an embedded cluster, with its cloud and its kubelet.

    Without our simulated cloud, NodeClaims must be fulfilled otherwise, as Karpenter does.
    """
    reader = OfferingsReader()
    made = embedded(view, settings, offerings=reader)
    kubelet = SimulatedKubelet(Simulation(), addresses=Addresses(), logs=LogFolder(logs))
    ours = provisioning.simulated(settings, reader, made.scheduler.can_replace)
    machines = ours if cloud_is_ours else provisioning.karpenter(settings)
    return dataclasses.replace(made, controllers=(*made.controllers, *machines, kubelet))


def told(
    story: Callable[[World], Awaitable[None]],
    settings: Settings = DEFAULTS,
    *,
    cloud_is_ours: bool = True,
    wrap: Callable[[Transport], Transport] = lambda transport: transport,
) -> World:
    """Tell a story on such a cluster."""
    with TemporaryDirectory() as folder:
        world = World(
            settings=settings,
            assemble=lambda view, chosen: assembled(
                view, chosen, Path(folder), cloud_is_ours=cloud_is_ours
            ),
            kinds=ALL_KINDS,
            indexes=ALL_INDEXES,
            wrap=wrap,
        )

        async def run() -> None:
            async with world.running():
                await story(world)

        asyncio.run(run())
        return world


def pool(
    name: str = "gpu",
    types: tuple[str, ...] = ("g6e.48xlarge",),
    *,
    zones: tuple[str, ...] = (),
    annotations: dict[str, str] | None = None,
    template: Json | None = None,
    **spec: Any,
) -> Json:
    """Return a NodePool that sells types of machines."""
    keys = {"node.kubernetes.io/instance-type": types, "topology.kubernetes.io/zone": zones}
    requirements = [
        {"key": key, "operator": "In", "values": list(values)}
        for key, values in keys.items()
        if values
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {
            "template": {
                "spec": {
                    "requirements": requirements,
                    "nodeClassRef": reference,
                    **(template or {}),
                }
            },
            **spec,
        },
    }


def cloud(**said: Any) -> Json:
    """Return what the simulated cloud is like."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "unisono-cloud", "namespace": "kube-system"},
        "data": {"cloud.yaml": yaml.safe_dump(said)},
    }


def claims(world: World) -> list[Json]:
    """Return the machines that are wanted or there."""
    return world.every(names.NODE_CLAIM)


def nodes(world: World) -> list[str]:
    """Return the names of nodes."""
    return [node["metadata"]["name"] for node in world.every(names.NODE)]


def bound(world: World) -> dict[str, str]:
    """Return the nodes of pods that have one."""
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in world.every(names.POD)
        if pod["spec"].get("nodeName")
    }


def only_workload(world: World) -> Json:
    """Return the one Workload that there is."""
    (found,) = world.every(names.WORKLOAD)
    return found


def condition(obj: Json, kind: str) -> Json:
    """Return a condition; an empty one if it is not there."""
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one["type"] == kind:
            return dict(one)
    return {"status": "", "reason": "", "message": ""}
