"""Options that choose the Slurm and the cluster, and one reading of both."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # loading the client takes longer than answering --help
    from unisono.kube.client import Client
    from unisono.slurm.bridge.cluster_view import ClusterView
    from unisono.slurm.bridge.gang import Settings
    from unisono.slurm.bridge.slurm_commands import SlurmCommands
    from unisono.slurm.bridge.slurm_view import SlurmView


def add_sides(one: argparse.ArgumentParser) -> None:
    """Describe the options."""
    sides = one.add_argument_group("clusters")
    sides.add_argument(
        "--conf",
        type=Path,
        metavar="FILE",
        help="slurm.conf (default: $SLURM_CONF, else Slurm's own)",
    )
    sides.add_argument(
        "--cluster",
        default="",
        metavar="NAME",
        help="the name of the Slurm cluster (default: slurmctld says it)",
    )
    sides.add_argument(
        "-n",
        "--namespace",
        default="slurm",
        metavar="NS",
        help="the namespace of gangs (default: slurm)",
    )
    sides.add_argument(
        "--gpu",
        default="nvidia.com/gpu",
        metavar="RESOURCE",
        help="the resource for Slurm's gres/gpu (default: nvidia.com/gpu)",
    )
    sides.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="a cluster of `unisono up`, by its folder"
    )
    sides.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="a cluster, by its kubeconfig"
    )
    sides.add_argument("--context", default="", metavar="NAME", help="a context of the kubeconfig")


def programs_of(arguments: argparse.Namespace) -> SlurmCommands:
    """Return the programs of the Slurm that is meant."""
    from unisono.slurm.bridge.slurm_commands import SlurmCommands

    return SlurmCommands(arguments.conf)


async def settings_of(arguments: argparse.Namespace, programs: SlurmCommands) -> Settings:
    """Return how gangs are made there."""
    from unisono.slurm.bridge.gang import Settings
    from unisono.slurm.bridge.slurm_view import cluster_name

    return Settings(
        cluster=arguments.cluster or await cluster_name(programs),
        namespace=arguments.namespace,
        gpu=arguments.gpu,
    )


async def both(
    client: Client, arguments: argparse.Namespace, programs: SlurmCommands
) -> tuple[SlurmView, ClusterView, Settings]:
    """Read both sides once."""
    from unisono.kube.mapping import POD
    from unisono.slurm.bridge.apply import JOB, NODE
    from unisono.slurm.bridge.cluster_view import cluster_view_of
    from unisono.slurm.bridge.slurm_view import SlurmView, read_jobs, read_nodes

    settings = await settings_of(arguments, programs)
    slurm_view = SlurmView(await read_jobs(programs), await read_nodes(programs))
    cluster_view = cluster_view_of(
        jobs=(await client.list(JOB, settings.namespace)).items,
        workloads=await _workloads(client, settings.namespace),
        pods=(await client.list(POD)).items,
        nodes=(await client.list(NODE)).items,
        gpu=settings.gpu,
        cluster=settings.cluster,
    )
    return slurm_view, cluster_view, settings


async def _workloads(client: Client, namespace: str) -> list[dict[str, Any]]:
    """Return the Workloads of gangs; a cluster without our kinds has none."""
    from unisono.kinds.kueue.status_shape import readable
    from unisono.kube.errors import NotFound
    from unisono.slurm.bridge.apply import WORKLOAD

    try:
        return [*map(readable, (await client.list(WORKLOAD, namespace)).items)]
    except NotFound:
        return []
