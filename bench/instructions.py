"""Count instructions instead of seconds, side by side with another commit (needs valgrind).

python -m bench.instructions                          every row, of this tree
python -m bench.instructions --against 7ec0a26        and of that commit, with the difference
python -m bench.instructions --against HEAD~5 drain   only rows whose name contains a word

A shared machine moves times by a quarter; the count of instructions of one program on one input
stays the same to a thousandth. It knows nothing of caches and branches, so it compares two states
of one program and says nothing about seconds. Each row runs twice, with its work and without it
(`instructions_row.py`), and the difference counts; hash seeds are fixed.

The other commit is checked out into a folder of its own, is run with this environment's packages,
and is measured by today's rows, which use only what both have.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bench.instructions_row import ROWS

_HERE = Path(__file__).resolve().parent.parent
_PROGRAM = Path(__file__).with_name("instructions_row.py")
_COLLECTED = re.compile(r"Collected\s*:\s*(\d+)")


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.instructions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", help="rows whose name contains one of these; else all")
    parser.add_argument("--against", metavar="COMMIT", help="a commit to compare with")
    parser.add_argument("--compiled", action="store_true", help="with compiled hot modules")
    parser.add_argument("--jobs", type=int, default=2, help="rows counted at a time (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts here, too")
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("instructions: valgrind is missing; apt-get install valgrind", file=sys.stderr)
        return 2
    names = [name for name in ROWS if not given.words or any(w in name for w in given.words)]
    if not names:
        parser.error(f"no row is named like that; there are {', '.join(ROWS)}")
    with _other_tree(given.against) as other:
        trees = [_HERE] if other is None else [_HERE, other]
        both = [(tree, _path(tree, compiled=given.compiled)) for tree in trees]
        with ThreadPoolExecutor(given.jobs) as pool:
            asked = [(tree, path, name) for name in names for tree, path in both]
            counts = iter(pool.map(lambda each: count(*each), asked))
            found = {}
            _print_row("row", "this tree", *([given.against, "change"] if other else []))
            for name in names:
                now = next(counts)
                before = next(counts) if other is not None else None
                found[name] = {"instructions": now, "before": before}
                rest = [f"{before:,}", f"{now / before - 1:+.1%}"] if before else []
                _print_row(name, f"{now:,}", *rest)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def count(tree: Path, path: str, row: str) -> int:
    """Return how many instructions a row's work takes in a tree."""
    return _collected(tree, path, row, "work") - _collected(tree, path, row, "nothing")


def _collected(tree: Path, path: str, row: str, what: str) -> int:
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [sys.executable, "-P", str(_PROGRAM), row, what]
    ran = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    counted = _COLLECTED.search(ran.stderr)
    if ran.returncode or counted is None:
        last = (ran.stderr.strip() or "no output").splitlines()[-1]
        raise SystemExit(f"instructions: row {row!r} failed in {tree}: {last}")
    return int(counted.group(1))


def _path(tree: Path, *, compiled: bool) -> str:
    """Return the import path of a tree, its compiled modules first if they are wanted."""
    folders = [str(tree / "src"), str(tree)]
    if compiled:
        built = subprocess.run(
            [sys.executable, "-m", "tools.compiled"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        folders.insert(0, built.stdout.splitlines()[-1])
    return os.pathsep.join(folders)


@contextmanager
def _other_tree(commit: str | None) -> Iterator[Path | None]:
    """Check a commit out for as long as it is measured."""
    if commit is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="unisono-instructions-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(_HERE), "worktree"]
        added = subprocess.run(
            [*git, "add", "--detach", str(tree), commit],
            capture_output=True,
            text=True,
            check=False,
        )
        if added.returncode:
            raise SystemExit(f"instructions: {added.stderr.strip().splitlines()[-1]}")
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=False)


def _print_row(name: str, *figures: str) -> None:
    print(f"{name:34}" + "".join(f"{each:>18}" for each in figures), flush=True)


if __name__ == "__main__":
    sys.exit(main())
