"""Record decisions, compare them, and say what they cover.

python -m tests.decisions check [AREA or CASE ...]
python -m tests.decisions record --only CASE ...    answers anew, what is asked stays
python -m tests.decisions record                    the same for all cases
python -m tests.decisions draw [AREA ...]           situations anew from their seeds
python -m tests.decisions harvest                   cases anew from the stories of tests/scenarios
python -m tests.decisions coverage                  write COVERAGE.md
"""

from __future__ import annotations

import argparse
import sys

from tests.decisions import store
from tests.decisions.areas import AREAS
from tests.decisions.compare import differences
from tests.decisions.coverage import TABLE, counted_all, gaps, table
from tests.decisions.harvest import SOURCES, harvest


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.decisions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check").add_argument("names", nargs="*")
    commands.add_parser("record").add_argument("--only", nargs="+", default=[], metavar="CASE")
    commands.add_parser("draw").add_argument("names", nargs="*")
    commands.add_parser("harvest").add_argument("names", nargs="*")
    commands.add_parser("coverage")
    given = parser.parse_args()
    match given.command:
        case "check":
            return _check(given.names)
        case "record":
            return _record(given.only)
        case "draw":
            return _draw(given.names)
        case "harvest":
            return _harvest(given.names)
        case _:
            return _coverage()


def _check(names: list[str]) -> int:
    failed = compared = 0
    for area in store.areas():
        for case in store.cases(area):
            if names and not _is_named(case, names):
                continue
            compared += len(case.decided)
            found = differences(case)
            failed += bool(found)
            _print(*found)
    _print(f"{compared} decisions compared, {failed} cases differ")
    return 1 if failed else 0


def _record(only: list[str]) -> int:
    """Answer the questions of recorded cases anew; say which cases have other answers now."""
    known = {case.name for area in store.areas() for case in store.cases(area)}
    unknown = [name for name in only if name not in known and name not in store.areas()]
    if unknown:
        _print(f"there is no case {unknown[0]}; `coverage` lists areas, `check` names cases")
        return 2
    for area in store.areas():
        found, changed = store.cases(area), []
        for case in found:
            if only and not _is_named(case, only):
                continue
            answers = [*store.answers(case)]
            if answers != case.decided:
                case.decided = answers
                changed.append(case.name)
        if changed:
            store.write(area, found)
            _print(*(f"recorded anew: {name}" for name in changed))
    return _coverage()


def _draw(names: list[str]) -> int:
    for kind, number in AREAS.items():
        if not names or kind.area in names:
            store.write(kind.area, [kind(each).told() for each in range(number)])
            _print(f"drawn: {kind.area}, {number} cases")
    return _coverage()


def _harvest(names: list[str]) -> int:
    for area, tests in SOURCES.items():
        if not names or area in names:
            found = harvest(area, tests)
            store.write(area, found)
            _print(f"harvested: {area}, {len(found)} cases")
    return _coverage()


def _coverage() -> int:
    counts = counted_all()
    TABLE.write_text(table(counts))
    _print(f"written: {TABLE.name}", *(f"not covered: {name}" for name in gaps(counts)))
    return 0


def _is_named(case: store.Case, names: list[str]) -> bool:
    return case.name in names or case.area in names


def _print(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
