"""A batch script on four nodes, and a short job that is backfilled without delaying it."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap

from unisono.cli.demo.stage import Stage, StoryFailed, stage
from unisono.cli.slurm_programs.dispatch import context
from unisono.cli.why.answer import answer
from unisono.cli.why.read import gather
from unisono.cli.why.text import text as why_text
from unisono.kube.form import Json
from unisono.slurm.client import ApiClient, access_of
from unisono.slurm.commands import sbatch, sinfo, sprio, squeue
from unisono.slurm.commands.context import Context, Outcome
from unisono.slurm.listing import PUBLISHED_MAP
from unisono.slurm.states import is_over

_PROGRAMS = {"sbatch": sbatch.run, "squeue": squeue.run, "sprio": sprio.run, "sinfo": sinfo.run}

_POLICY = """\
apiVersion: unisono.dev/v1
kind: Policy
metadata: {name: unisono}
backfill: {dates: 0}
---
apiVersion: unisono.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: demo}
spec:
  weights: {age: 1000, fairShare: 10000, jobSize: 500, qos: 3000}
  maxAge: 1h
  accounts:
    - {name: vision, shares: 60, users: [{name: ann}, {name: bob}]}
    - {name: nlp, shares: 40, users: [{name: eve}]}
  qos: [{name: low, priority: 10}, {name: normal, priority: 50}, {name: high, priority: 100}]
  defaultQos: normal
"""

TRAIN = """\
#!/bin/bash
#SBATCH --job-name=train --nodes=4 --ntasks-per-node=8
#SBATCH --gres=gpu:8 --time=30 --account=vision --qos=high
srun python train.py
sleep 3
"""


async def tell() -> None:
    """Tell it."""
    async with stage(
        "A batch script on four nodes", "4x{gpu=8,cpu=64,memory=512Gi}", policy=_POLICY
    ) as on:
        story = _Story(on)
        on.say(
            "Four nodes with 8 GPUs each. A job of eve runs on two of them, for 10 more minutes at "
            "most. ann submits the same script as on Slurm: four whole nodes."
        )
        await story.run("eve", "sbatch", "-N2", "--gres=gpu:8", "-t10", "-Anlp", "-Jsweep", wrap=6)
        await story.until("sweep", "RUNNING")
        sys.stdout.write(textwrap.indent(TRAIN, "    "))
        await story.run("ann", "sbatch", "train.sh", script=TRAIN)
        await story.waits("train")
        on.say("bob has two short jobs of two nodes: one of 5 minutes, and one of an hour.")
        two = ("sbatch", "-N2", "--gres=gpu:8", "-Avision", "-qlow")
        await story.run("bob", *two, "-t5", "-Jshort", wrap=2)
        await story.run("bob", *two, "-t60", "-Jlong", wrap=2)
        await story.until("short", "RUNNING")
        await story.waits("long")
        await story.run("bob", "squeue")
        await story.run("bob", "squeue", "--start")
        on.say(
            "short is backfilled: it ends before train can start. long would delay train, so it "
            "waits although nodes are free. Priorities by factor:"
        )
        await story.priorities()
        await story.run("bob", "sprio", "-l")
        await story.until("short", "COMPLETED")
        await story.fits("long")
        await story.why("long")
        on.say("When sweep ends, all four nodes of train start together.")
        await story.until("train", "RUNNING")
        await story.run("ann", "squeue")
        await story.run("ann", "sinfo")
        await story.until("train", "COMPLETED")
        await story.until("long", "COMPLETED")
        on.say("A gang, backfill and fair-share priorities: from batch scripts, without Slurm.")


class _Story:
    """Slurm's programs on the stage of a story."""

    def __init__(self, on: Stage) -> None:
        self._on = on
        access = access_of(str(on.kubeconfig))
        assert access is not None, "the kubeconfig is our own"
        self._access = access

    async def run(
        self, user: str, program: str, *arguments: str, script: str = "", wrap: int = 0
    ) -> None:
        """Call a program as a user, and show what it prints."""
        words = [*arguments, *(["--wrap", f"sleep {wrap}"] if wrap else [])]
        line = " ".join(f'"{word}"' if " " in word else word for word in words)
        outcome = await asyncio.to_thread(self._call, user, program, words, script)
        sys.stdout.write(f"\n  {user}$ {program} {line}\n{textwrap.indent(outcome.text, '  ')}")
        sys.stdout.flush()

    def _call(self, user: str, program: str, words: list[str], script: str) -> Outcome:
        # A thread of its own: the cluster that answers lives in this process, too.
        api = ApiClient(self._access)
        here = context()._replace(user=user, connect=lambda options: api, read=lambda path: script)
        found: Context = here._replace(environment={}, directory="/tmp")
        try:
            return _PROGRAMS[program](words, found)
        finally:
            api.close()

    def _job(self, name: str) -> Json | None:
        jobs = self._on.every("unisono.dev/slurmjobs")
        return next((one for one in jobs if one["spec"]["jobName"] == name), None)

    def _status(self, name: str) -> Json:
        return (self._job(name) or {}).get("status") or {}

    async def until(self, name: str, state: str) -> None:
        """Wait until a job is in a state."""

        def is_so() -> bool:
            found = self._status(name).get("state", "")
            if is_over(found) and found != state:
                raise StoryFailed(f"the story stops here: {name} is {found}, not {state}")
            return bool(found == state)

        await self._on.until(f"{name} is {state}", is_so)

    async def waits(self, name: str) -> None:
        """Wait until it is known why, and until when, a job waits."""
        await self._on.until(
            f"{name} has a date", lambda: bool(self._status(name).get("expectedStart"))
        )

    async def fits(self, name: str) -> None:
        """Wait until a job would fit, and waits for another's sake."""
        await self._on.until(
            f"{name} fits", lambda: "it fits now" in str(self._status(name).get("message", ""))
        )

    async def priorities(self) -> None:
        """Wait until the priorities of pending jobs are stored."""

        def is_so() -> bool:
            for one in self._on.every("/configmaps"):
                if one["metadata"]["name"] == PUBLISHED_MAP:
                    told = json.loads(one["data"]["turns"]).get("factors") or {}
                    return str(self._identity("long")) in told
            return False

        await self._on.until("priorities are written down", is_so)

    def _identity(self, name: str) -> int:
        job = self._job(name)
        return int(job["spec"]["jobId"]) if job is not None else 0

    async def why(self, name: str) -> None:
        """Show why a job waits."""
        job = self._job(name)
        assert job is not None
        found = answer(await gather(self._on.client, job))
        command = f"unisono why slurmjob/{job['metadata']['name']}"
        told = textwrap.indent(why_text(found, context().now), "  ")
        sys.stdout.write(f"\n  bob$ {command}\n{told}")
        sys.stdout.flush()
