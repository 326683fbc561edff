"""The programs of a real control plane: found if they are there, built from source if not.

`KUBEBUILDER_ASSETS` names a directory that has them. Without it the Go module beside this file is
built once into the user's cache, in a directory named after the versions, which `go.mod` alone
decides. `python -m tests.real.binaries` does that (`make controlplane`); tests only look.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MODULE = Path(__file__).resolve().parent / "controlplane"

# In order of use: a first build can start with the first two.
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
REQUIRED = ("etcd", "kube-apiserver")


class NoControlPlane(Exception):
    """The programs are missing; the text is one line and says what to do."""


def directory() -> Path:
    """Return the directory that has the programs, or should have them once they are built."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return Path(assets)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    versions = f"kubernetes-{_version('k8s.io/kubernetes')}-etcd-{_version(PACKAGES['etcd'])}"
    return cache / "unisono" / "controlplane" / versions


def find() -> Path:
    """Return the directory that has at least etcd and the API server."""
    place = directory()
    missing = [name for name in REQUIRED if not os.access(place / name, os.X_OK)]
    if missing:
        remedy = "KUBEBUILDER_ASSETS" if "KUBEBUILDER_ASSETS" in os.environ else "make controlplane"
        raise NoControlPlane(f"no {' and no '.join(missing)} in {place}; see {remedy}")
    return place


def build() -> Path:
    """Build what is missing and return the directory; nothing happens if all is there."""
    place = directory()
    if "KUBEBUILDER_ASSETS" in os.environ:
        return find()
    missing = [name for name in PACKAGES if not os.access(place / name, os.X_OK)]
    if missing and shutil.which("go") is None:
        raise NoControlPlane("Go is not installed; install it, or set KUBEBUILDER_ASSETS")
    place.mkdir(parents=True, exist_ok=True)
    for name in missing:
        print(f"controlplane: building {name} into {place} (once; minutes)", flush=True)
        _build_one(name, place)
    return place


def _build_one(name: str, place: Path) -> None:
    # Under another name first: a build that was interrupted must not look finished.
    unfinished = place / f".{name}.{os.getpid()}"
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-o", str(unfinished)]
    if name.startswith("kube-"):
        command += ["-ldflags", _stamp(_version("k8s.io/kubernetes"))]
    done = subprocess.run(
        [*command, PACKAGES[name]],
        cwd=MODULE,
        env={**os.environ, "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        unfinished.unlink(missing_ok=True)
        last = (done.stderr.strip().splitlines() or ["no output"])[-1].strip()
        raise NoControlPlane(f"go cannot build {name} (is the module proxy reachable?): {last}")
    unfinished.replace(place / name)


def _stamp(version: str) -> str:
    """Return linker flags that let a server know its own version, and leave symbols out."""
    major, minor, *_ = version.removeprefix("v").split(".")
    fields = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    settings = [f"-X {path}.{name}={value}" for path in packages for name, value in fields.items()]
    return " ".join(["-s -w", *settings])


def _version(package: str) -> str:
    required = re.search(
        rf"^\s*{re.escape(package)} (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE
    )
    assert required is not None, f"{MODULE / 'go.mod'} does not require {package}"
    return required[1]


def main() -> int:
    """Build, and say in one line what is wrong if that fails."""
    try:
        build()
    except NoControlPlane as problem:
        print(f"controlplane: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
