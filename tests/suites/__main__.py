"""Build the specs of a public project, run them, and say what passed, failed, or is left out."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.suites.kueue.build import PACKAGES, CannotBuild, kueuectl
from tests.suites.kueue.cluster import SERVERS
from tests.suites.kueue.run import Spec, run

_SHOWN = 400


def main() -> int:
    """Run the suites that are named."""
    parser = argparse.ArgumentParser(prog="make test-suites", description=__doc__)
    parser.add_argument("suite", choices=("kueue",), help="the project whose specs are run")
    parser.add_argument("packages", nargs="*", help=f"some of {', '.join(PACKAGES)}; else all")
    parser.add_argument("--server", choices=(*SERVERS,), default="up", help="default: up")
    parser.add_argument("--kueuectl", action="store_true", help="build kueuectl, and nothing else")
    parser.add_argument("--focus", default="", help="only specs that match this expression")
    parser.add_argument("--logs", type=Path, help="keep the programs' output in this folder")
    parser.add_argument("--whole", action="store_true", help="show failures in full")
    arguments = parser.parse_args()
    unknown = [one for one in arguments.packages if one not in PACKAGES]
    if unknown:
        parser.error(f"there is no package {unknown[0]}; there are {', '.join(PACKAGES)}")
    if arguments.logs is not None:
        arguments.logs.mkdir(parents=True, exist_ok=True)
    found: list[Spec] = []
    try:
        if arguments.kueuectl:
            print(kueuectl())
            return 0
        names = arguments.packages or [*PACKAGES]
        for one in run(names, arguments.server, focus=arguments.focus, keeps=arguments.logs):
            found.append(one)
            if one.state == "failed":
                why = one.why if arguments.whole else " ".join(one.why.split())[:_SHOWN]
                print(f"failed   {one.package}: {one.name}\n         {why}", flush=True)
    except CannotBuild as problem:
        print(f"test-suites: {problem}", file=sys.stderr)
        return 2
    _summary(found, arguments.server)
    return 1 if any(one.state == "failed" for one in found) else 0


def _summary(found: list[Spec], server: str) -> None:
    for state in ("strict", "out of scope"):
        reasons = Counter(one.why for one in found if one.state == state)
        for why, count in reasons.most_common():
            print(f"{state}: {count:>3}  {why}")
    print(
        f"\n{'package':<24}{'run':>5}{'passed':>8}{'strict':>8}{'failed':>8}{'out of scope':>14}"
        f"   on {server}"
    )
    rows = [*dict.fromkeys(one.package for one in found)]
    for name in [*rows, "all"]:
        states = Counter(one.state for one in found if name in (one.package, "all"))
        passed, strict, failed = states["passed"], states["strict"], states["failed"]
        print(
            f"{name:<24}{passed + strict + failed:>5}{passed:>8}{strict:>8}{failed:>8}"
            f"{states['out of scope']:>14}"
        )


if __name__ == "__main__":
    sys.exit(main())
