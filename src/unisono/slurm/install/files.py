"""The files that the bridge needs beside slurm.conf, for one of three ways to work.

| mode | jobs are ordered by | how |
| --- | --- | --- |
| `gate` | Unisono | job_submit.lua holds every job; the bridge releases it to its nodes |
| `stage` | Slurm | burst buffer stage-in waits for the reservation while the job holds nothing |
| `check` | Slurm | PrologSlurmctld asks when nodes are allocated; a refusal requeues the job |
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from unisono.slurm.bridge.requests import requests_of

Mode = Literal["gate", "stage", "check"]
MODES: tuple[Mode, ...] = ("gate", "stage", "check")
FOLDER = "unisono"
MADE_BY = "Written by `unisono slurm install`"
_EXECUTABLE, _PLAIN = 0o755, 0o644


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to install, and where."""

    conf: Path
    mode: Mode
    socket: Path
    python: str
    prolog_s: int = 50  # the hook's own patience
    timeout_s: int = 120  # PrologEpilogTimeout: twice the time a gang has to be bound
    operators: tuple[int, ...] = (0,)
    has_site_script: bool = False

    @property
    def folder(self) -> Path:
        """Where the hooks are."""
        return self.conf.parent / FOLDER

    @property
    def hook(self) -> Path:
        """The program that Slurm runs."""
        return self.folder / "hook"

    @property
    def site_script(self) -> Path:
        """Where the site's own job_submit.lua is kept."""
        return self.conf.parent / "job_submit.site.lua"

    @property
    def included(self) -> Path:
        """The lines that slurm.conf includes."""
        return self.folder / "unisono.conf"


class File(msgspec.Struct, frozen=True):
    """A file as it should be."""

    path: Path
    text: str
    mode: int


def files_of(plan: Plan) -> list[File]:
    """Return the files of a plan."""
    found = [
        File(plan.hook, _hook(plan), _EXECUTABLE),
        File(plan.included, "".join(f"{line}\n" for line in lines_of(plan)), _PLAIN),
    ]
    if plan.mode in ("gate", "stage"):
        script = _filled(
            "job_submit.lua",
            MODE=plan.mode,
            REQUESTS=_lua(requests_of(plan.socket)),
            OPERATORS=", ".join(str(one) for one in plan.operators),
            SITE=_lua(plan.site_script) if plan.has_site_script else "",
        )
        found.append(File(plan.conf.parent / "job_submit.lua", script, _PLAIN))
    if plan.mode == "stage":
        script = _filled("burst_buffer.lua", HOOK=_lua(plan.hook))
        found.append(File(plan.conf.parent / "burst_buffer.lua", script, _PLAIN))
    return found


def settings_of(plan: Plan) -> dict[str, str]:
    """Return what slurm.conf has to say."""
    settings = {
        "PrologSlurmctld": str(plan.hook),
        "EpilogSlurmctld": str(plan.hook),
        "PrologEpilogTimeout": str(plan.timeout_s),
    }
    if plan.mode in ("gate", "stage"):
        settings["JobSubmitPlugins"] = "lua"
    if plan.mode == "stage":
        settings["BurstBufferType"] = "burst_buffer/lua"
    return settings


def lines_of(plan: Plan) -> list[str]:
    """Return the lines that slurm.conf includes."""
    made = [f"# {MADE_BY}; it writes it anew, so put nothing of yours here."]
    return made + [f"{key}={value}" for key, value in settings_of(plan).items()]


def _hook(plan: Plan) -> str:
    return _filled(
        "hook.py.txt", PYTHON=plan.python, SOCKET=str(plan.socket), PROLOG_S=str(plan.prolog_s)
    )


def _filled(name: str, **words: str) -> str:
    text = (files("unisono.slurm.install") / "data" / name).read_text()
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def _lua(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')
