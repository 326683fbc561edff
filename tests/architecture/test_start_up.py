"""The program starts quickly because it imports little: checked by what is loaded, not by a clock.

A clock would make this test depend on the machine. What a help text or a bare import loads is
exact, and it is what start-up time is made of.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

# Each costs more than everything that `unisono --help` needs.
HEAVY = {"asyncio", "msgspec", "numpy", "yaml"}

_REPORT = """
import sys
try:
    {statement}
except SystemExit:
    pass
print("\\n".join(sys.modules), file=sys.stderr)
"""


def _loaded_by(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _REPORT.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import unisono",
        "from unisono.cli.main import main; main(['--help'])",
        "from unisono.cli.main import main; main(['--version'])",
        "from unisono.cli.main import main; main(['no-such-command'])",
        "from unisono.cli.main import main; main(['get', '--help'])",
        "from unisono.cli.main import main; main(['apply', '--help'])",
        "from unisono.cli.main import main; main(['describe', '--help'])",
        "from unisono.cli.main import main; main(['delete', '--help'])",
        "from unisono.cli.main import main; main(['logs', '--help'])",
        "from unisono.cli.main import main; main(['sim', 'trace', '--help'])",
        "from unisono.cli.main import main; main(['top', '--help'])",
        "from unisono.cli.main import main; main(['why', '--help'])",
        "from unisono.cli.main import main; main(['queues', '--help'])",
        "from unisono.cli.main import main; main(['completion', '--help'])",
    ],
)
def test_nothing_heavy_is_loaded(statement: str) -> None:
    assert _loaded_by(statement) & HEAVY == set()


def test_a_server_carries_no_libraries_for_mails_that_it_does_not_send() -> None:
    """Two megabytes for each `unisono up` and each replica."""
    loaded = _loaded_by("import unisono.runtime.embedded.server, unisono.runtime.cluster.replica")
    assert "unisono.notify.delivery" in loaded
    assert loaded & {"email.message", "smtplib", "urllib.request"} == set()


def test_help_loads_no_command() -> None:
    from unisono.cli.commands import COMMANDS

    loaded = _loaded_by("from unisono.cli.main import main; main(['--help'])")
    assert loaded & {command.module for command in COMMANDS} == set()


def test_programs_that_scripts_call_often_load_next_to_nothing() -> None:
    loaded = _loaded_by("from unisono.cli.main import main; main(['sbatch', '--version'])")
    assert loaded & {*HEAVY, "argparse", "orjson", "ssl", "typing", "unisono.cli.commands"} == set()


def test_the_package_alone_is_one_module() -> None:
    assert {name for name in _loaded_by("import unisono") if name.startswith("unisono")} == {
        "unisono"
    }
