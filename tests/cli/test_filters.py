"""A filter by a name that does not exist is refused, with the names that are near."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.plan.test_plan import CLUSTER
from unisono.cli.filters import refuse_unknown
from unisono.cli.main import ANSWER_IS_NO, DONE, main
from unisono.runtime import AnswerIsNo


@pytest.mark.parametrize("command", ["plan", "workloads"])
def test_refuses_an_unknown_queue(command: str, shell: Shell) -> None:
    said = shell.type(command, "-A", "-q", "nope")
    assert said.code == ANSWER_IS_NO
    assert said.out == ""
    assert said.err.startswith('unisono: there is no queue "nope"')


@pytest.mark.parametrize(
    "words",
    [
        ("plan",),
        ("workloads",),
        ("queues",),
        ("top", "--once"),
        ("get", "pods"),
        ("get", "pods", "-o", "json"),
        ("describe", "pods"),
        ("delete", "pods", "--all"),
    ],
)
def test_refuses_an_unknown_namespace(words: tuple[str, ...], shell: Shell) -> None:
    said = shell.type(*words, "-n", "defualt")
    assert said.code == ANSWER_IS_NO
    assert said.out == ""
    assert said.err == 'unisono: there is no namespace "defualt"; did you mean "default"?\n'


def test_refuses_an_unknown_node(shell: Shell) -> None:
    said = shell.type("gpu", "list", "nope")
    assert said.code == ANSWER_IS_NO
    assert 'there is no node "nope"' in said.err


def test_a_plan_of_manifests_refuses_an_unknown_queue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    assert main(["plan", "-f", str(file), "-q", "lqq"]) == ANSWER_IS_NO
    assert 'there is no queue "lqq"; did you mean "lq"?' in capsys.readouterr().err
    assert main(["plan", "-f", str(file), "-q", "lq"]) == DONE
    assert main(["plan", "-f", str(file), "-q", "q"]) == DONE
    assert main(["plan", "-f", str(file), "-n", "other", "-q", "lq"]) == ANSWER_IS_NO
    assert 'LocalQueue "lq" is in namespace default, not in other' in capsys.readouterr().err


def test_many_names_are_counted() -> None:
    with pytest.raises(AnswerIsNo, match=r"there are t00, .*, t07 and 12 more$"):
        refuse_unknown("team", "nope", [f"t{at:02}" for at in range(20)])
    with pytest.raises(AnswerIsNo, match=r'^there is no team "nope"$'):
        refuse_unknown("team", "nope", [""])
