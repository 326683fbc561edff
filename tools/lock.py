"""Write `requirements-dev.lock`: exact versions of all that development needs (`make lock`).

The dependencies of `pyproject.toml` and its group `dev` are installed into a throw-away virtual
environment, and what arrived is written down. Nothing about where it came from is: no index, no
path, so the file works with any mirror.
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
    """Resolve, install and write the lock file."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*config["project"]["dependencies"], *config["dependency-groups"]["dev"]]
    with tempfile.TemporaryDirectory() as directory:
        venv.create(directory, with_pip=True)
        python = str(Path(directory) / "bin" / "python")
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", *wanted], check=True)
        frozen = subprocess.run(
            [*pip, "freeze", "--all", "--exclude", "pip"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    pins = sorted((line for line in frozen.splitlines() if line), key=str.lower)
    # A pin of any other form (`name @ file://…`, `-e …`) would tie the lock to this machine.
    strange = [pin for pin in pins if "==" not in pin or "/" in pin]
    if strange:
        print(f"lock: not a plain version: {', '.join(strange)}", file=sys.stderr)
        return 3
    (ROOT / "requirements-dev.lock").write_text(HEADER + "\n".join(pins) + "\n", encoding="utf-8")
    print(f"lock: {len(pins)} versions pinned")
    return 0


if __name__ == "__main__":
    sys.exit(main())
