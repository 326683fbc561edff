"""Runs the programs of a real Slurm: squeue, sinfo, scontrol, sbatch, scancel.

Arguments are handed over as they are, one by one; nothing is ever read by a shell. What Slurm
refuses is `SlurmRefused` with its own message, and a Slurm that does not answer is `SlurmSilent`.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from unisono.engine.model.errors import UnisonoError

# slurmctld answers within milliseconds; one that is restarting takes seconds.
ANSWER_TIMEOUT_S = 20.0
_SILENT = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Connection refused",
    "Communication connection failure",
)


class SlurmRefused(UnisonoError):
    """Slurm answered, and said no."""


class SlurmUnreachable(UnisonoError):
    """Slurm did not answer: it is down, restarting or not installed here."""


class SlurmCommands:
    """The programs of one Slurm."""

    def __init__(self, conf: Path | None = None) -> None:
        """Use the Slurm of this slurm.conf, or the one of the machine."""
        path = f"{os.environ.get('PATH', '')}:/usr/bin:/usr/sbin:/usr/local/bin"
        self._environment = {"PATH": path.strip(":"), "LC_ALL": "C.UTF-8"}
        if "SLURM_CONF" in os.environ:
            self._environment["SLURM_CONF"] = os.environ["SLURM_CONF"]
        if conf is not None:
            self._environment["SLURM_CONF"] = str(conf)

    async def __call__(self, program: str, *arguments: str, stdin: str = "") -> str:
        """Run one and return what it printed."""
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
            )
        except FileNotFoundError as error:
            raise SlurmUnreachable(
                f"there is no program {program}; is Slurm installed here?"
            ) from error
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                printed, complained = await process.communicate(stdin.encode())
        except TimeoutError as error:
            raise SlurmUnreachable(
                f"{program} did not answer within {ANSWER_TIMEOUT_S:g} s"
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise _failure(program, complained.decode(errors="replace"))
        return printed.decode(errors="replace")


def _failure(program: str, complained: str) -> UnisonoError:
    words = " ".join(complained.split()) or "it gave no reason"
    if any(phrase in complained for phrase in _SILENT):
        return SlurmUnreachable(f"{program}: {words}")
    return SlurmRefused(f"{program}: {words}")
