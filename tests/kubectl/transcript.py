"""Transcripts: shell commands and what they print, as one would see them on a screen.

    # A line like this is for the reader.
    $ kubectl get ns
    NAME              STATUS   AGE
    default           Active   0s

    $ kubectl apply -f - <<'END'
    > kind: ConfigMap
    > END
    $ clock +90s

`>` goes on with the command. `clock` moves the server's time. A command that fails has `[exit 1]`
as its last line. The server's clock stands still unless it is moved, so ages are what they are;
those that kubectl computes by itself, from the clock of this machine, are written as AGE. The
server's port is PORT, resource versions are RV, and unique ids are numbered as they appear, so that
one more object at the beginning does not change everything after it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.kubectl.cluster import Clock, Cluster

HERE = Path(__file__).resolve().parent
TRANSCRIPTS = HERE / "transcripts"
MANIFESTS = HERE / "manifests"
_SECONDS_FOR_A_COMMAND = 60

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PORT = re.compile(r"127\.0\.0\.1:[0-9]+")
_EDITED = re.compile(r"/tmp/kubectl-edit-[0-9]+\.yaml")
# These compute ages where they run, in tables with these heads.
_CLIENT_AGES = re.compile(r"\bkubectl( -n \S+)? (describe|events)\b")
_AGED = ("Events:", "Non-terminated Pods:", "LAST SEEN")
_AGE = re.compile(r"(?<![\w.:/-])(<invalid>|<unknown>|([0-9]+[smhdy]){1,2})(?![\w./-]) *")
_LOG = re.compile(r"^[IWE][0-9]{4} .*\n", re.MULTILINE)  # kubectl's own log, with the time of day
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_VERSION = re.compile(r'(resourceVersion"?: *)"[0-9]+"')


@dataclass
class Step:
    """A command, or a remark if there is none, and what the command printed."""

    command: str = ""
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return it as it stands in a file."""
        if not self.command:
            return "".join(f"{line}\n" for line in self.lines)
        first, *more = self.command.split("\n")
        shown = [f"$ {first}", *(f"> {line}" for line in more), *self.lines]
        return "".join(f"{line}\n" for line in shown) + "\n"


def read(path: Path) -> list[Step]:
    """Read a transcript."""
    steps: list[Step] = []
    for line in path.read_text().splitlines():
        if line.startswith("$ "):
            steps.append(Step(command=line[2:]))
        elif line.startswith("> ") and steps and steps[-1].command and not steps[-1].lines:
            steps[-1].command += f"\n{line[2:]}"
        elif line.startswith("# "):
            if not steps or steps[-1].command:
                steps.append(Step())
            steps[-1].lines.append(line)
        elif steps:
            steps[-1].lines.append(line)
    for step in steps:
        while step.lines and not step.lines[-1]:
            step.lines.pop()
    return steps


def play(steps: list[Step], cluster: Cluster) -> Iterator[Step]:
    """Run the commands one after the other and yield what they print now."""
    uids: dict[str, str] = {}
    for step in steps:
        if not step.command:
            yield step
        elif step.command.startswith("clock "):
            _move(cluster.clock, step.command.removeprefix("clock "))
            yield step
        else:
            printed, code = _run(step.command, cluster)
            lines = _lines(_settled(printed, step.command, uids))
            yield Step(step.command, [*lines, f"[exit {code}]"] if code else lines)


def _move(clock: Clock, by: str) -> None:
    amount = re.fullmatch(r"\+([0-9]+)([smhd])", by)
    assert amount is not None, f"clock {by}: write it like +90s or +5m"
    clock.now += int(amount[1]) * _UNITS[amount[2]]


def _run(command: str, cluster: Cluster) -> tuple[str, int]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=MANIFESTS,
        env=dict(cluster.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=_SECONDS_FOR_A_COMMAND,
        check=False,
    )
    return done.stdout, done.returncode


def _settled(text: str, command: str, uids: dict[str, str]) -> str:
    """Replace what is another at every run."""
    text = _LOG.sub("", text)
    text = _PORT.sub("127.0.0.1:PORT", text)
    text = _EDITED.sub("/tmp/kubectl-edit-N.yaml", text)
    text = _VERSION.sub(r'\1"RV"', text)
    text = _UID.sub(lambda found: uids.setdefault(found[0], f"UID-{len(uids) + 1}"), text)
    return _without_ages(text) if _CLIENT_AGES.search(command) else text


def _without_ages(text: str) -> str:
    lines, is_aged = [], False
    for line in text.split("\n"):
        if not line.startswith(" "):
            is_aged = line.startswith(_AGED) or (is_aged and "LAST SEEN" in text)
        lines.append(_AGE.sub("AGE ", line) if is_aged else line)
    return "\n".join(lines)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")] if text.strip() else []


def write(path: Path, steps: list[Step]) -> None:
    """Write a transcript."""
    path.write_text("".join(step.text() for step in steps).rstrip("\n") + "\n")
