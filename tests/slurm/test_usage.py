"""The help of Slurm's programs lists every option that they take."""

from __future__ import annotations

import importlib
import re
import shlex

import pytest

from tests.slurm.fake_api import FakeApi, context
from unisono.cli.slurm_programs import EXAMPLES, PROGRAMS
from unisono.slurm.getopt import Option, parse
from unisono.slurm.sbatch.options import KNOWN


def _known(program: str) -> dict[str, Option]:
    if program == "sbatch":
        return dict(KNOWN)
    module = importlib.import_module(f"unisono.slurm.commands.{program}")
    return dict(module._OPTIONS)


def _help(program: str) -> str:
    module = importlib.import_module(f"unisono.slurm.commands.{program}")
    outcome = module.run(["--help"], context(FakeApi()))
    assert outcome.code == 0
    return str(outcome.text)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_help_lists_every_option(program: str) -> None:
    text = _help(program)
    assert text.startswith(f"Usage: {program} [OPTIONS...]")
    listed = set(re.findall(r"--([A-Za-z][A-Za-z0-9-]*)", text))
    assert listed == {one.long for one in _known(program).values()} - {"usage"}
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_help_says_which_options_take_a_value(program: str) -> None:
    rows = re.findall(r"^  (?:-(\w),|   ) --([A-Za-z][\w-]*)(\[?=)?", _help(program), re.MULTILINE)
    assert rows
    for short, long, equals in rows:
        option = _known(program)[f"--{long}"]
        assert option.short == short
        assert {"value": equals == "=", "nothing": not equals, "optional": equals != "="}[
            option.takes
        ], long


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_examples_of_the_help_can_be_read(program: str) -> None:
    for line in EXAMPLES[program]:
        parse(shlex.split(line)[2:], _known(program), ends_at_word=program == "sbatch")
