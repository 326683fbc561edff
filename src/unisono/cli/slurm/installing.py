"""`unisono slurm install`: what a real Slurm needs for the bridge, written and checked."""

from __future__ import annotations

import argparse
import os
import pwd
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.slurm.bridging import SOCKET
from unisono.kinds.digits import whole_number
from unisono.runtime import AnswerIsNo

if TYPE_CHECKING:
    from unisono.slurm.bridge.install import Finding, Plan
    from unisono.slurm.conf import Conf

CONF = Path("/etc/slurm/slurm.conf")

NAME = "install"
HELP = "write and check what a real Slurm needs for the bridge"
DESCRIPTION = """\
Write the hooks beside slurm.conf, and a line that includes their settings; --check only looks.

  gate    Unisono orders jobs: held at submission, released to reserved nodes (recommended)
  stage   Slurm orders them: burst buffer stage-in waits for the reservation
  check   Slurm orders them: PrologSlurmctld asks, and a refusal requeues the job

The check is never put into Prolog, which runs on every node: a failure there drains a healthy node
and leaves the job held. Afterwards restart slurmctld: plugins are loaded when it starts.

examples:
  unisono slurm install --conf /etc/slurm/slurm.conf
  unisono slurm install --mode check --check
"""


def add_arguments(one: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    one.add_argument("--conf", type=Path, metavar="FILE", help=f"slurm.conf (default: {CONF})")
    one.add_argument(
        "--mode",
        choices=("gate", "stage", "check"),
        default="gate",
        help="the kind of hook, see above (default: gate)",
    )
    one.add_argument(
        "--socket",
        type=Path,
        default=SOCKET,
        metavar="PATH",
        help=f"where the bridge listens (default: {SOCKET})",
    )
    one.add_argument(
        "--in",
        dest="place",
        choices=("prolog-slurmctld", "prolog"),
        default="prolog-slurmctld",
        help="the place of the check; prolog is refused",
    )
    one.add_argument(
        "--bind-timeout",
        type=int,
        default=60,
        metavar="S",
        help="as for the bridge; hooks are ended after twice as long (default: 60)",
    )
    one.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 if something would change"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write, then say what is there."""
    from unisono.slurm.bridge.install import findings

    if arguments.place == "prolog":
        raise AnswerIsNo(
            "the check does not go into Prolog: a failure there drains a healthy node and holds "
            'the job ("launch failed requeued held"); PrologSlurmctld asks before it uses a node'
        )
    conf_path = (arguments.conf or Path(os.environ.get("SLURM_CONF", CONF))).absolute()
    conf = _read_conf(conf_path)
    plan = _plan(arguments, conf_path, conf)
    if not arguments.check:
        _refuse_dangers(conf)
        _write(plan, conf)
        conf = _read_conf(conf_path)
    found = list(findings(plan, conf, _read))
    _print(found)
    if any(one.is_wrong for one in found):
        return 1
    if not arguments.check:
        print("restart slurmctld, then run: unisono slurm bridge", file=sys.stderr)
    return 0


def _plan(arguments: argparse.Namespace, path: Path, conf: Conf) -> Plan:
    from unisono.slurm.bridge.install import MADE_BY, Plan

    script = _read(path.parent / "job_submit.lua")
    is_foreign = script is not None and MADE_BY not in script
    site = path.parent / "job_submit.site.lua"
    return Plan(
        conf=path,
        mode=arguments.mode,
        socket=arguments.socket.absolute(),
        python=sys.executable,
        prolog_s=max(5, arguments.bind_timeout - 10),
        timeout_s=2 * arguments.bind_timeout,
        operators=tuple(sorted({0, _uid(conf.text("SlurmUser", "root"))})),
        has_site_script=is_foreign or site.exists(),
    )


def _refuse_dangers(conf: Conf) -> None:
    from unisono.slurm.bridge.install import dangers

    found = list(dangers(conf, _read))
    if found:
        raise _refusal(found)


def _refusal(found: Sequence[Finding]) -> AnswerIsNo:
    """Print the conflicts, and that nothing was written."""
    lines = [f"{one.what}: {one.text}" for one in found]
    return AnswerIsNo("\n".join([*lines, "nothing was written: change these lines first"]))


def _write(plan: Plan, conf: Conf) -> None:
    """Write every file, and the line in slurm.conf last: nothing takes effect before."""
    from unisono.slurm.bridge.install import MADE_BY, conflicts, files_of

    wrong = list(conflicts(plan, conf, _read))
    if wrong:
        raise _refusal(wrong)
    script = plan.conf.parent / "job_submit.lua"
    text = _read(script)
    if plan.mode != "check" and text is not None and MADE_BY not in text:
        script.rename(plan.site_script)
    for file in files_of(plan):
        file.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        unfinished = file.path.with_name(f".{file.path.name}.new")
        unfinished.write_text(file.text)
        unfinished.chmod(file.mode)
        unfinished.replace(file.path)
    line = f"Include {plan.included}"
    text = plan.conf.read_text()
    if line not in text.splitlines():
        unfinished = plan.conf.with_name(f".{plan.conf.name}.new")
        unfinished.write_text(f"{text.rstrip()}\n{line}\n")
        unfinished.chmod(plan.conf.stat().st_mode & 0o777)
        unfinished.replace(plan.conf)


def _print(found: Iterable[Finding]) -> None:
    for one in found:
        print(f"{one.state:<8}  {one.what}" + (f": {one.text}" if one.text else ""))


def _read_conf(path: Path) -> Conf:
    from unisono.slurm.conf import read_conf

    def included(name: str) -> str | None:
        there = Path(name)
        return _read(there if there.is_absolute() else path.parent / there)

    return read_conf(path.read_text(errors="replace"), str(path), included)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def _uid(name: str) -> int:
    name = name.partition("(")[0]
    if (number := whole_number(name)) is not None:
        return number
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return 0
