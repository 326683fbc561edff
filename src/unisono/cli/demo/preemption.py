"""Seed 003: two teams share CPUs, and production preempts development."""

from __future__ import annotations

from unisono.cli.demo.offline import examples_folder
from unisono.cli.demo.stage import Stage, stage

_CLUSTERS = "/apis/ray.io/v1/rayclusters"


async def tell() -> None:
    """Tell it."""
    folder = examples_folder() / "seed-003-preemption"
    nodes = "1x{cpu=8,memory=64Gi},1x{cpu=8,memory=64Gi,gpu=4}"
    async with stage("Production preempts development", nodes, speed=5.0) as on:
        on.say(
            "Team A and team B share ten CPUs. Team B starts a Ray cluster for development: 6 "
            "CPUs, all of them borrowed."
        )
        await on.apply(folder / "00-kueue.yaml")
        await on.apply(folder / "10-team-b-ray-cluster-dev.yaml")
        await on.until("development is ready", lambda: _state(on, "dev") == "ready")
        await on.show("kubectl get rayclusters -A", _CLUSTERS)
        on.say(
            "Team A submits production: 10 CPUs and 4 GPUs, with a higher priority. Development is "
            "suspended, and production starts when the last pod of it is gone."
        )
        await on.apply(folder / "20-team-a-ray-cluster-prod.yaml")
        await on.until("production is ready", lambda: _state(on, "prod") == "ready", 60.0)
        await on.until("development is suspended", lambda: _state(on, "dev") == "suspended")
        await on.show("kubectl get rayclusters -A", _CLUSTERS)
        on.say("No user had to stop anything by hand, and development comes back by itself.")


def _state(on: Stage, which: str) -> str:
    for one in on.every("ray.io/rayclusters"):
        if which in one["metadata"]["name"]:
            return str((one.get("status") or {}).get("state", ""))
    return ""
