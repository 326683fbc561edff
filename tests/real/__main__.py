"""`make test-real`: every test that needs a real Kubernetes, Slurm, Prometheus or browser.

    python -m tests.real [--jobs N] [--every] [PYTEST OPTION …]

They mostly wait, so more of them run side by side than there are cores (`tests.real.lanes`). What
cannot be built or installed is named first, and each of the tests that need it says so again.

A test that fails beside all the others is run once more, alone, and named loudly whatever comes of
it: these tests start some two hundred servers and processes on whatever machine they meet, and one
that lost a race for it should not hide that the other hundreds are well. More than a few failures
are no coincidence, and are final.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.real import binaries, debian
from tests.real.lanes import IN_ORDER
from tests.real.slurm import packages
from tools.compiled import cache as compiled

ROOT = Path(__file__).resolve().parents[2]
_MARK = "mark.real"
# With four that wait in turn, two quiet cores are idle a third of the time.
_JOBS = 5
_MOST_SECOND_GOES = 5
_SOME_FAILED = 1  # what pytest ends with then


def main(arguments: list[str]) -> int:
    """Prepare, run all of them, and give a few a second go."""
    parser = argparse.ArgumentParser(prog="python -m tests.real", allow_abbrev=False)
    parser.add_argument("--jobs", type=int, default=_JOBS, help="how many side by side")
    parser.add_argument("--every", action="store_true", help="also the sweeps (marked exhaustive)")
    options, more = parser.parse_known_args(arguments)
    for prepare in (binaries.main, debian.main, packages.main, compiled_copy):
        prepare()
    marks = "real" if options.every else "real and not exhaustive"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        failures = Path(folder) / "failures"
        code = _pytest(
            *("-n", str(options.jobs), "-m", marks, f"--failures-to={failures}"), *more, *places()
        )
        names = failures.read_text().splitlines() if failures.exists() else []
    print(f"real tests: {time.monotonic() - began:.0f} s", flush=True)
    if code != _SOME_FAILED or not 0 < len(names) <= _MOST_SECOND_GOES:
        return code
    return _second_go(names)


def compiled_copy() -> None:
    """Compile the hot modules of the sources as they are, unless that was done."""
    try:
        compiled.build()
    except compiled.CannotCompile as problem:
        compiled.say(str(problem))


def _second_go(names: list[str]) -> int:
    """Run tests that failed, alone; say which they were, at the very end."""
    print(f"real tests: {len(names)} failed and have a second go, alone", flush=True)
    code = _pytest("-m", "real", *to_run_again(names))
    outcome = "FAILED AGAIN" if code else "passed then"
    print(f"\nreal tests: NEEDED A SECOND GO, and {outcome}; look into it:", flush=True)
    for name in names:
        print(f"  {name}", flush=True)
    return code


def to_run_again(names: list[str]) -> list[str]:
    """Return what to ask pytest for, so that these tests have what they need."""
    files = {name: name.partition("::")[0] for name in names}
    return list(dict.fromkeys(file if file in IN_ORDER else name for name, file in files.items()))


def places() -> list[str]:
    """Return where such tests are; to read all others takes half a minute in every process."""
    paths = (*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests").rglob("conftest.py"))
    found = [
        path.parent if path.name == "conftest.py" else path
        for path in sorted(paths)
        if _MARK in path.read_text(encoding="utf-8")
    ]
    outermost = [one for one in found if not any(other in one.parents for other in found)]
    return [str(one.relative_to(ROOT)) for one in outermost]


def _pytest(*arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.real.lanes"]
    return subprocess.run([*command, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
