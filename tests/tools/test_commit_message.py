"""The commit-msg hook accepts a short subject with a body, and names what is wrong otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.commit_message import main, problems

ROOT = Path(__file__).resolve().parents[2]
SUBJECT = "fix(quota): count lent cells once"
GOOD = f"{SUBJECT}\n\nThey were counted twice; a story shows it.\n"


@pytest.mark.parametrize(
    "message",
    [
        GOOD,
        f"# chosen template\n{GOOD}",
        "x" * 72 + "\n\nA subject of 72 characters.",
        "Merge branch 'topic'\n",
        'Revert "fix(quota): count lent cells once"\n\nThis reverts commit 1234567.\n',
        f"fixup! {SUBJECT}\n",
    ],
)
def test_good_messages_pass(message: str) -> None:
    assert problems(message) == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
        ("x" * 73 + "\n\nWhy.", "73 characters, 72 are allowed"),
        (f"{SUBJECT}\nThey were counted twice.\n", "second line is not blank"),
        (SUBJECT, "no body"),
        (f"{SUBJECT}\n\n# Please enter the commit message.\n", "no body"),
        (f"{SUBJECT}\n\nSigned-off-by: A Person <a@example.org>\n", "no body"),
        (f"{SUBJECT}\n\n# ------ >8 ------\ndiff --git a/a b/a\n", "no body"),
    ],
)
def test_what_is_wrong_is_named(message: str, expected: str) -> None:
    (problem,) = problems(message)
    assert expected in problem


def test_the_hook_ends_with_1_and_tells_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(SUBJECT)
    assert main([str(file)]) == 1
    printed = capsys.readouterr().err
    assert "no body" in printed
    assert f'git commit -eF "{file}"' in printed
    file.write_text(GOOD)
    assert main([str(file)]) == 0


def test_git_refuses_a_commit_without_a_body(tmp_path: Path) -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert "commit-msg" in config["default_install_hook_types"]
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    (hook,) = [hook for hook in hooks if hook.get("stages") == ["commit-msg"]]
    script = ROOT / hook["entry"].removeprefix("python3 ")

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", "-C", tmp_path, *identity, *arguments],
            check=False,
            capture_output=True,
            text=True,
        )

    git("init", "-q")
    installed = tmp_path / ".git" / "hooks" / "commit-msg"
    installed.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$1"\n')
    installed.chmod(0o755)
    refused = git("commit", "-q", "--allow-empty", "-m", SUBJECT)
    assert refused.returncode != 0
    assert "no body" in refused.stderr
    assert git("commit", "-q", "--allow-empty", "-m", SUBJECT, "-m", "Because.").returncode == 0
