"""`make scenarios`: every numbered scenario of the specifications, and how it fares.

    python -m tests.scenarios [AREA]

Prints one line a number (more where a story fails) and a closing count; exits with 1 if a number
fails or has neither a story nor a reason.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from tests.scenarios.outcomes import Mismatch
from tests.scenarios.reading import BadScenario
from tests.scenarios.runner import run
from tests.scenarios.stories import AREAS, Numbers, numbers_of, story_of

_WIDTH = 100
_COLUMN = len(" 99  out of reach  ")


def main(arguments: list[str]) -> int:
    """Run the areas named, or all of them."""
    areas = arguments or list(AREAS)
    unknown = [area for area in areas if area not in AREAS]
    if unknown:
        print(f"no area {unknown[0]}; there are {', '.join(AREAS)}", file=sys.stderr)
        return 2
    failed = 0
    for index, area in enumerate(areas):
        if index:
            print()
        failed += report(area, numbers_of(area))
    return 1 if failed else 0


def report(area: str, numbers: Numbers) -> int:
    """Print one area; return how many of its numbers fail."""
    counts = {"pass": 0, "FAIL": 0, "out of reach": 0, "elsewhere": 0}
    stories = sum(len(paths) for paths in numbers.stories.values())
    told = f"{len(numbers.known)} scenarios, {stories} stories"
    print(f"{area} (docs/semantics/{AREAS[area].document}): {told}")
    for number in numbers.known:
        outcome, text = _outcome(number, numbers)
        counts[outcome] += 1
        _print_row(number, outcome, text)
    passed, failed, out_of_reach, elsewhere = counts.values()
    more = f", {elsewhere} elsewhere" if elsewhere else ""
    print(f"{passed} passed, {failed} failed, {out_of_reach} out of reach{more}")
    return failed


def _outcome(number: int, numbers: Numbers) -> tuple[str, str]:
    """Run the stories of one number."""
    stories = numbers.stories.get(number, [])
    if not stories and number in numbers.elsewhere:
        return "elsewhere", numbers.elsewhere[number]
    if not stories:
        reason = numbers.out_of_reach.get(number)
        return ("out of reach", reason) if reason else ("FAIL", "has no story and no reason")
    problems = [problem for path in stories if (problem := _problem(path))]
    if problems:
        return "FAIL", "\n".join(problems)
    text = story_of(stories[0])
    if len(stories) > 1:
        text += f" ({len(stories)}\N{NO-BREAK SPACE}stories)"
    if number in numbers.left_out:
        text += f"\nLeft out: {numbers.left_out[number]}"
    return "pass", text


def _problem(path: Path) -> str:
    """Run one story; return what is wrong, or nothing."""
    try:
        run(path)
    except (Mismatch, BadScenario) as error:
        return f"{path.stem}: {error}"
    except Exception as error:  # noqa: BLE001  # one broken story must not hide the others
        return f"{path.stem}: {type(error).__name__}: {error}"
    return ""


def _print_row(number: int, outcome: str, text: str) -> None:
    rows = [
        row.replace("\N{NO-BREAK SPACE}", " ")
        for line in text.splitlines()
        for row in textwrap.wrap(line, _WIDTH - _COLUMN, break_on_hyphens=False)
    ]
    print(f"{number:3}  {outcome:12}  {rows[0]}")
    for row in rows[1:]:
        print(" " * _COLUMN + row)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
