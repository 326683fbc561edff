"""The hook that Slurm runs, and the bridge's answers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from unisono.slurm.bridge.hooks import Answer, Question, ask, listening
from unisono.slurm.bridge.install import Plan, files_of


def _hook(folder: Path) -> Path:
    """Write the hook as the installer does."""
    plan = Plan(
        conf=folder / "slurm.conf",
        mode="gate",
        socket=folder / "b.sock",
        python=sys.executable,
        prolog_s=2,
    )
    for file in files_of(plan):
        file.path.parent.mkdir(exist_ok=True)
        file.path.write_text(file.text)
        file.path.chmod(file.mode)
    return plan.hook


def _run(hook: Path, **environment: str) -> int:
    """Run it as slurmctld does: with no PATH and nothing but what it says."""
    said = {f"SLURM_{name}": text for name, text in environment.items()}
    return subprocess.run([hook], env=said, check=False, timeout=20).returncode


def _asked(folder: Path, answer: Answer, **environment: str) -> tuple[int, list[Question]]:
    heard: list[Question] = []

    async def respond(question: Question) -> Answer:
        heard.append(question)
        return answer

    async def main() -> int:
        async with listening(folder / "b.sock", respond):
            assert os.stat(folder / "b.sock").st_mode & 0o777 == 0o600
            return await asyncio.to_thread(_run, _hook(folder), **environment)

    return asyncio.run(main()), heard


def test_a_prolog_is_answered_yes_or_no(tmp_path: Path) -> None:
    said = {"SCRIPT_CONTEXT": "prolog_slurmctld", "JOB_ID": "7", "JOB_NODELIST": "n[1-2]"}
    code, (question,) = _asked(tmp_path, Answer(ok=True), **said)
    assert code == 0
    assert (question.hook, question.key, question.nodes) == ("prolog", "7", "n[1-2]")
    assert _asked(tmp_path, Answer(ok=False, text="no room"), **said)[0] == 1


def test_a_task_of_an_array_is_called_by_both_numbers(tmp_path: Path) -> None:
    array = {"ARRAY_JOB_ID": "5", "ARRAY_TASK_ID": "3"}
    said = {"SCRIPT_CONTEXT": "prolog_slurmctld", "JOB_ID": "9", **array}
    _, (question,) = _asked(tmp_path, Answer(ok=True), **said)
    assert question.key == "5_3"


def test_no_answer_is_a_no_except_for_an_epilog(tmp_path: Path) -> None:
    hook = _hook(tmp_path)
    assert _run(hook, SCRIPT_CONTEXT="prolog_slurmctld", JOB_ID="7") == 1
    assert _run(hook, SCRIPT_CONTEXT="epilog_slurmctld", JOB_ID="7") == 0
    unanswered = asyncio.run(ask(tmp_path / "b.sock", Question(hook="prolog"), timeout_s=1))
    assert not unanswered.ok


def test_an_invalid_question_is_a_no(tmp_path: Path) -> None:
    async def respond(question: Question) -> Answer:
        raise AssertionError(question)

    async def main() -> bytes:
        async with listening(tmp_path / "b.sock", respond):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "b.sock")
            writer.write(b"{}\n")
            answer = await reader.readline()
            writer.close()
            return answer

    assert b'"ok":false' in asyncio.run(main())
