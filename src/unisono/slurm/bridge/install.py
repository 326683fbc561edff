"""The bridge's files and settings in Slurm, for one of three modes, and a check of what is there.

| mode | jobs are ordered by | how |
| --- | --- | --- |
| `gate` | Unisono | job_submit.lua holds every job; the bridge releases it to its nodes |
| `stage` | Slurm | burst buffer stage-in waits for the reservation while the job holds nothing |
| `check` | Slurm | PrologSlurmctld asks when nodes are allocated; a refusal requeues the job |

The check belongs into PrologSlurmctld. In Prolog, which every node runs, a failure drains a healthy
node and leaves the job held; a cluster that is short of GPUs would lose its nodes one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from unisono.kinds.digits import whole_number
from unisono.slurm.bridge.hooks import requests_of
from unisono.slurm.conf import Conf

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
    made = [f"# {MADE_BY}; every install overwrites it."]
    return made + [f"{key}={value}" for key, value in settings_of(plan).items()]


def _hook(plan: Plan) -> str:
    return _filled(
        "hook.py.txt", PYTHON=plan.python, SOCKET=str(plan.socket), PROLOG_S=str(plan.prolog_s)
    )


def _filled(name: str, **words: str) -> str:
    text = (files("unisono.slurm.bridge") / "data" / name).read_text()
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def _lua(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


State = Literal["ok", "missing", "differs", "refused", "advice"]
# Words in a node's Prolog that show that it asks Kubernetes whether a job may start.
_CHECKS = ("kubectl", "unisono")
_LISTED = ("jobsubmitplugins",)


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    state: State
    what: str
    text: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the bridge would not work, or not be safe, like this."""
        return self.state in ("missing", "differs", "refused")


Reads = Callable[[Path], str | None]


def findings(plan: Plan, conf: Conf, read: Reads) -> Iterator[Finding]:
    """Compare what is there with a plan; `read` returns a file's text, or None."""
    for file in files_of(plan):
        there = read(file.path)
        if there is None:
            yield Finding("missing", str(file.path))
        elif there == file.text:
            yield Finding("ok", str(file.path))
        elif MADE_BY in there:
            yield Finding(
                "differs", str(file.path), "it is from another version or mode; install again"
            )
        else:
            yield Finding(
                "refused",
                str(file.path),
                "it was not installed by unisono; move it away",
            )
    for key, wanted in settings_of(plan).items():
        yield _setting(key, wanted, conf, read)
    yield from dangers(conf, read)
    yield from _advice(plan, conf)


def conflicts(plan: Plan, conf: Conf, read: Reads) -> Iterator[Finding]:
    """Yield settings with other values: nothing is overwritten."""
    for key, wanted in settings_of(plan).items():
        found = conf.settings.get(key.lower())
        if found is not None and found.file != str(plan.included):
            one = _setting(key, wanted, conf, read)
            if one.state == "differs":
                yield one


def _setting(key: str, wanted: str, conf: Conf, read: Reads) -> Finding:
    found = conf.settings.get(key.lower())
    if found is None or not found.text:
        return Finding("missing", f"{key}={wanted}")
    what = f"{key}={found.text}"
    if key == "PrologEpilogTimeout":
        is_fine = 0 < (whole_number(found.text) or 0) <= int(wanted)
        text = f"a hook that hangs must be ended: at most {wanted}"
        return (
            Finding("ok", what) if is_fine else Finding("differs", what, f"{found.place}: {text}")
        )
    if found.text == wanted or (key.lower() in _LISTED and wanted in conf.flags(key)):
        return Finding("ok", what)
    if key.endswith("Slurmctld") and wanted in (read(Path(found.text)) or ""):
        return Finding("ok", what, "it calls our hook")
    listed = f"{key}={found.text},{wanted}" if key.lower() in _LISTED else ""
    remedy = f"write {listed}" if listed else f"call {wanted} there, and end with its code"
    return Finding("differs", what, f"{found.place}: {remedy}")


def dangers(conf: Conf, read: Reads) -> Iterator[Finding]:
    """Yield what must not be: a check that a node's own Prolog makes."""
    found = conf.settings.get("prolog")
    if found is None or not found.text:
        return
    text = read(Path(found.text)) or ""
    word = next((word for word in _CHECKS if word in text or word in found.text), "")
    if word:
        yield Finding(
            "refused",
            f"Prolog={found.text}",
            f"{found.place}: it calls {word}. A failure there drains a healthy node and leaves the "
            "job held (launch failed requeued held); put the check into PrologSlurmctld",
        )


def _advice(plan: Plan, conf: Conf) -> Iterator[Finding]:
    delay = conf.parameters("SchedulerParameters").get("batch_sched_delay", "3")
    if plan.mode == "gate" and delay != "0":
        yield Finding(
            "advice",
            f"SchedulerParameters=batch_sched_delay={delay}",
            "a released job starts up to that many seconds later; 0 is quicker",
        )
    if conf.text("JobRequeue", "1") == "0":
        yield Finding(
            "advice",
            "JobRequeue=0",
            "jobs that lose their reservation are cancelled instead of requeued",
        )
    expires = dict(part.partition("=")[::2] for part in conf.text("AuthInfo").split(","))
    if plan.mode == "check" and expires.get("cred_expire", "120") == "120":
        yield Finding(
            "advice",
            "AuthInfo=cred_expire=120",
            "a refused job waits two minutes before Slurm tries it again; 5 is the least",
        )
