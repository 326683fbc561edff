"""Write exact versions of all dependencies into two lock files (`make lock`).

    requirements.lock       what a clone needs to run: the package's dependencies, its build backend
    requirements-dev.lock   what the checks, tests and benchmarks need besides

Both are resolved together, in one throw-away virtual environment, so that no version in one file
contradicts the other. The files name no index and no path: they work with any mirror.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

HEADER = "# Made by `make lock`; edit pyproject.toml instead.\n"


def main() -> int:
    """Resolve, install and write the lock files."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = config["dependency-groups"]
    running = [*config["project"]["dependencies"], *groups["build"]]
    with tempfile.TemporaryDirectory() as directory:
        venv.create(directory, with_pip=True)
        pip = [str(Path(directory) / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", *running], check=True)
        names = {_name(pin) for pin in _frozen(pip)}
        # In one go with the first, so that pip keeps or moves their versions knowingly.
        development = [need for need in groups["dev"] if isinstance(need, str)]
        subprocess.run([*pip, "install", "--quiet", *running, *development], check=True)
        pins = _frozen(pip)
    # A pin of any other form (`name @ file://…`, `-e …`) would tie the lock to this machine.
    strange = [pin for pin in pins if "==" not in pin or "/" in pin]
    if strange:
        print(f"lock: not a plain version: {', '.join(strange)}", file=sys.stderr)
        return 3
    parts = {
        "requirements.lock": [pin for pin in pins if _name(pin) in names],
        "requirements-dev.lock": [pin for pin in pins if _name(pin) not in names],
    }
    for file, lines in parts.items():
        (ROOT / file).write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
        print(f"lock: {file}: {len(lines)} versions pinned")
    return 0


def _frozen(pip: list[str]) -> list[str]:
    """Return a pin for everything that is installed but pip itself, in order of names."""
    listed = subprocess.run(
        [*pip, "freeze", "--all", "--exclude", "pip"], check=True, capture_output=True, text=True
    ).stdout
    # Whether Python brings setuptools into a new environment depends on its version.
    return sorted((line for line in listed.splitlines() if line), key=str.lower)


def _name(pin: str) -> str:
    return pin.partition("==")[0].lower()


if __name__ == "__main__":
    sys.exit(main())
