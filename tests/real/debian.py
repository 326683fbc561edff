"""Programs of a distribution that real tests need: found, or installed where that is possible.

`python -m tests.real.debian` installs those of Prometheus, a browser and a proxy; tests only look.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

# What tests call, and the packages that have it.
PROGRAMS = {
    "prometheus": ("prometheus",),
    "promtool": ("prometheus",),
    "amtool": ("prometheus-alertmanager",),
    "chromium": ("chromium",),
    "kubectl": ("kubernetes-client",),
    "nginx": ("nginx-light",),
}


class CannotInstall(Exception):
    """It is missing, and we cannot help it; the text is one line and says what to do."""


def install(packages: Sequence[str], why: str) -> None:
    """Install packages; needs root on Debian or Ubuntu."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotInstall(f"install {' '.join(packages)} for {why}")
    options = ("-y", "-qq", "--no-install-recommends")
    # No package may start a service that a test would meet.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (("update", "-qq"), ("install", *options, *packages)):
        done = subprocess.run(
            ["apt-get", *command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise CannotInstall(f"apt-get {command[0]} fails: {last}")


def main() -> int:
    """Install what is missing, and say in one line what is wrong if that fails."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    packages = list(dict.fromkeys(one for name in missing for one in PROGRAMS[name]))
    if not packages:
        return 0
    print(f"real tests: installing {', '.join(packages)} (once; a minute)", flush=True)
    try:
        install(packages, "the tests with a real Prometheus, a browser, kubectl and nginx")
    except CannotInstall as problem:
        print(f"real tests: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
