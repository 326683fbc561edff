"""What a recorded case said, beside what the engine decides now."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from tests.decisions.store import ASKS, Case, answers

Json = Any
# A first difference is nearly always followed by others that come of it.
_MOST_LINES = 12


def differences(case: Case) -> list[str]:
    """Return the first answer of a case that is another one now, as a small diff; else nothing."""
    asked = [(index, step) for index, step in enumerate(case.steps) if step[0] in ASKS]
    assert len(asked) == len(case.decided), f"{case.name} has an answer for every question"
    made = answers(case)
    for (index, step), recorded in zip(asked, case.decided, strict=True):
        try:
            found = next(made)
        except Exception as error:  # noqa: BLE001  # whatever it is, the case that shows it has to be named
            return [_where(case, index, step), f"  raised   {type(error).__name__}: {error}"]
        if found != recorded:
            several = [*islice(_differ("", recorded, found), _MOST_LINES + 1)]
            more = ["  ..."] if len(several) > _MOST_LINES else []
            return [_where(case, index, step), *several[:_MOST_LINES], *more]
    return []


def _where(case: Case, index: int, step: list[Json]) -> str:
    number = sum(one[0] in ASKS for one in case.steps[: index + 1])
    return f"{case.name}: decision {number} of {len(case.decided)} (step {index}: {_short(step)})"


def _differ(path: str, recorded: Json, found: Json) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key in sorted(recorded.keys() | found.keys()):
            yield from _differ(f"{path}.{key}", recorded.get(key), found.get(key))
    elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        for place, (one, other) in enumerate(zip(recorded, found, strict=True)):
            yield from _differ(f"{path}[{place}]", one, other)
    elif recorded != found:
        yield f"  {path.removeprefix('.')}"
        yield f"    recorded {_short(recorded)}"
        yield f"    now      {_short(found)}"


def _short(value: Json) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 400 else f"{text[:400]}… ({len(text)} characters)"
