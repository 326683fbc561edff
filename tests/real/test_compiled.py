"""The compiled engine passes the engine's tests, and decides what the interpreted one decides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.plan_digests import BY
from tools.compiled.cache import CannotCompile, check_tools, find

ROOT = Path(__file__).resolve().parents[2]

# The parts that mypyc is most likely to take in another way, and no more of them than half a minute
# allows: all of `make test-compiled` takes minutes.
TRIED = (
    "tests/engine/test_flight.py",
    "tests/engine/state/test_node_table.py",
    "tests/sim/test_loop_against_pool.py",
)

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def compiled() -> str:
    """Return where the compiled copy of the sources is; `make test-real` has made it."""
    try:
        check_tools()
        return str(find())
    except CannotCompile as problem:
        pytest.skip(str(problem))


def _python(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**own, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_both_engines_decide_the_same_to_the_byte(compiled: str) -> None:
    tried = [
        _python(path, "-m", "tests.support.plan_digests") for path in (str(ROOT / "src"), compiled)
    ]
    assert [one.stderr for one in tried] == ["", ""]
    interpreted, native = (one.stdout.splitlines() for one in tried)
    assert interpreted[0] == "engine: interpreted"
    assert native[0].startswith("engine: compiled by mypyc ")
    assert interpreted[1:] == native[1:]
    assert len(native) > len(BY)


def test_the_compiled_engine_passes_the_engines_tests(compiled: str) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not real")
    done = _python(compiled, "-m", "pytest", *options, *TRIED)
    assert done.returncode == 0, done.stdout[-5000:]
