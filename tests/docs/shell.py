"""A shell for the commands of a page: ours in this process, others as they are.

`kubectl` is ours where it is the same (`apply`, `get`, `describe`, `delete`, `logs`), so that pages
run without it. What prepares a machine (`git clone`, `cd`, `make`) is checked, not done.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.cluster import Cluster
from tests.docs.page import ROOT, Command
from unisono.cli.main import main

_SAME = ("apply", "get", "describe", "delete", "logs")
_PREPARES = ("git", "cd")
_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_EXITS = re.compile(r"# exits with (\d)")
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
# What only reads may be asked again until it says what the page shows.
_READS = ("get", "why", "plan", "queues", "workloads", "nodes", "top", "describe", "logs", "squeue")


@dataclass
class Shell:
    """One page's terminal."""

    folder: Path
    environment: dict[str, str]
    has_kubectl: bool = False  # then `kubectl` is the real one
    cluster: Cluster | None = None
    clusters: int = 0
    log: list[str] = field(default_factory=list)

    def close(self) -> None:
        if self.cluster is not None:
            self.cluster.stop()
            self.cluster = None

    def run(self, command: Command) -> None:
        """Run a command; say where the page is wrong if it does not end or print as shown."""
        wanted = int(found[1]) if (found := _EXITS.search(command.text)) else 0
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            code, said = self._call(command.text)
            problem = f"ends with {code}" if code != wanted else mismatch(command.shown, said)
            if not problem:
                return
            can_repeat = any(re.search(rf"\b{verb}\b", command.text) for verb in _READS)
            if not can_repeat or time.monotonic() > deadline:
                raise AssertionError(f"line {command.line}: $ {command.text}\n{problem}\n{said}")
            time.sleep(_PAUSE_SECONDS)

    def _call(self, text: str) -> tuple[int, str]:
        words = shlex.split(text, comments=True)
        match words:
            case ["export", *settings]:
                pairs = dict(one.split("=", 1) for one in settings)
                for name in ("KUBECONFIG", "PATH"):  # a page shows them for a person
                    pairs.pop(name, None)
                self.environment |= pairs
                return 0, ""
            case [program, *_] if program in _PREPARES:
                return 0, ""
            case ["make", *targets]:
                known = set(_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
                return (0, "") if {*targets} <= known else (2, f"no target {targets}")
            case ["unisono", "up", *options]:
                return self._up(options)
            case ["unisono", "down"]:
                self.close()
                return 0, ""
            case _ if "|" in words:
                place = words.index("|")
                code, said = self._program(words[:place], "")
                return self._program(words[place + 1 :], said) if code == 0 else (code, said)
            case _ if ">" in words:
                place = words.index(">")
                code, said = self._program(words[:place], "", with_stderr=False)
                (self.folder / words[place + 1]).write_text(said, encoding="utf-8")
                return code, ""
            case _:
                return self._program(words, "")

    def _up(self, options: list[str]) -> tuple[int, str]:
        self.close()
        self.clusters += 1
        cluster = Cluster(options, self.folder / f".cluster-{self.clusters}")
        with self._inside():
            cluster.start()
        self.cluster = cluster
        self.environment["KUBECONFIG"] = str(cluster.instance.kubeconfig)
        return 0, ""

    def _program(
        self, words: list[str], stdin: str, *, with_stderr: bool = True
    ) -> tuple[int, str]:
        name = words[0].rpartition("/")[2]
        if name == "unisono":
            return self._ours(words[1:], stdin, with_stderr=with_stderr)
        if name == "kubectl" and words[1] in _SAME and not self.has_kubectl:
            return self._ours(words[1:], stdin, with_stderr=with_stderr)
        if name == "kubectl" and not shutil.which("kubectl"):
            self.log.append(f"no kubectl for: {' '.join(words)}")
            return 0, ""
        done = subprocess.run(
            words,
            input=stdin,
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )
        return done.returncode, done.stdout + (done.stderr if with_stderr else "")

    def _ours(self, words: list[str], stdin: str, *, with_stderr: bool) -> tuple[int, str]:
        out, err = _stream(""), _stream("")
        with self._inside(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            before, sys.stdin = sys.stdin, _stream(stdin)
            try:
                code = main(words)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            finally:
                sys.stdin = before
        return code, _text(out) + (_text(err) if with_stderr else "")

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        """Run in the page's folder, with its environment."""
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            with contextlib.chdir(self.folder):
                yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _stream(text: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def mismatch(shown: list[str], said: str) -> str:
    """Return in what a page differs from what was printed; empty if in nothing.

    Runs of spaces count as one, `…` stands for anything within a line, and alone on a line for any
    lines.

    >>> mismatch(["NAME  AGE", "n1  …"], "NAME    AGE" + chr(10) + "n1      5s" + chr(10))
    ''
    >>> mismatch(["n2"], "n1")
    'the page shows: n2'
    """
    if not shown:
        return ""
    lines = [" ".join(line.split()) for line in said.splitlines() if line.strip()]
    place, may_skip = 0, False
    for line in shown:
        plain = " ".join(line.split())
        if plain == "…":
            may_skip = True
        elif plain:
            pattern = re.compile(".*".join(re.escape(part) for part in plain.split("…")))
            ahead = range(place, len(lines) if may_skip else min(place + 1, len(lines)))
            hit = next((index for index in ahead if pattern.fullmatch(lines[index])), None)
            if hit is None:
                return f"the page shows: {plain}"
            place, may_skip = hit + 1, False
    return "" if may_skip or place == len(lines) else f"the page lacks: {lines[place]}"
