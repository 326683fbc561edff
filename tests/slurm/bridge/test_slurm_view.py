"""What a real Slurm 22.05.8 printed, read; and the spellings of newer ones."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from unisono.kinds.overriding import override
from unisono.slurm.bridge.gang import PerNode, per_node, pin_fields
from unisono.slurm.bridge.slurm_commands import SlurmCommands, SlurmUnreachable
from unisono.slurm.bridge.slurm_view import Held, jobs_of, nodes_of, read_jobs

DATA = Path(__file__).parent / "data"
JOBS = jobs_of(json.loads((DATA / "squeue-22.05.json").read_text()))
NODES = nodes_of(json.loads((DATA / "sinfo-22.05.json").read_text()))


def test_a_running_job_and_what_it_has_on_each_node() -> None:
    job = JOBS["1"]
    assert (job.state, job.nice, job.on) == ("RUNNING", 50, ("g1", "g2"))
    assert job.held == (Held("g1", 5, 5120, 2), Held("g2", 1, 1024, 2))
    assert job.name == "a b 'q' $(reboot)\nUserId=root(0)"
    assert job.user == "root"


def test_an_array_is_its_tasks_that_wait() -> None:
    tasks = [key for key in JOBS if key.startswith("5_")]
    assert tasks == [f"5_{index}" for index in range(16)]
    assert JOBS["5_3"].most_at_once == 2
    assert JOBS["5_3"].is_held


def test_dependencies_and_begin_times() -> None:
    assert JOBS["6"].dependency.startswith("afterok:1")
    assert JOBS["6"].eligible > JOBS["6"].submitted


def test_what_a_pod_asks_for_is_an_even_part_and_slurm_is_told_so() -> None:
    exclusive, spread, tasks = JOBS["2"], JOBS["3"], JOBS["4"]
    assert per_node(JOBS["1"], NODES) == PerNode(cpus=3, memory_mib=3072, gpus=2)
    assert per_node(exclusive, NODES) == PerNode(cpus=32, memory_mib=262_144, gpus=8)
    assert per_node(spread, NODES) == PerNode(cpus=1, memory_mib=4096, gpus=3)
    assert per_node(tasks, NODES) == PerNode(cpus=12, memory_mib=12_288, gpus=6)
    assert pin_fields(spread, ("g3", "g1", "g2")) == [
        "ReqNodeList=g1,g2,g3",
        "NumNodes=3-3",
        "MinCPUsNode=1",
        "TresPerNode=gres:gpu:a100:3",
        "TresPerJob=",
    ]
    assert pin_fields(exclusive, ("g1", "g2")) == ["ReqNodeList=g1,g2", "NumNodes=2-2"]


def test_nodes_with_states_reasons_and_features() -> None:
    assert NODES["g1"].gpus_used == 2
    assert NODES["g1"].takes_jobs
    assert NODES["g3"].features == ("big", "gpu_avail:3")
    assert NODES["g4"].is_drained
    assert not NODES["g4"].takes_jobs
    assert NODES["g4"].reason == "admin: fan"


def test_newer_versions_wrap_numbers_and_list_states() -> None:
    wrapped: dict[str, Any] = {
        "job_id": 7,
        "job_state": ["PENDING"],
        "priority": {"set": True, "infinite": False, "number": 0},
        "time_limit": {"set": True, "infinite": True, "number": 0},
        "cpus": {"set": True, "infinite": False, "number": 4},
        "node_count": {"set": True, "infinite": False, "number": 2},
        "memory_per_cpu": {"set": False, "infinite": False, "number": 0},
        "tres_per_node": "gres/gpu:a100:2",
        "array_task_id": {"set": False, "number": 0},
    }
    job = jobs_of({"jobs": [wrapped]})["7"]
    assert (job.is_held, job.cpus, job.nodes, job.gpus_per_node) == (True, 4, 2, 2)
    assert (job.limit_minutes, job.memory_per_cpu, job.gpu_type) == (None, None, "a100")
    starting = jobs_of({"jobs": [{**wrapped, "job_state": ["RUNNING", "CONFIGURING"]}]})["7"]
    assert starting.state == "CONFIGURING"
    assert nodes_of({"nodes": [{"name": "n", "state": ["IDLE", "DRAIN"]}]})["n"].is_drained


def test_an_answer_with_errors_is_not_an_empty_queue() -> None:
    class Dead(SlurmCommands):
        @override
        async def __call__(self, program: str, *arguments: str, stdin: str = "") -> str:
            return '{"jobs": [], "nodes": [], "errors": [{"error": "Unable to contact"}]}'

    with pytest.raises(SlurmUnreachable, match="Unable to contact"):
        asyncio.run(read_jobs(Dead()))
