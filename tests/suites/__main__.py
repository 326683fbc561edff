"""Build the specs of a public project, run them, and say what passed, failed, or is left out."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import tests.suites.kueue.build as kueue_build
import tests.suites.kueue.run as kueue_run
import tests.suites.volcano.build as volcano_build
import tests.suites.volcano.run as volcano_run
from tests.suites.golang import CannotBuild
from tests.suites.kueue.cluster import SERVERS
from tests.suites.kueue.run import Spec

_SHOWN = 400
_PACKAGES = {"kueue": kueue_build.PACKAGES, "volcano": volcano_build.PACKAGES}
_TOOLS = {"kueue": ("kueuectl", kueue_build.kueuectl), "volcano": ("vcctl", volcano_build.vcctl)}


def main() -> int:
    """Run the suites that are named."""
    parser = argparse.ArgumentParser(prog="make test-suites", description=__doc__)
    parser.add_argument("suite", choices=(*_PACKAGES,), help="the project whose specs are run")
    listed = "; ".join(f"{name}: {', '.join(of)}" for name, of in _PACKAGES.items())
    parser.add_argument("packages", nargs="*", help=f"some of its packages, else all ({listed})")
    parser.add_argument(
        "--server", choices=(*SERVERS,), default="up", help="default: up, Volcano's only one"
    )
    for name, (tool, _) in _TOOLS.items():
        parser.add_argument(
            f"--{tool}", action="store_true", help=f"build {name}'s {tool}, and nothing else"
        )
    parser.add_argument("--focus", default="", help="only specs that match this expression")
    parser.add_argument("--logs", type=Path, help="keep the programs' output in this folder")
    parser.add_argument("--whole", action="store_true", help="show failures in full")
    arguments = parser.parse_args()
    known = _PACKAGES[arguments.suite]
    unknown = [one for one in arguments.packages if one not in known]
    if unknown:
        parser.error(f"there is no package {unknown[0]}; there are {', '.join(known)}")
    if arguments.suite == "volcano" and arguments.server != "up":
        parser.error("Volcano's specs need simulated pods, which only --server up has")
    if arguments.logs is not None:
        arguments.logs.mkdir(parents=True, exist_ok=True)
    tool, build_tool = _TOOLS[arguments.suite]
    found: list[Spec] = []
    try:
        if getattr(arguments, tool):
            print(build_tool())
            return 0
        for one in _run(arguments, arguments.packages or [*known]):
            found.append(one)
            if one.state == "failed":
                why = one.why if arguments.whole else " ".join(one.why.split())[:_SHOWN]
                print(f"failed   {one.package}: {one.name}\n         {why}", flush=True)
    except CannotBuild as problem:
        print(f"test-suites: {problem}", file=sys.stderr)
        return 2
    _summary(found, arguments.server)
    return 1 if any(one.state == "failed" for one in found) else 0


def _run(arguments: argparse.Namespace, names: list[str]) -> Iterable[Spec]:
    focus, keeps = arguments.focus, arguments.logs
    if arguments.suite == "volcano":
        return volcano_run.run(names, focus=focus, keeps=keeps)
    return kueue_run.run(names, arguments.server, focus=focus, keeps=keeps)


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
